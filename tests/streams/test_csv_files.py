"""CSV files are read in chunks as what their columns hold in all of them."""

import gzip

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from apfex.streams import open_stream


def write(folder, **files):
    for name, text in files.items():
        (folder / f"{name}.csv").write_text(text)
    return f"{folder}/*.csv"


def rows_of(source, tmp_path, rows=100):
    stream = open_stream(source, tmp_path)
    return pd.concat([*stream.frames(stream.columns, rows)], ignore_index=True)


def test_a_pattern_gives_the_rows_of_all_files_again_and_again(tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {"age": rng.normal(size=5_000), "town": rng.choice(["Bern", "Basel"], 5_000)}
    ).assign(n=np.arange(5_000), old=lambda frame: frame.age > 0)
    for place in range(2):
        table.iloc[place::2].to_csv(tmp_path / f"{place}.csv", index=False)
    stream = open_stream(f"{tmp_path}/*.csv", tmp_path)
    for _ in range(2):
        frames = list(stream.frames(["town", "n", "age", "old"], 700))
        assert max(map(len, frames)) <= 700
        found = pd.concat([frame.astype({"town": "str"}) for frame in frames])
        found = found.sort_values("n", ignore_index=True)
        pd.testing.assert_frame_equal(found, pd.DataFrame(table, columns=found.columns))


def test_separators_packing_gaps_and_commas(tmp_path):
    (tmp_path / "a.csv").write_text('g;y;w\n"a; b";0;1,5\nNA;1;\n')
    with gzip.open(tmp_path / "b.csv.gz", "wt") as stream:
        stream.write("y;g;w\n1;c;2\n")
    found = rows_of([tmp_path / "a.csv", tmp_path / "b.csv.gz"], tmp_path).astype({"g": object})
    assert found.y.tolist() == [0, 1, 1]
    assert found.w.tolist()[::2] == [1.5, 2.0]
    assert np.isnan(found.w[1])
    assert found.g.tolist()[::2] == ["a; b", "c"]
    assert pd.isna(found.g[1])


def test_whole_numbers_and_others_are_numbers(tmp_path):
    found = rows_of(write(tmp_path, a="x,y\n1,\n2,\n", b="x,y\n2.5,3\n", c="x,y\n"), tmp_path)
    assert found.x.tolist() == [1.0, 2.0, 2.5]
    assert found.y.dropna().tolist() == [3]


def test_what_a_later_block_holds_counts(tmp_path, monkeypatch):
    monkeypatch.setattr("apfex.streams._csv_files._BLOCK", 64)
    rows = [*map(str, range(100)), "1.5", "many"]
    source = write(tmp_path, a="x,y\n" + "".join(f"{one},1\n" for one in rows))
    assert rows_of(source, tmp_path).x.astype(str).tolist() == rows


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ("x,y\nmany,1\n", "got text in column 'x' of .*b.csv and whole numbers in .*a.csv"),
        ("x,y\ntrue,1\n", "got true and false in column 'x' of .*b.csv"),
        ("x,z\n1,1\n", r"got .*b.csv beside .*a.csv: missing \['y'\], unknown \['z'\]"),
        ("x,y\n1,2,3\n", "b.csv cannot be read as CSV: .*Expected 2 columns, got 3"),
        ("x,x\n1,2\n", "b.csv has two columns named 'x'"),
        ("", "b.csv is empty: a row of column names"),
    ],
)
def test_files_that_differ_are_named(tmp_path, other, message):
    with pytest.raises(ValueError, match=message):
        open_stream(write(tmp_path, a="x,y\n1,1\n", b=other), tmp_path)


def test_a_folder_of_csv_files_is_one_table_and_one_with_others_is_refused(tmp_path):
    write(tmp_path, a="x\n1\n", b="x\n2\n")
    assert rows_of(tmp_path, tmp_path).x.tolist() == [1, 2]
    pd.DataFrame({"x": [7]}).to_parquet(tmp_path / "c.parquet")
    with pytest.raises(ValueError, match=r"must be of one form, got .*a.csv and .*c.parquet"):
        open_stream(tmp_path, tmp_path)


def test_memory_is_that_of_some_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr("apfex.streams._csv_files._BLOCK", 2**15)  # some 32 are read ahead
    line = "a long text that is in every row of the file,1\n"
    write(tmp_path, a="x,y\n" + line * 400_000)  # 18 MB
    before = pa.default_memory_pool().max_memory()
    stream = open_stream(tmp_path / "a.csv", tmp_path)
    assert sum(map(len, stream.frames(["x", "y"], 10_000))) == 400_000
    assert pa.default_memory_pool().max_memory() < max(before + 1, 6 * 2**20)
