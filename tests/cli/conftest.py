"""One small run for all tests that need one, and a way to type a command."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from apfex import make_biased
from apfex.cli import main


@dataclass(frozen=True)
class Typed:
    """What a command printed, and its exit code."""

    code: int
    out: str
    err: str


@pytest.fixture
def apfex(capsys: pytest.CaptureFixture[str]) -> Callable[..., Typed]:
    """Type a command; the same edge as in a process, without its start."""

    def run(*arguments: object) -> Typed:
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        printed = capsys.readouterr()
        assert "Traceback" not in printed.err
        return Typed(code, printed.out, printed.err)

    return run


def people(n: int = 300, seed: int = 0) -> pd.DataFrame:
    data = make_biased(n, random_state=seed)
    frame = pd.concat([data.X, data.sensitive], axis=1)
    frame["town"] = frame["town"].replace({"Ashford": "=HYPERLINK(1)", "Bexley": "[red]x[/red]"})
    return frame.assign(hired=np.where(data.y == 1, "hired", "rejected"))


TRAINING = ["--model", "linear", "--search", "members", "--points", "4", "--criteria", "dp"]
COLUMNS = ["--label", "hired", "--positive", "hired", "--sensitive", "sex,origin"]


@pytest.fixture(scope="session")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "people.csv"
    people().to_csv(path, index=False)
    return path


@pytest.fixture(scope="session")
def finished(table: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run."""
    out = tmp_path_factory.mktemp("runs") / "run"
    assert main(["explore", str(table), *COLUMNS, *TRAINING, "--out", str(out)]) == 0
    return out


@pytest.fixture
def decisions(tmp_path: Path) -> Path:
    """Decisions that favor men, and labels."""
    rng = np.random.default_rng(0)
    sex = rng.choice(["female", "male"], 800)
    frame = pd.DataFrame({"sex": sex, "race": rng.choice(["a", "b"], 800)})
    frame["score"] = rng.random(800) + 0.2 * (sex == "male")
    frame["approved"] = np.where(frame["score"] > 0.6, "yes", "no")
    frame["repaid"] = rng.choice(["yes", "no"], 800)
    frame.to_csv(tmp_path / "decisions.csv", index=False)
    return tmp_path / "decisions.csv"
