"""A run: what it holds and stores, from a file or a frame, and what it decides."""

import io
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from tests.people import COLUMNS, TRAINING, people

import apfex
from apfex import explore, load
from apfex.auditing import Audit
from apfex.front import UnmetBoundWarning
from apfex.persistence import read_json
from apfex.report import describe_front
from apfex.runs import RunError, RunWarning, audit_file, load_audit, load_run
from apfex.runs._data import read_and_split
from apfex.runs._settings import ExploreSettings


def test_a_run_has_all_its_files(finished):
    names = sorted(path.name for path in finished.iterdir())
    assert names == ["audit.json", "front.json", "model", "report.html", "run.json"]
    assert "<script>alert" not in (finished / "report.html").read_text()


def test_the_record_says_what_was_done_on_what(finished, table):
    record = read_json(finished / "run.json")
    assert record["settings"]["seed"] == 0
    assert record["settings"]["max_gap"] == {"dp": 0.05}
    assert record["data"]["path"] == str(table)
    assert record["data"]["rows"] == 300 == record["data"]["fit_rows"] + record["data"]["test_rows"]
    assert record["versions"]["apfex"] == apfex.__version__
    assert record["features"] == {
        **dict.fromkeys(["merit_1", "merit_2", "noise_1"], "number"),
        **dict.fromkeys(["town", "noise_2"], "text"),
    }


def test_the_positive_value_is_the_last_class_whatever_its_name(finished):
    clf = load(finished / "model")
    assert clf.classes_.tolist() == ["0 = rejected", "1 = hired"]
    assert read_json(finished / "run.json")["words"] == ["rejected", "hired"]


def test_the_report_calls_labels_what_the_file_calls_them(finished):
    front = read_json(finished / "front.json")
    assert front["classes"] == ["rejected", "hired"]
    assert front["favorable"] == "hired"
    assert "1 = hired" not in (finished / "report.html").read_text()


def test_the_report_is_on_the_test_rows(finished):
    """The figures are those of the stored model on exactly these rows."""
    record, front = read_json(finished / "run.json"), read_json(finished / "front.json")
    data = read_and_split(ExploreSettings.from_dict(record["settings"]))
    clf = load(finished / "model")
    again = describe_front(clf, **data.rows.take(data.test))
    assert [p["error"] for p in again["points"]] == [p["error"] for p in front["points"]]
    assert front["rows"] == len(data.test) == record["data"]["test_rows"]
    stored = Audit.from_json((finished / "audit.json").read_text())
    assert stored.n_rows == len(data.test)


def test_a_frame_gives_the_run_of_its_file_which_saves_as_it_was_written(finished, tmp_path):
    stages: list[str] = []
    frame = pl.from_pandas(people())
    with pytest.warns(UnmetBoundWarning):
        run = explore(frame, **COLUMNS, **TRAINING, progress=lambda name, _: stages.append(name))
    stored = load_run(finished)
    assert stages == ["read", "training", "measuring"]
    assert run.record["results"] == stored.record["results"]
    assert run.described["points"] == stored.described["points"]
    assert run.audit.to_json() == stored.audit.to_json()
    assert (run.data.path, run.data.groups) == (None, stored.data.groups)
    again = load_run(run.save(tmp_path / "again"))
    assert {p.name for p in (tmp_path / "again").iterdir()} == {p.name for p in finished.iterdir()}
    assert again.data == run.data
    command = f"apfex predict {tmp_path / 'again'} FILE"
    assert again.described == {**run.described, "command": command}
    with pytest.raises(RunError, match="path must name a file"):
        run.report()
    assert run.report(tmp_path / "page.html").exists()


def test_what_was_stored_is_saved_as_it_was(finished, tmp_path):
    run = load_run(finished)
    assert repr(run) == f"<Run of people.csv: 300 rows, {len(run.front)} points>"
    run.save(tmp_path / "copy")
    for name in ("audit.json", "run.json"):
        assert read_json(tmp_path / "copy" / name) == read_json(finished / name)
    with pytest.raises(RunError, match="exists already"):
        run.save(finished)


