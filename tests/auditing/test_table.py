"""An audit by an engine is the audit of the same rows in memory."""

import datetime
import math
import sqlite3
from decimal import Decimal
from typing import Any

import ibis
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.auditing.rows import rows

import apfex
from apfex.auditing import Roles, TableQuery
from apfex.auditing._table import _read
from apfex.engines import open_engine_table, where_of
from apfex.engines._query import quiet
from apfex.metrics import read_inputs
from apfex.runs import audit_file

FRAMES = ("gaps", "groups", "overall", "thresholds", "metrics", "metric_gaps", "calibration")
audit: Any = apfex.audit
audit_table: Any = apfex.auditing.audit_table


def table(n=400, seed=0, labels=2):
    generator = np.random.default_rng(seed)
    y, decided, people, weight = rows(n, labels, seed)
    race = people["race"].where(generator.random(n) > 0.1)
    given = {"y": y, "d": decided, "w": weight, "p": generator.random(n).round(2)}
    return people.assign(**given, race=race, c=generator.choice(["old", "young"], n))


def assert_same(found, wanted, frames=FRAMES):
    """Equal counts, frames and notes; sums of weights to 1e-12."""
    assert found.counts.names == wanted.counts.names
    assert (found.counts.rows == wanted.counts.rows).all()
    for part in ("sums", "squares"):
        ours, theirs = getattr(found.counts, part), getattr(wanted.counts, part)
        assert (ours is None) == (theirs is None)
        if ours is not None:
            np.testing.assert_allclose(ours, theirs, rtol=1e-12)
    for name in ("classes", "favorable", "labelled", "weight", "outside"):
        assert getattr(found.counts, name) == getattr(wanted.counts, name)
    for name in (*frames, "gaps_within"):
        ours, theirs = getattr(found, name), getattr(wanted, name)
        assert (ours is None) == (theirs is None), name
        if ours is not None:
            pd.testing.assert_frame_equal(ours, theirs, rtol=1e-9, obj=name)
    assert found.notes == wanted.notes


kinds = {
    "numbers": [0, 1],
    "three": [0, 1, 2],
    "words": ["no", "yes"],
    "cases": ["no", "Yes", "yes"],
    "truth": [False, True],
    "floats": [0.0, 1.0],
    "scores": [0.25, 1.0],
    "decimals": [Decimal("0.5"), Decimal("1.5")],
    "dates": [datetime.date(2024, 1, 31), datetime.date(2024, 2, 1)],
}
favorables = [1, 0, "yes", True, 1.5, Decimal("1.5"), datetime.date(2024, 2, 1)]


@st.composite
def tables(draw):
    """Rows of every kind of value, with missing ones, and what to ask of them."""
    n = draw(st.integers(1, 12))
    kind, other = draw(st.sampled_from(sorted(kinds))), draw(st.sampled_from(sorted(kinds)))
    other = draw(st.sampled_from([kind, kind, kind, other]))
    missing = st.booleans() if draw(st.integers(0, 9)) == 0 else st.just(False)

    def column(values, may_lack):
        cells = st.tuples(st.sampled_from(values), may_lack)
        return [None if gone else one for one, gone in (draw(cells) for _ in range(n))]

    levels = draw(st.sampled_from([["F", "M"], [1, 2, 10], [0.5, 1.0], [True, False]]))
    return (
        pa.table(
            {
                "y": column(kinds[kind], missing),
                "d": column(kinds[other], missing),
                "a": column(levels, st.booleans()),
                "b": column(["x", "X ", "ü,'"], st.booleans()),
                "w": pa.array(draw(st.lists(st.floats(0, 1e9), min_size=n, max_size=n))),
            }
        ),
        draw(st.sampled_from(favorables)),
        draw(st.booleans()),
        draw(st.booleans()),
    )


def outcome(work):
    try:
        return work()
    except ValueError as error:
        return str(error)


