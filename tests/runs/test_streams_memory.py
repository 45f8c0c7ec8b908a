"""Memory is bounded whatever the rows, and a process that is killed leaves no half of a file."""

import subprocess
import sys
import textwrap

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from tests.people import people

MINUTES = 60.0

CHILD = textwrap.dedent("""
    import resource, sys
    from apfex.runs import load_run

    folder, small, large, out = sys.argv[1:]
    run = load_run(folder)
    peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    run.predict_file(small, out, force=True)  # all is loaded, and buffers have their size
    before = peak()
    done = run.predict_file(large, out, force=True)
    print(done.rows, peak() - before)
""")


def large_rows(n):
    """Many rows, of which a wide column of noise makes most of the bytes."""
    rows = people(2_000, seed=1).drop(columns=["sex", "origin", "hired"])
    frame = rows.iloc[np.arange(n) % len(rows)].reset_index(drop=True)
    noise = np.random.default_rng(0).random((n, 20))
    return pa.Table.from_pandas(frame.assign(**{f"noise{j}": noise[:, j] for j in range(20)}))


@pytest.mark.slow
@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_memory_does_not_grow_with_the_rows(finished, tmp_path, form):
    n = 2_000_000 if form == "parquet" else 300_000
    (tmp_path / "new").mkdir()
    large, small = tmp_path / "new" / f"large.{form}", tmp_path / f"small.{form}"
    rows = large_rows(n)
    if form == "parquet":
        pq.write_table(rows, large, row_group_size=n)  # one row group, which is the worst case
        pq.write_table(rows.slice(0, 200_000), small)
    else:
        pyarrow.csv.write_csv(rows, large)
        pyarrow.csv.write_csv(rows.slice(0, 70_000), small)
    del rows
    told = subprocess.run(
        [sys.executable, "-c", CHILD, finished, small, tmp_path / "new", tmp_path / f"out.{form}"],
        capture_output=True,
        text=True,
        timeout=10 * MINUTES,
        check=True,
    )
    done, growth = map(int, told.stdout.split())
    size = large.stat().st_size
    assert done == n
    assert growth < size / 8, f"{growth / 2**20:.0f} MiB more for {size / 2**20:.0f} MiB"


KILLED = textwrap.dedent("""
    import sys, time
    from apfex.runs import load_run

    def tell(done, total):
        print(done, flush=True)
        time.sleep(60)  # until it is killed

    folder, new, out = sys.argv[1:]
    load_run(folder).predict_file(new, out, force=True, batch_size=16, progress=tell)
""")


@pytest.mark.slow
def test_a_process_that_is_killed_leaves_no_half_of_a_file(finished, tmp_path):
    new, out = tmp_path / "new.csv", tmp_path / "out.csv"
    people(40, seed=1).drop(columns="hired").to_csv(new, index=False)
    out.write_text("before")
    with subprocess.Popen(
        [sys.executable, "-c", KILLED, finished, new, out], stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "16\n"  # some rows are written
        child.kill()
        child.wait(timeout=MINUTES)
    assert out.read_text() == "before"
    shown = sorted(path.name for path in tmp_path.iterdir() if not path.name.startswith("."))
    assert shown == ["new.csv", "out.csv"]
