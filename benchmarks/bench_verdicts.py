"""How often is a verdict false, and what does the care against it cost?

``python benchmarks/bench_verdicts.py`` enumerates all tables of two groups: its numbers are exact,
and the same on every machine. A verdict is false where the true gap equals the tolerance and is
called a *violation*, or *within tolerance*. Three rules are compared: "before", whose lower end has
the margin of the parity test alone; "normal", with at least 1.96 standard errors below it; and the
package as it is "now". The upper end of the first two is that of 2.576 standard errors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln
from scipy.stats import binom, norm

from apfex.metrics import lower_of_pairs, upper_of_pairs

ALPHA = 0.05
SIZES = (
    *((10, n) for n in (10, 12, 20, 30, 50, 100, 300, 500, 1000)),
    *((15, 40), (17, 170), (20, 20), (20, 80), (20, 200), (20, 1000), (25, 25)),
    *((30, 30), (30, 100), (30, 240), (30, 1000), (40, 40), (40, 400), (50, 50), (50, 200)),
    *((50, 1000), (60, 600), (75, 75), (100, 100), (100, 300), (100, 1000), (150, 150)),
    *((200, 200), (300, 300), (300, 1000), (500, 500), (1000, 1000)),
)
LOW = (0.001, 0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.08, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5)
GAPS = (0.005, 0.01, 0.02, 0.03, 0.05, 0.08, 0.1, 0.15, 0.2, 0.3, 0.4, 0.49)
RULES = ("before", "normal", "now")
FALSE = (
    ((80, 20), (0.01, 0.06)),
    ((240, 30), (0.01, 0.16)),
    ((1000, 20), (0.01, 0.06)),
    ((1000, 10), (0.001, 0.051)),
    ((1000, 10), (0.001, 0.301)),
    ((100, 100), (0.30, 0.35)),
    ((500, 500), (0.30, 0.35)),
)
POWER = (
    ((100, 100), (0.30, 0.45), 0.0),
    ((100, 100), (0.30, 0.45), 0.05),
    ((500, 500), (0.30, 0.40), 0.05),
    ((1000, 100), (0.30, 0.45), 0.05),
    ((50, 50), (0.02, 0.20), 0.05),
    ((240, 30), (0.01, 0.16), 0.05),
    ((1000, 20), (0.01, 0.20), 0.05),
    ((1000, 200), (0.01, 0.06), 0.0),
)
WITHIN = (
    ((500, 500), (0.30, 0.30), 0.1),
    ((100, 100), (0.01, 0.01), 0.1),
    ((100, 15), (0.01, 0.01), 0.25),
    ((100, 10), (0.01, 0.01), 0.3),
)


class Ends(NamedTuple):
    """Of every table of two groups, by the successes of each: [n_0 + 1, n_1 + 1]."""

    lower: dict[str, np.ndarray]  # by rule
    upper: dict[str, np.ndarray]
    rejected: np.ndarray  # whether the parity test rejects
    first_is_higher: np.ndarray
    gap: np.ndarray


class FalseVerdicts(NamedTuple):
    """Chances of a design, or of several [r]."""

    violation: np.ndarray  # the lower end is above the true gap
    of_that_pair: np.ndarray  # and the group that is higher is so in truth
    within: np.ndarray  # the upper end is below it
    noise_floor: np.ndarray  # mean of the raw gap if both had one rate


def critical_values(sizes: tuple[int, int], alpha: float = ALPHA) -> np.ndarray:
    """Of the parity test, exact, by the number of successes in all."""
    n, m = sizes
    first, second = (_smoothed(np.arange(size + 1), size) for size in sizes)
    found = np.empty(n + m + 1)
    for total in range(n + m + 1):
        x = np.arange(max(0, total - m), min(n, total) + 1)
        y = total - x
        statistic = abs(first[0][x] - second[0][y]) / (first[1][x] + second[1][y])
        order = np.argsort(-statistic)
        chance = np.exp(_log_ways(n, x) + _log_ways(m, y) - _log_ways(n + m, total))
        tail = np.cumsum(chance[order])
        place = min(np.searchsorted(tail, alpha + 1e-12, side="right"), len(order) - 1)
        found[total] = statistic[order[place]]
    return found


def enumerate_ends(sizes: tuple[int, int], alpha: float = ALPHA) -> Ends:
    """The ends of all tables, by the formulas of the package and by those before."""
    first = np.arange(sizes[0] + 1)[:, None], np.full((1, 1), sizes[0])
    second = np.arange(sizes[1] + 1)[None], np.full((1, 1), sizes[1])
    (p, s), (q, t) = _smoothed(*first), _smoothed(*second)
    critical = critical_values(sizes, alpha)[first[0] + second[0]]
    rejected = critical < abs(p - q) / (s + t) * (1 - 1e-9)
    options = {"critical": critical, "alpha": alpha, "n_groups": 2}
    now = [lower_of_pairs(*pair, **options) for pair in ((first, second), (second, first))]
    uppers = [upper_of_pairs(*pair, alpha=alpha) for pair in ((first, second), (second, first))]
    before = abs(p - q) - critical * (s + t)
    lower = {
        "before": before,
        "normal": np.minimum(before, abs(p - q) - norm.ppf(1 - alpha / 2) * np.hypot(s, t)),
        "now": np.maximum(*now),
    }
    upper = {
        "before": abs(p - q) + norm.ppf(1 - alpha / 10) * np.hypot(s, t),
        "now": np.maximum(*uppers),
    }
    return Ends(
        {rule: np.where(rejected, np.maximum(values, 0), 0) for rule, values in lower.items()},
        {rule: np.minimum(values, 1) for rule, values in upper.items()},
        rejected,
        p > q,
        abs(first[0] / sizes[0] - second[0] / sizes[1]),
    )


def false_verdicts(
    ends: Ends, rates: tuple[np.ndarray, np.ndarray], gap: float, rule: str = "now"
) -> FalseVerdicts:
    """Of designs [r] of these sizes whose rates lie ``gap`` apart, which is also the tolerance."""
    n, m = (length - 1 for length in ends.gap.shape)
    high = ends.lower[rule] > gap + 1e-12
    pooled = (n * rates[0] + m * rates[1]) / (n + m)
    chances = _chances(ends, rates)
    first, second = chances(high & ends.first_is_higher), chances(high & ~ends.first_is_higher)
    return FalseVerdicts(
        first + second,
        np.where(rates[0] > rates[1], first, second),
        chances(ends.upper["now" if rule == "now" else "before"] < gap - 1e-12),
        _chances(ends, (pooled, pooled))(ends.gap),
    )


def whole_grid(rule: str = "now") -> np.ndarray:
    """All designs: sizes, rates, gap, and the four chances of each, [r, 9]."""
    rows = []
    for sizes in SIZES:
        ends = enumerate_ends(sizes)
        for gap in GAPS:
            low = np.array([rate for rate in LOW if rate + gap < 1])
            for rates in ((low, low + gap), (low + gap, low)):
                found = false_verdicts(ends, rates, gap, rule)
                given = np.broadcast_to((*sizes, gap), (len(low), 3))
                rows.append(np.column_stack([given, *rates, *found]))
    return np.concatenate(rows)


def power(
    sizes: tuple[int, int], rates: tuple[float, float], tolerance: float
) -> dict[str, dict[str, float]]:
    """Chance of a violation, and of being within tolerance, by rule; and of the parity test."""
    ends = enumerate_ends(sizes)
    chances = _chances(ends, (np.array(rates[:1]), np.array(rates[1:])))
    return {
        "violation": {rule: float(chances(ends.lower[rule] > tolerance)[0]) for rule in RULES},
        "within": {rule: float(chances(u < tolerance)[0]) for rule, u in ends.upper.items()},
        "test": {"parity": float(chances(ends.rejected)[0])},
    }


def relative_widths(sizes: tuple[int, int]) -> np.ndarray:
    """Mean width over that of Wilson intervals with Bonferroni's correction, by design [r]."""
    ends = enumerate_ends(sizes)
    limits = [_wilson(np.arange(size + 1), size, float(norm.ppf(1 - ALPHA / 4))) for size in sizes]
    (low, high), (other_low, other_high) = ([end[:, None] for end in limits[0]], limits[1])
    lower = np.maximum(np.maximum(low, other_low) - np.minimum(high, other_high), 0)
    upper = np.maximum(high, other_high) - np.minimum(low, other_low)
    rates = np.array([(low, low + gap) for gap in GAPS for low in LOW if low + gap < 1]).T
    found = []
    for given in (rates, rates[::-1]):
        chances = _chances(ends, (given[0], given[1]))
        found.append(chances(ends.upper["now"] - ends.lower["now"]) / chances(upper - lower))
    return np.concatenate(found)


