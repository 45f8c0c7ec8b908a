"""A way to type a command."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tests import people
from tests.people import options

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


TRAINING, COLUMNS = options(people.TRAINING), options(people.COLUMNS)


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
