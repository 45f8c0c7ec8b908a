"""Paths that no system takes, kinds that nothing is made of, seeds of twenty digits: a sentence."""
# pyright: reportArgumentType=false

from functools import cache
from typing import Any

import pandas as pd
import pytest
from tests.messages import check

from apfex import APFExClassifier, audit, explore, make_biased
from apfex.auditing import audit_table
from apfex.datasets import load_images
from apfex.estimator import load
from apfex.report import write_audit_page
from apfex.runs import audit_file, load_audit, load_run, rerun, rewrite_report
from apfex.streams import StreamSettings

TABLE = pd.DataFrame({"sex": ["F", "M"] * 40, "p": [0, 1] * 40, "y": [0, 1, 1, 0] * 20})
PATHS = {
    "nothing": ("", "an empty one"),
    "a NUL": ("a\0b", "NUL"),
    "a long name": ("x" * 300, "a name of more than 255 bytes in 'xxx"),
    "a long path": ("/".join(["y" * 200] * 30), "more than 4,095"),
    "half a character": ("\ud800x", "'\\ud800'"),
}


@cache
def fitted() -> APFExClassifier:
    data = make_biased(n=160, random_state=0)
    clf = APFExClassifier(model="linear", epochs=1, max_gap=1.0, random_state=0, n_jobs=1)
    return clf.fit(data.X, data.y, sensitive_features=data.sensitive)


@cache
def audited() -> Any:
    return audit(TABLE["y"], TABLE["p"], sensitive_features=TABLE["sex"])


def fit(X=TABLE, y=TABLE["y"], **given):
    clf = APFExClassifier(model="linear", epochs=1, max_gap=1.0, random_state=0, n_jobs=1)
    groups = TABLE["sex"] if X is TABLE else ["sex"]
    return clf.fit(X, y, sensitive_features=groups, **given)


def explored(source=TABLE, **given):
    return explore(source, **({"label": "y", "sensitive": "sex"} | given))


def audited_file(source=TABLE, **given):
    return audit_file(source, **({"prediction": "p", "sensitive": "sex"} | given))


CALLS: dict[str, tuple[str, Any]] = {
    "save": ("folder", lambda path: fitted().save(path)),
    "load": ("folder", load),
    "to_onnx": ("path", lambda path: fitted().to_onnx(path)),
    "fit of files": ("X", lambda path: fit(path, "y")),
    "checkpoint": ("checkpoint", lambda path: fit(checkpoint=path)),
    "streaming": ("folder", lambda path: StreamSettings(folder=path)),
    "explore": ("source", explored),
    "out": ("out", lambda path: explored(out=path)),
    "audit_file": ("source", audited_file),
    "audit_table": ("source", lambda path: audit_table(path, prediction="p", sensitive="sex")),
    "load_run": ("run", load_run),
    "load_audit": ("run", load_audit),
    "rerun": ("run", rerun),
    "rewrite_report": ("run", rewrite_report),
    "audit page": ("path", lambda path: write_audit_page(audited(), path)),
    "images": ("folder", lambda path: load_images(path)),
    "attributes": ("attributes", lambda path: load_images(".", attributes=path)),
}


@pytest.mark.parametrize("kind", PATHS)
@pytest.mark.parametrize("call", CALLS)
def test_a_path_that_no_system_takes_is_named(call, kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    argument, of_path = CALLS[call]
    path, shown = PATHS[kind]
    if argument == "attributes":
        (tmp_path / "1.png").touch()
    check(lambda: of_path(path), argument, shown)
    assert {one.name for one in tmp_path.iterdir()} <= {"1.png"}


NAMES = [
    (3, "3"),
    (1.5, "1.5"),
    (True, "True"),
    (["sex", 3], "3"),
    (b"sex", "b'sex'"),
]
TEXTS = [(3, "3"), (1.5, "1.5"), (["a"], "['a']"), (b"a", "b'a'"), ({"a": 1}, "{'a': 1}")]
NUMBERS = [("a", "'a'"), ([1], "[1]"), (b"a", "b'a'"), (True, "True")]
SEEDS = [(10**19, "10000000000000000000"), (2**32, "4294967296"), (-1, "-1"), (1.5, "1.5"),
         ("7", "'7'"), (True, "True"), ([1], "[1]")]  # fmt: skip
BINS = [(3, "3"), ("age", "'age'"), ({"a": 1}, "{'a': 1}"), ({"a": ["x"]}, "['x']")]
FLAGS = [("no", "'no'"), (3, "3")]
EXPLORE = {
    **dict.fromkeys(("sensitive", "drop", "criteria", "model", "strategy"), NAMES),
    **dict.fromkeys(("label", "weight", "scoring", "search"), TEXTS),
    **dict.fromkeys(("group_thresholds", "include_sensitive"), FLAGS),
    "test_fraction": NUMBERS,
    "seed": SEEDS,
    "bins": BINS,
}
AUDIT = {
    **dict.fromkeys(("sensitive", "criteria", "control"), NAMES),
    **dict.fromkeys(("label", "prediction", "score", "weight", "encoding", "table"), TEXTS),
    "threshold": NUMBERS,
    "drop_missing": FLAGS,
    "bins": BINS,
}


@pytest.mark.parametrize(
    ("argument", "value", "shown"), [(name, *one) for name, some in EXPLORE.items() for one in some]
)
def test_what_explore_cannot_take_is_named(argument, value, shown):
    check(lambda: explored(**{argument: value}), argument, shown)


@pytest.mark.parametrize(
    ("argument", "value", "shown"), [(name, *one) for name, some in AUDIT.items() for one in some]
)
def test_what_an_audit_cannot_take_is_named(argument, value, shown):
    check(lambda: audited_file(**{argument: value}), argument, shown)


@pytest.mark.parametrize("seed", [10**19, 2**32, -1, 1.5, "a"])
def test_a_seed_that_is_none_is_named(seed):
    made = APFExClassifier(model="linear", epochs=1, random_state=seed)
    given = {"sensitive_features": TABLE["sex"]}
    check(lambda: made.fit(TABLE[["p"]], TABLE["y"], **given), "random_state", str(seed))


def test_rows_that_there_is_no_memory_for_are_refused():
    for n in (10**12, 10**30):
        check(lambda n=n: make_biased(n=n), "n", f"{n:,}")
