"""Files of every form give the same table, and bad ones a sentence."""

import gzip
import traceback
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apfex.runs import RunError
from apfex.sources._tables import open_table

FRAME = pd.DataFrame(
    {
        "name": ["Zoë, the 1st", 'says "hi"', "שלום", "👩‍🚀", None],
        "age": [31, 22, 43, 54, 65],
        "share": [0.5, 1.25, -2.0, None, 1e-3],
        "member": [True, False, True, True, False],
    }
)


def write(path: Path, frame: pd.DataFrame = FRAME) -> Path:
    table = pa.Table.from_pandas(frame, preserve_index=False)
    if path.suffix in (".parquet", ".pq"):
        frame.set_index(np.arange(7, 7 + len(frame))).to_parquet(path)
    elif path.suffix == ".feather":
        pyarrow.feather.write_feather(table, path)
    elif path.suffix == ".arrow":
        with pa.ipc.new_stream(path, table.schema) as writer:
            writer.write_table(table)
    else:
        frame.to_csv(path, index=False, sep="\t" if ".tsv" in path.suffixes else ",")
    return path


@pytest.mark.parametrize(
    "name", ["t.csv", "t.tsv", "t.csv.gz", "t.parquet", "t.pq", "t.feather", "t.arrow"]
)
def test_every_form_gives_the_same_table(tmp_path, name):
    table = open_table(write(tmp_path / name))
    assert table.columns == tuple(FRAME.columns)
    found = table.read()
    for column in FRAME.columns:
        assert found[column].isna().tolist() == FRAME[column].isna().tolist()
        assert found[column].dropna().tolist() == FRAME[column].dropna().tolist()


def test_only_columns_asked_for_are_read_in_the_order_asked_for(tmp_path):
    for name in ("t.csv", "t.parquet", "t.arrow"):
        assert list(open_table(write(tmp_path / name)).read(["share", "age"])) == ["share", "age"]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_a_marked_encoding_is_known(tmp_path, encoding):
    path = tmp_path / "t.csv"
    FRAME.to_csv(path, index=False, encoding=encoding)
    assert open_table(path).read()["name"][0] == "Zoë, the 1st"


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "utf-16-le"])
def test_another_encoding_must_be_told(tmp_path, encoding):
    path = tmp_path / "t.csv"
    path.write_bytes("stadt,n\nKöln,1\n".encode(encoding))
    with pytest.raises(RunError, match="encoding"):
        open_table(path).read()
    assert open_table(path, encoding).read()["stadt"][0] == "Köln"


