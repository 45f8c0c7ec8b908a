"""Tables read in parts: the same decisions as at once, from files that make one table."""

import io
import traceback

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.people import people

from apfex import explore, make_biased
from apfex.files import CellTypes, typed_cells
from apfex.groups import UnseenGroupWarning
from apfex.runs import RunError, load_run
from apfex.sources._streams import open_stream
from apfex.sources._tables import open_table


@pytest.fixture(scope="module")
def run(finished):
    return load_run(finished)


def new_rows(n=60, seed=1):
    frame = people(n, seed=seed).drop(columns=["sex", "origin", "hired"])
    return frame.assign(id=[f"{i:04}" for i in range(n)])


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    """A run with features of every kind, trees and networks, and thresholds by group."""
    frame = mixed_rows(200)
    return explore(
        frame,
        label="hired",
        sensitive=["sex", "age"],
        bins={"age": [40]},
        include_sensitive=True,
        group_thresholds=True,
        model="boosting",
        points=3,
        criteria="dp",
        max_gap=1.0,
        out=tmp_path_factory.mktemp("mixed") / "run",
    )


def mixed_rows(n, seed=0):
    rng, data = np.random.default_rng(seed), make_biased(n, random_state=seed)
    start = np.datetime64("2020-01-01T00:00:00")
    frame = data.X.assign(
        sex=data.sensitive["sex"],
        age=rng.integers(18, 80, n).astype(float),
        remote=rng.choice([True, False], n),
        since=start + rng.integers(0, 10**7, n).astype("timedelta64[s]"),
        code=rng.choice(["01", "2", "x"], n),
        hired=data.y,
    )
    frame["since"] = frame["since"].dt.strftime("%Y-%m-%d %H:%M:%S").where(rng.random(n) > 0.1)
    frame.loc[rng.random(n) < 0.1, "merit_1"] = np.nan
    return frame


@pytest.mark.parametrize(
    ("ending", "out"),
    [
        ("csv", "csv"),
        ("csv", "parquet"),
        ("csv.gz", "arrow"),
        ("parquet", "csv"),
        ("parquet", "parquet"),
        ("arrow", "arrow"),
    ],
)
def test_parts_of_any_size_are_written_alike(mixed, tmp_path, ending, out):
    path = tmp_path / f"new.{ending}"
    write(mixed_rows(40, seed=3).drop(columns="hired"), path)
    found = []
    for size in (None, 7, 33):
        target = tmp_path / f"{size}.{out}"
        mixed.predict_file(path, target, batch_size=size)
        found.append(target.read_bytes() if out == "csv" else open_table(target).read_arrow())
    for other in found[1:]:
        assert other == found[0] if out == "csv" else other.equals(found[0])
    whole = mixed.predict(path)
    stored = open_table(tmp_path / f"None.{out}").read()
    for name in ("probability", "decision_margin"):
        assert stored[name].tolist() == whole[name].tolist()


def write(frame, path):
    if ".csv" in path.name:
        frame.to_csv(path, index=False)
    elif path.suffix == ".parquet":
        frame.to_parquet(path, row_group_size=19)
    else:
        frame.to_feather(path)


def test_decisions_are_those_of_the_classifier_on_the_frame(mixed, tmp_path):
    """The oracle: pandas reads the file as a whole, and the classifier decides."""
    frame = mixed_rows(200, seed=4).drop(columns="hired")
    frame.to_csv(tmp_path / "new.csv", index=False)
    mixed.predict_file(tmp_path / "new.csv", tmp_path / "out.parquet", batch_size=64)
    again = pd.read_csv(tmp_path / "new.csv", dtype={"code": "str"})
    since = (pd.to_datetime(again["since"]) - pd.Timestamp("1970-01-01")) / pd.Timedelta(days=1)
    X = again.assign(since=since)[list(mixed.classifier.feature_names_in_)]
    groups = {"sex": again["sex"], "age": np.where(again["age"] < 40, "under 40", "40 and over")}
    labels = mixed.classifier.predict(X, sensitive_features=groups)
    found = pd.read_parquet(tmp_path / "out.parquet")
    assert found["prediction"].tolist() == labels.astype("str").tolist()
    margins = mixed.classifier.decision_function(X, sensitive_features=groups)
    assert found["decision_margin"].tolist() == margins.tolist()
    p = mixed.classifier.predict_proba(X, sensitive_features=groups)[:, 1]
    assert found["probability"].tolist() == p.tolist()


