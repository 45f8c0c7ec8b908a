"""An audit by Spark, for real: a session of this machine alone; left out where there is no Java."""

import shutil
import signal
import warnings
from typing import Any

import pandas as pd
import pytest
from tests.auditing.test_table import assert_same, audit, audit_table, table

pyspark = pytest.importorskip("pyspark", reason="the extra spark is not installed")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("java") is None, reason="Spark needs Java: there is none here"),
]


@pytest.fixture(scope="module", autouse=True)
def limit():
    """Nothing here may hang: an alarm ends it after nine minutes."""

    def stop(*_: object) -> None:
        raise TimeoutError("Spark took longer than nine minutes.")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(540)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture(scope="module")
def spark(limit) -> Any:  # noqa: ARG001
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PySpark has words about every version of pandas
        from pyspark.sql import SparkSession

        settings = {
            "spark.ui.enabled": "false",
            "spark.driver.memory": "1g",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
            "spark.sql.shuffle.partitions": "2",
            "spark.ui.showConsoleProgress": "false",
            "spark.network.timeout": "120s",
        }
        builder = SparkSession.builder.master("local[1]")  # pyright: ignore
        for name, value in settings.items():
            builder = builder.config(name, value)
        session = builder.getOrCreate()
    yield session
    session.stop()


def spark_table(seed):
    """Few different scores, so that queries stay short."""
    frame = table(300, seed=seed)
    return frame.assign(p=frame["p"].round(1))


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("spark")
    for month in (5, 6):
        (folder / f"month={month}").mkdir()
        spark_table(month).to_parquet(folder / f"month={month}" / "x.parquet")
    return folder


def test_weights_scores_and_missing_values(spark, files):
    data = spark.read.parquet(str(files / "month=5"))
    found = audit_table(
        data,
        prediction="d",
        label="y",
        sensitive=["sex", "race"],
        weight="w",
        score="p",
        control="c",
        criteria="dp",
    )
    frame = spark_table(5)
    wanted = audit(
        frame["y"],
        frame["d"],
        sensitive_features=frame[["sex", "race"]],
        sample_weight=frame["w"],
        y_score=frame["p"],
        control_features=frame[["c"]],
        criteria="dp",
    )
    assert_same(found, wanted)


def test_months_of_a_partitioned_table(spark, files):
    data = spark.read.parquet(str(files))
    given = {"prediction": "d", "label": "y", "sensitive": "sex", "criteria": "dp"}
    may, june = (audit_table(data, where={"month": month}, **given) for month in (5, 6))
    frame = spark_table(6)
    assert_same(
        june, audit(frame["y"], frame["d"], sensitive_features=frame[["sex"]], criteria="dp")
    )
    assert isinstance(june.diff(may).gaps, pd.DataFrame)
    with pytest.raises(ValueError, match=r"sensitive must name a column of the data frame"):
        audit_table(data, **{**given, "sensitive": "sx"})
    left = [one.name for one in spark.catalog.listTables()]
    assert left == []
