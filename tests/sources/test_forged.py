"""Files of others: what they ask for is looked at before it is given, and no link is followed."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.forgeries.mutations import bomb

from apfex.files import check_text
from apfex.runs import RunError, audit_file, load_run, rewrite_report
from apfex.sources._streams import open_stream as open_rows
from apfex.sources._tables import open_table
from apfex.streams import open_stream


def test_a_packed_csv_that_fills_a_memory_is_refused(tmp_path):
    path = tmp_path / "t.csv.gz"
    path.write_bytes(bomb(b"sex,decided\n", b"F" * 99 + b",1\n", 10**6))
    with pytest.raises(RunError, match="must not grow more than 100 times"):
        audit_file(path, prediction="decided", sensitive="sex")


def test_a_long_cell_is_read_but_not_one_that_never_ends(tmp_path):
    path, long = tmp_path / "t.csv", "x" * 200_000
    path.write_text(f"a,b\n1,{long}\n")
    assert list(open_table(path).read()["b"]) == [long]
    path.write_text(f'a,b\n1,"{long}\n')
    with pytest.raises(RunError, match="a quote that is never closed"):
        open_table(path).read()


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
    monkeypatch.setattr("apfex.sources._excel._MOST_ROWS", 2_000)
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
    monkeypatch.setattr("apfex.memory._SMALL", 0)
    monkeypatch.setattr("apfex.memory.free_memory", lambda: 10**7)
    with pytest.raises(RunError, match="says that it has 1,000,000 rows, of which 2 columns take"):
        open_table(path).read()


def write_arrow(path, table, times=1):
    with pa.ipc.new_file(pa.OSFile(str(path), "wb"), table.schema) as writer:
        for _ in range(times):
            writer.write_table(table)
    return path


def views(word, rows):
    """Places in text, all of which are the same."""
    one = pa.array([word], pa.string_view()).buffers()
    places = pa.py_buffer(one[1].to_pybytes() * rows)
    return pa.Array.from_buffers(pa.string_view(), rows, [None, places, *one[2:]])


def as_json(words):
    return pa.ExtensionArray.from_storage(pa.json_(words.type), words)


WORD = "x" * 2**20
BOMBS = {
    "t.arrow": lambda: pa.nulls(400_000_000),
    "views.arrow": lambda: views(WORD, 1_500),
    "json.arrow": lambda: as_json(views(WORD, 1_500)),
    "words.arrow": lambda: pa.DictionaryArray.from_arrays(list(range(1_500)), views(WORD, 1_500)),
    "t.parquet": lambda: pa.DictionaryArray.from_arrays([0] * 1_500, [WORD]),
}
"""Files of some bytes, or of one long word, that take gigabytes."""
CAPPED = """
import sys
from tests.forgeries.child import cap_memory
from apfex.runs import RunError
from apfex.sources._streams import open_stream as open_rows
from apfex.sources._tables import open_table
from apfex.streams import open_stream
import pandas, pyarrow.compute, pyarrow.dataset, pyarrow.parquet
USES = {
    "whole": lambda path: open_table(path).read(["a"]),
    "rows": lambda path: [one.rows.to_pandas() for one in open_rows(path).batches(65_536)],
    "stream": lambda path: list(open_stream(path, ".").frames(["a"], 65_536)),
}
cap_memory()
for name in sys.argv[2:]:
    for use in USES:
        if (name, use) in [("t.arrow", "rows"), ("t.arrow", "stream")]:
            continue  # parts of it are small
        try:
            USES[use](f"{sys.argv[1]}/{name}")
            print(name, use, "is read")
        except ValueError as error:
            print(name, use, type(error).__name__, error)
