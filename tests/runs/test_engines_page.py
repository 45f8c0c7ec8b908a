"""The Python of docs/engines.md runs as printed, and engines decide as ``predict`` does."""

import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from tests.test_readme import run_page

MINUTES = 60.0


def test_duckdb_decides_as_predict_by_the_function_and_by_onnx(monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "agg")
    names = run_page("docs/engines.md", lambda block: "spark" not in block.code)
    expected = names["run"].predict(names["new"])["prediction"].tolist()
    assert names["decided"].to_arrow_table()["prediction"].to_pylist() == expected
    labels = names["by_onnx"].to_arrow_table()["label"].to_pylist()
    assert [str(label) for label in labels] == expected
    names["connection"].close()


CHECK = textwrap.dedent("""
    import sys
    from tests.test_readme import run_page

    names = run_page("docs/engines.md")
    spark, whole = names["spark"], names["run"].predict(names["new"])
    by_id = {}
    rows = names["in_spark"].toArrow()
    key = [name for name in rows.column_names if name.startswith("merit")][0]
    for row in names["spark_onnx"].toArrow().to_pylist():
        by_id[row[key]] = row["label"]
    found = rows.to_pandas().sort_values(key)
    import pandas as pd
    old = pd.concat([pd.read_parquet(f) for f in sorted(names["new"].glob("*.parquet"))])
    expected = whole.assign(key=old[key].to_numpy()).sort_values("key")
    assert len(found) == len(expected) == 6000
    assert found["prediction"].tolist() == expected["prediction"].tolist()
    for name in ("probability", "decision_margin"):
        assert abs(found[name].to_numpy() - expected[name].to_numpy()).max() < 1e-12
    assert [str(by_id[value]) for value in expected["key"]] == expected["prediction"].tolist()
    assert sum(row["count"] for row in names["counts"].collect()) == 6000
    try:
        names["udf"].to_spark(names["frame"].drop("town"))
    except ValueError as error:
        assert "The Spark frame lacks columns of the run: town" in str(error)
    else:
        raise AssertionError("a column was missing")
    try:
        names["udf"].to_spark(names["in_spark"])
    except ValueError as error:
        assert "has a column 'prediction' already" in str(error)
    else:
        raise AssertionError("a column was there already")
    spark.stop()
    print("all was checked")
""")


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("java") is None, reason="Spark needs Java, and there is none")
def test_spark_decides_as_predict_by_the_function_and_by_onnx():
    """In a process of its own, so that nothing of Spark can hang the tests."""
    pytest.importorskip("pyspark")
    told = subprocess.run(
        [sys.executable, "-c", CHECK],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "MPLBACKEND": "agg"},
        capture_output=True,
        text=True,
        timeout=6 * MINUTES,
    )
    assert told.returncode == 0, told.stderr[-3_000:]
    assert "all was checked" in told.stdout
