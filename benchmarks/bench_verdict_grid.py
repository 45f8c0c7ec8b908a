"""How often is a verdict right, over sizes, rates and numbers of groups, and how many rows does it need?

Run ``python benchmarks/bench_verdict_grid.py --json benchmarks/results/verdicts.json``. Tables of
counts are drawn for every design (groups, rows of each, rates, weights), and the ends of their
intervals are those of the package; only the critical value of the parity test is taken from a few
totals and interpolated between them. ``--page docs/verdicts.md --plot docs/verdicts.png FILE``
writes the tables of the page between its marks, and draws.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from front.machine import describe, write_figures

from apfex.metrics import gap_interval, lower_of_pairs, upper_of_pairs

ALPHA, TABLES, LIMIT = 0.05, 2_000, 0.05
PAIRS = 2**22  # numbers in one block of tables x groups x groups
COUNTS = (2, 3, 4, 6, 12, 24, 60)
RATES = (0.001, 0.01, 0.1, 0.45, 0.79, 0.99)
GAPS = (0.05, 0.1, 0.2)
LADDER = tuple(int(start * 10**power) for power in (1, 2, 3, 4) for start in (1, 1.5, 2, 3, 5, 7))
MARGINS = {  # shares of the levels of each attribute: the groups of a crossing are their products
    "2 x 2": ((0.7, 0.3), (0.8, 0.2)),
    "2 x 5": ((0.52, 0.48), (0.6, 0.19, 0.13, 0.06, 0.02)),
    "2 x 3 x 4": ((0.5, 0.5), (0.7, 0.2, 0.1), (0.4, 0.3, 0.2, 0.1)),
    "2 x 5 x 6": ((0.5, 0.5), (0.6, 0.2, 0.1, 0.06, 0.04), (0.3, 0.25, 0.2, 0.15, 0.06, 0.04)),
}


@dataclass(frozen=True)
class Sizes:
    """Rows that each group is worth; with weights fewer than it has."""

    rows: tuple[int, ...]
    heavy: float = 1.0
    """Weight of every other row."""
    critical: dict[int, float] = field(default_factory=dict, compare=False)
    """Critical values of the parity test, by the successes in all."""

    @property
    def totals(self) -> np.ndarray:
        rows = np.array(self.rows)
        first = rows - rows // 2
        light, heavy = first, rows // 2
        worth = (light + self.heavy * heavy) ** 2 / (light + self.heavy**2 * heavy)
        return worth.round().astype(np.int64)

    def draw(self, rates: np.ndarray, n: int, generator: np.random.Generator) -> np.ndarray:
        """Successes [n, k], effective ones where rows have weights."""
        rows = np.array(self.rows)
        light, heavy = rows - rows // 2, rows // 2
        drawn = generator.binomial(light, rates, (n, len(rows)))
        drawn = drawn + self.heavy * generator.binomial(heavy, rates, (n, len(rows)))
        return (drawn / (light + self.heavy * heavy) * self.totals).round().astype(np.int64)

    def critical_values(self, successes: np.ndarray) -> np.ndarray:
        """Of tables with so many successes in all: the package's own at some, between them lines.

        It is the same for failures. Every total is looked at up to 24, then some 12 to each
        doubling.
        """
        total = int(self.totals.sum())
        folded = np.minimum(successes, total - successes)
        steps = np.unique(np.r_[np.arange(25), np.geomspace(25, max(26, total), 12 * 16).round()])
        steps = np.append(steps[steps < total // 2], total // 2)
        place = np.searchsorted(steps, folded)
        needed = np.unique(np.clip(np.r_[place, place - 1], 0, None))
        nodes = steps[needed]
        return np.interp(folded, nodes, [self._critical(int(node)) for node in nodes])

    def _critical(self, successes: int) -> float:
        if successes not in self.critical:
            filled = np.cumsum(self.totals).clip(max=successes)
            x = np.diff(filled, prepend=0)
            self.critical[successes] = gap_interval(x, self.totals).critical
        return self.critical[successes]


def ends(x: np.ndarray, sizes: Sizes) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper ends of the intervals of many tables [r, k]; a test holds them to audits."""
    n, k = sizes.totals, len(sizes.totals)
    critical = sizes.critical_values(x.sum(1))
    block, found = max(1, PAIRS // k**2), []
    for start in range(0, len(x), block):
        part, c = x[start : start + block], critical[start : start + block, None, None]
        high, low = (part[:, :, None], n[:, None]), (part[:, None], n)
        lower = lower_of_pairs(high, low, critical=c, alpha=ALPHA, n_groups=k)
        upper = upper_of_pairs(high, low, alpha=ALPHA)
        other = ~np.eye(k, dtype=bool)
        found.append((lower[:, other].max(1), upper[:, other].max(1)))
    lower, upper = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return np.maximum(lower, 0), np.minimum(upper, 1)


def judge(sizes: Sizes, rates: np.ndarray, generator: np.random.Generator) -> list[float]:
    """Gap, shares: below the lower end, above the upper; verdicts at the limit; mean width."""
    lower, upper = ends(sizes.draw(rates, TABLES, generator), sizes)
    gap = float(np.ptp(rates))
    shares = [lower > gap + 1e-12, upper < gap - 1e-12, lower > LIMIT, upper < LIMIT]
    return [gap, *(float(share.mean()) for share in shares), float((upper - lower).mean())]


COLUMNS = ("kind", "sizes", "groups", "smallest", "largest", "heavy", "layout", "low", "gap",
           "too_high", "too_low", "violation", "within", "width")  # fmt: skip


def designs() -> Iterator[tuple[str, str, Sizes]]:
    """Kind, a word for the sizes, and the sizes."""
    for k in COUNTS:
        for n in (5, 10, 30, 100, 1_000):
            yield "equal", f"{n} each", Sizes((n,) * k)
        for smallest, largest in ((10, 1_000), (100, 1_000)):
            rows = np.geomspace(smallest, largest, k).round().astype(int).tolist()
            yield "unequal", f"{smallest} to {largest}", Sizes(tuple(rows))
        for n in (30, 100):
            yield "weighted", f"{n} each, every other row counts 4 times", Sizes((n,) * k, 4.0)
    for name, margins in MARGINS.items():
        shares = np.array([1.0])
        for one in margins:
            shares = np.outer(shares, one).ravel()
        for n in (1_000, 10_000):
            rows = np.maximum(1, (n * shares).round()).astype(int)
            yield "crossing", f"{name}, {n} rows", Sizes(tuple(sorted(rows.tolist())))


def layouts(k: int, low: float, gap: float) -> Iterator[tuple[str, np.ndarray]]:
    """Where the rates lie; groups come by rising size."""
    if not gap:
        yield "parity", np.full(k, low)
        return
    high = low + gap
    yield "spread", np.linspace(low, high, k)
    yield "smallest high", np.array([high, *[low] * (k - 1)])
    yield "smallest low", np.array([low, *[high] * (k - 1)])


def grid() -> list[list[Any]]:
    """A row for every design."""
    found = []
    for kind, words, sizes in designs():
        generator, k = np.random.default_rng([1, len(found)]), len(sizes.rows)
        for low in RATES:
            for gap in (0.0, 0.05, 0.2):
                if low + gap > 1:
                    continue
                for layout, rates in layouts(k, low, gap):
                    told = [kind, words, k, sizes.rows[0], sizes.rows[-1], sizes.heavy, layout, low]
                    measured = [round(value, 4) for value in judge(sizes, rates, generator)]
                    found.append([*told, *measured])
        print(f"{len(found):,} designs, {kind} {words}, {k} groups", flush=True)
    return found


POWER = ("groups", "low", "gap", "limit", "verdict", "smallest", "power")


def rows_needed() -> list[list[Any]]:
    """Fewest rows a group, of the ladder, at which the verdict comes in 80% of audits."""
    found = []
    for k in (2, 4, 12, 60):
        known: dict[int, Sizes] = {n: Sizes((n,) * k) for n in LADDER}
        for low in (0.05, 0.2, 0.45):
            for limit in (0.0, 0.05):
                for gap in (gap for gap in GAPS if gap > limit):
                    rates = np.array([low, *[low + gap] * (k - 1)])
                    told = [k, low, gap, limit, "violation"]
                    found.append([*told, *_fewest(known, rates, limit, above=True)])
            for limit in GAPS:
                told = [k, low, 0.0, limit, "within tolerance"]
                found.append([*told, *_fewest(known, np.full(k, low), limit, above=False)])
        print(f"rows needed by {k} groups", flush=True)
    return found


def _fewest(
    known: Mapping[int, Sizes], rates: np.ndarray, limit: float, *, above: bool
) -> tuple[int | None, float]:
    """By bisection; None where the whole ladder is too short."""
    shares: dict[int, float] = {}
    first, last = 0, len(LADDER)
    while first < last:
        middle = (first + last) // 2
        sizes = known[LADDER[middle]]
        lower, upper = ends(sizes.draw(rates, TABLES, np.random.default_rng(middle)), sizes)
        shares[middle] = float((lower > limit if above else upper < limit).mean())
        first, last = (first, middle) if shares[middle] >= 0.8 else (middle + 1, last)
    return (LADDER[first], shares[first]) if first < len(LADDER) else (None, shares[first - 1])


def table(lines: Sequence[Sequence[Any]]) -> str:
    """In Markdown; the first line is the head."""
    head, *rows = [f"| {' | '.join(map(str, line))} |" for line in lines]
    return "\n".join([head, "|" + "---|" * len(lines[0]), *rows])


def tables(record: Mapping[str, Any]) -> dict[str, str]:
    """The tables of the page, by their names."""
    rows = [dict(zip(COLUMNS, row, strict=True)) for row in record["designs"]]
    needed = [dict(zip(POWER, row, strict=True)) for row in record["rows_needed"]]
    return {
        "summary": _summary(rows),
        "parity": _parity(rows),
        "groups": _by(rows, "groups"),
        "rates": _by(rows, "low"),
        "violation": _needed(needed, "violation"),
        "within": _needed(needed, "within tolerance"),
    }


def _summary(rows: Sequence[Mapping[str, Any]]) -> str:
    words = {
        "equal": "groups of one size, 5 to 1,000 rows each",
        "unequal": "groups from 10 or 100 to 1,000 rows",
        "weighted": "groups of 30 or 100 rows, every other row with four times the weight",
        "crossing": "crossings of two or three attributes, 1,000 or 10,000 rows",
    }
    lines = [[" ", "designs", "covered", "in the worst design", "lower end too high, at worst",
              "upper end too low, at worst"]]  # fmt: skip
    for kind, told in words.items():
        chosen = [row for row in rows if row["kind"] == kind]
        lines.append([told, f"{len(chosen):,}", *_of(chosen)])
    return table(lines)


def _of(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    covered = np.array([1 - row["too_high"] - row["too_low"] for row in rows])
    high, low = (max(row[name] for row in rows) for name in ("too_high", "too_low"))
    return [f"{covered.mean():.1%}", f"{covered.min():.1%}", f"{high:.1%}", f"{low:.1%}"]


def _by(rows: Sequence[Mapping[str, Any]], column: str) -> str:
    head = {"groups": "groups", "low": "lower rate"}[column]
    lines = [[head, "designs", "covered", "in the worst design", "lower end too high, at worst",
              "upper end too low, at worst"]]  # fmt: skip
    for value in sorted({row[column] for row in rows}):
        chosen = [row for row in rows if row[column] == value]
        lines.append([f"{value:g}", f"{len(chosen):,}", *_of(chosen)])
    return table(lines)


def _parity(rows: Sequence[Mapping[str, Any]]) -> str:
    chosen = [row for row in rows if row["gap"] == 0]
    lines = [["rows of the smallest group", "designs", "shown to differ at all",
              "called a violation of .05", "at worst", "within .05", "inconclusive"]]  # fmt: skip
    for low, high in ((0, 9), (10, 29), (30, 99), (100, 999), (1_000, 10**6)):
        some = [row for row in chosen if low <= row["smallest"] <= high]
        name = f"{low or 1:,} to {high:,}" if high < 10**6 else f"{low:,}"
        differ, violation, within = (
            np.array([row[column] for row in some])
            for column in ("too_high", "violation", "within")
        )
        lines.append([name, len(some), f"{differ.mean():.1%}", f"{violation.mean():.2%}",
                      f"{violation.max():.1%}", f"{within.mean():.0%}",
                      f"{(1 - violation - within).mean():.0%}"])  # fmt: skip
    return table(lines)


def _needed(rows: Sequence[Mapping[str, Any]], verdict: str) -> str:
    chosen = [row for row in rows if row["verdict"] == verdict]
    counts = sorted({row["groups"] for row in chosen})
    known = {(r["gap"], r["limit"], r["low"], r["groups"]): r["smallest"] for r in chosen}
    gap = [] if verdict != "violation" else ["true gap"]
    lines = [[*gap, "limit", "lower rate" if gap else "rate", *(f"{k} groups" for k in counts)]]
    for one in sorted({key[:3] for key in known}):
        cells = [known[*one, k] for k in counts]
        shown = [f"{cell:,}" if cell else f"above {LADDER[-1]:,}" for cell in cells]
        lines.append([*(f"{value:g}" for value in (one if gap else one[1:])), *shown])
    return table(lines)


def rebuilt(page: str, record: Mapping[str, Any]) -> str:
    """The page with its tables from a record."""
    for name, text in tables(record).items():
        between = re.compile(f"(<!-- {name} -->\n).*?(<!-- end -->)", re.DOTALL)
        page = between.sub(lambda found, text=text: f"{found[1]}{text}\n{found[2]}", page, count=1)
    return page


def plot(record: Mapping[str, Any], path: Path) -> None:
    """Coverage of every design against its smallest group; rows needed against the gap."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    rows = [dict(zip(COLUMNS, row, strict=True)) for row in record["designs"]]
    for kind, colour in zip(("equal", "unequal", "weighted", "crossing"),
                            ("#3b6fb6", "#c75c1d", "#5a8f3c", "#8458a6"), strict=True):  # fmt: skip
        some = [row for row in rows if row["kind"] == kind]
        noise = np.exp(np.random.default_rng(0).uniform(-0.12, 0.12, len(some)))
        x = [row["smallest"] for row in some] * noise
        y = [100 * (1 - row["too_high"] - row["too_low"]) for row in some]
        left.scatter(x, y, s=7, alpha=0.4, color=colour, label=kind, linewidths=0)
    left.axhline(95, color="black", linewidth=1, linestyle="--")
    left.set(xscale="log", xlabel="rows of the smallest group", ylabel="intervals that cover (%)",
             title="Each dot is a design; promised is 95%")  # fmt: skip
    left.legend(title="groups", loc="lower right")
    needed = [dict(zip(POWER, row, strict=True)) for row in record["rows_needed"]]
    for k, colour in zip((2, 4, 12, 60), ("#9ecae1", "#6baed6", "#2171b5", "#08306b"), strict=True):
        for limit, style in ((0.0, "-"), (0.05, "--")):
            some = [
                row
                for row in needed
                if (row["groups"], row["limit"], row["low"]) == (k, limit, 0.2)
                and row["verdict"] == "violation"
                and row["smallest"]
            ]
            label = f"{k} groups" if not limit else None
            right.plot([row["gap"] for row in some], [row["smallest"] for row in some],
                       style, marker="o", color=colour, label=label)  # fmt: skip
    right.set(yscale="log", xlabel="true gap (lower rate .2)", ylabel="rows a group",
              title="Rows for a violation in 80% of audits: of 0 (lines), of .05 (dashed)")  # fmt: skip
    right.set_xticks(GAPS)
    right.legend()
    figure.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("record", nargs="?", type=Path)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--page", type=Path)
    parser.add_argument("--plot", type=Path)
    arguments = parser.parse_args()
    if arguments.record:
        record = json.loads(arguments.record.read_text())
    else:
        record = {
            "tables": TABLES,
            "columns": COLUMNS,
            "designs": grid(),
            "rows_needed_columns": POWER,
            "rows_needed": rows_needed(),
        }
    if arguments.json:
        write_figures(arguments.json, describe(packages=("apfex", "numpy", "scipy")), record)
    if arguments.page:
        arguments.page.write_text(rebuilt(arguments.page.read_text(), record))
    if arguments.plot:
        plot(record, arguments.plot)


if __name__ == "__main__":
    main()
