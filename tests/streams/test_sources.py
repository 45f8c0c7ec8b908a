"""Every kind of source becomes a stream that can be read again; bad ones are refused by name."""
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false, reportCallIssue=false
# pyright: reportGeneralTypeIssues=false

import itertools

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
import torch
import xgboost

from apfex.streams import (
    RecordFile,
    StreamSettings,
    is_stream,
    joined,
    open_stream,
    spool_folder,
)


@pytest.fixture
def table():
    n = 5_000
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "age": rng.normal(size=n),
            "town": rng.choice(["Bern", "Basel", None], n),
            "y": rng.integers(0, 2, n),
        }
    )


@pytest.fixture
def folder(tmp_path, table):
    home = tmp_path / "data"
    home.mkdir()
    for place, part in enumerate(np.array_split(np.arange(len(table)), 3)):
        table.iloc[part].to_parquet(home / f"{place}.parquet")
    return home


def rows_of(stream, rows=700):
    frames = list(stream.frames(stream.columns, rows))
    assert max(map(len, frames)) <= rows
    return pd.concat([frame.astype({"town": object}) for frame in frames], ignore_index=True)


SOURCES = {
    "folder": lambda home, _: home,
    "pattern": lambda home, _: f"{home}/*.parquet",
    "list": lambda home, _: [home / f"{place}.parquet" for place in range(3)],
    "dataset": lambda home, _: ds.dataset(str(home)),
    "reader": lambda home, _: ds.dataset(str(home)).scanner().to_reader(),
    "function": lambda home, _: lambda: ds.dataset(str(home)).scanner().to_reader(),
    "relation": lambda home, _: duckdb.sql(f"from '{home}/*.parquet'"),
    "relations": lambda home, _: lambda: duckdb.sql(f"from '{home}/*.parquet'"),
    "frames": lambda _, table: iter([table[:2000], table[2000:]]),
    "batches": lambda _, table: iter(pa.Table.from_pandas(table).to_batches(900)),
}


@pytest.mark.parametrize("kind", SOURCES)
def test_a_source_gives_its_rows_twice(kind, folder, table, tmp_path):
    source = SOURCES[kind](folder, table)
    assert is_stream(source)
    stream = open_stream(source, tmp_path)
    for _ in range(2):
        found = rows_of(stream)
        assert found["age"].tolist() == table["age"].tolist()
        assert found["town"].fillna("?").tolist() == table["town"].fillna("?").tolist()


def test_tables_and_arrays_are_no_streams(table):
    arrow = pa.Table.from_pandas(table)
    frames = (table, arrow, arrow.to_batches()[0], pl.from_arrow(arrow))
    assert not any(map(is_stream, (*frames, table.to_numpy(), [[1.0]], torch.zeros(2, 2))))


def test_folders_of_partitions_have_their_columns(tmp_path, table):
    filled = table.fillna({"town": "none"})
    pq.write_to_dataset(pa.Table.from_pandas(filled), tmp_path / "parts", partition_cols=["town"])
    for source in (tmp_path / "parts", tmp_path / "parts" / "*" / "*.parquet"):
        found = rows_of(open_stream(source, tmp_path))
        assert found["town"].value_counts().to_dict() == filled["town"].value_counts().to_dict()
        assert found.groupby("town")["age"].sum().to_dict() == pytest.approx(
            filled.groupby("town")["age"].sum().to_dict()
        )


@pytest.mark.parametrize(
    ("named", "wanted"),
    [
        (["1", "2"], [1, 2]),
        (["01", "1"], ["01", "1"]),
        (["-0", "0"], ["-0", "0"]),
        (["007", "008"], ["007", "008"]),
        (["__HIVE_DEFAULT_PARTITION__", "5"], [None, 5]),
        (["a%20b", "c"], ["a b", "c"]),
    ],
)
def test_codes_in_names_of_folders_stay_what_they_are(tmp_path, named, wanted):
    for place, name in enumerate(named):
        (tmp_path / f"my code={name}").mkdir()
        frame = pd.DataFrame({"x": [place]})
        frame.to_parquet(tmp_path / f"my code={name}" / "0.parquet")
    found = pd.concat([*open_stream(tmp_path, tmp_path).frames(["x", "my code"], 100)])
    codes = found.sort_values("x")["my code"].astype(object)
    assert codes.where(codes.notna(), None).tolist() == wanted


