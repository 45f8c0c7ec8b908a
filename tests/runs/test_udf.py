"""Decisions inside engines: those of ``predict``, wherever the rows are."""

import pickle
import pickletools

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from tests.people import people

from apfex.runs import RunError, load_run
from apfex.runs._decider import NAMES


@pytest.fixture(scope="module")
def run(finished):
    return load_run(finished)


@pytest.fixture(scope="module")
def udf(run):
    return run.udf()


@pytest.fixture
def rows():
    frame = people(100, seed=1).drop(columns=["sex", "origin", "hired"])
    frame.loc[[3, 50], "town"] = None
    frame.loc[[4, 50], "merit_1"] = np.nan
    return frame.assign(id=np.arange(100))


@pytest.fixture
def connection():
    with duckdb.connect() as found:
        found.execute("set threads = 1")
        yield found


def same(found, expected):
    assert found["prediction"].tolist() == expected["prediction"].tolist()
    for name in NAMES[1:]:
        np.testing.assert_allclose(found[name], expected[name], rtol=0, atol=1e-12)


@pytest.mark.parametrize("point", [None, 0])
def test_it_decides_as_the_run(run, rows, point):
    found = run.udf(point)(pa.Table.from_pandas(rows[rows.columns[::-1]]))
    expected = run.predict(rows, point=point)
    assert found.to_pydict() == expected.to_dict("list")


def test_duckdb(run, udf, rows, connection):
    call = udf.register(connection)
    connection.register("people", rows)
    found = connection.sql(f"select id, unnest({call}) from people").df()
    same(found, run.predict(rows))
    # columns go by name, whatever their order and type
    cells = ", ".join(f"'{name}': {name}" for name in reversed(list(udf.columns)))
    query = f"select unnest(apfex_predict({{{cells}}})) from people"
    same(connection.sql(query).df(), run.predict(rows))
    rate = f"select avg(({call}.prediction = 'hired')::int) from people"
    assert connection.sql(rate).fetchall() == [
        (pytest.approx((run.predict(rows)["prediction"] == "hired").mean()),)
    ]
    assert connection.sql(f"select {call} from people where false").fetchall() == []


def test_duckdb_refuses_other_columns(udf, rows, connection):
    call = udf.register(connection, "decide")
    connection.register("people", rows.drop(columns="town"))
    with pytest.raises(duckdb.BinderException, match="town"):
        connection.sql(f"select {call} from people")
    connection.register("people", rows.assign(merit_1="about 3"))
    with pytest.raises(duckdb.ConversionException, match="about 3"):
        connection.sql(f"select {call} from people").fetchall()
    with pytest.raises(RunError, match="name must be letters, digits and underscores"):
        udf.register(connection, "x; drop table")


def test_bad_tables_are_told(udf, rows):
    with pytest.raises(RunError, match="The table lacks columns of the run: town"):
        udf(pa.Table.from_pandas(rows.drop(columns="town")))
    with pytest.raises(RunError, match="merit_1 must hold numbers as it did in the run"):
        udf(pa.Table.from_pandas(rows.assign(merit_1="about 3")))
    with pytest.raises(TypeError, match="rows must be a Table, RecordBatch or StructArray"):
        udf(rows)


def test_batches_without_rows(udf, rows):
    batch = pa.RecordBatch.from_pandas(rows, preserve_index=False)
    none, all_rows = udf.map_batches([batch.slice(0, 0), batch])
    assert (len(none), len(all_rows)) == (0, 100)
    assert none.schema == all_rows.schema
    assert list(udf.map_batches([])) == []


def test_no_code_travels(run, rows):
    """A pickle of it names our class alone, and no model has been loaded by the one who sends."""
    udf = run.udf(0)
    table = pa.Table.from_pandas(rows)
    before = udf(table)
    data = pickle.dumps(udf)
    named = [arg for op, arg, _ in pickletools.genops(data) if op.name == "GLOBAL"]
    stacked = [arg for op, arg, _ in pickletools.genops(data) if "UNICODE" in op.name]
    assert not named
    assert "apfex.runs._udf" in stacked
    assert not [
        word for word in stacked if str(word).split(".")[0] in ("torch", "xgboost", "sklearn")
    ]
    assert pickle.loads(data)(table).equals(before)


def test_damaged_files_are_refused(udf, rows):
    files = dict(udf.files)
    files["arrays.safetensors"] = files["arrays.safetensors"][:-8]
    damaged = type(udf)(**{**vars_of(udf), "files": files})
    with pytest.raises(ValueError, match=r"arrays\.safetensors"):
        damaged(pa.Table.from_pandas(rows))


def vars_of(udf):
    return {k: v for k, v in vars(udf).items() if not k.startswith("_")}


def test_dates_and_groups(connection, tmp_path):
    from tests.sources.test_streams import mixed_rows

    from apfex import explore

    run = explore(
        mixed_rows(200),
        label="hired",
        sensitive=["sex", "age"],
        bins={"age": [40]},
        group_thresholds=True,
        model="linear",
        points=3,
        criteria="dp",
        max_gap=1.0,
    )
    new = mixed_rows(50, seed=5)
    expected = run.predict(new)
    call = run.udf().register(connection)
    connection.register("people", new.assign(since=pd.to_datetime(new["since"])))
    same(connection.sql(f"select unnest({call}) from people").df(), expected)
    new.to_parquet(tmp_path / "new.parquet")
    connection.execute("set timezone = 'Asia/Tokyo'")
    query = f"select unnest({call}) from '{tmp_path}/*.parquet'"  # here dates are text
    same(connection.sql(query).df(), expected)