@settings(max_examples=40)
@given(tables())
def test_counts_are_those_of_memory_and_so_are_errors(asked):
    arrow, favorable, labelled, weighted = asked
    frame = arrow.to_pandas()

    def in_memory():
        weight = frame["w"] if weighted else None
        y = frame["y"] if labelled else None
        data = read_inputs(
            y, frame["d"], frame[["a", "b"]], weight, favorable, label_argument="favorable_label"
        )
        return data.classes, data.count()

    def in_engine():
        roles = Roles(
            prediction="d",
            sensitive=("a", "b"),
            label="y" if labelled else None,
            weight="w" if weighted else None,
        )
        query = TableQuery.of(open_engine_table(arrow), roles)
        data = _read(query.tally(), query, favorable)
        return data.classes, data.count()

    wanted, found = outcome(in_memory), outcome(in_engine)
    if isinstance(wanted, str) or isinstance(found, str):
        words = {"y_true": "label", "y_pred": "prediction", "sample_weight": "weight w"}
        for theirs, ours in words.items():
            wanted = str(wanted).replace(theirs, ours)
        weights = [one for one in arrow["w"].to_pylist() if one] if weighted else [1]
        if not weights or max(weights) < 1e-140:  # one fault of perhaps two
            assert isinstance(wanted, str)
            assert isinstance(found, str)
            return
        assert _beginning(found) == _beginning(wanted)
        return
    assert found[0] == wanted[0]
    ours, theirs = found[1], wanted[1]
    assert ours.names == theirs.names
    assert (ours.rows == theirs.rows).all()
    assert ours.weight == theirs.weight
    np.testing.assert_allclose(ours.sums, theirs.sums, rtol=1e-12)
    np.testing.assert_allclose(ours._squares, theirs._squares, rtol=1e-12)


def _beginning(message):
    """An error up to the value found: which of several wrong values is named does not matter."""
    return str(message).split(", got")[0]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("scored", [False, True])
def test_the_audit_is_the_same(weighted, scored):
    frame = table()
    metrics = ["precision", "f1", *(["log_loss"] if scored else [])]
    found = audit_table(
        frame,
        prediction="d",
        label="y",
        sensitive=["sex", "race"],
        weight="w" if weighted else None,
        score="p" if scored else None,
        control="c",
        metrics=metrics,
        criteria=("dp", "equalized_odds"),
    )
    wanted = audit(
        frame["y"],
        frame["d"],
        sensitive_features=frame[["sex", "race"]],
        sample_weight=frame["w"] if weighted else None,
        y_score=frame["p"] if scored else None,
        control_features=frame[["c"]],
        metrics=metrics,
        criteria=("dp", "equalized_odds"),
    )
    assert_same(apfex.auditing.Audit(**{**vars(found), "notes": _renamed(found)}), wanted)
    if scored:
        pd.testing.assert_frame_equal(found.rates_by_threshold(), wanted.rates_by_threshold())
    assert found.summary.text == wanted.summary.text
    pd.testing.assert_frame_equal(found.worst(), wanted.worst())
    if not (scored or weighted):
        pd.testing.assert_frame_equal(found.plan(), wanted.plan())


def _renamed(found):
    return tuple(note.replace("label as score", "label as y_score") for note in found.notes)


def test_several_labels_thresholds_and_no_labels():
    frame = table(labels=3)
    found = audit_table(frame, prediction="d", label="y", sensitive="sex", favorable_label=2)
    wanted = audit(frame["y"], frame["d"], sensitive_features=frame[["sex"]], favorable_label=2)
    assert_same(found, wanted)
    found = audit_table(frame, prediction="p", threshold=0.5, sensitive="sex", criteria="dp")
    decided = (frame["p"] >= 0.5).astype(int)
    wanted = audit(
        None, decided, sensitive_features=frame[["sex"]], y_score=frame["p"], criteria="dp"
    )
    assert_same(found, wanted)
    with pytest.raises(ValueError, match=r"metrics must be rates with more than two labels"):
        audit_table(frame, prediction="d", label="y", sensitive="sex", metrics="f1")
    blind = audit_table(frame, prediction="d", sensitive="sex", favorable_label=1)
    assert blind.notes[0] == "Without labels: tpr left out."


def test_more_scores_than_thresholds():
    frame = table(1000).assign(p=np.random.default_rng(1).normal(size=1000))
    found = audit_table(frame, prediction="d", label="y", sensitive="sex", score="p")
    wanted = audit(frame["y"], frame["d"], sensitive_features=frame[["sex"]], y_score=frame["p"])
    assert len(found.thresholds["threshold"].unique()) == 101
    pd.testing.assert_frame_equal(found.thresholds, wanted.thresholds)
    assert any("no probabilities" in note for note in found.notes)


