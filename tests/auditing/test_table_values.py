"""Values that libraries store in different ways are the same groups, wherever rows are read."""

import os
import sqlite3
import subprocess
import sys
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import ibis
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import apfex
from apfex.auditing import audit_table
from apfex.runs import audit_file

DECIDED = np.arange(200) // 2 % 2
NOON, LATER = "2024-01-01 11:00:00+00:00", "2024-07-01 10:00:00+00:00"
ZONED = pd.DataFrame(
    {
        "g": pd.to_datetime(["2024-01-01 12:00", "2024-07-01 12:00"] * 100).tz_localize(
            "Europe/Berlin"
        ),
        "h": ["a", "b", "b", "a"] * 50,
        "d": DECIDED,
    }
)
SHORT = pa.table(
    {
        "g": pa.array(np.array([0.1, 0.5] * 100, np.float16)),
        "s": pa.array(np.tile(np.array([0.1, 0.2, 0.3, 0.7], np.float16), 50)),
        "h": ["a", "b", "b", "a"] * 50,
        "d": DECIDED,
    }
)
WHOLE = pa.table({"g": pa.array([*[2**53, 2**53 + 1] * 99, None, None]), "d": DECIDED})


def audit(**given) -> Any:
    return apfex.audit(None, criteria="dp", **given)


def groups_of(found):
    return dict(found.groups[["group", "count"]].to_numpy())


def counted(source, sensitive="g", **given):
    asked = {"prediction": "d", "sensitive": sensitive, "criteria": "dp", **given}
    return groups_of(audit_table(source, **asked))


def read(source, sensitive="g", **given):
    asked = {"prediction": "d", "sensitive": sensitive, "criteria": "dp", **given}
    return groups_of(audit_file(source, **asked).audit)


def test_times_with_a_zone_are_named_in_utc_wherever_they_are(tmp_path):
    ZONED.to_parquet(tmp_path / "t.parquet")
    frame: Any = pl.DataFrame(ZONED)
    wanted = {f"g={NOON}": 100, f"g={LATER}": 100}
    for source in (ZONED, frame, frame.lazy(), tmp_path / "t.parquet"):
        assert counted(source) == read(source) == wanted
    for people in (ZONED[["g"]], frame[["g"]], ZONED[["g"]].astype("category")):
        assert groups_of(audit(y_pred=DECIDED, sensitive_features=people)) == wanted
    code = (
        "from apfex.auditing import audit_table; import sys; found = audit_table(sys.argv[1], "
        "prediction='d', sensitive='g', where={'g': '2024-01-01 11:00'}); print(found.n_rows)"
    )
    named = (
        "from apfex.auditing import audit_table; import sys; found = audit_table(sys.argv[1], "
        "prediction='d', sensitive='g', criteria='dp'); print(*found.groups['group'], sep=';')"
    )
    tokyo = {**os.environ, "TZ": "Asia/Tokyo"}
    for source, said in ((code, "100"), (named, f"g={NOON};g={LATER}")):
        asked = [sys.executable, "-c", source, str(tmp_path / "t.parquet")]
        done = subprocess.run(asked, capture_output=True, text=True, env=tokyo, check=True)
        assert done.stdout.strip() == said


@pytest.mark.parametrize(
    "moment",
    [
        ZONED.g[0],
        ZONED.g[0].to_pydatetime(),
        ZONED.g[0].tz_convert("UTC"),
        np.datetime64("2024-01-01T11:00:00"),
        datetime(2024, 1, 1, 11),
        datetime(2024, 1, 1, 11, tzinfo=UTC),
        "2024-01-01 12:00:00+01:00",
        "2024-01-01 11:00:00",
    ],
)
def test_a_condition_on_a_time_means_the_moment(tmp_path, moment):
    ZONED.to_parquet(tmp_path / "t.parquet")
    frame: Any = pl.DataFrame(ZONED)
    for source in (ZONED, frame.lazy(), tmp_path / "t.parquet"):
        assert counted(source, "h", where={"g": moment}) == {"h=a": 50, "h=b": 50}


def test_a_time_that_cannot_be_meant_is_refused():
    with pytest.raises(ValueError, match=r"where must name a value of g .* got '01.02.2024'"):
        counted(ZONED, "h", where={"g": "01.02.2024"})
    with pytest.raises(ValueError, match=r"no row has: g has 2024-01-01 11:00:00\+00:00, 2024-07"):
        counted(ZONED, "h", where={"g": "2024-01-01 12:00"})
    plain = ZONED.assign(g=ZONED.g.dt.tz_localize(None))
    with pytest.raises(ValueError, match=r"where must name a value of g \(timestamp"):
        counted(plain, "h", where={"g": ZONED.g[0]})