"""


def test_what_a_file_repeats_takes_no_memory_before_it_is_known_to_fit(tmp_path):
    for name, make in BOMBS.items():
        table = pa.table({"a": make()})
        if name.endswith("arrow"):
            write_arrow(tmp_path / name, table)
        else:
            pq.write_table(table, tmp_path / name, compression="zstd", store_schema=False)
        assert (tmp_path / name).stat().st_size < 2**20 + 2**17
    done = subprocess.run(
        [sys.executable, "-c", CAPPED, tmp_path, *BOMBS],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2_000:]
    first, *others = done.stdout.splitlines()
    assert "t.arrow says that it has 400,000,000 rows, of which 1 columns take at least 3" in first
    assert len(others) == 12
    for line in others:
        name = line.split()[0]
        assert f"{name} cannot be read: its text takes 1.6 GB in 1,500 rows, and " in line


@pytest.mark.parametrize("says_so", [True, False])
def test_words_whose_size_nobody_knows_are_refused(tmp_path, says_so):
    """A page of some bytes holds a word once, and how much of it each of any rows begins with."""
    path = tmp_path / "t.parquet"
    table = pa.table({"a": ["x" * 1_000] * 2_000, "d": [0, 1] * 1_000})
    pq.write_table(
        table, path, use_dictionary=False, column_encoding={"a": "DELTA_BYTE_ARRAY", "d": "PLAIN"}
    )
    assert path.stat().st_size < 10_000
    if not says_so:  # the footer says plain words, the page is what it was
        data = path.read_bytes()
        assert data.count(b"\x25\x06\x0e") == 1
        path.write_bytes(data.replace(b"\x25\x06\x0e", b"\x25\x06\x00"))
        assert pq.read_metadata(path).row_group(0).column(0).encodings == ("RLE", "PLAIN")
    for read in (
        lambda: open_table(path).read(["a"]),
        lambda: list(open_rows(path).batches(100)),
        lambda: list(open_stream(path, tmp_path).frames(["a"], 100)),
    ):
        with pytest.raises(ValueError, match=r"t\.parquet cannot be read: .* is in DELTA_BYTE"):
            read()
    assert open_table(path).read(["d"])["d"].sum() == 1_000


def test_the_engine_builds_such_words_within_its_memory(tmp_path, monkeypatch):
    """DuckDB builds those of 2,048 rows at a time, and counts them."""
    monkeypatch.setattr("apfex.engines._duckdb.usable_memory", lambda: 0)
    path = tmp_path / "t.parquet"
    table = pa.table({"a": ["x" * 2**20] * 300, "d": [0, 1] * 150})
    pq.write_table(table, path, use_dictionary=False, column_encoding={"a": "DELTA_BYTE_ARRAY"})
    with pytest.raises(MemoryError, match=r"longer words, than memory: .*/256\.0 MiB used"):
        audit_file(path, prediction="d", sensitive="a")


@pytest.mark.parametrize(
    "values",
    [as_json(pa.array(["x" * 1_000] * 100)), pa.array([b"x" * 1_000] * 100, pa.binary(1_000))],
)
def test_words_that_are_called_json_and_bytes_of_one_width_are_counted(
    tmp_path, monkeypatch, values
):
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"a": values}), path)
    monkeypatch.setattr("apfex.memory._SMALL", 0)
    monkeypatch.setattr("apfex.memory.free_memory", lambda: 50_000)
    built = []
    monkeypatch.setattr(
        "apfex.files._repeated_text.check_text",
        lambda rows: built.extend(rows.schema.types) or check_text(rows),
    )
    with pytest.raises(RunError, match=r"its text takes 100\.0 kB in 100 rows"):
        open_table(path).read()
    assert all(map(pa.types.is_dictionary, built))  # no more than words and their places


@pytest.mark.parametrize("name", ["t.parquet", "t.arrow"])
def test_json_of_others_is_text(tmp_path, name):
    path, table = tmp_path / name, pa.table({"a": as_json(pa.array(["1", "2", None]))})
    if name == "t.arrow":
        write_arrow(path, table)
    else:
        pq.write_table(table, path)
    assert open_table(path).read()["a"].tolist()[:2] == ["1", "2"]
    (frame,) = open_stream(path, tmp_path).frames(["a"], 100)
    assert frame["a"].tolist()[:2] == ["1", "2"]
    (batch,) = open_rows(path).batches(100)
    assert batch.rows.equals(table)


def test_a_memory_that_pandas_finds_too_small_is_told(tmp_path, monkeypatch):
    path = write_arrow(tmp_path / "t.arrow", pa.table({"a": [1.0]}))

    def fail(*_):
        raise MemoryError("Unable to allocate 3 GiB")

    monkeypatch.setattr("apfex.sources._tables.to_pandas", fail)
    with pytest.raises(RunError, match=r"asks for more memory than there is \(Unable to allocate"):
        open_table(path).read()


@pytest.mark.parametrize("type", [pa.string(), pa.large_string(), pa.string_view(), pa.binary()])
@pytest.mark.parametrize("encoded", [True, False])
def test_text_that_fits_is_read_as_it_was_written(tmp_path, monkeypatch, type, encoded):
    """Also in parts, as places in text are of 31 bits."""
    monkeypatch.setattr("apfex.files._repeated_text._PART", 100)
    words = ["b", None, "", "\u00e9" * 30, "a", "b"] * 50
    table = pa.table({"n": range(300), "a": pa.array(words, pa.string()).cast(type)})
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=70, use_dictionary=encoded)
    found = open_table(tmp_path / "t.parquet").read_arrow()
    assert found.schema.types == table.schema.types
    assert found.combine_chunks().to_pydict() == table.to_pydict()
    if type in (pa.string(), pa.large_string()):
        own = open_table(tmp_path / "t.parquet").read()["a"]
        assert own.cat.categories.tolist() == ["b", "", "\u00e9" * 30, "a"]


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


@pytest.mark.parametrize("name", USES)
def test_no_link_is_followed_that_comes_between_look_and_use(finished, tmp_path, monkeypatch, name):
    """Whoever may write to the folder can replace a file at any moment."""
    folder = shutil.copytree(finished, tmp_path / "run")
    path = folder / name if name != "model" else folder / name / "content.json"
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    monkeypatch.setattr(Path, "is_symlink", lambda _: False)
    with pytest.raises((OSError, ValueError), match="could not be read: "):
        USES[name](folder)
