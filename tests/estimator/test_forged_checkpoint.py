"""States that somebody else has written, with a checksum that fits, are refused in a sentence."""

import hashlib
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.forgeries.readers import READERS, fit_with, prepare

from apfex.front import Front
from apfex.persistence import CheckpointError
from apfex.persistence._states import read_state, write_state

NAN = float("nan")


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """Checkpoints of fits of several kinds."""
    place = tmp_path_factory.mktemp("kept")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        prepare(place, place, {f"checkpoint of {kind}" for kind, *_ in FORGED})
    return place


def put(*path: Any, to: Any) -> Callable[[Any], None]:
    """Put something else in the place of a part."""

    def forge(state: Any) -> None:
        for key in path[:-1]:
            state = state[key]
        state[path[-1]] = to(state[path[-1]]) if callable(to) else to

    return forge


def drop(*path: Any) -> Callable[[Any], None]:
    def forge(state: Any) -> None:
        for key in path[:-1]:
            state = state[key]
        del state[path[-1]]

    return forge


def filled(value: float) -> Callable[[torch.Tensor], torch.Tensor]:
    return lambda tensor: torch.full_like(tensor, value)


def shorter(tensor: torch.Tensor) -> torch.Tensor:
    return tensor[:1]


RUNNING = ("learners", "gradient", "losses", "soft", 0)
EXPLORER = ("learners", "gradient", "explorer")
FORGED: list[tuple[str, str, Callable[[Any], None], str]] = [
    ("networks", "training", drop("population"), "population"),
    ("networks", "training", put("epochs", to=-3), "epochs must be a whole number from 1 to 12"),
    ("networks", "training", put("epochs", to=10**9), "epochs must be a whole number from 1 to 12"),
    ("networks", "training", put("epochs", to="8"), "epochs must be a whole number from 1 to 12"),
    ("networks", "training", put("population", "values", 0, to=filled(NAN)), "must be finite"),
    (
        "networks",
        "training",
        put("population", "values", 0, to=shorter),
        r"values\[0\] must be flo",
    ),
    ("networks", "training", drop("population", "values", 0), "values must have 4 parts"),
    ("networks", "training", put("learners", "members", to=lambda m: m - 1), "members must be th"),
    ("networks", "training", put("learners", "members", to=lambda m: m[:1]), "members must be int"),
    ("networks", "training", put("learners", "optimizer", "squares", 0, to=filled(-1)), "from 0"),
    ("networks", "training", put("learners", "optimizer", "count", to="many"), "optimizer.count"),
    ("networks", "training", put(*RUNNING, "mean", to=shorter), "mean must be float32 of shape"),
    ("networks", "training", put(*RUNNING, "mean", to=filled(-1)), "mean must be counts"),
    ("networks", "training", put(*EXPLORER, "trace", "step", to=7), "history of 7 steps"),
    ("networks", "training", put(*EXPLORER, "trace", "members", to=[9]), "must be of one with"),
    ("networks", "training", put(*EXPLORER, "history", "window", to=0), "must be of one with"),
    ("networks", "training", put(*EXPLORER, "history", "sums", "choice", to="x"), "The choice of"),
    ("networks", "training", put(*EXPLORER, "missed", to=filled(NAN)), "missed must be finite"),
    ("networks", "training", put("stopping", "best", to=filled(NAN)), "must be losses"),
    (
        "networks",
        "training",
        put("stopping", "going", to=lambda g: g.long()),
        "stopping.going must",
    ),
    ("networks", "training", put("beside", "looks", to=[]), "looks must be those after"),
    ("networks", "training", put("beside", "losses", to=[]), "losses must be of"),
    ("networks", "training", put("drawn", to=lambda d: d[:9]), "drawn must be uint8 of shape"),
    ("own trees", "rounds", put("rounds", to=7), "trees must be of 3 members"),
    ("own trees", "rounds", put("rounds", to=10**9), "rounds must be a whole number from 1 to 20"),
    ("own trees", "rounds", put("trees", to=[]), "trees must be of 3 members"),
    ("networks", "seed", put("seed", to=-1), "seed must be a whole number"),
    ("linear rules", "learner0-training", put("epochs", to=99), "epochs must be a whole number"),
    ("tree rules", "decisions", lambda codes: codes.fill_(2), "codes must be from 0 to 1"),
    ("tree rules", "rules", put("rules", to=filled(NAN)), "rules must be finite"),
    ("tree rules", "rules", put("steps", to=filled(0)), "steps must be those of the looks"),
    ("tree rules", "learner0-trees0-0", put("losses", to=[]), "losses must be finite numbers"),
    ("tree rules", "learner0-trees0-0", put("losses", to=[0.5]), "losses must be of every round"),
    ("tree rules", "learner0-trees0-0", put("trees", to=3), "trees must be an ensemble"),
]


@pytest.mark.parametrize(("kind", "name", "forge", "told"), FORGED)
def test_a_state_that_does_not_fit_is_refused(kept, tmp_path, kind, name, forge, told):
    folder = tmp_path / "kept"
    shutil.copytree(kept / f"checkpoint of {kind}", folder)
    path = folder / "checkpoint" / f"{name}.state"
    state = read_state(path.read_bytes(), path)
    forge(state)
    path.write_bytes(write_state(state))
    said = rf"{name}.state' is damaged \(.*{told}.*\); remove this file, and what it held is comp"
    with pytest.raises(CheckpointError, match=said):
        READERS[f"checkpoint of {kind}"].use(folder)


def test_trees_of_another_table_are_refused(kept, tmp_path):
    folder = tmp_path / "kept"
    shutil.copytree(kept / "checkpoint of tree rules", folder)
    place = folder / "checkpoint"
    # trees of the group take the label, too
    (place / "learner0-trees1-1.state").rename(place / "learner0-trees0-0.state")
    with pytest.raises(CheckpointError, match=r"damaged \(trees must take 3 inputs"):
        READERS["checkpoint of tree rules"].use(folder)


def test_tensors_that_share_what_is_stored_are_refused():
    """Some bytes of JSON would ask for the same large array a thousand times."""
    stored = write_state([torch.zeros(1_000), torch.zeros(1_000)])
    where = b'"value": ["tfloat32", 1000, [1000]]'
    forged = stored[32:].replace(where, b'"value": ["tfloat32", 0, [2000 ]]  '[: len(where)])
    assert forged != stored[32:]
    with pytest.raises(ValueError, match="larger than what is stored of 'tfloat32'"):
        read_state(hashlib.sha256(forged).digest() + forged, Path("training"))


def test_what_is_whole_goes_on(kept, tmp_path):
    for kind in {kind for kind, *_ in FORGED}:
        folder = tmp_path / kind
        shutil.copytree(kept / f"checkpoint of {kind}", folder)
        given = READERS[f"checkpoint of {kind}"]
        given.use(folder)
    assert isinstance(fit_with({"model": "linear", "epochs": 2}, tmp_path / "new").front_, Front)