@pytest.mark.parametrize("form", ["iterator", "function"])
def test_batches_may_have_their_columns_in_any_order(tmp_path, form):
    table = pa.table({"x": [1, 2], "town": ["a", "b"]})
    batches = [*table.to_batches(), *table.select(["town", "x"]).to_batches()]
    source = iter(batches) if form == "iterator" else lambda: iter(batches)
    found = pd.concat([*open_stream(source, tmp_path).frames(["x", "town"], 100)])
    assert found["x"].tolist() == [1, 2, 1, 2]
    assert found["town"].tolist() == ["a", "b", "a", "b"]


def test_whole_numbers_in_one_file_and_others_in_the_next_are_numbers(tmp_path):
    pd.DataFrame({"x": [1, 2]}).to_parquet(tmp_path / "a.parquet")
    pd.DataFrame({"x": [2.5]}).to_parquet(tmp_path / "b.parquet")
    pd.DataFrame({"x": np.array([7], np.int8)}).to_parquet(tmp_path / "c.parquet")
    stream = open_stream(tmp_path, tmp_path)
    found = pd.concat([*stream.frames(["x"], 100)])
    assert found["x"].tolist() == [1.0, 2.0, 2.5, 7.0]
    pd.DataFrame({"x": [2**53 + 1]}).to_parquet(tmp_path / "d.parquet")
    with pytest.raises(ValueError, match=r"d.parquet .* 'x' has values that cannot be") as found:
        list(open_stream(tmp_path, tmp_path).frames(["x"], 100))
    assert "9007199254740993" not in str(found.value)


@pytest.mark.parametrize(("stored", "is_same"), [(5, True), (6, False)])
def test_what_a_folder_says_must_be_what_its_files_hold(tmp_path, stored, is_same):
    (tmp_path / "month=5").mkdir()
    frame = pd.DataFrame({"y": [1, 0], "month": [5, stored]})
    frame.to_parquet(tmp_path / "month=5" / "a.parquet")
    stream = open_stream(tmp_path, tmp_path)
    assert len(pd.concat([*stream.frames(["y"], 100)])) == 2
    if is_same:
        assert pd.concat([*stream.frames(["month"], 100)])["month"].tolist() == [5, 5]
        return
    with pytest.raises(ValueError, match=r"a.parquet .* 'month' must be what the folder says, 5, "):
        list(stream.frames(["y", "month"], 100))


def test_a_column_without_values_in_one_file_is_of_any_type(folder, tmp_path):
    pd.DataFrame({"age": [1.0], "town": [None], "y": [0]}).to_parquet(folder / "9.parquet")
    assert rows_of(open_stream(folder, tmp_path))["town"].isna().iloc[-1]


@pytest.mark.parametrize("place", ["0", "9"])
def test_floats_without_values_are_of_any_type(folder, tmp_path, place):
    """As pandas writes a column that is empty, of text, or of categories of whole numbers."""
    for path in folder.iterdir():
        frame = pd.read_parquet(path)
        frame.assign(code=pd.Categorical(np.arange(len(frame)) % 3)).to_parquet(path)
    none = pd.DataFrame({"age": [1.0], "town": [np.nan], "y": [0], "code": [np.nan]})
    none.to_parquet(folder / f"{place}.parquet")
    stream = open_stream(folder, tmp_path)
    found = joined(list(stream.frames(stream.columns, 700)))
    assert found["code"].dtype.categories.tolist() == [0, 1, 2]
    assert set(found["town"].dropna()) == {"Bern", "Basel"}
    some = pd.DataFrame({"age": [1.0, 2.0], "town": [np.nan, 2.5], "y": [0, 1], "code": [1, 2]})
    some.to_parquet(folder / f"{place}.parquet")
    with pytest.raises(ValueError, match=r"in column 'town' of .* which has"):
        open_stream(folder, tmp_path)


def test_types_are_compared_past_a_file_without_values(tmp_path):
    for place, value in enumerate((None, "x", 1.5)):
        pd.DataFrame({"a": [value]}).to_parquet(tmp_path / f"{place}.parquet")
    with pytest.raises(ValueError, match=r"numbers in column 'a' of .*2.parquet .* has text"):
        open_stream(tmp_path, tmp_path)


