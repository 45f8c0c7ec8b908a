"""Interval, parity test and noise floor of a gap, from counts alone."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import ArrayLike

from apfex.arguments import as_generator, require_numbers, require_whole
from apfex.metrics._not_estimable import NotEstimableWarning
from apfex.metrics._null import (
    are_classes,
    class_gaps,
    is_exact,
    noise_floor,
    null_law,
    smoothed,
    statistic,
)
from apfex.metrics._pairs import lower_end, upper_end

_TIE = 1 - 1e-9  # statistics closer than this are ties that rounding has split


@final
@dataclass(frozen=True)
class GapInterval:
    """A gap, how sure it is, and how large it would be by chance.

    Attributes
    ----------
    gap : float
        Largest minus smallest raw rate.
    lower, upper : float
        Ends of the interval. Where ``lower > 0`` the parity test rejects (``p_value <= 1 -
        confidence``); where it rejects, ``lower`` may still be 0.
    p_value : float
        Of the test that all groups have one rate: a finding of its own, next to the interval.
    critical : float
        Critical value of the statistic of that test.
    noise_floor, noise_floor_upper : float
        Mean and 95% quantile of the raw gap (of several the largest) that groups of these sizes
        show at perfect parity.
    confidence : float
    n_groups : int
        Groups that are estimable; the gap is over these.
    approximate : bool
        Whether the counts are effective ones (weighted rows), so that nothing here is exact.

    Examples
    --------
    >>> result = gap_interval([5, 9], [20, 20])
    >>> result.gap, result.lower, result.gap < result.noise_floor_upper, result.n_groups
    (0.2, 0.0, True, 2)
    """

    gap: float
    lower: float
    upper: float
    p_value: float
    critical: float
    noise_floor: float
    noise_floor_upper: float
    confidence: float
    n_groups: int
    approximate: bool = False


def gap_interval(
    successes: ArrayLike,
    totals: ArrayLike,
    *,
    confidence: float = 0.95,
    n_draws: int = 1999,
    random_state: int | np.random.Generator | None = 0,
    approximate: bool = False,
) -> GapInterval:
    """Interval, parity test and noise floor of the gap between k groups.

    Parameters
    ----------
    successes, totals : whole numbers of shape [k], or [c, k]
        Numerator and denominator of each group's rate. Groups with a total of 0 are left out.
        With c rows (classes, or rates): the largest gap over those that have two groups.
    confidence : float
        Between 0 and 1.
    n_draws : int
        Draws from the null law; more are made where c rows need them.
    random_state : int, Generator or None
        Equal seeds give equal results, in whatever order the groups come.
    approximate : bool
        Label of the result, for effective counts of weighted rows.

    Returns
    -------
    GapInterval
        All NaN, with a :class:`NotEstimableWarning`, for fewer than two groups with rows.

    Notes
    -----
    With ``p_i = (x_i + 1) / (n_i + 2)`` and ``s_i^2 = p_i (1 - p_i) / (n_i + 2)``, the statistic
    is the largest ``(p_i - p_j) / (s_i + s_j)`` over pairs. At parity its law given the sum of
    the x is multivariate hypergeometric, without nuisance parameter, so the p-value is exact.
    Its critical value c gives the first of two bounds on how far two rates lie apart at least,
    ``p_i - p_j - c (s_i + s_j)``; the second joins exact limits of the two raw rates. The smaller
    one counts, and the lower end is the largest over pairs, not below 0
    (:func:`lower_of_pairs`). The upper end is the largest over pairs of the larger of ``p_i - p_j +
    z sqrt(s_i^2 + s_j^2)``, z = 2.576 at 95%, and the bound from exact limits, without correction
    for many pairs, because the true gap belongs to one fixed pair (:func:`upper_of_pairs`). Pairs
    are looked at in blocks. The time is that of the draws, O(k) each: 10,000 groups of all sizes
    take about 4 s, but any number of small groups well below 1 s, as more than n (n + 1) groups of
    one size n are drawn together. From 10^9 rows on, draws are binomial (and approximate). The
    lower end and the p-value of the largest of c gaps are corrected for c (Bonferroni). The noise
    floor is that of the largest: of classes of one decision (equal totals, to which the successes
    add up) by joint multinomial draws, of anything else as if the rows were independent, which
    they are for rates of different people, such as tpr and fpr.

    *What holds at 95%* (enumerated for two groups, simulated for 3 to 16). Where all groups have
    one rate, the interval covers it in at least 93% of all cases, and in at most 97% of them once
    every group expects 20 successes and 20 failures; below that, ties make it cover more (98.7%
    for two groups of 10 at one half). Where the rates differ, each end is wrong in at most 2.5% of
    all cases, for sizes from 10 rows and up to 100 to 1, and rates from .001: the lower end is
    above the true gap in at most 2.4%, and the upper end below it in at most 2.2%. A true gap below
    the noise floor cannot be told from parity; there the lower end may be wrong in up to 5%, as at
    parity. The lower end is careful: it can be 0 although the parity test rejects. The width is on
    average below that of Wilson intervals with Bonferroni's correction, except for small groups
    with rare outcomes.

    The rows of several such intervals are not corrected for one another (use Holm's p-values). A
    gap of a model that was chosen on these rows is biased downwards; use fresh ones.

    Examples
    --------
    >>> result = gap_interval([30, 45, 50], [100, 100, 100])
    >>> round(result.gap, 2), round(result.lower, 2), round(result.upper, 2)
    (0.2, 0.03, 0.37)
    >>> result.p_value <= 0.05
    True
    """
    x, n = _read_counts(successes, totals)
    most = int((n > 0).sum(1).max(initial=0))
    if most < 2:
        warnings.warn(
            f"A gap needs two groups with rows, got {most}; the result is NaN.",
            NotEstimableWarning,
            stacklevel=2,
        )
    return largest_interval(x, n, confidence, n_draws, random_state, approximate)


def largest_interval(
    x: np.ndarray,
    n: np.ndarray,
    confidence: float,
    n_draws: int,
    random_state: int | np.random.Generator | None,
    approximate: bool,
) -> GapInterval:
    """Interval of the largest gap over the rows of counts [c, k], a total of 0 being no group."""
    require_numbers(confidence=confidence)
    require_whole(n_draws=n_draws)
    as_generator(random_state)
    usable = [row for row in range(len(n)) if (n[row] > 0).sum() >= 2] or [0]
    # Bonferroni needs draws further out in the tail; twenty beyond the critical value at least.
    n_tests = len(usable)
    if n_tests > 1 and 0 < confidence < 1:
        n_draws = max(n_draws, math.ceil(20 * n_tests / (1 - confidence)) - 1)
    found = [
        _corrected_interval(
            x[row][n[row] > 0],
            n[row][n[row] > 0],
            confidence,
            n_tests,
            n_draws,
            np.random.default_rng(random_state),
            approximate,
        )
        for row in usable
    ]
    rows = [one for one, _ in found]
    floor = noise_floor([gaps for _, gaps in found])
    if n_tests > 1 and are_classes(x[usable], n[usable], approximate):
        generator = np.random.default_rng(random_state)
        floor = noise_floor([class_gaps(x[usable], n[usable], n_draws, generator)])
    return GapInterval(
        gap=max(one.gap for one in rows),
        lower=max(one.lower for one in rows),
        upper=max(one.upper for one in rows),
        p_value=min(one.p_value for one in rows),
        critical=max(one.critical for one in rows),
        noise_floor=floor[0],
        noise_floor_upper=floor[1],
        confidence=confidence,
        n_groups=max(one.n_groups for one in rows),
        approximate=any(one.approximate for one in rows),
    )


def _corrected_interval(
    x: np.ndarray,
    n: np.ndarray,
    confidence: float,
    n_tests: int,
    n_draws: int,
    generator: np.random.Generator,
    approximate: bool,
) -> tuple[GapInterval, np.ndarray]:
    """Interval whose lower end and p-value are one of ``n_tests``, and draws of the gap at parity.

    The upper end is its own.
    """
    alpha = 1 - confidence
    rank = math.floor(alpha / n_tests * (n_draws + 1) + 1e-9)
    _check_settings(confidence, n_draws, rank)
    if len(n) < 2:
        nan = math.nan
        unknown = GapInterval(nan, nan, nan, nan, nan, nan, nan, confidence, len(n), approximate)
        return unknown, np.array([nan])
    order = np.lexsort((x, n))  # so that the draws do not depend on how groups are numbered
    x, n = x[order], n[order]
    null = null_law(n, int(x.sum()), n_draws, generator)
    gap = float(np.ptp(x / n))
    # A third group with the counts of two others adds no pair.
    third = np.append([False, False], (x[2:] == x[:-2]) & (n[2:] == n[:-2]))
    told = x[~third], n[~third]
    t = float(statistic(*smoothed(*told)))
    critical = float(np.partition(null.statistics, n_draws - rank)[n_draws - rank])
    rejected = critical < t * _TIE
    as_large = int(np.sum(null.statistics >= t * _TIE))
    floor, floor_upper = noise_floor([null.gaps])
    found = GapInterval(
        gap=gap,
        lower=lower_end(*told, critical, alpha / n_tests, len(n)) if rejected else 0.0,
        upper=upper_end(*told, alpha),
        p_value=min(1.0, n_tests * (1 + as_large) / (n_draws + 1)),
        critical=critical,
        noise_floor=floor,
        noise_floor_upper=floor_upper,
        confidence=confidence,
        n_groups=len(n),
        approximate=approximate or not is_exact(n),
    )
    return found, null.gaps


def _read_counts(successes: ArrayLike, totals: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    x, n = _whole("successes", successes), _whole("totals", totals)
    if x.ndim not in (1, 2) or x.shape != n.shape:
        raise ValueError(
            "successes and totals must be two lists, or tables, of one length, got shapes "
            f"{list(x.shape)} and {list(n.shape)}."
        )
    for name, values in (("successes", x), ("totals", n)):
        odd = values[values != np.floor(values)]
        if odd.size or not np.isfinite(values).all():
            raise ValueError(
                f"{name} must be whole numbers, got {values.tolist()[:5]}; for weighted rows use "
                "gap_inference."
            )
    wrong = np.flatnonzero((x < 0) | (x > n))
    if wrong.size:
        first = wrong[0]
        raise ValueError(
            f"successes must lie between 0 and totals, got {x.flat[first]} of {n.flat[first]} at "
            f"{first}."
        )
    return np.atleast_2d(x).astype(np.int64), np.atleast_2d(n).astype(np.int64)


def _whole(name: str, values: ArrayLike) -> np.ndarray:
    try:
        array = np.asarray(values)
    except ValueError:
        array = np.empty(0, dtype=object)
    if array.dtype.kind not in "iufb":
        raise TypeError(f"{name} must be whole numbers, got {values!r}.")
    return array


def _check_settings(confidence: float, n_draws: int, rank: int) -> None:
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must lie between 0 and 1, got {confidence}.")
    if rank < 1:
        raise ValueError(
            f"n_draws must be at least {math.ceil(1 / (1 - confidence) - 1e-9) - 1} for a "
            f"confidence of {confidence}, got {n_draws}."
        )
