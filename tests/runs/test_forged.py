"""Files of others: what they ask for is looked at before it is given, and no link is followed."""

import os
import shutil
import zipfile

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.forgeries.mutations import bomb

from apfex.runs import RunError, audit_file, load_run, rewrite_report
from apfex.runs._tables import open_table


def test_a_packed_csv_that_fills_a_memory_is_refused(tmp_path):
    path = tmp_path / "t.csv.gz"
    path.write_bytes(bomb(b"sex,decided\n", b"F" * 99 + b",1\n", 10**6))
    with pytest.raises(RunError, match="must not grow more than 100 times"):
        audit_file(path, prediction="decided", sensitive="sex")


@pytest.mark.parametrize("quoted", ['"' + "x" * 200_000, "x" * 200_000])
def test_a_cell_that_no_csv_has_is_told(tmp_path, quoted):
    path = tmp_path / "t.csv"
    path.write_text(f"a,b\n1,{quoted}\n")
    with pytest.raises(RunError, match="a quote that is never closed"):
        open_table(path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no pipes with names")
def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "t.csv")
    with pytest.raises(RunError, match=r"t\.csv must be an ordinary file, got a pipe or a device"):
        audit_file(tmp_path / "t.csv", prediction="decided", sensitive="sex")


def sheet_with(path, cells, dimension="A1:B2"):
    """A workbook whose sheet is written by hand."""
    pd.DataFrame({"a": [1], "b": [2]}).to_excel(path, index=False)
    with zipfile.ZipFile(path) as archive:
        parts = {one: archive.read(one) for one in archive.namelist()}
    name = "xl/worksheets/sheet1.xml"
    text = parts[name].decode()
    start, end = text.index("<sheetData>"), text.index("</sheetData>")
    rows = "".join(f'<row r="{row}"><c r="{at}{row}"><v>1</v></c></row>' for at, row in cells)
    head = text[: text.index("<dimension")] + f'<dimension ref="{dimension}"/><sheetData>'
    parts[name] = (head + rows + text[end:]).encode()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for one, data in parts.items():
            archive.writestr(one, data)
    assert start
    return path


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        ([("A", 1), ("XFD", 2), ("A", 1_000)], "next to none of them are filled"),
        ([("A", 1), ("XFD", 1_000)], "next to none of them are filled"),
        ([("A", 1), ("A", 2_000_000_000)], "more than the 2,000 rows that Excel knows"),
    ],
)
def test_a_sheet_of_a_few_cells_is_no_table_of_billions(tmp_path, monkeypatch, cells, message):
    monkeypatch.setattr("apfex.runs._excel._MOST_ROWS", 2_000)
    with pytest.raises(RunError, match=message):
        open_table(sheet_with(tmp_path / "t.xlsx", cells))


def test_what_a_sheet_says_of_its_size_is_not_believed(tmp_path):
    path = sheet_with(tmp_path / "t.xlsx", [("A", 1), ("A", 2)], "A1:XFD1048576")
    assert open_table(path).read().shape == (1, 1)


def test_a_table_of_a_billion_rows_is_refused_by_its_footer(tmp_path, monkeypatch):
    """Rows that are alike take next to no room in the file, and all their room in memory."""
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"a": np.zeros(10**6), "b": np.zeros(10**6)}), path)
    assert open_table(path).read().shape == (10**6, 2)
    monkeypatch.setattr("apfex.runs._tables.usable_memory", lambda: 10**7)
    with pytest.raises(RunError, match="says that it has 1,000,000 rows, of which 2 columns take"):
        open_table(path).read()


def test_places_in_an_arrow_file_are_checked_before_they_are_followed(tmp_path):
    path = tmp_path / "t.arrow"
    table = pa.table({"a": ["x" * 50, "y" * 50]})
    with pa.ipc.new_file(pa.OSFile(str(path), "wb"), table.schema) as writer:
        writer.write_table(table)
    data, ends = path.read_bytes(), np.array([0, 50, 100], "<i4").tobytes()
    assert data.count(ends) == 1
    path.write_bytes(data.replace(ends, np.array([0, 50, 2**31 - 1], "<i4").tobytes()))
    with pytest.raises(RunError, match="cannot be read: "):
        open_table(path).read()


USES = {
    "run.json": load_run,
    "front.json": lambda folder: load_run(folder).described,
    "model": lambda folder: load_run(folder).classifier,
    "audit.json": lambda folder: load_run(folder).audit,
}


@pytest.mark.parametrize("name", USES)
def test_no_link_of_a_run_is_followed(finished, tmp_path, name):
    folder = shutil.copytree(finished, tmp_path / "run")
    (folder / name).rename(tmp_path / "elsewhere")
    (folder / name).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(RunError, match=f"{name} is a link to another place"):
        USES[name](folder)


@pytest.mark.parametrize("name", ["report.html", "decision.json"])
def test_no_link_of_a_run_is_written_to(finished, tmp_path, name):
    folder, mine = shutil.copytree(finished, tmp_path / "run"), tmp_path / "mine"
    mine.write_text("kept")
    (folder / name).unlink(missing_ok=True)
    (folder / name).symlink_to(mine)
    with pytest.raises(RunError, match=f"{name} is a link to another place"):
        rewrite_report(folder)
    assert mine.read_text() == "kept"
