"""Every reader, fed with forged files in a process of its own: no signal, no more memory than its
cap, no hour of work, and every refusal is a sentence of ours."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.forgeries.readers import READERS, prepare

QUICK = (
    *("rules", "trees", "tree arrays", "audit", "gzip", "excel", "arrow"),
    "checkpoint of networks",
)
"""For every run of the tests, a few of each."""
ROOT = Path(__file__).parents[2]


def fuzz(pristine: Path, examples: int, seed: int, *names: str) -> None:
    """In a process whose addresses are capped: glibc takes 64 MiB of them for each thread else."""
    lean = {"OMP_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-m", "tests.forgeries.child", pristine, str(examples), str(seed), *names],
        cwd=ROOT,
        env={**os.environ, **lean},
        capture_output=True,
        text=True,
        timeout=1_500,
    )
    assert done.returncode == 0, f"{names} ended with {done.returncode}: {done.stderr[-4_000:]}"
    assert done.stdout.split("\n")[:-1] == list(names)


def test_a_few_forgeries_are_read_or_refused(finished, tmp_path):
    prepare(tmp_path / "pristine", finished, QUICK)
    fuzz(tmp_path / "pristine", 5, 0, *QUICK)


@pytest.mark.slow
@pytest.mark.parametrize("name", READERS)
def test_many_forgeries_are_read_or_refused(finished, tmp_path, name):
    prepare(tmp_path / "pristine", finished, [name])
    examples = 150 if name.startswith("checkpoint") else 400  # which fit what is not kept
    fuzz(tmp_path / "pristine", examples, 1, name)
