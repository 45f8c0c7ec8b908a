"""What is read, and a sentence for what cannot be."""

import gzip
import sqlite3

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow.dataset import dataset

from apfex.engines import is_for_engine, no_match, open_engine_table, where_of
from apfex.files import typed_words

FRAME = pd.DataFrame({"g": ["a", "b", None], "y": [0, 1, 1], "w": [0.5, 1.5, 2.0]})


def rows_of(opened):
    return sorted(opened.fetch(opened.table.select("g", "y")).to_pylist(), key=str)


WANTED = sorted(pa.Table.from_pandas(FRAME[["g", "y"]]).to_pylist(), key=str)


@pytest.fixture
def folder(tmp_path):
    for month, part in (("5", FRAME[:2]), ("6", FRAME[2:])):
        (tmp_path / f"month={month}").mkdir()
        part.to_parquet(tmp_path / f"month={month}" / "part.parquet")
    (tmp_path / "_SUCCESS").touch()
    return tmp_path


@pytest.mark.parametrize("name", ["", "month=*/part.parquet", "**/*.parquet"])
def test_folders_and_globs_are_one_table(folder, name):
    opened = open_engine_table(str(folder / name) if name else folder)
    assert rows_of(opened) == WANTED
    assert set(opened.columns) == {"g", "y", "w", "month"}


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_marks_in_the_name_of_a_file_are_no_pattern(tmp_path, ending):
    (tmp_path / "d[2]").mkdir()
    named, others = tmp_path / "d[2]" / f"a[1].{ending}", [tmp_path / "d[2]", tmp_path / "d2"]
    others[1].mkdir()
    for part, path in ((FRAME, named), *((FRAME[:1], one / f"a1.{ending}") for one in others)):
        part.to_parquet(path) if ending == "parquet" else part.to_csv(path, index=False)
    opened = open_engine_table(named)
    opened.check(["g", "y"])
    assert len(rows_of(opened)) == len(FRAME)


def test_frames_of_all_kinds_are_tables():
    arrow = pa.Table.from_pandas(FRAME)
    other = pl.DataFrame(arrow)
    for frame in (FRAME, arrow, other, other.lazy()):
        assert rows_of(open_engine_table(frame)) == WANTED
    with pytest.raises(TypeError, match=r"table must be a path, a glob, .* got dict"):
        open_engine_table({"g": [1]})
    with pytest.raises(ValueError, match="table has mixed-integer values in column 'g'"):
        open_engine_table(pd.DataFrame({"g": [1, "a"]}))


def given_as(form, path):
    """Rows of a file as something else that gives batches of Arrow."""
    if form == "relation":
        return duckdb.sql(f"FROM '{path}'")
    whole = dataset(path)
    return {"dataset": whole, "reader": whole.scanner().to_reader()}.get(form, whole.to_table())


@pytest.mark.parametrize("form", ["relation", "dataset", "reader", "table"])
def test_what_gives_its_rows_in_batches_is_a_table(tmp_path, form):
    FRAME.to_parquet(tmp_path / "x.parquet")
    given = given_as(form, tmp_path / "x.parquet")
    assert is_for_engine(given)
    opened = open_engine_table(given)
    for _ in range(2):  # also what can be read but once
        assert rows_of(opened) == WANTED
    opened.close()


def test_a_stream_that_breaks_off_is_told():
    def batches():
        yield pa.record_batch({"y": [1]})
        raise OSError("the line is down")

    reader = pa.RecordBatchReader.from_batches(pa.schema({"y": pa.int64()}), batches())
    with pytest.raises(ValueError, match=r"from its RecordBatchReader: .*the line is down"):
        open_engine_table(reader)


def test_a_dask_frame_is_told_what_to_do():
    dask = pytest.importorskip("dask.dataframe", reason="needs the extra dask")
    with pytest.raises(TypeError, match=r"got a Dask DataFrame; its to_parquet writes files"):
        open_engine_table(dask.from_pandas(FRAME, npartitions=2))