@pytest.mark.parametrize("form", ["parquet", "csv", "sqlite", "lazy"])
def test_every_source_has_the_same_rows(tmp_path, form):
    frame, wanted = table(300), None
    source: Any = tmp_path / f"x.{form}"
    if form == "parquet":
        for place in range(3):
            frame[place::3].to_parquet(tmp_path / f"{place}.parquet")
        source = f"{tmp_path}/*.parquet"
    elif form == "csv":
        frame.to_csv(source, index=False, sep=";")
    elif form == "sqlite":
        with sqlite3.connect(source) as connection:
            frame.to_sql("t", connection, index=False)
        connection.close()
    else:
        source = pl.from_pandas(frame).lazy()
    found = audit_table(
        source, prediction="d", label="y", sensitive=["sex", "race"], weight="w", score="p"
    )
    wanted = audit(
        frame["y"],
        frame["d"],
        sensitive_features=frame[["sex", "race"]],
        sample_weight=frame["w"],
        y_score=frame["p"],
    )
    found = apfex.auditing.Audit(**{**vars(found), "notes": _renamed(found)})
    assert_same(found, wanted)


@pytest.mark.parametrize("engine", ["duckdb", "polars", "lazy", "sqlite"])
def test_log_loss_is_the_same_in_every_engine(tmp_path, engine):
    frame = table(300).assign(p=lambda t: t["p"].mask(t.index < 20, 0.0).mask(t.index > 280, 1.0))
    with sqlite3.connect(tmp_path / "t.sqlite") as connection:
        frame.to_sql("t", connection, index=False)
    connection.close()
    source = {
        "duckdb": lambda: frame,
        "polars": lambda: ibis.polars.connect({"t": pl.from_pandas(frame)}).table("t"),
        "lazy": lambda: pl.from_pandas(frame).lazy(),
        "sqlite": lambda: tmp_path / "t.sqlite",
    }[engine]()
    asked = {"score": "p", "metrics": ["log_loss"], "weight": "w"}
    found = audit_table(source, prediction="d", label="y", sensitive=["sex", "race"], **asked)
    wanted = audit(
        frame["y"],
        frame["d"],
        sensitive_features=frame[["sex", "race"]],
        sample_weight=frame["w"],
        y_score=frame["p"],
        metrics=["log_loss"],
    )
    pd.testing.assert_frame_equal(found.metrics, wanted.metrics, rtol=1e-12)
    pd.testing.assert_frame_equal(found.metric_gaps, wanted.metric_gaps, rtol=1e-9)


def test_two_months_of_a_partitioned_table_are_compared(tmp_path):
    for month, seed in ((5, 1), (6, 2)):
        folder = tmp_path / f"month={month}"
        folder.mkdir()
        table(seed=seed).to_parquet(folder / "x.parquet")
    given = {"prediction": "d", "label": "y", "sensitive": "sex"}
    may, june = (audit_table(tmp_path, where={"month": month}, **given) for month in (5, 6))
    wanted = audit(
        table(seed=1)["y"], table(seed=1)["d"], sensitive_features=table(seed=1)[["sex"]]
    )
    assert_same(may, wanted)
    change = june.diff(may)
    assert len(change.gaps) == 2
    assert audit_table(tmp_path, **given).n_rows == may.n_rows + june.n_rows


def test_thousands_of_groups_and_too_many(monkeypatch):
    generator = np.random.default_rng(0)
    frame = pd.DataFrame({"zip": generator.integers(0, 3000, 6000), "d": [0, 1] * 3000})
    roles = Roles(prediction="d", sensitive=("zip",))
    query = TableQuery.of(open_engine_table(frame), roles)
    counts = _read(query.tally(), query, 1).count()
    assert counts.n_rows == 6000
    assert len(counts.groups) == frame["zip"].nunique()
    message = r"more than 1,000 different rows; sensitive zip alone has .*Put it into bins"
    with pytest.raises(ValueError, match=message):
        query._grouped(query._keys("sensitive"), {}, most=1000)
    monkeypatch.setattr("apfex.auditing._settings.MOST_GROUPS", 1000)
    with pytest.raises(ValueError, match="sensitive must form at most 1,000 groups"):
        audit_table(frame, prediction="d", sensitive="zip", criteria="dp")


