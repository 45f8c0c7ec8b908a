"""How often is a verdict right, over sizes, rates and numbers of groups, and on how many rows?

Run ``python benchmarks/bench_verdict_grid.py --out benchmarks/results/verdicts``. Tables of
counts are drawn for every design (groups, rows of each, rates, weights), and the ends of their
intervals are those of the package; only the critical value of the parity test is taken from a few
totals and interpolated between them. ``--page docs/verdicts.md FOLDER`` writes the tables of the
page between its marks from what is there; ``website/record_figures.py`` draws its pictures.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
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


def grid() -> pd.DataFrame:
    """A row for every design."""
    found: list[list[Any]] = []
    for kind, words, sizes in designs():
        found += block(kind, words, sizes, len(found))
        print(f"{len(found):,} designs, {kind} {words}, {len(sizes.rows)} groups", flush=True)
    return pd.DataFrame(found, columns=COLUMNS)


def block(kind: str, words: str, sizes: Sizes, before: int) -> list[list[Any]]:
    """All rates for some sizes; how many designs came ``before`` seeds them."""
    generator, k = np.random.default_rng([1, before]), len(sizes.rows)
    told = [kind, words, k, sizes.rows[0], sizes.rows[-1], sizes.heavy]
    return [
        [*told, layout, low, *(round(value, 4) for value in judge(sizes, rates, generator))]
        for low in RATES
        for gap in (0.0, 0.05, 0.2)
        if low + gap <= 1
        for layout, rates in layouts(k, low, gap)
    ]


POWER = ("groups", "low", "gap", "limit", "verdict", "smallest", "power")


def rows_needed() -> pd.DataFrame:
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
    return pd.DataFrame(found, columns=POWER)


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


def tables(designs: Any, needed: Any) -> dict[str, str]:
    """The tables of the page, by their names."""
    kinds = {
        "equal": "groups of one size, 5 to 1,000 rows each",
        "unequal": "groups from 10 or 100 to 1,000 rows",
        "weighted": "groups of 30 or 100 rows, every other row with four times the weight",
        "crossing": "crossings of two or three attributes, 1,000 or 10,000 rows in all",
    }
    by_kind = {words: designs[designs["kind"] == kind] for kind, words in kinds.items()}
    by_groups = {f"{k} groups": part for k, part in designs.groupby("groups")}
    by_rate = {f"lower rate {low:g}": part for low, part in designs.groupby("low")}
    return {
        "kinds": _covered(by_kind),
        "groups": _covered(by_groups),
        "rates": _covered(by_rate),
        "parity": _parity(designs[designs["gap"] == 0]),
        "violation": _needed(needed[needed["verdict"] == "violation"], ["gap", "limit", "low"]),
        "within": _needed(needed[needed["verdict"] == "within tolerance"], ["limit", "low"]),
    }


def _covered(parts: Mapping[str, Any]) -> str:
    lines = [["", "designs", "covered", "in the worst design", "lower end too high, at parity",
              "where rates differ", "upper end too low"]]  # fmt: skip
    for words, part in parts.items():
        covered, alike = 1 - part["too_high"] - part["too_low"], part["gap"] == 0
        worst = (part["too_high"][alike].max(), part["too_high"][~alike].max())
        shares = [covered.mean(), covered.min(), *worst, part["too_low"].max()]
        shown = ["" if np.isnan(share) else f"{share:.1%}" for share in shares]
        lines.append([words, f"{len(part):,}", *shown])
    return table(lines)


def _parity(alike: pd.DataFrame) -> str:
    lines: list[Any] = [["rows of the smallest group", "designs", "shown to differ at all",
              "called a violation of .05", "in the worst design", "within .05",
              "inconclusive"]]  # fmt: skip
    bounds = ((1, 9), (10, 29), (30, 99), (100, 999), (1_000, 10**6))
    for low, high in bounds:
        part = alike[alike["smallest"].between(low, high)]
        unsure = 1 - part["violation"] - part["within"]
        lines.append([f"{low:,} to {high:,}" if high < 10**6 else f"{low:,}", len(part),
                      f"{part['too_high'].mean():.1%}", f"{part['violation'].mean():.2%}",
                      f"{part['violation'].max():.1%}", f"{part['within'].mean():.0%}",
                      f"{unsure.mean():.0%}"])  # fmt: skip
    return table(lines)


def _needed(part: pd.DataFrame, keys: Sequence[str]) -> str:
    words = {"gap": "true gap", "limit": "limit", "low": "lower rate" if len(keys) == 3 else "rate"}
    wide = part.pivot(index=list(keys), columns="groups", values="smallest")
    lines = [[*(words[key] for key in keys), *(f"{k} groups" for k in wide.columns)]]
    for place, counts in zip(wide.index, wide.to_numpy(), strict=True):
        shown = [f"above {LADDER[-1]:,}" if np.isnan(n) else f"{int(n):,}" for n in counts]
        lines.append([*(f"{value:g}" for value in place), *shown])
    return table(lines)


def rebuilt(page: str, designs: pd.DataFrame, needed: pd.DataFrame) -> str:
    """The page with its tables from a record."""
    for name, text in tables(designs, needed).items():
        between = re.compile(f"(<!-- {name} -->\n).*?(<!-- end -->)", re.DOTALL)
        page = between.sub(lambda found, text=text: f"{found[1]}{text}\n{found[2]}", page, count=1)
    return page


def read(folder: Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The designs, and the rows that are needed."""
    return pd.read_csv(folder / "designs.csv"), pd.read_csv(folder / "rows.csv")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("record", nargs="?", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--page", type=Path)
    arguments = parser.parse_args()
    record = read(arguments.record) if arguments.record else (grid(), rows_needed())
    if arguments.out:
        machine = describe(packages=("apfex", "numpy", "scipy"))
        write_figures(arguments.out / "machine.json", machine, {"tables": TABLES, "limit": LIMIT})
        for name, frame in zip(("designs", "rows"), record, strict=True):
            frame.to_csv(arguments.out / f"{name}.csv", index=False)
    if arguments.page:
        arguments.page.write_text(rebuilt(arguments.page.read_text(), *record))


if __name__ == "__main__":
    main()