STRANGE = {
    "INTEGER": [("old", "whole numbers, .* got text in 1 rows"), (0.7, "got other numbers in 1")],
    "REAL": [("old", "numbers, .* got text in 1 rows"), (b"old", "got bytes in 1")],
    "BOOLEAN": [("old", "1 and 0, .* got text in 1 rows"), (2, "got whole numbers in 1")],
    "TEXT": [(b"1", "text, .* got bytes in 1 rows")],
    "": [(1, "text, .* got whole numbers in 1 rows")],
}


@pytest.mark.parametrize("kind", STRANGE)
def test_values_of_another_kind_in_sqlite_are_named(tmp_path, kind):
    own = {"TEXT": "1", "": "1"}.get(kind, 1)
    for place, (value, said) in enumerate(STRANGE[kind]):
        path = tmp_path / f"{place}.db"
        with sqlite3.connect(path) as connection:
            connection.execute(f'CREATE TABLE t ("how old" {kind}, g TEXT)')
            rows = [(own, "a"), (value, "b"), (None, "c")]
            connection.executemany("INSERT INTO t VALUES (?, ?)", rows)
        connection.close()
        opened = open_engine_table(path)
        opened.check(["g"])
        with pytest.raises(ValueError, match=f"how old must hold .*{said}"):
            opened.check(["g", "how old"])
        opened.close()


def test_sqlite_tells_whole_numbers_and_words_apart_to_the_last_digit_and_letter(tmp_path):
    large = [2**53, 2**53 + 1, None]
    with sqlite3.connect(tmp_path / "a.db") as connection:
        connection.execute("CREATE TABLE t (n INTEGER, g TEXT COLLATE NOCASE, w INTEGER)")
        rows = zip(large, ["a", "A", "b"], [1, 1.5, 2], strict=True)
        connection.executemany("INSERT INTO t VALUES (?, ?, ?)", rows)
    connection.close()
    opened = open_engine_table(tmp_path / "a.db")
    opened.check(["n", "g", "w"], ["w"])
    assert opened.fetch(opened.table.select("n"))["n"].to_pylist() == large
    chosen = where_of(opened, {"g": "a"}).select("n")
    assert opened.fetch(chosen)["n"].to_pylist() == [2**53]
    opened.close()


def test_databases_are_known_by_their_first_bytes(tmp_path):
    lite, duck = tmp_path / "a.db", tmp_path / "b.db"
    with sqlite3.connect(lite) as connection:
        FRAME.to_sql("people", connection, index=False)
    connection.close()
    with duckdb.connect(str(duck)) as con:
        con.register("frame", pa.Table.from_pandas(FRAME))
        con.execute("CREATE TABLE people AS SELECT * FROM frame")
        con.execute("CREATE TABLE others AS SELECT 1 AS one")
    (tmp_path / "ducks.csv").write_text("DUCK,duck,DUCK\n1,2,3\n")
    assert is_for_engine(lite)
    assert not is_for_engine(tmp_path / "ducks.csv")
    assert rows_of(open_engine_table(lite)) == WANTED
    assert rows_of(open_engine_table(str(duck), "people")) == WANTED
    with pytest.raises(ValueError, match=r"b.db has 2 tables \(others, people\); name the one"):
        open_engine_table(duck)
    with pytest.raises(ValueError, match="has no table 'peopel'; did you mean 'people'"):
        open_engine_table(duck, "peopel")
    with pytest.raises(ValueError, match="the frame is no database"):
        open_engine_table(FRAME, "people")