def test_times_of_sqlite_are_the_text_that_stands_there(tmp_path):
    path = tmp_path / "t.db"
    rows = [["01:02:03", "2024-01-01", "2024-01-01 05:30:00+05:30"]]
    rows += [["14:00:00", "01.02.2024", "2024-01-01 00:00:00"], ["14:00:00", 1704067200, None]]
    database = sqlite3.connect(path)
    database.execute("CREATE TABLE t (d INTEGER, a TIME, b DATE, c TIMESTAMP)")
    database.executemany(
        "INSERT INTO t VALUES (?, ?, ?, ?)", [(n % 2, *rows[n % 3]) for n in range(60)]
    )
    database.commit()
    database.close()
    for source in (path, ibis.sqlite.connect(path).table("t")):
        assert counted(source, "a") == {"a=01:02:03": 20, "a=14:00:00": 40}
        assert counted(source, "b") == {"b=01.02.2024": 20, "b=1704067200": 20, "b=2024-01-01": 20}
        named = {f"c={text}": 20 for text in (rows[0][2], rows[1][2], "<missing>")}
        assert counted(source, "c") == named
    chosen = counted(path, "b", where={"a": "14:00:00"})
    assert chosen == {"b=01.02.2024": 20, "b=1704067200": 20}


def test_times_of_nanoseconds_and_durations(tmp_path):
    times: Any = pl.DataFrame(
        {"g": pl.Series([3_600_000_000_000, 0] * 100).cast(pl.Time), "d": DECIDED}
    )
    times.write_parquet(tmp_path / "t.parquet")
    wanted = {"g=01:00:00": 100, "g=00:00:00": 100}
    assert counted(times) == counted(tmp_path / "t.parquet") == wanted
    lasting = times.with_columns(g=pl.Series([1, 5] * 100).cast(pl.Duration("us")))
    with pytest.raises(ValueError, match="g must hold numbers, text, dates or times, got durat"):
        counted(lasting)


def test_floats_of_16_bits_are_read_from_everything(tmp_path):
    pq.write_table(SHORT, tmp_path / "t.parquet")
    frame: Any = pl.from_arrow(SHORT)
    wanted = {"g=0.0999755859375": 100, "g=0.5": 100}
    sources = [SHORT, ds.dataset(SHORT), frame, frame.lazy(), SHORT.to_pandas()]
    sources += [tmp_path / "t.parquet"]
    for source in sources:
        assert counted(source) == wanted
        kept = audit_table(source, prediction="s", threshold=0.1, sensitive="h", criteria="dp")
        assert kept.overall["rate"].tolist() == [1.0]  # as numpy compares them: 0.1 is reached
    assert counted(SHORT.to_reader()) == wanted
    assert read(SHORT.to_pandas()) == read(SHORT.to_pandas(), where={"d": [0, 1]}) == wanted
    with pytest.raises(ValueError, match="floats of 16 bits, which duckdb does not read"):
        counted(ibis.memtable(SHORT))


@pytest.mark.parametrize("kind", [np.float16, np.float32])
def test_bins_cut_short_floats_in_their_precision(tmp_path, kind):
    frame = pd.DataFrame({"g": np.tile(np.array([0.1, 0.7], kind), 100), "d": DECIDED})
    frame.to_parquet(tmp_path / "t.parquet")
    wanted = {"g=0.1 up to 0.7": 100, "g=0.7 and over": 100}
    for source in (frame, tmp_path / "t.parquet"):
        assert read(source, bins={"g": [0.1, 0.7]}) == wanted
    assert read(frame, bins={"g": [0.1, 0.7]}, where={"d": [0, 1]}) == wanted


def test_whole_numbers_that_no_float_tells_apart_stay_two_groups(tmp_path):
    path = tmp_path / "t.csv"
    frame: Any = pl.from_arrow(WHOLE)
    pd.DataFrame(WHOLE.to_pydict(), dtype=object).to_csv(path, index=False)
    wanted = {f"g={2**53}": 99, f"g={2**53 + 1}": 99, "g=<missing>": 2}
    typed = WHOLE.to_pandas(types_mapper=pd.ArrowDtype)
    for source in (path, frame, typed, WHOLE.to_pandas(integer_object_nulls=True)):
        assert counted(source) == read(source) == wanted
    for people in (frame[["g"]], typed[["g"]], {"g": WHOLE["g"].to_pylist()}):
        assert groups_of(audit(y_pred=DECIDED, sensitive_features=people)) == wanted


def test_whole_numbers_of_csv_beyond_64_bits_keep_their_digits(tmp_path):
    words = [str(2**64 - 1), "1"] * 100
    pd.DataFrame({"g": words, "d": DECIDED}).to_csv(tmp_path / "t.csv", index=False)
    for way in (counted, read):
        assert way(tmp_path / "t.csv") == {f"g={2**64 - 1}": 100, "g=1": 100}