def test_decisions_are_those_of_the_point_for_a_file_and_for_frames(finished, table):
    run = load_run(finished)
    frame = people().drop(columns=["sex", "origin", "hired"]).set_axis(range(7, 307))
    clf, words = load(finished / "model").at(1), {"0 = rejected": "rejected", "1 = hired": "hired"}
    found = run.predict(frame, point=1)
    assert found.index.tolist() == frame.index.tolist()
    X = frame[list(clf.feature_names_in_)]
    assert found["prediction"].tolist() == [words[label] for label in clf.predict(X)]
    assert found["probability"].tolist() == clf.predict_proba(X)[:, 1].tolist()
    assert found["decision_margin"].tolist() == clf.decision_function(X).tolist()
    is_hired = found["prediction"] == "hired"
    assert (found["decision_margin"] > 0).tolist() == is_hired.tolist()
    for rows in (table, str(table)):
        assert run.predict(rows, point=1)["prediction"].tolist() == found["prediction"].tolist()
    in_polars = run.predict(pl.from_pandas(frame), point=1)
    assert isinstance(in_polars, pl.DataFrame)
    assert in_polars.to_dict(as_series=False) == found.to_dict("list")
    with pytest.raises(RunError, match="point must be from 0 to") as caught:
        run.predict(frame, point=99)
    assert (caught.value.argument, caught.value.found) == ("point", 99)


