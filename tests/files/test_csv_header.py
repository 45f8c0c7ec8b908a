"""Names of columns, and cells, of any length: whoever reads them, they are the same."""

from typing import Any

import pytest

from apfex.auditing import audit_table
from apfex.files import read_header
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
    ],
)
def test_a_name_may_have_several_lines(tmp_path, text, name):
    assert groups_of(written(tmp_path, text), name) == [[f"{name}=a", f"{name}=b"]] * 2


def test_other_line_ends_in_a_name_are_refused_where_no_row_would_be_found(tmp_path):
    path = written(tmp_path, '"g\nh",y\r\n' + ROWS.replace("\n", "\r\n"))
    with pytest.raises(ValueError, match="must have the same line ends within names of columns"):
        audit_table(path, prediction="y", sensitive="g\nh")


def test_a_table_may_be_wide(tmp_path):
    more = range(30_000)
    lines = [["g", "y", *(f"c{one}" for one in more)], ["a", "1", *("2" for _ in more)]]
    lines.append(["b", "0", *lines[1][2:]])
    path = written(tmp_path, "".join(",".join(line) + "\n" for line in lines))
    assert len(read_header(str(path)).columns) == 30_002
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
    with pytest.raises(ValueError, match=f"must begin with names of columns, got .*{message}"):
        read_header(str(path))
    with pytest.raises(RunError, match=message):
        audit_file(path, prediction="y", sensitive="g")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f'g,y,t\na,1,"{LONG}""k"\nb,0,5"\n', "or a cell of more than 131,072 characters"),
        ("g,y,t\n" + 'a,1,"x\nb,0,k\n' * 11, "or one within a cell that is not written twice"),
    ],
)
def test_quotes_that_are_not_in_pairs_are_told(tmp_path, text, message):
    with pytest.raises(RunError, match=message):
        audit_file(written(tmp_path, text), prediction="y", sensitive="g")