ODD = "|NA|1|0|-7| 5|6\t|+5|0x1f|2.5|1e3|.5|inf|true|FALSE|x|2024-01-31|12:30|1,5|NaN|nan|007| "
CELLS = st.sampled_from([*ODD.split("|"), "9223372036854775808"])


@settings(max_examples=150)
@given(
    cells=st.lists(CELLS, min_size=1, max_size=6),
    size=st.integers(1, 6),
    separator=st.sampled_from([",", ";"]),
)
def test_types_found_in_parts_are_those_of_the_whole_file(tmp_path_factory, cells, size, separator):
    path = tmp_path_factory.mktemp("cells") / "t.csv"
    frame = pd.DataFrame({"a": cells, "b": "y"}).astype("str")
    frame.to_csv(path, index=False, sep=separator)
    stream, whole = open_stream(path), open_table(path).read_arrow()
    assert stream.decimal is not None
    types = stream.find_types(size)
    assert types == whole.schema
    parts = [typed_cells(b.rows, types, stream.decimal) for b in stream.batches(size)]
    found = pa.concat_tables(parts).to_pylist()
    assert repr(found) == repr(whole.to_pylist())  # NaN too


def test_types_need_no_row():
    assert CellTypes(["a"], ".").schema() == pa.schema([("a", pa.null())])


def split(frame, folder, ending="parquet", n=3):
    """Files that make the frame, in the order of their names."""
    folder.mkdir(exist_ok=True)
    for place, rows in enumerate(np.array_split(np.arange(len(frame)), n)):
        write(frame.iloc[rows].reset_index(drop=True), folder / f"part-{place}.{ending}")
    return folder


@pytest.mark.parametrize("ending", ["csv", "parquet", "arrow"])
def test_many_files_are_one_table(run, tmp_path, ending):
    frame = new_rows()
    folder = split(frame, tmp_path / "new", ending)
    (folder / "_SUCCESS").touch()
    (folder / ".part-0.crc").touch()
    (folder / f"_left.{ending}").touch()
    whole = run.predict(frame)
    sources = [folder, str(folder / "*[0-9]*"), str(folder / f"**/*.{ending}")]
    sources.append(sorted(folder.glob("part*")))
    for place, source in enumerate(sources):
        out = tmp_path / f"out-{place}.parquet"
        done = run.predict_file(source, out, batch_size=16)
        found = pd.read_parquet(out)
        assert (done.rows, done.files) == (60, 3)
        assert found["probability"].tolist() == whole["probability"].tolist()
        assert found["town"].tolist() == frame["town"].tolist()
    done = run.predict_file(folder)
    assert done.out == tmp_path / f"new-predictions.{ending}"


def test_one_column_whose_files_have_other_numbers(run, tmp_path):
    frame = new_rows(30).assign(count=np.arange(30))
    folder = split(frame, tmp_path / "new")
    part = pd.read_parquet(folder / "part-1.parquet").assign(count=0.5).iloc[::-1, ::-1]
    part.to_parquet(folder / "part-1.parquet", index=False)  # in any order
    run.predict_file(folder, tmp_path / "out.parquet")
    found = pd.read_parquet(tmp_path / "out.parquet")
    assert found["count"].tolist() == [*range(10), *[0.5] * 10, *range(20, 30)]
    whole = run.predict(frame.iloc[[*range(10), *range(19, 9, -1), *range(20, 30)]])
    assert found["probability"].tolist() == whole["probability"].tolist()


def test_folders_say_what_a_column_holds(run, tmp_path):
    frame = new_rows(40)
    frame["town"] = frame["town"].replace({"=HYPERLINK(1)": "a/b c"})
    ds.write_dataset(
        pa.Table.from_pandas(frame, preserve_index=False),
        tmp_path / "new",
        format="parquet",
        partitioning=ds.partitioning(pa.schema([("town", pa.string())]), flavor="hive"),
    )
    run.predict_file(tmp_path / "new", tmp_path / "out.parquet")
    found = pd.read_parquet(tmp_path / "out.parquet").sort_values("id", ignore_index=True)
    assert found["town"].tolist() == frame["town"].tolist()
    assert found["probability"].tolist() == run.predict(frame)["probability"].tolist()


