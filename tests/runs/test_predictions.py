"""What is written: cells as they were, three columns more, nothing that a spreadsheet runs."""

import csv
import io
import re

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.people import people

from apfex.runs import load_run
from apfex.sources._tables import open_table
from apfex.sources._writers import CsvWriter, _safe_cells, _safe_text


def rows_with(**columns):
    """Rows that the run decides on, and other columns before them."""
    n = len(next(iter(columns.values())))
    features = people(n).drop(columns=["sex", "origin", "hired"]).assign(town="x")
    return pd.DataFrame(columns).join(features)


def is_number(text):
    try:
        float(text.replace(",", "."))
    except ValueError:
        return False
    return text == text.strip()


CELLS = st.text(st.sampled_from("=+-@\t\rab'\"1.,;| \n[é👩"), max_size=6)


READINGS = (",", ";", "\t", "|")
"""What parts cells on one computer or another."""


def runs(cell):
    """Whether a spreadsheet would take a cell for a formula."""
    cell = cell.lstrip(" \ufeff")  # which some drop
    return cell[:1] in tuple("=+-@\t\r\n") and cell != "" and not is_number(cell)


@settings(deadline=None, max_examples=60)
@given(rows=st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=8))
def test_no_cell_of_a_csv_runs_and_all_others_stay(finished, rows):
    frame, stream = pd.DataFrame(rows, columns=["=a", "b"]).astype("str"), io.StringIO()
    done = load_run(finished).predict_file(rows_with(**frame), stream)
    written = [row[:2] for row in csv.reader(io.StringIO(stream.getvalue(), newline=""))]
    cells = [*frame.columns, *(cell for row in rows for cell in row)]
    count = 0
    for before, after in zip(cells, (cell for row in written for cell in row), strict=True):
        assert not runs(after)
        # nothing is lost: apostrophes alone are added, and only where a formula would begin
        places = [place for place, mark in enumerate(after) if mark == "'"]
        assert re.sub("'", "", after) == re.sub("'", "", before)
        assert len(places) >= before.count("'")
        if not runs(before) and not re.search(r"[;|\t\r\n][\" ]*[=+\-@\t\r\n]", before):
            assert after == before
        count += after != before
    assert done.cells_made_safe == count


ODD = [
    " =1",
    "\ufeff=1",
    " -5",
    "-5",
    "-5\n",
    "+3,5e-1",
    "-\u0663",
    "\uff1d1+1",
    'a;" =1',
    "a;-5|=x",
    "a\t-5\t@",
    None,
]


@settings(deadline=None)
@given(cells=st.lists(st.sampled_from(ODD) | CELLS, min_size=1, max_size=9))
@pytest.mark.parametrize("own", [",", "\t"])
def test_the_quick_look_passes_no_cell_that_the_rule_would_change(own, cells):
    text = pd.Series(cells, dtype="str")
    found, count = _safe_cells(pd.DataFrame({"a": text}), own)
    text = text.dropna().astype("str")
    by_rule = _safe_text(text, own)
    assert found["a"].dropna().tolist() == by_rule.tolist()
    assert found["a"].isna().tolist() == [cell is None for cell in cells]
    assert count == int((by_rule != text).sum())


@settings(deadline=None, max_examples=60)
@given(rows=st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=4))
@pytest.mark.parametrize("own", [",", "\t"])
def test_no_cell_runs_where_others_part_cells_otherwise(own, rows):
    stream = io.StringIO()
    table = pa.table({"x": ["x"] * len(rows), "a": [a for a, _ in rows], "b": [b for _, b in rows]})
    CsvWriter(stream, own).write(table, {})
    for line in re.split(r"[\r\n]", stream.getvalue()):
        for separator in READINGS:
            if separator == own:  # text with it is quoted
                continue
            for cell in line.split(separator)[1:]:
                assert not runs(cell.split(own)[0].strip('" '))


def test_a_formula_after_what_is_not_seen_is_stopped():
    """The mark of UTF-8 at the start of a file is dropped, and the first name begins there."""
    stream = io.StringIO()
    CsvWriter(stream, ",").write(pa.table({"\ufeff=1+1": [" =1", " -5", " a"]}), {})
    assert stream.getvalue().splitlines() == ["'\ufeff=1+1", "' =1", " -5", " a"]


def test_what_begins_a_formula_in_the_middle_of_a_cell_is_stopped():
    stream = io.StringIO()
    cells = ["a;=1+1", 'a;"=1+1', "a\n=1", "a|@x", "\uff1d1+1", "a;-5;b", "a - b", "a, =b"]
    changed = CsvWriter(stream, ",").write(pa.table({"a;=1": cells}), {})
    found = [row[0] for row in csv.reader(io.StringIO(stream.getvalue()))]
    assert found == [
        *("a;'=1", "a;'=1+1", "a;\"'=1+1", "a\n'=1", "a|'@x", "'\uff1d1+1", "a;-5;b"),
        *("a - b", "a, =b"),
    ]
    assert changed == 6


def test_numbers_are_no_formulas(finished, tmp_path):
    frame = rows_with(x=[-1.5, 2.0], t=["-5", "+3,5e-1"])
    done = load_run(finished).predict_file(frame, tmp_path / "out.csv")
    assert done.cells_made_safe == 0
    found = pd.read_csv(tmp_path / "out.csv", dtype={"t": "str"})
    assert (found["x"].tolist(), found["t"].tolist()) == ([-1.5, 2.0], ["-5", "+3,5e-1"])


def test_csv_keeps_its_cells(finished, tmp_path):
    path, out = tmp_path / "in.csv", tmp_path / "out.csv"
    rows_with(id=["0007", "NA"], note=["a, b", ""], x=["1.50", "2"]).to_csv(path, index=False)
    assert load_run(finished).predict_file(path, out).cells_made_safe == 0
    for before, after in zip(*(p.read_text().splitlines() for p in (path, out)), strict=True):
        assert after.startswith(f"{before},")
        assert after.count(",") == before.count(",") + 3


@pytest.mark.parametrize("name", ["out.parquet", "out.arrow", "out.tsv", "out.csv.gz"])
def test_every_form_can_be_written_and_read(finished, tmp_path, name):
    path, run = tmp_path / "in.parquet", load_run(finished)
    rows = pa.Table.from_pandas(rows_with(x=["=1+1", "b"]))
    pq.write_table(rows.append_column("day", pa.array([1, 2], pa.date32())), path)
    changed = run.predict_file(path, tmp_path / name).cells_made_safe
    found = open_table(tmp_path / name).read()
    assert found["probability"].tolist() == run.predict(path)["probability"].tolist()
    assert changed == (0 if name in ("out.parquet", "out.arrow") else 1)
    assert found["x"][0] == ("'=1+1" if changed else "=1+1")
    if name == "out.parquet":
        assert pq.read_schema(tmp_path / name).field("day").type == pa.date32()


def test_a_failure_leaves_what_was_there(finished, tmp_path, monkeypatch):
    out = tmp_path / "out.parquet"
    out.write_text("before")
    write, written = pq.ParquetWriter.write_table, []

    def fail_at_last(self, rows):
        written.append(len(rows))
        return write(self, rows) if len(written) < 3 else pa.array([1, "x"])

    monkeypatch.setattr(pq.ParquetWriter, "write_table", fail_at_last)
    with pytest.raises(pa.ArrowInvalid):
        load_run(finished).predict_file(rows_with(x=[1, 2, 3]), out, force=True, batch_size=1)
    assert written == [1, 1, 1]
    assert out.read_text() == "before"
    assert [path.name for path in tmp_path.iterdir()] == ["out.parquet"]