@pytest.mark.parametrize("scheme", ["duckdb", "sqlite", "file", "file://localhost"])
def test_a_url_of_a_file_here_is_its_path(tmp_path, scheme):
    path = tmp_path / "a b.db"
    if scheme == "sqlite":
        with sqlite3.connect(path) as connection:
            FRAME.to_sql("people", connection, index=False)
        connection.close()
    else:
        with duckdb.connect(str(path)) as con:
            con.register("frame", pa.Table.from_pandas(FRAME))
            con.execute("CREATE TABLE people AS SELECT * FROM frame")
    url = scheme if "://" in scheme else f"{scheme}://"
    written = str(path).replace(" ", "%20") if "file" in scheme else path
    assert is_for_engine(f"{url}{written}")
    opened = open_engine_table(f"{url}{written}", "people")
    assert (opened.name, opened.files) == (f"{path} (people)", (str(path),))
    assert rows_of(opened) == WANTED
    if scheme != "sqlite":
        settings = dict(opened.rows_of("SELECT name, value FROM duckdb_settings()"))
        assert settings["access_mode"].lower() == "read_only"
        assert settings["enable_external_access"] == "false"
    opened.close()
    with pytest.raises(ValueError, match=f"There is no file {tmp_path}/none.db"):
        open_engine_table(f"{url}{tmp_path}/none.db")
    assert not (tmp_path / "none.db").exists()


def test_urls_of_files_here_may_be_patterns_and_lists(folder):
    assert rows_of(open_engine_table(f"file://{folder}/**/*.parquet")) == WANTED
    assert rows_of(open_engine_table([f"file://{one}" for one in folder.rglob("*.pa*")])) == WANTED
    with pytest.raises(ValueError, match=r"must hold its whole path, .* got file://a.parquet"):
        open_engine_table("file://a.parquet")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("none/*.parquet", r"none/\*.parquet must match files, got none"),
        ("dayta.csv", "There is no file .*dayta.csv; did you mean .*data.csv"),
        ("empty", "empty must hold Parquet files, got a folder without any."),
        ("texts", r"without any; for its CSV files name .*texts/\*.csv"),
        ("both", r"must hold Parquet files alone, got .*both/a.csv beside .*both/\*\*/\*.parquet"),
        ("data.xml", "must end in .parquet, .*of DuckDB or SQLite"),
        ("broken.parquet", "broken.parquet cannot be read by duckdb: "),
        ("blank.csv", "blank.csv is empty: a row of column names"),
        ("twice.csv", "twice.csv has two columns named 'a'"),
        ("latin.csv", "latin.csv is not UTF-8 text"),
        ("m*", "must match files of one form, got Parquet and CSV"),
        ("s*.csv", "s1.csv has commas between cells, but .*s2.csv has them in numbers"),
    ],
)
def test_what_cannot_be_read_gets_a_sentence(tmp_path, name, message):
    (tmp_path / "empty").mkdir()
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "a.csv").write_text("a\n1\n")
    (tmp_path / "both").mkdir()
    (tmp_path / "both" / "a.csv").write_text("a\n1\n")
    FRAME.to_parquet(tmp_path / "both" / "b.parquet")
    (tmp_path / "data.csv").write_text("a\n1\n")
    (tmp_path / "data.xml").write_text("<a/>")
    (tmp_path / "broken.parquet").write_text("no Parquet")
    (tmp_path / "blank.csv").write_text("\n")
    (tmp_path / "twice.csv").write_text("a,a\n1,2\n")
    (tmp_path / "latin.csv").write_bytes("größe\n1\n".encode("latin-1"))
    (tmp_path / "m.csv").write_text("a\n1\n")
    FRAME.to_parquet(tmp_path / "m.parquet")
    (tmp_path / "s1.csv").write_text("a,b\n1,2\n")
    (tmp_path / "s2.csv").write_text("a;b\n1;2,5\n")
    with pytest.raises(ValueError, match=message):
        open_engine_table(str(tmp_path / name))


def test_csv_files_may_differ_in_order_and_packing(tmp_path):
    (tmp_path / "a.csv").write_text('g;y\n"a; b";0\nNA;1\n')
    with gzip.open(tmp_path / "b.csv.gz", "wt") as stream:
        stream.write("y;g\n1;c\n")
    opened = open_engine_table(f"{tmp_path}/*.csv*")
    assert rows_of(opened) == [{"g": "a; b", "y": "0"}, {"g": "c", "y": "1"}, {"g": None, "y": "1"}]


