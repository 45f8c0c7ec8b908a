"""One small run for all tests of ``runs`` and ``cli`` that need one."""

from pathlib import Path

import pytest
from tests.people import COLUMNS, TRAINING, people


@pytest.fixture(scope="session")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "people.csv"
    people().to_csv(path, index=False)
    return path


@pytest.fixture(scope="session")
def finished(table: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run."""
    from apfex import explore

    out = tmp_path_factory.mktemp("runs") / "run"
    with pytest.warns(UserWarning, match="No model meets"):
        explore(table, **COLUMNS, **TRAINING, out=out)
    return out
