"""Nothing wrong in silence: each promise, for every kind of model and every way in.

Rows are kinds and entry points, columns are promises; a kind that joins ``KINDS`` or ``WAYS``
inherits all of them.
"""

import json
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.linear_model import LogisticRegression
from tests.persistence.saved import CASES, MEMBERS, NEW, SENSITIVE, TREES, X, Y

import apfex
from apfex import APFExClassifier, audit
from apfex.auditing import audit_table
from apfex.cli import main
from apfex.estimator import load
from apfex.metrics import dp_gap, tpr_gap
from apfex.runs import audit_file, check_gates
from apfex.streams import StreamSettings

pytestmark = pytest.mark.filterwarnings("ignore")
NUMBERS, FAVORABLE = ["merit_1", "merit_2", "noise_1"], 0
TABLE, FRESH = X[NUMBERS], NEW[NUMBERS]
PEOPLE, FRESH_PEOPLE = SENSITIVE, SENSITIVE.head(len(NEW)).reset_index(drop=True)


def in_production() -> Any:
    return LogisticRegression().fit(TABLE, Y)


SETTINGS: dict[str, Any] = {
    "linear": lambda: {"model": "linear"},
    "networks": lambda: {"model": "mlp"},
    "boosting": lambda: TREES,
    "auto": lambda: {"model": "auto", "learning_rate": None, "epochs": None},
    "a mixture": lambda: {**TREES, "model": ("mlp", "boosting"), "learning_rate": None},
    "a classifier of the user's": lambda: {**TREES, "model": LogisticRegression()},
    "around a fitted model": lambda: {**TREES, "init": in_production()},
    "around a function": lambda: {**TREES, "init": in_production().predict_proba},
    "a factory": lambda: CASES["a factory"][0],
    "networks inprocess": lambda: {**MEMBERS, "hidden": (6,)},
    "linear inprocess": lambda: {**MEMBERS, "model": "linear"},
    "boosting inprocess": lambda: {**MEMBERS, **TREES},
    "thresholds by group": lambda: {"model": "linear", "group_thresholds": True},
    "attributes": lambda: {"model": "linear", "grouping": "attributes"},
    "a stream": lambda: {"model": "linear", "streaming": StreamSettings(1_000, 1_000, 100)},
}  # fmt: skip
LOADED = {"linear", "networks", "boosting", "a mixture", "networks inprocess", "boosting inprocess"}
QUICK = {"boosting"}
"""Kinds of the fast tier."""
KINDS = [*SETTINGS, *(f"{name}, loaded" for name in sorted(LOADED))]


def fit(kind: str) -> APFExClassifier:
    given = {"epochs": 2, "n_members": 3, "batch_size": 64, "n_points": 3, "learning_rate": 0.05}
    given |= {"max_gap": 1.0, "random_state": 0, "favorable_label": FAVORABLE}
    clf = APFExClassifier(("tpr",), **(given | SETTINGS[kind]()))
    if kind == "a stream":
        import pyarrow as pa

        rows = pa.Table.from_pandas(pd.concat([TABLE, PEOPLE], axis=1).assign(y=Y))
        return clf.fit(lambda: rows.to_reader(100), "y", sensitive_features=list(PEOPLE))
    return clf.fit(TABLE, Y, sensitive_features=PEOPLE)


@cache
def folder_of(kind: str) -> str:
    import tempfile

    return str(fitted(kind).save(f"{tempfile.mkdtemp()}/model"))


@cache
def fitted(kind: str) -> APFExClassifier:
    name, _, loaded = kind.partition(", ")
    return load(folder_of(name)) if loaded else fit(name)


def given_to(clf: APFExClassifier) -> dict[str, Any]:
    return {"sensitive_features": FRESH_PEOPLE} if clf.group_thresholds else {}


def of_threads(clf: APFExClassifier) -> None:
    expected = clf.predict_proba(FRESH, **given_to(clf)), clf.predict(FRESH, **given_to(clf))
    with ThreadPoolExecutor(8) as threads:
        calls = [
            (threads.submit(clf.predict_proba, FRESH, **given_to(clf)),
             threads.submit(clf.predict, FRESH, **given_to(clf)))
            for _ in range(12)
        ]  # fmt: skip
        for probabilities, decided in calls:
            assert (probabilities.result() == expected[0]).all()
            assert (decided.result() == expected[1]).all()


