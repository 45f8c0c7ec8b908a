"""What is written: cells as they were, two columns more, nothing that a spreadsheet runs."""

import csv
import io
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apfex.runs._files import open_table
from apfex.runs._predict import as_csv, safe_cells, write_rows


def is_number(text):
    try:
        float(text.replace(",", "."))
    except ValueError:
        return False
    return text == text.strip()


CELLS = st.text(st.sampled_from("=+-@\t\rab'\"1.,;| \n[é👩"), max_size=6)


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=8))
def test_no_cell_of_a_csv_runs_and_all_others_stay(rows):
    frame = pd.DataFrame(rows, columns=["=a", "b"]).astype("str")
    safe, changed = safe_cells(frame)
    written = list(csv.reader(io.StringIO(as_csv(safe), newline="")))
    cells = [*frame.columns, *(cell for row in rows for cell in row)]
    count = 0
    for before, after in zip(cells, (cell for row in written for cell in row), strict=True):
        if before[:1] in tuple("=+-@\t\r\n") and before and not is_number(before):
            assert after == f"'{before}"
            count += 1
        else:
            assert after == before
    assert changed == count


def test_numbers_are_no_formulas():
    frame = pd.DataFrame({"x": [-1.5, 2.0], "t": ["-5", "+3,5e-1"]})
    safe, changed = safe_cells(frame)
    assert changed == 0
    pd.testing.assert_frame_equal(safe, frame)


ADDED = {"prediction": np.array(["yes", "no"]), "probability": np.array([0.75, 0.125])}


def test_csv_keeps_its_cells(tmp_path):
    path = tmp_path / "in.csv"
    path.write_text('id,note\n0007,"a, b"\nNA,\n')
    assert write_rows(open_table(path), ADDED, tmp_path / "out.csv") == 0
    assert (tmp_path / "out.csv").read_text() == (
        'id,note,prediction,probability\n0007,"a, b",yes,0.75\nNA,,no,0.125\n'
    )


@pytest.mark.parametrize("name", ["out.parquet", "out.arrow", "out.tsv", "out.csv.gz"])
def test_every_form_can_be_written_and_read(tmp_path, name):
    path = tmp_path / "in.parquet"
    pq.write_table(pa.table({"day": pa.array([1, 2], pa.date32()), "x": ["=1+1", "b"]}), path)
    changed = write_rows(open_table(path), ADDED, tmp_path / name)
    found = open_table(tmp_path / name).read()
    assert found["probability"].tolist() == [0.75, 0.125]
    assert changed == (0 if name in ("out.parquet", "out.arrow") else 1)
    assert found["x"][0] == ("'=1+1" if changed else "=1+1")
    if name == "out.parquet":
        assert pq.read_schema(tmp_path / name).field("day").type == pa.date32()


def test_a_failure_leaves_what_was_there():
    with TemporaryDirectory() as folder:
        path, out = Path(folder) / "in.csv", Path(folder) / "out.parquet"
        path.write_text("a\n1\n2\n")
        out.write_text("before")
        with pytest.raises(pa.ArrowInvalid):
            write_rows(open_table(path), {"prediction": np.array(["one row"])}, out)
        assert out.read_text() == "before"
        assert sorted(p.name for p in Path(folder).iterdir()) == ["in.csv", "out.parquet"]