def test_an_odd_byte_far_down_the_file_is_told_too(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(b"stadt,n\n" + b"Bonn,1\n" * 5000 + b"K\xf6ln,1\n")
    with pytest.raises(RunError, match="not UTF-8 text"):
        open_table(path).read()


def test_an_unknown_encoding_is_told(tmp_path):
    with pytest.raises(RunError, match="got 'latein'"):
        open_table(write(tmp_path / "t.csv"), "latein")


@pytest.mark.parametrize(
    ("text", "share"),
    [("a;b\n1;2,5\n2;3\n", 2.5), ("a;b\n1;2.5\n2;3\n", 2.5), ("a|b\n1|2.5\n", 2.5)],
)
def test_other_separators_and_decimal_commas_are_read_and_named(tmp_path, text, share):
    path = tmp_path / "t.csv"
    path.write_text(text)
    table = open_table(path)
    assert table.read()["b"][0] == share
    assert "separator" in table.describe()
    assert ("decimal comma" in table.describe()) == ("2,5" in text)


@settings(deadline=None)
@given(st.lists(st.tuples(st.floats(-1e6, 1e6), st.integers(0, 9)), min_size=1, max_size=20))
def test_a_decimal_comma_changes_no_number(rows):
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as folder:
        dotted, comma = Path(folder) / "a.csv", Path(folder) / "b.csv"
        dotted.write_text("x,y\n" + "".join(f"{x:.3f},{y}\n" for x, y in rows))
        comma.write_text("x;y\n" + "".join(f"{x:.3f};{y}\n".replace(".", ",") for x, y in rows))
        pd.testing.assert_frame_equal(open_table(dotted).read(), open_table(comma).read())


def test_none_is_a_name_and_na_is_missing(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("religion,x\nNone,NA\nNA,1\n")
    found = open_table(path).read()
    assert found["religion"].tolist()[0] == "None"
    assert found["religion"].isna().tolist() == [False, True]
    assert found["x"].dtype.kind == "f"


def test_a_stray_quote_inside_a_cell_is_no_open_one(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('size,x\n5" pipe,1\nother,2\n')
    assert open_table(path).read()["size"].tolist() == ['5" pipe', "other"]


def test_dates_and_line_breaks_stay_as_they_stand(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('day,note\n2024-01-31,"two\nlines"\n2024-02-01,one\n')
    found = open_table(path).read()
    assert found["day"].tolist() == ["2024-01-31", "2024-02-01"]
    assert found["note"][0] == "two\nlines"


def test_the_type_of_a_column_is_that_of_all_its_values(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("x,y\n" + "1,1\n" * 500_000 + "A1,2.5\n")  # beyond the first block
    found = open_table(path).read()
    assert found["x"].iloc[[0, -1]].tolist() == ["1", "A1"]
    assert found["y"].iloc[-1] == 2.5


def test_text_columns_stay_text(tmp_path):
    path = write(tmp_path / "t.parquet", pd.DataFrame({"zip": [1, 22], "x": [1.0, 2.0]}))
    assert open_table(path).read(["zip"], text=["zip"])["zip"].tolist() == ["1", "22"]
    path = write(tmp_path / "t.csv", pd.DataFrame({"zip": ["01", "22"]}))
    assert open_table(path).read(text=["zip"])["zip"].tolist() == ["01", "22"]


BAD = {
    "empty.csv": (b"", "is empty"),
    "blank.csv": (b"\n \n", "is empty"),
    "header.csv": (b"a,b\n", "no rows"),
    "twice.csv": (b"a,b,a\n1,2,3\n", "two columns named 'a'"),
    "long.csv": (b"a,b\n1,2,3\n4,5,6\n", r"line 2: Expected 2 columns, got 3\.$"),
    "ragged.csv": (b"a,b\n1,2\n4,5,6\n", r"line 3: Expected 2 columns, got 3\.$"),
    "short.csv": (b"a,b\n1,2\n4\n", r"line 3: Expected 2 columns, got 1\.$"),
    "open.csv": (b'a,b\n1,"2\n3,4\n', "a quote that is never closed"),
    "late.csv": (b"\na,b\n1,2\n", "begins with an empty line"),
    "binary.csv": (b"\x00\x01\x02\n\x00", "not plain text"),
    "cut.csv.gz": (gzip.compress(b"a,b\n1,2\n" * 99)[:-12], "cannot be read"),
    "no.csv.gz": (b"a,b\n1,2\n", "cannot be read"),
    "no.parquet": (b"a,b\n1,2\n", "no Parquet file, or a damaged one"),
    "empty.parquet": (b"", "no Parquet file, or a damaged one"),
    "no.arrow": (b"a,b\n1,2\n", "no Arrow file, or a damaged one"),
    "sheet.xls": (b"\xd0\xcf\x11\xe0", "save a spreadsheet of another form as .xlsx or CSV"),
    "none": (b"a,b\n1,2\n", "must end in .csv"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_file_is_told_in_a_sentence(tmp_path, name):
    data, words = BAD[name]
    (tmp_path / name).write_bytes(data)
    with pytest.raises(RunError, match=words) as caught:
        open_table(tmp_path / name).read()
    assert name in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_an_uneven_row_is_told_by_its_line_and_not_by_what_it_holds(tmp_path, end):
    path = tmp_path / "people.csv"
    rows = ["name,sex,hired", '"Ada, the 1st",f,1', "", "Grace,f"]
    path.write_bytes("".join(row + end for row in rows).encode())
    with pytest.raises(RunError) as refused:
        open_table(path).read()
    assert str(refused.value) == (
        f"{path} cannot be read as CSV: line 4: Expected 3 columns, got 2."
    )
    assert "Grace" not in "".join(traceback.format_exception(refused.value))


def test_a_damaged_parquet_file_is_told(tmp_path):
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"a": np.random.default_rng(0).random(5000)}), path)
    data = path.read_bytes()
    path.write_bytes(data[:2000] + data[-2000:])
    with pytest.raises(RunError, match="cannot be read"):
        open_table(path).read()


def test_an_absent_file_suggests_its_neighbour(tmp_path):
    write(tmp_path / "people.csv")
    with pytest.raises(RunError, match=r"did you mean .*people\.csv\?"):
        open_table(tmp_path / "poeple.csv")
    with pytest.raises(RunError, match="is a folder"):
        open_table(tmp_path)


def test_an_absent_column_suggests_the_nearest(tmp_path):
    table = open_table(write(tmp_path / "t.csv"))
    with pytest.raises(RunError, match=r"no column 'Nmae' \(label\); did you mean 'name'\?"):
        table.column("Nmae", "label")
    with pytest.raises(RunError, match="it has name, age, share, member"):
        table.column("income", "label")


def test_names_with_commas_are_names_first(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('"a,b",a,b\n1,2,3\n')
    table = open_table(path)
    assert table.names(["a,b"], "drop") == ["a,b"]
    assert table.names(["a", "b"], "drop") == table.names(["b, a"], "drop")[::-1] == ["a", "b"]
    with pytest.raises(RunError, match="'a' twice"):
        table.names(["a", "a"], "drop")


def test_an_index_without_a_name_gets_a_number(tmp_path):
    path = tmp_path / "t.csv"
    FRAME.to_csv(path)
    assert open_table(path).columns[0] == "column 1"


def test_the_hash_is_of_the_bytes(tmp_path):
    one, two = write(tmp_path / "a.csv"), write(tmp_path / "b.csv")
    assert open_table(one).sha256() == open_table(two).sha256()
    two.write_bytes(two.read_bytes() + b"x,1,1,True\n")
    assert open_table(one).sha256() != open_table(two).sha256()


def test_intervals_and_sparse_columns_of_a_frame_are_read():
    codes = np.arange(4) % 2
    frame = pd.DataFrame({"age": pd.cut(codes, [-1, 0, 1]), "n": pd.arrays.SparseArray(codes)})
    found = open_table(frame).read()
    assert found["age"].tolist() == ["(-1, 0]", "(0, 1]"] * 2
    assert found["n"].tolist() == codes.tolist()
    with pytest.raises(RunError, match="The frame has two columns named 'n'; rename one"):
        open_table(frame.set_axis(["n", "n"], axis=1))