def test_a_csv_file_that_lacks_a_column_is_named(tmp_path):
    (tmp_path / "a.csv").write_text("g,y\na,0\n")
    (tmp_path / "b.csv").write_text("y,z\n1,c\n")
    opened = open_engine_table(f"{tmp_path}/*.csv")
    opened.check(["y"])
    with pytest.raises(ValueError, match=r"b.csv has no column 'g', .*it has y, z"):
        opened.check(["y", "g"])


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("3\n", "cannot be read as CSV: line 3: Expected 2 columns, got 1"),
        ("3,4,5\n", "cannot be read as CSV: line 3: Expected 2 columns, got 3"),
        ('"3,4\n', "has a quote that is never closed"),
    ],
)
@pytest.mark.parametrize("name", ["x[1].csv", "*.csv"])
def test_rows_of_another_length_and_open_quotes_are_refused(tmp_path, row, reason, name):
    (tmp_path / "a.csv").write_text("a,b\n1,2\n")
    (tmp_path / "x[1].csv").write_text("a,b\n1,2\n" + row)
    opened = open_engine_table(f"{tmp_path}/{name}")
    with pytest.raises(ValueError, match=rf"/x\[1\].csv {reason}\.$"):
        opened.fetch(opened.table.group_by("b").aggregate(n=opened.table.count()))


def test_cells_are_what_all_of_them_are():
    def words_of(words):
        return typed_words(words).to_pylist()

    assert words_of(["true", "false"]) == [True, False]
    assert words_of(["2024-01-31"]) == ["2024-01-31"]
    assert words_of(["0", "1", "x\ny", 'a"b']) == ["0", "1", "x\ny", 'a"b']


def written(tmp_path, *tables):
    for place, table in enumerate(tables):
        pq.write_table(table, tmp_path / f"{place}.parquet")
    return open_engine_table(tmp_path)


def test_a_column_that_one_file_lacks_is_named(tmp_path):
    opened = written(tmp_path, pa.table({"y": [1], "g": ["a"]}), pa.table({"y": [1]}))
    with pytest.raises(ValueError, match=r"1.parquet has no column 'g', .*it has y"):
        opened.check(["g", "y"])
    opened.check(["y"])


@pytest.mark.parametrize(
    ("first", "other", "message"),
    [
        ([1], ["1"], "whole numbers in .*0.parquet and text in .*1.parquet"),
        (["a"], [True], "text in .* and true and false in"),
        (["a"], [["a"]], "text in .* and nested values in"),
    ],
)
def test_a_file_with_another_schema_is_named(tmp_path, first, other, message):
    tables = [pa.table({"y": [1], "g": values}) for values in (first, other, first)]
    with pytest.raises(ValueError, match=f"g must hold the same kind of values .*{message}"):
        written(tmp_path, *tables).check(["y", "g"])


def test_widths_of_numbers_and_empty_columns_are_no_other_schema(tmp_path):
    opened = written(
        tmp_path,
        pa.table({"y": pa.array([1], pa.int8()), "w": [1.5], "g": ["a"], "z": [{"y": "text"}]}),
        pa.table(
            {"y": pa.array([2**40], pa.int64()), "w": [2], "g": pa.nulls(1), "z": [{"y": "a"}]}
        ),
    )
    opened.check(["y", "w", "g"], numbers=["w"])
    found = opened.fetch(opened.table.select("y", "w", "g")).to_pylist()
    assert sorted(map(str, found)) == sorted(
        map(str, [{"y": 1, "w": 1.5, "g": "a"}, {"y": 2**40, "w": 2.0, "g": None}])
    )
    with pytest.raises(ValueError, match="z must hold single values"):
        opened.check(["z"])


@pytest.mark.parametrize("first", [True, False])
def test_numbers_without_any_value_go_with_text(tmp_path, first):
    nothing, text = (pa.table({"g": values}) for values in (pa.nulls(2, pa.float64()), ["a", "b"]))
    whole = pa.table({"g": pa.nulls(1, pa.int64())})
    parts = [nothing, text, whole] if first else [text, whole, nothing]
    opened = written(tmp_path, *parts)
    opened.check(["g"])
    found = opened.fetch(opened.table)["g"].to_pylist()
    assert sorted(map(str, found)) == ["None", "None", "None", "a", "b"]