def test_text_is_one_type_whoever_wrote_it(folder, tmp_path, table):
    text = pa.array(table["town"], pa.string())
    other = pa.Table.from_pandas(table).set_column(1, "town", text)
    for town in (text, text.cast(pa.large_string()), text.dictionary_encode()):
        pq.write_table(other.set_column(1, "town", town), folder / "1.parquet")
        found = rows_of(open_stream([folder / "0.parquet", folder / "1.parquet"], tmp_path))
        assert set(found["town"].dropna()) == {"Bern", "Basel"}


def test_files_that_are_no_data_are_left_out_and_none_is_read_twice(folder, tmp_path, table):
    (folder / "_temporary").mkdir()
    for hidden in ("_temporary/0.parquet", "_1.parquet", ".2.parquet"):
        table.to_parquet(folder / hidden)
    files = [folder / "0.parquet", folder / "*.parquet"]
    for source in (folder, f"{folder}/*.parquet", files):
        assert len(rows_of(open_stream(source, tmp_path))) == len(table)


def test_categories_stay_categories_however_they_are_coded(tmp_path):
    """Those of numbers too; a file with more levels has wider codes, which is no other type."""
    few = pd.DataFrame({"code": pd.Categorical([7, 9]), "town": pd.Categorical(["a", "b"])})
    many = pd.DataFrame({"code": range(300), "town": [f"t{i}" for i in range(300)]})
    many = many.astype("category")
    few.to_parquet(tmp_path / "0.parquet")
    many.to_parquet(tmp_path / "1.parquet")
    sources = (str(tmp_path / "*.parquet"), iter([few, many]), lambda: iter([few, many]))
    for source in sources:
        with spool_folder() as folder:
            stream = open_stream(source, folder)
            frames = list(stream.frames(["code", "town"], 10_000))
            assert all((frame.dtypes == "category").all() for frame in frames)
            codes = [code for frame in frames for code in frame["code"].tolist()]
            assert codes == [7, 9, *range(300)]


def test_chunks_without_a_value_join_those_with_some(tmp_path):
    """Of text, and of categories of numbers, which stay whole; wherever that chunk is."""
    told = {"town": ["b", "a"], "code": [7, 9]}
    gaps = {"town": ["a", None], "code": [None, 9]}
    none = {"town": [None, None], "code": [None, None]}
    schema = pa.schema({"town": pa.string(), "code": pa.dictionary(pa.int8(), pa.int64())})
    for parts in itertools.permutations((told, gaps, none)):
        batches = [pa.RecordBatch.from_pydict(part, schema) for part in parts]
        for place, batch in enumerate(batches):
            batch.to_pandas().to_parquet(tmp_path / f"{place}.parquet")
        for source in (tmp_path, iter(batches), lambda batches=batches: iter(batches)):
            with spool_folder() as folder:
                stream = open_stream(source, folder)
                found = joined(list(stream.frames(stream.columns, 2)))
            assert found["code"].dtype.categories.dtype == np.int64
            for name in found:
                values = [value for part in parts for value in part[name]]
                assert found[name].astype(object).fillna("-").tolist() == [
                    "-" if value is None else value for value in values
                ]


def test_the_index_of_pandas_is_no_column(tmp_path):
    """It is the place of a row, which a sorted file would give its label away by."""
    for place, index in enumerate(([5, 3], [0, 1])):
        frame = pd.DataFrame({"a": [1.0, 2.0], "y": [0, 1]}, index=index)
        frame.to_parquet(tmp_path / f"{place}.parquet", index=place == 0)
    stream = open_stream(tmp_path, tmp_path)
    assert stream.columns == ("a", "y")
    assert pd.concat(list(stream.frames(stream.columns, 100)))["a"].tolist() == [1.0, 2.0] * 2


def test_another_schema_in_the_middle_is_refused_by_file_and_column(folder, tmp_path, table):
    table.assign(age=table["age"].astype(str)).to_parquet(folder / "1.parquet")
    with pytest.raises(ValueError, match=r"text in column 'age' of .*1\.parquet .* has numbers"):
        open_stream(folder, tmp_path)


@pytest.mark.parametrize("change", [{"drop": "town"}, {"add": "more"}])
def test_a_file_with_other_columns_is_refused(folder, tmp_path, table, change):
    other = table.drop(columns="town") if "drop" in change else table.assign(more=1)
    other.to_parquet(folder / "1.parquet")
    with pytest.raises(ValueError, match=r"1\.parquet beside .*0\.parquet: missing .*unknown"):
        open_stream(folder, tmp_path)


