"""Computed figures of docs/scaling.md are those of the formulas on it, measured ones of records."""

import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "scaling.md").read_text()
LINK, DELAY, OPERATIONS, WORKERS = 50e9, 1e-5, 4e14, 64


def exchange(p, m):
    return 8 * m * p * (WORKERS - 1) / (WORKERS * LINK) + 2 * (WORKERS - 1) * DELAY


def cells_of(start):
    line = next(line for line in PAGE.splitlines() if line.startswith(f"| {start} |"))
    return [cell.strip() for cell in line.strip("|").split("|")][1:]


def near(text, value):
    """A number as printed is the value, to the digits that it has."""
    told = float(text.split()[0].replace(",", "").rstrip("%"))
    return told == pytest.approx(value, rel=0.03)


@pytest.mark.parametrize("power", [6, 8, 9])
def test_exchanges_of_64_workers(power):
    p = 10.0**power
    exchanges, steps, rows = (cell.split("/") for cell in cells_of(f"10^{power}"))
    for place, m in enumerate((1, 3)):
        a_row = (2 + 4 * m) * p  # operations: forward, and backward for each gradient
        assert near(exchanges[place], 1e3 * exchange(p, m))
        assert near(steps[place], 1e3 * a_row * 4096 / OPERATIONS)
        assert near(rows[place], exchange(p, m) * OPERATIONS / a_row)


@pytest.mark.parametrize("batch", [1_024, 4_096, 16_384, 46_052])
def test_batches_without_a_rare_group(batch):
    expected, missing = cells_of(f"{batch:,}")
    assert float(expected) == pytest.approx(batch * 1e-4, abs=0.05)
    assert near(missing, 100 * (1 - 1e-4) ** batch)


def test_seconds_of_an_audit_are_those_of_the_record():
    kept = json.loads((ROOT / "benchmarks/results/audit/rows-100000000.json").read_text())
    seconds = kept["figures"]["audit_table"]["processor_seconds"]
    assert f"{seconds:.1f} processor seconds for 100 million rows" in PAGE
    assert f"{10 * seconds:.0f} for a billion" in PAGE


def test_steps_are_those_of_the_record():
    kept = json.loads((ROOT / "benchmarks/results/scaling/two-cores.json").read_text())
    for quantity, points in kept["steps"].items():
        first, last = points[0], points[-1]
        told = cells_of(quantity)
        assert told[0] == f"{first[quantity]:,} to {last[quantity]:,}"
        assert near(told[1], first["apfex"] / first["plain"])
        assert near(told[2], last["apfex"] / last["plain"])
