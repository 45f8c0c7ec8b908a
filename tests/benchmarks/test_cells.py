"""The benchmark of many cells: what it counts, and that the page says what the record says."""
# pyright: reportMissingImports=false, reportAttributeAccessIssue=false

import json
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
RECORD = ROOT / "benchmarks" / "results" / "cells" / "cells.json"


@pytest.fixture
def bench(monkeypatch):
    import bench_cells

    monkeypatch.setattr(bench_cells, "TEST_ROWS", 3_000)
    return bench_cells


def test_tables_have_the_cells_that_they_are_named_by():
    from front.crossed import LEVELS, SHARES, draw

    assert all(np.prod(levels) == cells for cells, levels in LEVELS.items())
    assert all(np.isclose(sum(shares), 1) for shares in SHARES.values())
    data = draw(16, 4_000, 0)
    assert len(data.sensitive.drop_duplicates()) == 16
    assert data.y.mean() == pytest.approx(0.45, abs=0.1)
    again = draw(16, 4_000, 0)
    assert data.X.equals(again.X)


def test_gaps_are_those_of_cells_attributes_and_pairs(bench):
    from apfex.groups import make_groups
    from apfex.metrics import dp_gap

    a, b, c = np.random.default_rng(0).integers(0, 2, (3, 4_000))
    decided = (a & b).astype(int)
    groups = make_groups({"a": a, "b": b, "c": c})
    cells, alone, pairs = bench.gaps(decided, groups)
    own = [dp_gap(decided, decided, sensitive_features={"x": one}) for one in (a, b, c)]
    assert (cells, pairs) == (1.0, 1.0)
    assert alone == pytest.approx(max(own))


def test_a_plain_model_is_measured(bench):
    record = bench.measure("plain HGB", 4, 1_000, 0)
    assert record["occur"] == record["judged"] == 4
    assert len(record["points"]) == 1
    assert 0 < record["points"][0][0] < record["constant_error"]
    assert bench.error_at_half(record, [record]) == np.inf
    assert "| 4 x 1,000 | plain HGB |" in bench.table([record])


def test_the_page_has_the_figures_of_the_record(bench):
    stored = json.loads(RECORD.read_text())
    page = (ROOT / "docs" / "benchmarks.md").read_text()
    assert bench.table(stored["records"]) in page
    assert stored["machine"].split(",")[0] in page
