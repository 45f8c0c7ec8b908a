"""Dates are features: days, said as such, and read alike from every kind of table."""

import datetime

import numpy as np
import pandas as pd
import pytest
from tests.people import COLUMNS, TRAINING, people

from apfex import explore
from apfex.runs import RunError, RunWarning, load_run
from apfex.runs._dates import is_date, is_unclear_date, to_days

DAYS = ["2024-02-29", None, "1969-12-31"]
FORMS = {
    "text": pd.Series(DAYS, dtype=object),
    "categories": pd.Series(DAYS, dtype="category"),
    "days": pd.Series([None if d is None else datetime.date.fromisoformat(d) for d in DAYS]),
    "times": pd.to_datetime(pd.Series(DAYS)),
    "with a zone": pd.to_datetime(pd.Series(DAYS)).dt.tz_localize("UTC"),
}


@pytest.mark.parametrize("name", FORMS)
def test_dates_are_days_in_every_form(name):
    assert is_date(FORMS[name])
    np.testing.assert_array_equal(to_days(FORMS[name]), [19782, np.nan, -1])


def test_times_count_as_parts_of_a_day_and_zones_are_heeded():
    column = pd.Series(["1970-01-01T12:00:00Z", "1970-01-01 12:00+01:00", "9999-12-31"])
    assert to_days(column).tolist() == [0.5, 11 / 24, 2932896]


@pytest.mark.parametrize("value", ["2024-02-30", "2024", "20240101", "soon", 20240101, "12:30"])
def test_other_values_are_no_dates(value):
    assert not is_date(pd.Series(["2024-01-01", value], dtype=object))


def test_days_and_months_that_cannot_be_told_apart_are_not_guessed():
    assert is_unclear_date(pd.Series(["03/04/2024", None, "31/12/2024"]))
    assert is_unclear_date(pd.Series(["1.2.24"]))
    assert not is_unclear_date(pd.Series(["2024-01-31"]))
    assert not is_unclear_date(pd.Series(["1/2", "3/4/2024"]))


@pytest.fixture(scope="module")
def dated(tmp_path_factory):
    rng = np.random.default_rng(5)
    frame = people().assign(
        applied=pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 700, 300), unit="D"),
        born=rng.choice(["03/04/1970", "05/06/1980"], 300),
    )
    path = tmp_path_factory.mktemp("dated") / "dated.csv"
    frame.to_csv(path, index=False)
    with pytest.warns(RunWarning, match=r"born looks like dates .* Write dates as 2024-01-31"):
        run = explore(path, **COLUMNS, **TRAINING, max_gap=1, out=path.with_name("run"))
    return frame, run


def test_what_a_date_became_is_said(dated):
    _, run = dated
    assert run.data.features["applied"] == "date"
    assert run.data.features["born"] == "text"
    codes = [(c.code, c.level, c.data["features"]) for c in run.caveats if c.code == "date"]
    assert codes == [("date", "warning", ["born"]), ("date", "note", ["applied"])]


def test_predict_reads_what_explore_read(dated, tmp_path):
    frame, run = dated
    frame.to_parquet(tmp_path / "dated.parquet")
    stored = load_run(run.folder)
    wanted = run.predict(run.record["data"]["path"])
    for rows in (frame, tmp_path / "dated.parquet"):
        pd.testing.assert_frame_equal(stored.predict(rows), wanted)
    late = frame.assign(applied="later")
    with pytest.raises(RunError, match=r"applied must hold dates such as 2024-01-31 .* 'later'"):
        stored.predict(late)