def test_a_damaged_file_is_named(folder, tmp_path):
    (folder / "1.parquet").write_bytes(b"PAR1 nothing")
    with pytest.raises(ValueError, match="parquet"):
        open_stream(folder, tmp_path)


@pytest.mark.parametrize(
    ("source", "error", "match"),
    [
        ("nowhere.parquet", FileNotFoundError, "There is no file"),
        ("nowhere/*.parquet", FileNotFoundError, "No file is named like"),
        (__file__, ValueError, "must be of files that end in"),
        (iter([]), ValueError, "an iterator that yields nothing"),
        (iter([3]), TypeError, "must be of record batches"),
        (lambda: 3, TypeError, "must return an Arrow reader"),
        (lambda: iter([]), ValueError, "a function whose stream has none"),
    ],
)
def test_what_is_no_stream_is_refused(source, error, match, tmp_path):
    with pytest.raises(error, match=match):
        open_stream(source, tmp_path)


def test_batches_of_two_schemas_are_refused(tmp_path):
    two = [pd.DataFrame({"a": [1.0]}), pd.DataFrame({"a": ["x"]})]
    with pytest.raises(ValueError, match="one schema, got another in batch 1"):
        open_stream(iter(two), tmp_path)
    changing = open_stream(lambda: iter(two), tmp_path)
    with pytest.raises(ValueError, match="one schema, got another in batch 1"):
        list(changing.frames(["a"], 100))


def test_a_loader_says_what_its_columns_are(tmp_path):
    x, y = torch.randn(50, 3), torch.arange(50) % 2
    data = torch.utils.data.TensorDataset(x, y, y.flip(0), torch.ones(50))
    stream = open_stream(torch.utils.data.DataLoader(data, batch_size=16), tmp_path)
    assert not stream.has_names
    assert len(stream.sensitive) == 1
    found = pd.concat(list(stream.frames(stream.columns, 20)))
    assert np.array_equal(found[["x0", "x1", "x2"]].to_numpy(), x.numpy())
    assert found[stream.label].tolist() == y.tolist()
    assert found[next(iter(stream.sensitive))].tolist() == y.flip(0).tolist()
    assert found[stream.weight].eq(1).all()
    short = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y))
    with pytest.raises(ValueError, match=r"must yield tuples \(X, y, sensitive\)"):
        open_stream(short, tmp_path)


class Pages(xgboost.DataIter):
    def __init__(self, frames):
        self.frames, self.place = frames, 0
        super().__init__()

    def reset(self):
        self.place = 0

    def next(self, input_data):
        if self.place == len(self.frames):
            return False
        frame = self.frames[self.place]
        input_data(data=frame.drop(columns="y"), label=frame["y"])
        self.place += 1
        return True


def test_a_data_iter_hands_out_data_and_labels(tmp_path, table):
    parts = [table.iloc[:2000], table.iloc[2000:]]
    stream = open_stream(Pages(parts), tmp_path)
    found = pd.concat(list(stream.frames(stream.columns, 999)), ignore_index=True)
    assert found[stream.label].tolist() == table["y"].tolist()
    assert found["age"].tolist() == table["age"].tolist()


def test_the_folder_is_gone_after_an_error(tmp_path):
    def fail():
        with spool_folder(tmp_path) as folder:
            (folder / "rows").write_bytes(b"1")
            raise RuntimeError("in the middle")

    with pytest.raises(RuntimeError, match="in the middle"):
        fail()
    assert not list(tmp_path.iterdir())


def test_a_full_disk_says_what_to_do(tmp_path):
    file = RecordFile(tmp_path / "rows", np.dtype("f4"))
    file.path = type(tmp_path)("/dev/full")
    with pytest.raises(OSError, match=r"name a folder on a larger disk: streaming="):
        file.append(np.zeros(10**6, "f4"))


def test_settings_out_of_range_are_refused():
    with pytest.raises(ValueError, match="rule_rows must be an integer of at least 1000, got 3"):
        StreamSettings(rule_rows=3)
    with (
        pytest.raises(ValueError, match="must be a folder that exists, got 'nowhere'"),
        spool_folder("nowhere"),
    ):
        pass