def test_nan_is_a_value_beside_text(tmp_path):
    nan = pa.table({"g": pa.array([float("nan")], from_pandas=False)})
    with pytest.raises(ValueError, match=r"g must hold the same kind .* numbers in .*0.parquet"):
        written(tmp_path, nan, pa.table({"g": ["a"]})).check(["g"])


def test_whole_numbers_in_one_file_and_others_in_the_next_are_numbers(tmp_path):
    opened = written(tmp_path, pa.table({"g": [1, 2]}), pa.table({"g": [2.5]}))
    opened.check(["g"])
    assert sorted(opened.fetch(opened.table)["g"].to_pylist()) == [1.0, 2.0, 2.5]
    opened = written(tmp_path, pa.table({"g": [2**53 + 1]}), pa.table({"g": [2.5]}))
    with pytest.raises(ValueError, match=r"g must hold whole numbers up to 2\^53 .* got larger"):
        opened.check(["g"])
    single = pa.table({"g": pa.array([2.5], pa.float32())})
    opened = written(tmp_path, pa.table({"g": [2**24, 2**24 + 1]}), single)
    with pytest.raises(ValueError, match=r"g must hold whole numbers up to 2\^24 .* got larger"):
        opened.check(["g"])


@pytest.mark.parametrize(("stored", "message"), [(5, None), (6, "its folder says, 5, got 6")])
def test_what_a_folder_says_must_be_what_its_files_hold(tmp_path, stored, message):
    (tmp_path / "month=5").mkdir()
    pq.write_table(pa.table({"y": [1], "month": [stored]}), tmp_path / "month=5" / "a.parquet")
    opened = open_engine_table(tmp_path)
    if message is None:
        opened.check(["y", "month"])
    else:
        opened.check(["y"])
        with pytest.raises(
            ValueError, match=f"month must be in .*month=5/a.parquet what {message}"
        ):
            opened.check(["y", "month"])


def test_a_list_of_files_is_one_table(folder, tmp_path):
    files = sorted(folder.rglob("*.parquet"))
    opened = open_engine_table(files[:2])
    assert opened.name == f"{files[0]} and 1 more"
    assert opened.files == tuple(map(str, files[:2]))
    rows = sum(pq.read_metadata(file).num_rows for file in files[:2])
    assert opened.fetch(opened.table.aggregate(n=opened.table.count())).to_pylist() == [{"n": rows}]
    (tmp_path / "x.csv").write_text("y\n1\n")
    with pytest.raises(ValueError, match="A list must be of files of one form"):
        open_engine_table([files[0], tmp_path / "x.csv"])
    with pytest.raises(ValueError, match=r"There is no file .*other.parquet"):
        open_engine_table([files[0], folder / "other.parquet"])


def test_a_condition_that_no_row_has_is_named(folder):
    opened = open_engine_table(folder)
    said = str(no_match(opened, {"month": 77}))
    assert f"where must choose rows of {folder}, got {{'month': 77}}, which no row has" in said
    assert "month has 5" in said


def test_rows_are_chosen_by_value_function_or_condition(folder):
    import ibis

    opened = open_engine_table(folder)
    for where in (
        {"month": 5},
        {"month": "5", "y": [0, 1]},
        lambda t: t.month == 5,
        ibis._.month == 5,
        opened.table.month == 5,
    ):
        assert opened.fetch(where_of(opened, where)).num_rows == 2
    assert opened.fetch(where_of(opened, {"g": None})).num_rows == 1
    assert where_of(opened, None) is opened.table
    for several in (range(5, 6), np.array([5, 7]), pd.Series([5])):
        assert opened.fetch(where_of(opened, {"month": several})).num_rows == 2


def test_rows_without_a_value_are_those_with_nan_and_null(tmp_path):
    for name, last in (("a", None), ("b", 1.0)):  # b has no null, and NaN is not in its extremes
        table = pa.table({"f": pa.array([1.0, float("nan"), last], from_pandas=False)})
        pq.write_table(table, tmp_path / f"{name}.parquet")
    opened = open_engine_table(tmp_path)
    for missing in (None, float("nan"), np.float64("nan")):
        assert opened.fetch(where_of(opened, {"f": missing})).num_rows == 3


