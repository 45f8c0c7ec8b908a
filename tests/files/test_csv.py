"""Names of columns, and cells: whoever reads them, they are the same."""

import csv
import io
from contextlib import suppress
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apfex import APFExClassifier
from apfex.auditing import audit_table
from apfex.files import _csv_quotes, check_quotes, read_dialect, stream_csv
from apfex.runs import audit_file
from apfex.sources import RunError

ROWS = "a,1\nb,0\n" * 20
LONG = "x" * 140_000


def written(folder, text):
    path = folder / "t.csv"
    path.write_bytes(text.encode())
    return path


def groups_of(path, sensitive="g"):
    """Groups in the engine, and in memory."""
    asked: dict[str, Any] = {"prediction": "y", "sensitive": sensitive}
    found = audit_table(path, **asked), audit_file(path, **asked).audit
    return [list(one.groups["group"]) for one in found]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ('"g\nh",y\n' + ROWS, "g\nh"),
        ('y;"g\nh";"k\nl"\n' + "1;a;2\n0;b;2\n" * 20, "g\nh"),
        ('"g\r\nh",y\r\n' + ROWS.replace("\n", "\r\n"), "g\r\nh"),
        ('"g\nh",y\r\n' + ROWS.replace("\n", "\r\n"), "g\nh"),
    ],
)
def test_a_name_may_have_several_lines(tmp_path, text, name):
    assert groups_of(written(tmp_path, text), name) == [[f"{name}=a", f"{name}=b"]] * 2


def test_a_table_may_be_wide(tmp_path):
    more = range(30_000)
    lines = [["g", "y", *(f"c{one}" for one in more)], ["a", "1", *("2" for _ in more)]]
    lines.append(["b", "0", *lines[1][2:]])
    path = written(tmp_path, "".join(",".join(line) + "\n" for line in lines))
    assert len(read_dialect(path).columns) == 30_002
    assert list(audit_file(path, prediction="y", sensitive="g").audit.groups["group"]) == [
        "g=a",
        "g=b",
    ]


def test_a_cell_may_be_long(tmp_path):
    path = written(tmp_path, f"g,y,t\na,1,{LONG}\nb,0,k\n")
    assert groups_of(path) == [["g=a", "g=b"]] * 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"g,y,{LONG}\na,1,2\n", "or a cell of more than 131,072 characters"),
        ('g,y,"t\n' + "a,1,2\n" * 300, "a quote that is never closed"),
    ],
)
def test_a_header_that_is_none_is_told(tmp_path, text, message):
    path = written(tmp_path, text)
    for audit in (audit_table, audit_file):
        with pytest.raises(ValueError, match=rf"t\.csv .*{message}"):
            audit(path, prediction="y", sensitive="g")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f'g,y,t\na,1,"{LONG}""k"\nb,0,5"\n', "or a cell of more than 131,072 characters"),
        ("g,y,t\n" + 'a,1,"x\nb,0,k\n' * 11, "a quote within a cell is written twice"),
    ],
)
def test_quotes_that_are_not_in_pairs_are_told(tmp_path, text, message):
    with pytest.raises(RunError, match=message):
        audit_file(written(tmp_path, text), prediction="y", sensitive="g")


LINES = st.lists(st.text('ab ,"', max_size=9), min_size=1, max_size=4)


@given(lines=LINES, end=st.sampled_from(["\n", "\r\n"]))
def test_cells_of_what_is_not_refused_are_those_of_python(tmp_path_factory, lines, end):
    """Two parsers, of which only one is ours to choose, find the same cells."""
    path = written(tmp_path_factory.mktemp("t"), end.join(["x,y", *lines, ""]))
    dialect = read_dialect(path)
    with suppress(ValueError):
        check_quotes(path, dialect)
        found = [row for batch in stream_csv(path, dialect) for row in batch.to_pylist()]
        rows = csv.reader(io.StringIO(path.read_bytes().decode(), newline=""), strict=True)
        told = [row for row in rows if row][1:]
        assert [list(row.values()) for row in found] == told


@given(lines=LINES, size=st.integers(1, 7))
def test_quotes_mean_the_same_wherever_a_file_is_parted(lines, size):
    text = "\n".join(["x,y", *lines])
    data = text.encode()
    parts = (data[at : at + size] for at in range(0, len(data), size))
    plain = _csv_quotes._is_plain(parts, ord(","))
    assert plain == _csv_quotes._is_plain(iter([data]), ord(","))
    if plain:  # all readers agree, also the strict one
        list(csv.reader(io.StringIO(text), strict=True))


@pytest.mark.parametrize("cells", [('"f', '"m'), ('"f', 'm"x'), ('"f" ', '"m"'), ('"f"x', "m")])
def test_rows_are_never_swallowed_by_two_open_quotes(tmp_path, cells):
    """The first quote opens a cell of many rows, and the second closes it."""
    rows = [f"{place % 2},{'ab'[place // 2 % 2]}" for place in range(40)]
    rows[3], rows[30] = (f"1,{cell}" for cell in cells)
    path = written(tmp_path, "\n".join(["y,g", *rows, ""]))
    for audit in (audit_table, audit_file):
        with pytest.raises(ValueError, match="a quote that is never closed, or one with text"):
            audit(path, prediction="y", sensitive="g")
    with pytest.raises(ValueError, match="a quote that is never closed, or one with text"):
        APFExClassifier().fit(path, "y", sensitive_features="g")


def test_marks_before_decimals_mean_the_same_in_memory_and_in_an_engine(tmp_path):
    """A comma in the numbers of one file is that of all."""
    rows = [f"{place % 2};{'ab'[place // 4 % 2]};{place % 5},5" for place in range(400)]
    path = written(tmp_path, "\n".join(["y;g;w", *rows, ""]))
    asked: dict[str, Any] = {"prediction": "y", "sensitive": "g", "weight": "w"}
    by_engine, in_memory = audit_table(path, **asked), audit_file(path, **asked).audit
    pd.testing.assert_frame_equal(by_engine.groups, in_memory.groups)
    frame = pd.read_csv(path, sep=";", decimal=",")
    told = [np.average(own["y"], weights=own["w"]) for _, own in frame.groupby("g")]
    assert list(in_memory.groups["rate"]) == pytest.approx(told)
    other = tmp_path / "u.csv"
    other.write_text("y;g;w\n1;a;2\n0;b;3\n")
    assert sum(audit_table([path, other], **asked).groups["count"]) == 402


def test_codes_stay_text_in_a_fit_of_a_file(tmp_path):
    rows = [
        f"{place // 3 % 2},{('1', '01', '2')[place % 3]},{place // 3 % 2}" for place in range(300)
    ]
    path = written(tmp_path, "\n".join(["y,g,x", *rows, ""]))
    clf = APFExClassifier(model="linear", group_thresholds=True, n_members=2)
    clf.fit(path, "y", sensitive_features="g")
    assert clf.fitted_.groups is not None
    assert clf.fitted_.groups.names == ("g=01", "g=1", "g=2")