def test_floats_without_values_go_with_text(run, tmp_path):
    """As pandas stores a column that is empty."""
    frame = new_rows().assign(town=lambda rows: rows["town"].where(rows.index >= 20))
    folder = split(frame, tmp_path / "new")
    first = pd.read_parquet(folder / "part-0.parquet")
    first.assign(town=np.full(len(first), np.nan)).to_parquet(folder / "part-0.parquet")
    run.predict_file(folder, tmp_path / "out.parquet")
    found = pd.read_parquet(tmp_path / "out.parquet")
    assert found["probability"].tolist() == run.predict(frame)["probability"].tolist()
    assert found["town"].isna().tolist() == frame["town"].isna().tolist()


def test_folders_with_numbers_and_nothing(tmp_path):
    for year, town in ((2024, "x"), (2025, "__HIVE_DEFAULT_PARTITION__")):
        folder = tmp_path / f"year={year}" / f"town={town}"
        folder.mkdir(parents=True)
        pq.write_table(pa.table({"a": [1]}), folder / "f.parquet")
    stream = open_stream(tmp_path)
    assert stream.schema == pa.schema([("a", "int64"), ("year", "int64"), ("town", "string")])
    (batch,) = stream.batches(10)
    assert batch.rows.to_pylist()[1] == {"a": 1, "year": 2025, "town": None}


@pytest.mark.parametrize("make", ["duckdb", "reader", "polars"])
def test_arrow_streams_of_other_libraries(run, tmp_path, make):
    frame = new_rows()
    rows = pa.Table.from_pandas(frame, preserve_index=False)
    if make == "duckdb":
        with duckdb.connect() as connection:
            connection.register("rows", rows)
            run.predict_file(connection.sql("from rows"), tmp_path / "out.parquet", batch_size=16)
    elif make == "reader":
        reader = pa.RecordBatchReader.from_batches(rows.schema, rows.to_batches(max_chunksize=7))
        run.predict_file(reader, tmp_path / "out.parquet", batch_size=16)
    else:
        import polars as pl

        run.predict_file(pl.from_pandas(frame), tmp_path / "out.parquet")
    found = pd.read_parquet(tmp_path / "out.parquet")
    assert found["probability"].tolist() == run.predict(frame)["probability"].tolist()


def spoil(folder, change, ending):
    path = folder / f"part-1.{ending}"
    frame = pd.read_csv(path) if ending == "csv" else pd.read_parquet(path)
    if change == "missing":
        frame = frame.drop(columns="town")
    elif change == "renamed":
        frame = frame.rename(columns={"town": "Town "})
    elif change == "more":
        frame = frame.assign(extra=1)
    elif change == "text":
        frame["merit_1"] = frame["merit_1"].astype("str") + " about"
    elif change == "infinite":
        frame.loc[frame.index[-1], "merit_1"] = np.inf
    elif change == "damaged":
        path.write_bytes(b"PAR1 nothing else")
        return
    elif change == "nothing":
        path.write_bytes(b"")
        return
    elif change == "another form":
        (folder / "part-7.arrow").write_bytes(b"x")
        return
    write(frame, path)


BAD = {
    ("missing", "parquet"): "part-1.parquet lacks the column town, which",
    ("missing", "csv"): "part-1.csv lacks the column town, which",
    ("renamed", "parquet"): "is 'Town ' meant to be town?",
    ("more", "parquet"): "part-1.parquet has a column extra, which",
    ("text", "parquet"): "part-1.parquet: merit_1 holds text, but numbers in",
    ("text", "csv"): "part-1.csv: merit_1 must hold numbers as it did in the run, got '",
    ("infinite", "parquet"): "part-1.parquet: merit_1 is infinite in 1 rows",
    ("infinite", "csv"): "part-1.csv: merit_1 is infinite in 1 rows",
    ("damaged", "parquet"): "part-1.parquet is no Parquet file, or a damaged one",
    ("nothing", "parquet"): "part-1.parquet is no Parquet file, or a damaged one",
    ("nothing", "csv"): "part-1.csv is empty",
    ("another form", "parquet"): "must be of one form",
}