@pytest.mark.parametrize(("more", "rows"), [("", 3), ("x,1\n", 1)])
def test_a_number_in_csv_is_one_however_it_is_written(tmp_path, more, rows):
    (tmp_path / "a.csv").write_text(f"month,y\n5,0\n05,1\n6,1\n,1\n{more}")
    (tmp_path / "b.csv").write_text("month,y\n5.0,0\n")  # as pandas writes it beside a gap
    opened = open_engine_table(f"{tmp_path}/*.csv")
    for month in (5, "5"):
        assert opened.fetch(where_of(opened, {"month": month})).num_rows == rows


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ({"mnth": 5}, "where must name a column of .*got 'mnth'; did you mean 'month'"),
        ({"month": "May"}, r"where must name a value of month \(int64\), got 'May'"),
        ({"month": True}, r"where must name a value of month \(int64\), got True"),
        ({"month": {"from": 5}}, r"where must name a value of month \(int64\), got \{"),
        ({"month": []}, "where must name at least one value of month, got none"),
    ],
)
def test_a_wrong_choice_of_rows_is_named(folder, where, message):
    with pytest.raises(ValueError, match=message):
        where_of(open_engine_table(folder), where)
    with pytest.raises(TypeError, match="where must map columns to values"):
        where_of(open_engine_table(folder), "month = 5")


def test_a_view_in_a_database_of_others_reads_no_file_of_this_machine(tmp_path):
    (tmp_path / "mine.csv").write_text("sex,decided\nF,1\n")
    path = tmp_path / "theirs.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(f"CREATE VIEW t AS SELECT * FROM read_csv('{tmp_path}/mine.csv')")
    with pytest.raises(ValueError, match=r"theirs.duckdb \(t\) cannot be read: Permission Error"):
        open_engine_table(path)


BY_MONTH = [{"month": 1}, lambda t: t.month.cast("int64") == 1]


@pytest.mark.parametrize("where", BY_MONTH)
@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_a_file_without_the_column_of_a_condition_is_named(tmp_path, form, where):
    for name, part in (("a", FRAME.assign(month=1)), ("b", FRAME)):
        path = tmp_path / f"{name}.{form}"
        part.to_parquet(path) if form == "parquet" else part.to_csv(path, index=False)
    opened = open_engine_table(f"{tmp_path}/*.{form}")
    with pytest.raises(ValueError, match=rf"b.{form} has no column 'month', which other files"):
        where_of(opened, where)
    assert opened.fetch(where_of(opened, lambda t: t.y.cast("int64") == 1)).num_rows == 4


@pytest.mark.parametrize("where", BY_MONTH)
def test_a_folder_that_contradicts_its_files_chooses_no_rows(tmp_path, where):
    (tmp_path / "month=1").mkdir()
    pq.write_table(pa.table({"y": [1], "month": [6]}), tmp_path / "month=1" / "a.parquet")
    with pytest.raises(ValueError, match=r"month must be in .* its folder says, 1, got 6"):
        where_of(open_engine_table(tmp_path), where)


@pytest.mark.parametrize(
    "where", [lambda t: t.age > 17, lambda t: t.age.between(1, 2), lambda t: t.age.abs() > 1]
)
def test_text_that_a_condition_takes_for_a_number_is_told(tmp_path, where):
    (tmp_path / "a.csv").write_text("age,wage\n16,1\n20,2\n17.5,3\n")
    opened = open_engine_table(tmp_path / "a.csv")
    told = r"every column of CSV is text in .*a.csv, so .*: t.age.cast\('float64'\)\.$"
    with pytest.raises(TypeError, match=told):
        where_of(opened, where)
    assert opened.fetch(where_of(opened, lambda t: t.age.cast("float64") > 17)).num_rows == 2
    with pytest.raises(AttributeError, match="no attribute 'agee'"):
        where_of(opened, lambda t: t.agee > 17)