def table_chances(ends: Ends, rates: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """Of every table of one design."""
    first, second = _laws(ends, rates)
    return first[0][:, None] * second[0]


def _chances(
    ends: Ends, rates: tuple[np.ndarray, np.ndarray]
) -> Callable[[np.ndarray], np.ndarray]:
    """Mean over the tables of each design [r] of what is given for every table."""
    first, second = _laws(ends, rates)
    return lambda values: ((first @ values.astype(np.float64)) * second).sum(1)


def _laws(ends: Ends, rates: tuple[np.ndarray, np.ndarray]) -> list[np.ndarray]:
    return [
        binom.pmf(np.arange(length), length - 1, np.asarray(rate)[:, None])
        for length, rate in zip(ends.gap.shape, rates, strict=True)
    ]


def _wilson(x: np.ndarray, n: int, z: float) -> tuple[np.ndarray, np.ndarray]:
    centre = (x + z**2 / 2) / (n + z**2)
    half = z / (n + z**2) * np.sqrt(x * (n - x) / n + z**2 / 4)
    return centre - half, centre + half


def _smoothed(successes: np.ndarray, total: int | np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    rates = (successes + 1) / (total + 2)
    return rates, np.sqrt(rates * (1 - rates) / (total + 2))


def _log_ways(n: int, x: np.ndarray | int) -> np.ndarray:
    return gammaln(n + 1) - gammaln(np.add(x, 1)) - gammaln(np.subtract(n + 1, x))


def main() -> None:
    print("False verdicts at a true gap equal to the tolerance.\n")
    print("| rows | rates | violation before | normal margin | now | within before | now |")
    print("|---|---|---|---|---|---|---|")
    for sizes, rates in FALSE:
        ends, gap = enumerate_ends(sizes), abs(rates[0] - rates[1])
        given = np.array(rates[:1]), np.array(rates[1:])
        found = {rule: false_verdicts(ends, given, gap, rule) for rule in RULES}
        wrong = [found[rule].violation[0] for rule in RULES]
        wrong += [found[rule].within[0] for rule in ("before", "now")]
        _print(sizes, rates, *(f"{chance:.1%}" for chance in wrong))
    print("\nThe worst of the whole grid, and how many are above 2.5%.")
    print("A gap is clear where it is not below the noise floor.\n")
    print("| rule | designs | violation | above 2.5% | clear gap | within | above 2.5% |")
    print("|---|---|---|---|---|---|---|")
    for rule in RULES:
        grid = whole_grid(rule)
        clear = grid[:, 2] >= grid[:, 8]
        cells = [f"{len(grid):,}"]
        cells += [f"{grid[:, 5].max():.1%}", f"{(grid[:, 5] > 0.025).mean():.1%}"]
        cells += [f"{grid[clear, 5].max():.1%}"]
        cells += [f"{grid[:, 7].max():.1%}", f"{(grid[:, 7] > 0.025).mean():.2%}"]
        print(f"| {rule} | {' | '.join(cells)} |")
    widths = np.concatenate([relative_widths(sizes) for sizes in SIZES])
    print(f"\nWidth over that of Bonferroni-Wilson: median {np.median(widths):.2f}, ", end="")
    print(f"at most {widths.max():.2f}, wider in {(widths > 1).mean():.1%} of the designs.")
    print("\nChance of a violation.\n")
    print("| rows | rates | tolerance | before | normal margin | now | parity test |")
    print("|---|---|---|---|---|---|---|")
    for sizes, rates, tolerance in POWER:
        found = power(sizes, rates, tolerance)
        cells = [*found["violation"].values(), *found["test"].values()]
        _print(sizes, rates, f"{tolerance:g}", *(f"{chance:.3f}" for chance in cells))
    print("\nChance of being within tolerance.\n")
    print("| rows | rates | tolerance | before | now |\n|---|---|---|---|---|")
    for sizes, rates, tolerance in WITHIN:
        cells = power(sizes, rates, tolerance)["within"].values()
        _print(sizes, rates, f"{tolerance:g}", *(f"{chance:.3f}" for chance in cells))


def _print(sizes: tuple[int, int], rates: tuple[float, float], *cells: str) -> None:
    shown = [f"{sizes[0]:,} and {sizes[1]:,}", f"{rates[0]:g} and {rates[1]:g}", *cells]
    print(f"| {' | '.join(shown)} |")


if __name__ == "__main__":
    main()