FRAME = table(40).assign(t="text", nothing=np.nan, bad=-1.0, gone=[np.nan, *[1.0] * 39])
FRAME["case"] = ["yes", "Yes", "no", "no"] * 10
FRAME["inf"] = [np.inf, *[1.0] * 39]
GIVEN = {"prediction": "d", "label": "y", "sensitive": ["sex"]}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"label": "label"},
            "label must name a column of the frame, .*; it has sex, race",
        ),
        ({"prediction": "D"}, "prediction must name a column .*got 'D'; did you mean 'd'"),
        ({"sensitive": ["rase"]}, "sensitive must name a column .*did you mean 'race'"),
        ({"sensitive": []}, "sensitive must name at least one column, got none"),
        ({"sensitive": ["sex", "sex"]}, "sensitive must name another column than sensitive"),
        ({"control": "sex"}, "control must name another column than sensitive, got 'sex'"),
        ({"label": "nothing"}, "label must not have missing values, got 40 in 40 rows"),
        ({"prediction": "race"}, "prediction must not have missing values, got .* in 40 rows"),
        ({"prediction": "p"}, "prediction must hold labels, got the number"),
        ({"prediction": "t"}, r"prediction must be written as label is, got \['text'\]"),
        ({"favorable_label": "yes"}, r"favorable_label must be .*got 'yes' .*\[0, 1\]"),
        ({"weight": "bad"}, "weight bad must be finite and at least 0, got -1"),
        ({"weight": "gone"}, "weight gone must (have a number|be finite)"),
        ({"weight": "inf"}, "weight inf must be finite and at least 0, got inf"),
        ({"score": "gone"}, "Scores must be finite, got 1 missing ones in 40 rows"),
        ({"score": "inf"}, "Scores must be finite, got inf"),
        ({"where": {"sex": "X"}}, r"'sex': 'X'}, which no row has: sex has '[FM]', '[FM]'\.$"),
        ({"metrics": ["auc", "brier"]}, r"metrics must follow from sums .*got \['auc'\]; read the"),
        ({"metrics": {"mine": max}}, r"got \['mine'\]"),
        ({"metrics": ["brier"]}, r"score must be given for the metrics \['brier'\], got None"),
        ({"label": None, "criteria": "tpr"}, r"label must be given for the criteria \['tpr'\]"),
        ({"threshold": 0.5, "score": "p"}, "score must be None with threshold"),
        ({"prediction": "case", "label": None}, "prediction must spell every label in one way"),
        ({"prediction": "p", "label": "case", "threshold": 0.5}, "label must spell every label"),
        ({"threshold": float("nan")}, "threshold must be a finite number, got nan"),
        ({"threshold": -float("inf")}, "threshold must be a finite number, got -inf"),
        ({"criteria": "parity"}, "criteria must be some of"),
    ],
)
def test_bad_input_gets_a_sentence(changes, message):
    with pytest.raises(ValueError, match=message):
        audit_table(FRAME, **{**GIVEN, **changes})


@pytest.mark.parametrize("role", ["weight", "score"])
def test_text_is_no_number(tmp_path, role):
    with pytest.raises(TypeError, match=f"{role} t must hold numbers, got values of type string"):
        audit_table(FRAME, **GIVEN, **{role: "t"})
    FRAME.to_csv(tmp_path / "x.csv", index=False)
    with pytest.raises(TypeError, match=f"{role} t must hold numbers, .*other text in 40 rows"):
        audit_table(tmp_path / "x.csv", **GIVEN, **{role: "t"})


def test_a_million_weights_add_up_to_the_last_digits():
    weight = np.random.default_rng(0).lognormal(0, 3, 1_000_000)
    arrow = pa.table({"g": np.arange(len(weight)) % 2, "d": np.ones(len(weight), int), "w": weight})
    roles = Roles(prediction="d", sensitive=("g",), weight="w")
    query = TableQuery.of(open_engine_table(arrow), roles)
    found = _read(query.tally(), query, 1).count()
    for place in (0, 1):
        exact = math.fsum(weight[place::2])
        assert abs(found.sums[0, place, 0] / exact - 1) < 1e-15


def test_a_number_with_an_underscore_is_text(tmp_path):
    (tmp_path / "t.csv").write_text("g,p\n" + "a,0_500\nb,0.25\n" * 20)
    asked = {"prediction": "p", "sensitive": "g", "threshold": 0.5}
    with pytest.raises(TypeError, match=r"prediction p must .* other text in 20 rows"):
        audit_table(tmp_path / "t.csv", **asked)


PANDAS_TYPES = {
    "interval": lambda codes: pd.cut(codes, [-1, 0, 1, 2]),
    "period": lambda codes: pd.period_range("2026-01", periods=3, freq="M")[codes],
    "timedelta": lambda codes: pd.to_timedelta(codes, unit="h"),
    "complex": lambda codes: codes * 1j,
    "sparse": pd.arrays.SparseArray,
}


@pytest.mark.parametrize("kind", PANDAS_TYPES)
def test_types_of_pandas_form_the_groups_that_they_form_in_memory(kind):
    frame = table().assign(g=PANDAS_TYPES[kind](np.arange(400) % 3))
    wanted = audit(frame.y, frame.d, sensitive_features=frame[["g"]])
    assert_same(audit_table(frame, prediction="d", label="y", sensitive="g"), wanted)
    other = audit(frame.y, frame.d, sensitive_features=frame[["race"]])
    assert_same(audit_table(frame, prediction="d", label="y", sensitive="race"), other)


