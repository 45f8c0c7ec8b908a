"""Benchmarks are scripts: their folder is put on the path, as Python does when it runs one."""
# pyright: reportMissingImports=false, reportAttributeAccessIssue=false

import sys
from pathlib import Path

import numpy as np
import pytest

from apfex.datasets import make_biased

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))


@pytest.fixture
def tiny(monkeypatch):
    """Two tables that need no files: ``tiny`` with folds, ``tiny-one`` without."""
    from front import tables

    data = {"tiny": make_biased(400, random_state=0), "tiny-one": make_biased(800, random_state=0)}
    for name in data:
        table = tables.Table(name, {}, folds=name == "tiny", for_slow=name == "tiny")
        monkeypatch.setitem(tables.TABLES, name, table)
    monkeypatch.setattr(tables, "load_dataset", data.get)
    yield tables
    tables._read.cache_clear()


@pytest.fixture(scope="session")
def make_part():
    """Rows of four categories whose code says the label by its parity, and of two groups."""
    import pandas as pd
    from rivals.common import Part

    def make(n, seed):
        rng = np.random.default_rng(seed)
        group, number = rng.integers(0, 2, n), rng.normal(size=n)
        code = 2 * rng.integers(0, 2, n) + (rng.random(n) < 0.3 + 0.4 * group)
        number = number + 0.7 * group
        x = np.stack([code, number], axis=1).astype(np.float32)
        y = ((code % 2) ^ (rng.random(n) < 0.3 / (1 + np.exp(number)))).astype(np.int64)
        table = pd.DataFrame({"code": code.astype(str), "number": number})
        sensitive = pd.DataFrame({"group": group.astype(str)})
        return Part(x, y, group, 2, table, sensitive, ("c", "q"))

    return make


@pytest.fixture
def make_record():
    """Records as a run leaves them; anything may be overridden."""
    from front.records import PROTOCOL

    def make(method="ours", seed=0, *, scores=None, seconds=2.0, within=None, **given):
        scores = scores or {"dp": 0.4, "tpr": 0.3}
        problems = {
            problem: {
                "seconds": seconds / len(scores),
                "hypervolume": score,
                "n_points": 4,
                "n_constant": 0,
                "points": [[0.1, 0.1]],
                "within": within or {},
            }
            for problem, score in scores.items()
        }
        return {
            "protocol": PROTOCOL,
            "table": "heart",
            "seed": seed,
            "method": method,
            "needs_attribute": False,
            "seconds": seconds,
            "wall_seconds": seconds,
            "peak_megabytes": 10.0,
            "constant_error": 0.4,
            "groups": [4, 3, 4],
            "problems": problems,
            "machine": "a machine",
            **given,
        }

    return make
