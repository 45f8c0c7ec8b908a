"""The page on verdicts is built from its record, and the record holds what the page promises."""
# pyright: reportMissingImports=false

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from apfex import audit
from apfex.metrics import gap_interval

ROOT = Path(__file__).parents[2]
RECORD, PAGE = ROOT / "benchmarks" / "results" / "verdicts", ROOT / "docs" / "verdicts.md"
AT_PARITY, AIM = 0.05, 0.025


@pytest.fixture(scope="module")
def grid():
    import bench_verdict_grid

    return bench_verdict_grid


@pytest.fixture(scope="module")
def record(grid):
    return grid.read(RECORD)


def noise(level, n_tables):
    """What chance may add to the worst of thousands of designs: five standard errors of one."""
    return 5 * np.sqrt(level * (1 - level) / n_tables)


def test_the_page_is_that_of_the_record(grid, record):
    assert grid.rebuilt(PAGE.read_text(), *record) == PAGE.read_text()


def test_the_record_spans_what_the_page_says(record):
    designs, _ = record
    assert designs["groups"].min() == 2
    assert designs["groups"].max() == 60
    assert designs["smallest"].min() <= 5
    assert designs["low"].min() == 0.001
    assert designs["low"].max() == 0.99
    assert set(designs["kind"]) == {"equal", "unequal", "weighted", "crossing"}


def test_no_design_is_wrong_more_often_than_promised(grid, record):
    designs, n = record[0], grid.TABLES
    alike = designs["gap"] == 0
    assert designs["too_high"].max() <= AT_PARITY + noise(AT_PARITY, n)
    assert designs["too_low"].max() <= AIM + noise(AIM, n)
    clear = designs[~alike & (designs["smallest"] >= 100)]
    assert clear["too_high"].max() <= AIM + noise(AIM, n)


def test_words_about_rows_are_those_of_the_table(record):
    needed = record[1]
    plain = needed[(needed["verdict"] == "violation") & (needed["limit"] == 0)]
    told = {0.2: (50, 150), 0.1: (150, 500), 0.05: (500, 2_000)}
    for gap, ends in told.items():
        part = plain[plain["gap"] == gap]["smallest"]
        assert (part.min(), part.max()) == ends
    at_05 = needed[(needed["verdict"] == "violation") & (needed["limit"] == 0.05)]
    both = at_05.merge(plain, on=["groups", "low", "gap"], suffixes=("", "_plain"))
    assert (both["smallest"] / both["smallest_plain"]).max() == 5


@pytest.mark.parametrize(
    ("kind", "groups", "smallest"),
    [
        ("equal", 2, 10),
        *(
            pytest.param(*one, marks=pytest.mark.slow)
            for one in (("weighted", 3, 30), ("crossing", 4, 60), ("unequal", 6, 10))
        ),
    ],
)
def test_designs_drawn_again_are_those_of_the_record(grid, record, kind, groups, smallest):
    designs = record[0]
    asked = (designs[["kind", "groups", "smallest"]] == [kind, groups, smallest]).all(axis=1)
    before = int(np.flatnonzero(asked)[0])
    for its_kind, words, sizes in grid.designs():
        if (its_kind, len(sizes.rows), sizes.rows[0]) == (kind, groups, smallest):
            found = pd.DataFrame(grid.block(kind, words, sizes, before), columns=grid.COLUMNS)
            known = designs.iloc[before : before + len(found)].reset_index(drop=True)
            pd.testing.assert_frame_equal(found, known, check_dtype=False)
            return
    pytest.fail("no such design")


@pytest.mark.parametrize("rows", [(5, 5), (10, 30, 200), (30,) * 6])
def test_simulated_ends_are_those_of_the_package(grid, rows):
    sizes, generator = grid.Sizes(rows), np.random.default_rng(1)
    x = sizes.draw(generator.uniform(0.05, 0.95, len(rows)), 25, generator)
    lower, upper = grid.ends(x, sizes)
    for row in range(len(x)):
        own = gap_interval(x[row], sizes.totals)
        assert upper[row] == pytest.approx(own.upper, abs=1e-12)
        assert lower[row] == pytest.approx(own.lower, abs=2e-3)  # c is between two of its own
        assert (lower[row] > 0) == (own.lower > 0)


def test_weighted_counts_are_those_of_an_audit(grid):
    sizes = grid.Sizes((30, 41), heavy=4.0)
    people = np.repeat(["a", "b"], sizes.rows)
    weight = np.concatenate([np.arange(n) % 2 * 3.0 + 1 for n in sizes.rows])
    decided = np.random.default_rng(0).integers(0, 2, len(people))
    found = audit(None, decided, sensitive_features=people, sample_weight=weight, criteria="dp")
    assert found.groups["effective"].tolist() == sizes.totals.tolist()
    own = [np.average(decided[people == g], weights=weight[people == g]) for g in "ab"]
    gap = gap_interval((own * sizes.totals).round(), sizes.totals)
    assert found.gaps["lower"].iloc[0] == pytest.approx(gap.lower, abs=1e-9)
