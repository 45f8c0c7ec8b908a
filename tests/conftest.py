"""One small run, and one Chromium, for all tests that need them."""

import os
import shutil
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
    with pytest.warns(UserWarning, match="No model"):
        explore(table, **COLUMNS, **TRAINING, out=out)
    return out


@pytest.fixture(scope="session")
def browser():
    """Chromium of this machine, started once in a process, which cannot have two."""
    path = next(
        filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
    )
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="browser tests need Playwright: pip install playwright"
    )
    if path is None:
        pytest.skip("browser tests need Chromium on the path: apt-get install chromium")
    as_root = hasattr(os, "geteuid") and os.geteuid() == 0
    with playwright.sync_playwright() as started:
        chromium = started.chromium.launch(
            executable_path=path, args=["--no-sandbox"] if as_root else []
        )
        yield chromium
        chromium.close()
