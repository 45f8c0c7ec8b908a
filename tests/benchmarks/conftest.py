"""Benchmarks are scripts: their folder is put on the path, as Python does when it runs one."""
# pyright: reportMissingImports=false, reportAttributeAccessIssue=false

import sys
from pathlib import Path

import pytest

from apfex.datasets import make_biased

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))


@pytest.fixture
def tiny(monkeypatch):
    """Two tables that need no files: ``tiny`` with folds, ``tiny-one`` without."""
    from front import tables

    data = {"tiny": make_biased(400, random_state=0), "tiny-one": make_biased(800, random_state=0)}
    for name in data:
        monkeypatch.setitem(tables.TABLES, name, tables.Table(name, {}, folds=name == "tiny"))
    monkeypatch.setattr(tables, "load_dataset", data.get)
    yield tables
    tables.read_table.cache_clear()
    tables.make_parts.cache_clear()


@pytest.fixture
def make_record():
    """Records as a run leaves them; anything may be overridden."""

    def make(method="ours", seed=0, *, hypervolume=(0.4, 0.3), **given):
        return {
            "table": "heart",
            "seed": seed,
            "method": method,
            "encoding": "plain",
            "needs_attribute": False,
            "seconds": 2.0,
            "wall_seconds": 2.0,
            "peak_megabytes": 10.0,
            "n_inputs": 5,
            "hypervolume": dict(zip(("dp", "tpr"), hypervolume, strict=True)),
            "hypervolume_by_bound": {},
            "pooled_by": "name",
            "n_points": 4.0,
            "n_constant": 0.0,
            "constant_error": 0.4,
            "tpr_groups": 3,
            "points": [],
            "machine": "a machine",
            **given,
        }

    return make