def test_decimals_are_numbers_in_frames_too():
    frame = pd.DataFrame({"w": [Decimal("1.1"), Decimal(2)] * 100, "g": ["a", "b"] * 100})
    frame = frame.assign(d=DECIDED)
    floats = frame.assign(w=frame.w.astype(float))
    asked: Any = {"prediction": "d", "sensitive": "g", "weight": "w"}
    ours, theirs = (audit_file(source, **asked).audit for source in (frame, floats))
    pd.testing.assert_frame_equal(ours.gaps, theirs.gaps)
    scored = {"prediction": "w", "threshold": 1.5, "sensitive": "g", "criteria": "dp"}
    assert audit_file(frame, **scored).audit.gaps["gap"].tolist() == [1.0]


@pytest.mark.parametrize("name", ["*", "^g.*$"])
def test_patterns_of_names_are_no_columns_of_lazy_polars(name):
    frame: Any = pl.DataFrame({name: ["a", "b"] * 100, "g": ["x", "y"] * 100, "d": DECIDED})
    assert counted(frame, name) == {f"{name}=a": 100, f"{name}=b": 100}
    assert counted(frame.lazy()) == {"g=x": 100, "g=y": 100}
    with pytest.raises(ValueError, match="which polars takes for a pattern of names; rename"):
        counted(frame.lazy(), name)


def test_a_column_without_a_name_stands_in_nobodys_way():
    frame = pd.DataFrame({"": ["a", "b"] * 100, "g": ["x", "y"] * 100, "d": DECIDED})
    assert counted(frame) == {"g=x": 100, "g=y": 100}
    with pytest.raises(ValueError, match="must name a column of the frame, got ''; it has g, d"):
        counted(frame, "")


@pytest.mark.parametrize("words", ["True False", "true false", "TRUE False"])
@pytest.mark.parametrize("asked", ["true", "True", True, ["TRUE"]])
def test_a_condition_on_true_and_false_of_csv_reads_any_spelling(tmp_path, words, asked):
    flag = [words.split()[n // 100] for n in range(200)]
    frame = pd.DataFrame({"g": ["a", "b"] * 100, "d": DECIDED, "f": flag})
    frame.to_csv(tmp_path / "t.csv", index=False)
    for way in (counted, read):
        assert way(tmp_path / "t.csv", where={"f": asked}) == {"g=a": 50, "g=b": 50}


def test_a_long_row_of_csv_is_told_with_its_length(tmp_path):
    rows = [f"{'ab'[n % 2]},{n // 2 % 2},{'x' * 9_000_000 if n == 7 else ''}\n" for n in range(40)]
    (tmp_path / "t.csv").write_text("g,d,note\n" + "".join(rows))
    for way in (counted, read):
        with pytest.raises(ValueError, match=r"t.csv has a row that is longer .* \(9,000,005 char"):
            way(tmp_path / "t.csv")


def test_a_long_value_is_cut_in_messages():
    frame = pd.DataFrame({"g": ["x" * 9_000] * 200, "d": DECIDED})
    several: tuple[Any, ...] = ({}, {"where": {"g": "y" * 9_000}})
    for asked in several:
        with pytest.raises(ValueError, match="xxx…") as told:
            read(frame, **asked)
        assert len(str(told.value)) < 400


def test_a_name_that_is_empty_is_not_left_out_among_others(tmp_path):
    frame = pd.DataFrame({"": ["a", "b"] * 100, "g": ["x", "x", "y", "y"] * 50, "d": DECIDED})
    frame.to_csv(tmp_path / "t.csv", index=False)
    several: Any = ["", "g"]
    with pytest.raises(ValueError, match="sensitive must name a column each time, got '' among"):
        read(tmp_path / "t.csv", several)
    assert read(frame, several)["=a, g=x"] == 50


def test_thresholds_are_exact_where_sqlite_reads_digits_as_another_float(tmp_path):
    scores = np.tile([6.034658656332361e-18, 4.54748841710446e-28, 0.5, 1e-310], 50)
    frame = pd.DataFrame({"s": scores, "g": ["a", "b", "b", "a"] * 50, "d": DECIDED})
    frame.to_sql("t", sqlite3.connect(tmp_path / "t.db"), index=False)
    for cut in np.unique(scores):
        asked: Any = {"prediction": "s", "threshold": float(cut), "sensitive": "g"}
        found = audit_table(tmp_path / "t.db", criteria="dp", **asked)
        assert found.overall["rate"].tolist() == [float((scores >= cut).mean())]