def of_the_favorable_label(clf: APFExClassifier) -> None:
    """Rates are those of the favorable label, which is not 1, and it is told."""
    found = clf.audit(FRESH, Y[: len(FRESH)], sensitive_features=FRESH_PEOPLE)
    assert found.settings.favorable_label == FAVORABLE
    assert clf.front_.favorable_label == FAVORABLE
    decided = clf.predict(FRESH, **given_to(clf))
    assert found.share_favored == np.mean(decided == FAVORABLE)
    call: dict[str, Any] = {"sensitive_features": FRESH_PEOPLE, "min_count": 10}
    gap = tpr_gap(Y[: len(FRESH)], decided, pos_label=FAVORABLE, **call)
    crossing = found.gaps[(found.gaps["criterion"] == "tpr") & found.gaps["by"].str.contains(" x ")]
    np.testing.assert_allclose(crossing["gap"], [gap])


def of_identity(clf: APFExClassifier) -> None:
    """Rows that two indexes pair up differently are refused."""
    shuffled = FRESH_PEOPLE.sample(frac=1, random_state=0)
    with pytest.raises(ValueError, match=r"must have the index of X"):
        clf.audit(FRESH, Y[: len(FRESH)], sensitive_features=shuffled)
    if clf.group_thresholds:
        with pytest.raises(ValueError, match=r"sensitive_features must have the index of X"):
            clf.predict(FRESH, sensitive_features=shuffled)


def of_words(clf: APFExClassifier) -> None:
    words = np.where(Y[: len(FRESH)] == 1, "yes", "no")
    for labels in (words, Y[: len(FRESH)] * 2 - 1):
        with pytest.raises(ValueError, match=r"y must hold labels of \[0, 1\], got"):
            clf.audit(FRESH, labels, sensitive_features=FRESH_PEOPLE)


def of_verdicts(clf: APFExClassifier) -> None:
    """Those of its decisions, whoever made them."""
    found = clf.audit(FRESH, Y[: len(FRESH)], sensitive_features=FRESH_PEOPLE)
    plain = audit(
        Y[: len(FRESH)], clf.predict(FRESH, **given_to(clf)), sensitive_features=FRESH_PEOPLE,
        criteria=found.settings.criteria, tolerance=found.settings.tolerance,
        favorable_label=FAVORABLE,
    )  # fmt: skip
    pd.testing.assert_frame_equal(found.gaps, plain.gaps)
    assert found.summary.text == plain.summary.text


PROMISES = {
    "threads": of_threads,
    "favorable label": of_the_favorable_label,
    "identity": of_identity,
    "words": of_words,
    "verdicts": of_verdicts,
}


@pytest.mark.parametrize("promise", PROMISES)
@pytest.mark.parametrize(
    "kind", [pytest.param(k, marks=() if k in QUICK else pytest.mark.slow) for k in KINDS]
)
def test_every_kind_of_model_keeps(kind, promise):
    PROMISES[promise](fitted(kind))


@pytest.mark.parametrize(
    "kind", [pytest.param(k, marks=() if k in QUICK else pytest.mark.slow) for k in SETTINGS]
)
def test_seeds_make_the_same_front(kind):
    first, second = fitted(kind), fit(kind)
    pd.testing.assert_frame_equal(first.front_.to_frame(), second.front_.to_frame())
    ours, theirs = (one.predict_proba(FRESH, **given_to(one)) for one in (first, second))
    assert (ours == theirs).all()


# Audits, by every way in.

N = 400
_random = np.random.default_rng(0)
DECISIONS = pd.DataFrame(
    {
        "sex": _random.choice(["F", "M"], N),
        "race": _random.choice(["a", "b", "c"], N),
        "y": np.where(_random.random(N) < 0.5, "granted", "denied"),
        "d": np.where(_random.random(N) < 0.5, "granted", "denied"),
    }
)
ROLES: dict[str, Any] = {"label": "y", "prediction": "d"}


def by_sqlite(frame: pd.DataFrame, place: Any, **given: Any) -> Any:
    with sqlite3.connect(place / "rows.sqlite") as connection:
        frame.to_sql("rows", connection, index=False)
    return audit_table(place / "rows.sqlite", **ROLES, **given)


def by_duckdb(frame: pd.DataFrame, place: Any, **given: Any) -> Any:
    with duckdb.connect(str(place / "rows.duckdb")) as connection:
        connection.register("frame", frame)
        connection.execute("create table rows as select * from frame")
    return audit_table(place / "rows.duckdb", **ROLES, **given)


def by_parquet(frame: pd.DataFrame, place: Any, **given: Any) -> Any:
    for part in (0, 1):
        frame[part::2].to_parquet(place / f"{part}.parquet", index=False)
    return audit_table(str(place / "*.parquet"), **ROLES, **given)