@pytest.mark.parametrize(("change", "ending"), BAD)
@pytest.mark.parametrize("out", ["out.parquet", "out.csv"])
def test_a_bad_file_in_the_middle_leaves_nothing_behind(run, tmp_path, change, ending, out):
    folder = split(new_rows(), tmp_path / "new", ending)
    spoil(folder, change, ending)
    with pytest.raises(RunError) as told:
        run.predict_file(folder, tmp_path / out, batch_size=32)
    assert BAD[change, ending] in str(told.value)
    assert [path.name for path in tmp_path.iterdir()] == ["new"]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_file_without_rows_adds_none(run, tmp_path, ending):
    frame = new_rows()
    folder = split(frame, tmp_path / "new", ending)
    write(frame.iloc[:0], folder / f"part-00.{ending}")
    done = run.predict_file(folder, tmp_path / "out.csv")
    assert (done.rows, done.files) == (60, 4)
    for file in folder.glob("part-?.*"):
        file.unlink()
    with pytest.raises(RunError, match="has column names, but no rows"):
        run.predict_file(folder, tmp_path / "none.parquet")
    (folder / f"part-00.{ending}").unlink()
    with pytest.raises(RunError, match="is a folder without files"):
        run.predict_file(folder, tmp_path / "none.csv")
    with pytest.raises(RunError, match="matches no file"):
        run.predict_file(str(folder / "*.parqet"), tmp_path / "none.csv")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new", "out.csv"]


def test_names_alone_are_no_rows(run, tmp_path):
    (tmp_path / "new.csv").write_text(",".join(new_rows(2)))  # without an end of the line
    with pytest.raises(RunError, match="has column names, but no rows"):
        run.predict_file(tmp_path / "new.csv")


@pytest.mark.parametrize(
    ("source", "out"),
    [
        ("new", "new/out.parquet"),
        ("new", "new/below/out.csv"),
        ("new/*.parquet", "new/out.parquet"),
        ("new/**/*.parquet", "new/out.parquet"),
        ("new/**/*.parquet", "new/below/out.parquet"),
        ("new/part-?.parquet", "new/part-1.parquet"),
    ],
)
def test_what_is_written_is_never_among_what_is_read(run, tmp_path, monkeypatch, source, out):
    monkeypatch.chdir(tmp_path)
    split(new_rows(), tmp_path / "new")
    (tmp_path / "new" / "below").mkdir()
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with pytest.raises(RunError, match="must not be among the files of"):
        run.predict_file(source, out, force=True)
    assert before == {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}


def test_another_file_beside_those_that_are_read_is_fine(run, tmp_path):
    folder = split(new_rows(), tmp_path / "new")
    assert run.predict_file(str(folder / "*.parquet"), folder / "out.csv").rows == 60
    assert run.predict_file(str(folder / "part-*.parquet"), folder / "out.parquet").rows == 60


def test_groups_by_text_numbers_and_unseen_ones(tmp_path):
    data = make_biased(300, random_state=0)
    frame = data.X.assign(sex=data.sensitive["sex"] == "male", hired=data.y)
    frame["zone"] = np.where(data.sensitive["origin"] == data.sensitive["origin"].iloc[0], 1, 2)
    run = explore(
        frame,
        label="hired",
        sensitive=["sex", "zone"],
        group_thresholds=True,
        model="linear",
        points=3,
        criteria="dp",
        max_gap=1.0,
    )
    new = frame.drop(columns="hired")
    expected = run.predict(new)["decision_margin"].tolist()
    new.to_csv(tmp_path / "new.csv", index=False)
    run.predict_file(tmp_path / "new.csv", tmp_path / "out.csv", batch_size=16)
    assert pd.read_csv(tmp_path / "out.csv")["decision_margin"].tolist() == expected
    new.assign(zone=[7, 8] * 150).to_csv(tmp_path / "odd.csv", index=False)
    with pytest.warns(UnseenGroupWarning, match="300 rows fall into a group") as told:
        run.predict_file(tmp_path / "odd.csv", tmp_path / "odd-out.csv", batch_size=16)
    assert len(told) == 1
    new.assign(zone="north").to_csv(tmp_path / "text.csv", index=False)
    with pytest.raises(RunError, match="zone must hold numbers as it did in the run, got 'north'"):
        run.predict_file(tmp_path / "text.csv", tmp_path / "no.csv")
    with pytest.raises(RunError, match="lacks the sensitive columns zone"):
        run.predict_file(new.drop(columns="zone"), tmp_path / "no.csv")
    assert not (tmp_path / "no.csv").exists()


