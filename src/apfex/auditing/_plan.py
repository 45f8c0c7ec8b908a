"""How many more rows would settle an inconclusive verdict."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
import pandas as pd

from apfex.auditing._verdicts import Tested, Verdict, verdict_of
from apfex.metrics import GroupRates, gap_interval, lower_of_pairs, upper_of_pairs

_DRAWS = 400  # fewer with more than 1,000 groups
_LEADERS = 12  # groups at either end that may lead
_REACH = 2.5  # standard errors, about, from a rate to an upper end
_MOST = 1e9  # effective rows beyond which a plan says: never
COLUMNS = ("criterion", "by", "group", "count", "more_rows", "expected")


@final
@dataclass(frozen=True, eq=False)
class _Case:
    """One rate of the groups that count: what they show, and what is taken for true."""

    x: np.ndarray  # [k] effective counts
    n: np.ndarray
    truth: np.ndarray  # [k] shrunken rates
    max_gap: float
    power: float
    confidence: float
    n_tests: int  # rates and classes whose gaps are tested together
    noise: np.ndarray  # [draws, k] standard normal: the same at every size

    @property
    def gap(self) -> float:
        return float(np.ptp(self.truth))

    def futures(self, sizes: np.ndarray) -> np.ndarray:
        """Successes [draws, k] once groups have grown to ``sizes``."""
        more = sizes - self.n
        drawn = more * self.truth + np.sqrt(more * self.truth * (1 - self.truth)) * self.noise
        return self.x + np.clip(drawn, 0, more)

    def power_of(self, sizes: np.ndarray, critical: float | None) -> float:
        """Share of futures that settle it: as a violation, or (no critical value) as within.

        The ends are those of :func:`apfex.metrics.gap_interval`, from the groups that may lead.
        """
        x, alpha = self.futures(sizes), 1 - self.confidence
        i, j = _leaders(x, sizes, _REACH if critical is None else -critical)
        high = np.take_along_axis(x, i, 1)[:, :, None], sizes[i][:, :, None]
        low = np.take_along_axis(x, j, 1)[:, None], sizes[j][:, None]
        if critical is None:
            within = upper_of_pairs(high, low, alpha=alpha) < self.max_gap
            return float((within | (i[:, :, None] == j[:, None])).all((1, 2)).mean())
        lower = lower_of_pairs(
            high, low, critical=critical, alpha=alpha / self.n_tests, n_groups=len(self.n)
        )
        return float((lower > self.max_gap).any((1, 2)).mean())


def plan_rows(
    tested: Sequence[Tested],
    max_gap: float,
    power: float,
    min_count: float,
) -> pd.DataFrame:
    """A row per group that needs more rows, for each verdict that is not settled."""
    frames = []
    for one in tested:
        verdict = verdict_of(one.interval.lower, one.interval.upper, max_gap)
        if verdict in ("violation", "within tolerance"):
            continue
        expected, more = (
            _to_estimate(one, min_count)
            if verdict == "not estimable"
            else _to_settle(one, max_gap, power)
        )
        groups = np.flatnonzero(more > 0)
        frame = {
            "criterion": one.criterion,
            "by": one.by,
            "group": np.array(one.tables[0].counts.names, dtype=object)[groups],
            "count": one.tables[0].counts.sizes[groups],
            "more_rows": more[groups],
            "expected": expected,
        }
        frames.append(pd.DataFrame(frame))
    if not frames:
        return pd.DataFrame({name: [] for name in COLUMNS})
    return pd.concat(frames, ignore_index=True)


def _to_estimate(one: Tested, min_count: float) -> tuple[str, np.ndarray]:
    """Rows until two groups reach ``min_count``; the share of rows that count is taken overall."""
    more = np.zeros(len(one.tables[0].counts.names))
    for table in one.tables:
        row = int(table.totals.sum(1).argmax())
        share = table.totals[row].sum() / table.counts.n_rows
        short = np.maximum(min_count - table.totals[row], 0.0)
        nearest = np.argsort(short, kind="stable")[:2]
        needed = np.ceil(short[nearest] / share) if share > 0 else np.full(len(nearest), np.inf)
        more[nearest] = np.maximum(more[nearest], needed)
    return "estimable", more


def _to_settle(one: Tested, max_gap: float, power: float) -> tuple[Verdict, np.ndarray]:
    """The expected verdict, and rows of each group [k]; infinite where no number would do."""
    cases = []
    n_tests = sum(int(table.usable.sum()) for table in one.tables)
    for table, truth in zip(one.tables, one.shrunken, strict=True):
        for row in np.flatnonzero(table.usable).tolist():
            k = table.counted[row]
            case = _case(one, table, row, truth[row], max_gap, power, n_tests)
            cases.append((case, k, _rows_per_count(table, row)))
    if max(case.gap for case, _, _ in cases) > max_gap:
        plans = [
            _spread(_for_violation(case), known, factor)
            for case, known, factor in cases
            if case.gap > max_gap
        ]
        return "violation", min(plans, key=np.sum)
    plans = [_spread(_for_parity(case), known, factor) for case, known, factor in cases]
    return "within tolerance", np.max(plans, axis=0)


def _case(
    one: Tested,
    table: GroupRates,
    row: int,
    truth: np.ndarray,
    max_gap: float,
    power: float,
    n_tests: int,
) -> _Case:
    known = table.counted[row]
    k = int(known.sum())
    draws = min(_DRAWS, max(50, 1000 * _DRAWS // k))
    noise = np.random.default_rng(0).standard_normal((draws, k))
    x, n = table.successes[row][known], table.totals[row][known]
    rates = truth[known]
    return _Case(x, n, rates, max_gap, power, one.interval.confidence, n_tests, noise)


def _rows_per_count(table: GroupRates, row: int) -> np.ndarray:
    """Rows of a group for each one that counts fully: more for tpr, or with unequal weights."""
    return table.counts.sizes / np.maximum(table.totals[row], 1)


def _spread(more: np.ndarray, known: np.ndarray, factor: np.ndarray) -> np.ndarray:
    rows = np.zeros(len(known))
    rows[known] = np.ceil(more * factor[known])
    return rows


def _for_parity(case: _Case) -> np.ndarray:
    """Rows that bring the upper end below the bound: most for groups at the ends."""
    ends = np.maximum(case.truth - case.truth.min(), case.truth.max() - case.truth)
    margin = case.max_gap - ends
    if margin.min() <= 1e-4:
        return np.where(margin <= 1e-4, np.inf, 0.0)
    return _smallest(case, case.truth * (1 - case.truth) / margin**2, None)


def _for_violation(case: _Case) -> np.ndarray:
    """Rows of the two groups that lie farthest apart, for the lower end to pass the bound."""
    spread = np.sqrt(case.truth * (1 - case.truth))
    high, low = int(case.truth.argmax()), int(case.truth.argmin())
    if case.gap - case.max_gap <= 1e-4:
        return np.where(np.isin(np.arange(len(case.n)), [high, low]), np.inf, 0.0)
    need = np.zeros(len(case.n))
    need[[high, low]] = np.maximum(spread[[high, low]], 0.05)
    more = np.zeros(len(case.n))
    for _ in range(3):  # the critical value depends on the sizes
        more = _smallest(case, need, _critical(case, case.n + more))
        if not np.isfinite(more).all():
            break
    return more


def _critical(case: _Case, sizes: np.ndarray) -> float:
    sizes = np.minimum(sizes.round(), 1e8).astype(np.int64)
    rates = (case.x + (sizes - case.n) * case.truth) / np.maximum(sizes, 1)
    confidence = 1 - (1 - case.confidence) / case.n_tests
    return gap_interval(
        np.clip((rates * sizes).round(), 0, sizes),
        sizes,
        confidence=confidence,
        n_draws=max(999, math.ceil(20 / (1 - confidence))),
    ).critical


def _smallest(case: _Case, need: np.ndarray, critical: float | None) -> np.ndarray:
    """Least multiple of the need that settles it often enough, beyond the rows there are."""

    def sizes(scale: float) -> np.ndarray:
        return np.maximum(case.n, np.ceil(scale * need))

    high = 1.0
    while case.power_of(sizes(high), critical) < case.power:
        high *= 2
        if sizes(high).max() > _MOST:
            return np.where(need > 0, np.inf, 0.0)
    low = high / 2 if high > 1 else 0.0
    for _ in range(12):
        middle = (low + high) / 2
        enough = case.power_of(sizes(middle), critical) >= case.power
        low, high = (low, middle) if enough else (middle, high)
    return sizes(high) - case.n


def _leaders(x: np.ndarray, sizes: np.ndarray, reach: float) -> tuple[np.ndarray, np.ndarray]:
    """Places [draws, l] of the groups that may be the higher, and the lower, one that leads.

    Ranked by their rate and ``reach`` standard errors, with all of them where there are few.
    """
    k = x.shape[1]
    if k <= _LEADERS:
        every = np.broadcast_to(np.arange(k), x.shape)
        return every, every
    p = (x + 1) / (sizes + 2)
    reached = reach * np.sqrt(p * (1 - p) / (sizes + 2))
    high, low = (
        np.argpartition(score, k - _LEADERS, axis=1)[:, -_LEADERS:]
        for score in (reached + p, reached - p)
    )
    return high, low