AGES = [20.0, 30.0, 50.0, np.nan] * 100
"""NaN as numpy, polars and Spark write it: in Parquet it is no null, and in no extreme."""
CONDITIONS = (
    (lambda t: t.age > 25, 200),
    (lambda t: t.age != 20, 200),
    (lambda t: t.age.isnull() | (t.age < 25), 200),
    (lambda t: t.age.isnan(), 100),
    ({"age": [20, None]}, 200),
    ({"age": np.nan}, 100),
)
"""With how many rows there are of each, by pandas."""


def ages(tmp_path, form):
    """One table whose ages are NaN where they are missing, in several forms."""
    columns = {"age": np.array(AGES), "sex": ["f", "m", "m", "f"] * 100, "d": [0, 1] * 200}
    rows = pa.table(columns)
    pq.write_table(rows, tmp_path / "people.parquet")
    if form == "user":
        with quiet():
            return ibis.duckdb.connect().read_parquet(str(tmp_path / "people.parquet"))
    lazy = pl.DataFrame(rows).lazy()
    return {"parquet": tmp_path / "people.parquet", "lazy": lazy, "arrow": rows}[form]


@pytest.mark.parametrize("form", ["parquet", "user", "lazy", "arrow"])
def test_nan_is_a_missing_value_in_every_condition(tmp_path, form):
    source = open_engine_table(ages(tmp_path, form))
    for where, n in CONDITIONS:
        chosen = where_of(source, where)
        assert source.fetch(chosen.aggregate(n=chosen.count()))["n"].to_pylist() == [n]


@pytest.mark.parametrize("form", ["parquet", "lazy", "arrow"])
def test_nan_is_in_no_bin(tmp_path, form):
    run = audit_file(
        ages(tmp_path, form), prediction="d", sensitive="age", bins={"age": [30]}, criteria="dp"
    )
    sizes = run.audit.groups.set_index("age")["count"].to_dict()
    assert sizes == {"30 and over": 200, "under 30": 100, "<missing>": 100}


@pytest.mark.parametrize("form", ["pandas", "arrow", "parquet", "lazy", "nullable"])
@pytest.mark.parametrize("bits", [32, 64])
def test_a_score_that_is_the_threshold_is_decided_whatever_its_precision(tmp_path, form, bits):
    """As ``scores >= 0.7`` of numpy, pandas and polars: 0.7 of 32 bits is below 0.7 of 64."""
    scores = np.array([0.1, 0.3, 0.7, 0.9] * 50, f"float{bits}")
    frame = pd.DataFrame({"p": scores, "sex": ["f", "f", "f", "m", "m"] * 40})
    frame.to_parquet(tmp_path / "people.parquet")
    source = {
        "pandas": frame,
        "arrow": pa.Table.from_pandas(frame),
        "parquet": tmp_path / "people.parquet",
        "lazy": pl.DataFrame(frame).lazy(),
        "nullable": frame.astype({"p": f"Float{bits}"}),
    }[form]
    for threshold in (0.3, 0.7):
        given = {"prediction": "p", "sensitive": "sex", "threshold": threshold, "criteria": "dp"}
        wanted = (scores >= threshold).sum()
        for found in (audit_table(source, **given), audit_file(source, **given).audit):
            assert found.groups["numerator"].sum() == wanted


@pytest.mark.parametrize("by", [audit_table, audit_file])
def test_a_file_that_is_replaced_between_two_queries_is_refused(tmp_path, monkeypatch, by):
    """Counts would be of one file, thresholds of scores and the record of another."""
    path = tmp_path / "people.parquet"
    frame = pd.DataFrame({"y": [0, 1] * 200, "d": [0, 0, 1, 1] * 100, "sex": ["f", "m"] * 200})
    frame.assign(p=np.linspace(0, 1, 400)).to_parquet(path)
    tally = TableQuery.tally

    def replaced(query):
        found = tally(query)
        frame.assign(y=1 - frame["y"], p=np.linspace(1, 0, 400)).to_parquet(tmp_path / "new")
        (tmp_path / "new").replace(path)
        return found

    monkeypatch.setattr(TableQuery, "tally", replaced)
    with pytest.raises(ValueError, match=r"people.parquet changed while it was read; read it"):
        by(path, prediction="d", label="y", sensitive="sex", score="p")