def by_csv(frame: pd.DataFrame, place: Any, **given: Any) -> Any:
    frame.to_csv(place / "rows.csv", index=False)
    return audit_table(place / "rows.csv", **ROLES, **given)


def by_file(frame: pd.DataFrame, place: Any, **given: Any) -> Any:
    frame.to_csv(place / "rows.csv", index=False)
    return of_run(place / "rows.csv", **given)


def of_run(source: Any, *, favorable_label: Any, **given: Any) -> Any:
    return audit_file(source, positive=favorable_label, **ROLES, **given).audit


def by_command(frame: pd.DataFrame, place: Any, **given: Any) -> Any:
    frame.to_csv(place / "rows.csv", index=False)
    words = ["audit", str(place / "rows.csv"), "--prediction", "d", "--label", "y", "--json"]
    words += ["--positive", str(given["favorable_label"]), "--out", str(place / "out")]
    for name in given["sensitive"]:
        words += ["--sensitive", name]
    if main(words):
        raise ValueError("y_pred must be written as y_true is")
    return apfex.runs.load_audit(place / "out").audit


def in_memory(frame: pd.DataFrame, place: Any, *, sensitive: Any, **given: Any) -> Any:
    del place
    return audit(frame["y"], frame["d"], sensitive_features=frame[sensitive], **given)


WAYS: dict[str, Any] = {
    "in memory": in_memory,
    "a frame in an engine": lambda frame, _, **g: audit_table(frame, **ROLES, **g),
    "a frame of polars": lambda frame, _, **g: audit_table(pl.from_pandas(frame), **ROLES, **g),
    "a lazy frame": lambda frame, _, **g: audit_table(pl.from_pandas(frame).lazy(), **ROLES, **g),
    "SQLite": by_sqlite,
    "DuckDB": by_duckdb,
    "Parquet": by_parquet,
    "CSV": by_csv,
    "audit_file of a frame": lambda frame, _, **g: of_run(frame, **g),
    "audit_file": by_file,
    "the command line": by_command,
}


def way_of(name: str, place: Any, frame: pd.DataFrame = DECISIONS, **given: Any) -> Any:
    given = {"sensitive": ["sex", "race"], "favorable_label": "granted"} | given
    return WAYS[name](frame, place, **given)


BY = [
    pytest.param(way, marks=pytest.mark.slow if "command" in way else ()) for way in WAYS
]  # the command line writes a page each time
SHOWN = ["criterion", "by", "gap", "lower", "upper", "noise_floor", "p_adjusted", "verdict"]


@pytest.mark.parametrize("favorable", ["granted", "denied"])
@pytest.mark.parametrize("way", BY)
def test_verdicts_are_the_same_by_every_way_in(way, favorable, tmp_path):
    found = way_of(way, tmp_path, favorable_label=favorable)
    expected = in_memory(DECISIONS, None, sensitive=["sex", "race"], favorable_label=favorable)
    pd.testing.assert_frame_equal(found.gaps[SHOWN], expected.gaps[SHOWN])
    told = dp_gap(None, DECISIONS["d"], sensitive_features=DECISIONS["sex"], pos_label=favorable)
    assert found.gaps["gap"].iloc[0] == pytest.approx(told)
    assert found.share_favored == (DECISIONS["d"] == favorable).mean()


@pytest.mark.parametrize("way", BY)
def test_labels_in_other_words_are_refused_by_every_way_in(way, tmp_path, capsys):
    other = DECISIONS.assign(y=DECISIONS["y"].str.title())
    with pytest.raises(ValueError, match=r"Granted|written as"):
        way_of(way, tmp_path, other)
    told = capsys.readouterr().err
    assert not told or "ranted" in told


@pytest.mark.parametrize("way", BY)
def test_a_column_with_the_name_of_a_crossing_stays_its_own(way, tmp_path):
    named = DECISIONS.assign(**{"sex x race": np.where(DECISIONS["d"] == "granted", "u", "v")})
    found = way_of(way, tmp_path, named, sensitive=["sex", "race", "sex x race"]).gaps
    rows = found[found["criterion"] == "dp"].set_index("by")["gap"]
    assert rows['"sex x race"'] == 1.0
    assert rows["sex x race"] < 0.5


@pytest.mark.parametrize("way", BY)
def test_gates_are_corrected_by_every_way_in(way, tmp_path):
    gates = check_gates(way_of(way, tmp_path), ["violation", "dp_gap.lower > 0"])
    assert {gate.n_tests for gate in gates} == {6 + 3}
    assert all(len(gate.to_dict()["gaps"]) == 0 or gate.hit for gate in gates)
    json.dumps([gate.to_dict()["corrected_for"] for gate in gates])