def test_a_whole_number_is_the_same_text_beside_a_missing_one(run):
    frame = new_rows(4)
    told = [
        run.predict(frame.assign(town=pd.array([1, 2, 1, last], "Int64")))["probability"].tolist()
        for last in (2, None)
    ]
    assert told[0][:3] == told[1][:3]


def test_commas_in_numbers_of_some_files(run, tmp_path):
    frame = new_rows(40).round(3)
    folder = tmp_path / "new"
    folder.mkdir()
    whole = frame.iloc[20:].assign(**dict.fromkeys(frame.select_dtypes("number"), 3))
    frame.iloc[:20].to_csv(folder / "a.csv", sep=";", decimal=",", index=False)
    whole.to_csv(folder / "b.csv", sep=";", index=False)
    found = run.predict(folder)["probability"].tolist()
    expected = run.predict(pd.concat([frame.iloc[:20], whole]))["probability"].tolist()
    assert found == expected
    frame.iloc[20:].to_csv(folder / "b.csv", sep=";", index=False)
    with pytest.raises(RunError, match=r"b.csv: \w+ must hold numbers"):
        run.predict(folder)
    frame.iloc[20:].to_csv(folder / "b.csv", index=False)
    with pytest.raises(RunError, match=r"b.csv has commas between cells, but .*a.csv has them"):
        run.predict(folder)


def test_times_are_written_each_by_itself(run):
    times = map(pd.Timestamp, ["2024-01-01", "2024-01-01 12:00", None, "2024-01-02 00:00:00.5"])
    frame = new_rows(4).assign(at=list(times))
    for size in (1, 4):
        stream = io.StringIO()
        run.predict_file(frame, stream, batch_size=size)
        cells = pd.read_csv(io.StringIO(stream.getvalue()), keep_default_na=False)["at"]
        assert cells.tolist() == [
            "2024-01-01 00:00:00",
            "2024-01-01 12:00:00",
            "",
            "2024-01-02 00:00:00.500000",
        ]


def test_progress_and_a_bad_size(run, tmp_path):
    split(new_rows(), tmp_path / "new")
    told = []
    run.predict_file(
        tmp_path / "new",
        tmp_path / "out.csv",
        batch_size=25,
        progress=lambda *done: told.append(done),
    )
    assert told == [(25, 60), (50, 60), (60, 60)]
    with pytest.raises(RunError, match="batch_size must be at least 1, got 0"):
        run.predict_file(tmp_path / "new", tmp_path / "out2.csv", batch_size=0)


def test_ctrl_c_leaves_what_was_there(run, tmp_path):
    def stop(done, _):
        if done == 32:
            raise KeyboardInterrupt

    (tmp_path / "out.csv").write_text("before")
    with pytest.raises(KeyboardInterrupt):
        run.predict_file(new_rows(), tmp_path / "out.csv", force=True, batch_size=16, progress=stop)
    assert (tmp_path / "out.csv").read_text() == "before"
    assert [path.name for path in tmp_path.iterdir()] == ["out.csv"]


def test_an_error_of_numbers_that_other_files_cannot_hold_shows_none(tmp_path):
    for place, number in enumerate([2**53 + 1, 2.5]):
        pq.write_table(pa.table({"income": [number]}), tmp_path / f"{place}.parquet")
    stream = open_stream(tmp_path)
    with pytest.raises(RunError, match=r"0.parquet: income has values that cannot be read") as told:
        list(stream.batches(10))
    assert "9007199254740993" not in "".join(traceback.format_exception(told.value))