def test_a_condition_on_what_is_text_in_one_file_names_both(tmp_path):
    opened = written(tmp_path, pa.table({"age": [20]}), pa.table({"age": ["old"]}))
    with pytest.raises(ValueError, match=r"whole numbers in .*0.parquet and text in .*1.parquet"):
        where_of(opened, lambda t: t.age > 17)


@pytest.mark.parametrize("source", ["", [""], ["a.parquet", ""]])
def test_an_empty_path_is_not_the_current_folder(source):
    with pytest.raises(ValueError, match="source must be a path, got an empty"):
        open_engine_table(source)


@pytest.fixture
def alike(tmp_path):
    """A maker of tables with columns SEX, sex and sex_1, and one that both are no part of."""
    table = pa.table({"SEX": ["a", "a"], "sex": ["c", "d"], "sex_1": ["e", "f"], "y": [0, 1]})

    def make(form):
        if form == "frame":
            return table
        if form == "pandas":
            return table.to_pandas()
        if form == "csv":
            table.to_pandas().to_csv(tmp_path / "t.csv", index=False)
            return tmp_path / "*.csv"
        if form == "folders":
            (tmp_path / "sex=c").mkdir()
            pq.write_table(table.select(["SEX", "y"]), tmp_path / "sex=c" / "t.parquet")
            return tmp_path
        pq.write_table(table, tmp_path / "t.parquet")
        return tmp_path / "t.parquet"

    return make


@pytest.mark.parametrize("form", ["frame", "pandas", "csv", "folders", "parquet"])
def test_a_column_is_never_taken_for_one_that_differs_in_case(alike, form):
    opened = open_engine_table(alike(form))
    for name, other in (("SEX", "sex"), ("sex", "SEX")):
        with pytest.raises(ValueError, match=rf"sensitive must .*{name}.* tell from .{other}"):
            opened.column(name, "sensitive")
        with pytest.raises(ValueError, match=rf"'{name}', which duckdb cannot tell"):
            opened.check([name])
        with pytest.raises(ValueError, match=rf"where must .* '{name}', which duckdb cannot tell"):
            where_of(opened, {name: "a"})
    if form == "parquet":  # as DuckDB calls the second column
        with pytest.raises(ValueError, match="'sex_1', which duckdb cannot tell"):
            opened.column("sex_1", "sensitive")
    elif form != "folders":
        assert sorted(opened.fetch(opened.table.select("sex_1"))["sex_1"].to_pylist()) == ["e", "f"]
    opened.check(["y"])
    assert {"SEX", "sex", "y"} <= set(opened.columns)
    assert set(opened.table.columns) <= {"sex_1", "y"}
    assert opened.fetch(opened.table.count().as_table())[0][0].as_py() == 2


def test_engines_that_tell_case_apart_may_have_both_names():
    opened = open_engine_table(pl.DataFrame({"Y": [0, 1], "y": [1, 1]}).lazy())
    assert opened.column("y", "label") == "y"
    assert opened.fetch(opened.table.select("y"))["y"].to_pylist() == [1, 1]


@pytest.mark.parametrize("cell", ['"f" ', ' "f" x"', '"f"  ', '"f', '"f"x'])
def test_text_beside_quotes_is_refused_as_readers_differ_on_it(tmp_path, cell):
    (tmp_path / "t.csv").write_text(f"y,g,x\n1,a,2\n0,f,3\n1,f,{cell}\n")
    opened = open_engine_table(tmp_path / "t.csv")
    if cell.startswith(" "):  # no quote opens a cell
        opened.check(["y"])
        return
    with pytest.raises(ValueError, match=r"t\.csv has a quote that is never closed"):
        opened.check(["y"])


def test_blanks_and_quotes_within_text_are_text(tmp_path):
    text = 'g;y\n"a ""b"" ; c"; 1\n"x\n ""y"""; 2\n  "f";5" \nNA;3\n"NA";4\n'
    (tmp_path / "t.csv").write_text(text)
    opened = open_engine_table(tmp_path / "t.csv")
    opened.check(["g", "y"])
    found = opened.fetch(opened.table.select("g"))["g"].to_pylist()
    assert sorted(map(str, found)) == ['  "f"', "None", "None", 'a "b" ; c', 'x\n "y"']
