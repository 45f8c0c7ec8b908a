"""A table ten times larger than the memory that a fit may take, and the same front."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

GROWTH = 32 * 2**20
"""Bytes by which the peak of resident memory may grow over that of a fit to 20,000 rows."""
COLUMNS = 100
CHILD = """
import json, resource, sys, warnings
import pandas as pd
from apfex import APFExClassifier
from apfex.front import hypervolume
from apfex.streams import StreamSettings

warnings.simplefilter("ignore")
small, large, *seeds = sys.argv[1:]
streaming = StreamSettings(rule_rows=8192, buffer_rows=8192)


def fit(source, seed=0):
    clf = APFExClassifier(
        model="linear", epochs=1, batch_size=2048, bins=None, validation="split", n_jobs=1,
        streaming=streaming, random_state=seed,
    )
    if isinstance(source, str):
        return clf.fit(source, y="y", sensitive_features=["sex", "race"])
    people, y = source[["sex", "race"]], source["y"]
    return clf.fit(source.drop(columns=["y", "sex", "race"]), y, sensitive_features=people)


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def figures(clf):
    points = clf.front_.to_frame()
    values = points[["error", "dp_gap"]].to_numpy()
    fair = points["error"][points["dp_gap"] <= 0.1].min()
    return {"volume": hypervolume(values, [0.5, 0.5]), "least": values[:, 0].min(), "fair": fair}


if seeds:
    table = pd.read_parquet(large)
    found = [figures(fit(table, int(seed))) for seed in seeds]
else:
    fit(small)
    before = peak()
    clf = fit(large)
    found = {**figures(clf), "growth": peak() - before, "rows": clf.front_[0].n_rows}
print(json.dumps(found))
"""


def write(path: Path, n: int) -> None:
    """Rows with two sensitive attributes, one level of which is rare."""
    rng, writer = np.random.default_rng(0), None
    for start in range(0, n, 20_000):
        m = min(20_000, n - start)
        sex, race = rng.integers(0, 2, m), rng.choice(3, m, p=[0.7, 0.28, 0.02])
        x = rng.normal(size=(m, COLUMNS))
        x[:, 0] += 0.8 * sex
        x[:, 1] += 0.6 * (race == 1)
        score = x[:, 0] + 0.7 * x[:, 1] + 0.5 * x[:, 2] + 0.3 * sex - 0.5
        columns = {f"x{place}": column for place, column in enumerate(x.T)}
        columns["y"] = (score + rng.logistic(size=m) > 0).astype(np.int64)
        columns |= {"sex": np.array(["F", "M"])[sex], "race": np.array(["A", "B", "C"])[race]}
        table = pa.table(columns)
        writer = writer or pq.ParquetWriter(path, table.schema, compression="none")
        writer.write_table(table)
    assert writer is not None
    writer.close()


def run(*arguments: object) -> dict:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", CHILD, *map(str, arguments)]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=900, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="peak memory is read from resource")
def test_a_table_ten_times_the_memory_gives_the_same_front(tmp_path):
    small, large = tmp_path / "small.parquet", tmp_path / "large.parquet"
    write(small, 20_000)
    write(large, int(10.1 * GROWTH / (8 * COLUMNS)))
    assert large.stat().st_size >= 10 * GROWTH
    streamed = run(small, large)
    assert streamed["growth"] <= GROWTH
    inside = run(small, large, 0, 1, 2)
    for name in ("volume", "least", "fair"):
        values = [one[name] for one in inside]
        spread = max(values) - min(values) + 0.002  # another draw of validation rows
        assert min(values) - spread <= streamed[name] <= max(values) + spread, (name, values)