def test_decisions_go_to_a_file_or_a_stream(finished, table, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run, stream = load_run(finished), io.StringIO()
    told = run.predict_file(table)
    assert (told.out, told.rows) == (table.with_name("people-predictions.csv"), 300)
    assert told.columns == ("prediction", "probability", "decision_margin")
    assert run.predict_file(table, stream, point=told.point).out is None
    assert told.out is not None
    assert stream.getvalue() == told.out.read_text()
    told.out.unlink()
    run.predict_file(people(), tmp_path / "o.parquet", prefix="new_")
    found = pd.read_parquet("o.parquet")["new_prediction"].to_numpy()
    assert (found == "hired").mean() == pytest.approx(told.selection_rate)


def test_what_was_found_in_the_data_is_warned_of_and_recorded(tmp_path):
    frame = people().assign(row=np.arange(300))
    frame["letter"] = np.where(frame["hired"] == "hired", "welcome", "sorry")
    frame.loc[[0, 5, 9], "hired"] = None
    with pytest.warns(RunWarning) as caught:
        run = explore(frame, **COLUMNS, **TRAINING, max_gap=1, out=tmp_path / "run")
    leak, identifier = (w.message for w in caught)
    assert isinstance(leak, RunWarning)
    assert isinstance(identifier, RunWarning)
    assert (leak.argument, leak.found) == ("drop", run.data.leaks[0])
    assert str(leak).startswith("letter gives the label away: by it alone ")
    assert str(leak).endswith("leave it out: drop=['letter']")
    assert identifier.found == run.data.identifiers == ("row",)
    assert caught[0].filename == __file__
    assert run.data.dropped == {"without a label": 3}
    record = read_json(tmp_path / "run/run.json")
    assert (record["leaks"], record["identifiers"]) == (["letter"], ["row"])
    assert load_run(tmp_path / "run").data == run.data
    settings = ExploreSettings.from_dict(record["settings"] | {"drop": ["letter"]})
    assert read_and_split(settings, frame).about.leaks == ()


def test_groups_without_rows_that_count_are_data_of_the_warning():
    frame, odd = people(), 'O\'Neil "q"; tpr of [x]'
    frame.loc[:5, "origin"] = odd
    frame.loc[:5, "hired"] = "rejected"
    arguments = COLUMNS | TRAINING | {"criteria": "tpr", "max_gap": 1}
    with pytest.warns(RunWarning, match="some groups have no rows that count") as caught:
        explore(frame, **arguments)
    (message,) = (w.message for w in caught)
    assert isinstance(message, RunWarning)
    ((rate, names),) = message.found
    assert rate == "tpr"
    assert all(odd.replace("'", "\\'") in name for name in names)
    assert message.text(lambda name, _: f"<{name}>").endswith("or lower <test_fraction>.")


def test_a_criterion_that_cannot_be_measured_is_an_error_of_that_argument():
    frame = people()
    frame["hired"] = np.where(frame["sex"] == "male", frame["hired"], "rejected")
    arguments = COLUMNS | TRAINING | {"criteria": "tpr", "sensitive": ["sex"]}
    with pytest.raises(RunError, match="criteria tpr cannot be measured on the") as caught:
        explore(frame, **arguments)
    assert (caught.value.argument, caught.value.found) == ("criteria", "tpr")


BAD: list[tuple[dict[str, Any], str, Any, str | None]] = [
    ({"label": "hird"}, "label", "hird", "hired"),
    ({"positive": "Hired"}, "positive", "Hired", "hired"),
    ({"criteria": "dpr"}, "criteria", "dpr", "dp"),
    ({"max_gap": {"fpr": 0.1}}, "max_gap", "fpr", None),
    ({"max_gap": 2}, "max_gap", 2, None),
    ({"test_fraction": 2}, "test_fraction", 2, None),
    ({"drop": "merit"}, "drop", "merit", "merit_1"),
    ({"weight": "town"}, "weight", "town", None),
    ({"favorable": "x"}, "favorable", "x", None),
    ({"sensitive": ["sex", "sex"]}, "sensitive", "sex", None),
]


@pytest.mark.parametrize(("change", "argument", "found", "suggestion"), BAD)
def test_errors_carry_what_they_are_about(change, argument, found, suggestion):
    with pytest.raises(RunError, match=argument) as caught:
        explore(people(), **COLUMNS | TRAINING | change)
    error = caught.value
    assert (error.argument, error.found) == (argument, found)
    assert suggestion is None or error.suggestion is not None
    assert "--" not in str(error)


def test_lists_bytes_and_infinite_numbers_are_no_features():
    frame = people().assign(raw=[b"a"] * 300, tags=[["a"]] * 300)
    with pytest.raises(RunError, match=r"drop=\['raw', 'tags'\]"):
        explore(frame, **COLUMNS)
    frame = people()
    frame.loc[3, "merit_1"] = np.inf
    with pytest.raises(RunError, match="merit_1 is infinite in 1 rows"):
        explore(frame, **COLUMNS)


def test_durations_periods_and_intervals_are_no_features():
    whole = np.arange(300)
    frame = people().assign(
        waited=pd.to_timedelta(whole, unit="h"),
        month=pd.period_range("2000-01", periods=300, freq="M"),
        span=pd.arrays.IntervalArray.from_arrays(whole, whole + 1),
        phase=whole * 1j,
    )
    with pytest.raises(RunError, match=r"drop=\['waited', 'month', 'span', 'phase'\]"):
        explore(frame, **COLUMNS)


def test_a_column_of_several_kinds_and_other_things_are_refused():
    with pytest.raises(RunError, match=r"The frame has mixed-integer values in column 'x'"):
        explore(people().assign(x=[1, "a"] * 150), **COLUMNS)
    with pytest.raises(TypeError, match="a frame of pandas or polars, got dict"):
        explore({"a": [1]}, **COLUMNS)


def test_test_rows_have_their_share_of_every_group_and_both_labels(finished):
    stored = ExploreSettings.from_dict(read_json(finished / "run.json")["settings"])
    frame = pd.concat([people(n=1)] * 200).assign(
        hired=np.tile(["hired", "rejected"], 100), sex=np.repeat(["female", "male"], 100)
    )
    data = read_and_split(replace(stored, source=None), frame)
    assert sorted([*data.fit, *data.test]) == list(range(200))
    cells = 2 * data.rows.groups.codes + data.rows.codes
    assert abs(np.bincount(cells[data.test]) - 12.5).max() <= 1
    with pytest.raises(RunError, match=r"2 rows are too few: the .* must have both labels"):
        explore(frame.head(2), **COLUMNS, **TRAINING)


def test_a_group_without_test_rows_is_no_group_there():
    frame = people()
    frame.loc[0, "origin"] = "elsewhere"
    with pytest.warns(UserWarning, match="No model|rows that count"):
        run = explore(frame, **COLUMNS, **TRAINING)
    assert run.data.groups.groups == 5
    assert run.described["groups"] == 4


def test_an_audit_of_a_frame_is_that_of_the_library(tmp_path):
    rng = np.random.default_rng(0)
    columns = {"sex": ["f", "m"], "decided": ["yes", "no"], "paid": ["yes", "no"]}
    frame = pd.DataFrame({name: rng.choice(words, 400) for name, words in columns.items()})
    run = audit_file(frame, prediction="decided", label="paid", positive="yes", sensitive="sex")
    wanted = apfex.audit(
        frame["paid"], frame["decided"], sensitive_features=frame[["sex"]], favorable_label="yes"
    )
    pd.testing.assert_frame_equal(run.audit.gaps, wanted.gaps)
    stored = load_audit(run.save(tmp_path / "audit"))
    assert stored.audit.to_json() == run.audit.to_json()
    with pytest.raises(RunError, match="is of `apfex audit`, not of `apfex explore`"):
        load_run(tmp_path / "audit")


@pytest.mark.filterwarnings("ignore:No model")
@pytest.mark.parametrize(
    ("given", "limit"),
    [({"max_gap": 0.2}, 0.2), ({"max_gap": {"dp": 0.3}}, 0.3), ({}, 0.05),
     ({"max_gap": 0.2, "tolerance": 0.1}, 0.1)],
)  # fmt: skip
def test_there_is_one_limit_for_choosing_and_for_verdicts(given, limit):
    run = apfex.explore(people(200), **COLUMNS, **TRAINING, **given)
    assert run.described["settings"]["tolerance"] == limit
    assert run.audit.settings.tolerance == limit
