"""The worst-off groups, and the attribute that drives each."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy.stats import norm

from apfex.auditing._estimates import attribute_columns, wilson_interval
from apfex.groups import grouping_name
from apfex.metrics import GroupRates, upper_limit
from apfex.rates import ConfusionCounts, quotient


def worst_groups(
    counts: ConfusionCounts, attributes: Sequence[str], confidence: float
) -> pd.DataFrame:
    """Every group of a grouping, those that clearly get fewer favorable decisions first.

    Notes
    -----
    Groups come by two columns that are shown: those that are clearly below all rows, then the
    others, each by their share of favorable decisions. Among hundreds of small groups the lowest
    share is mostly chance, and not clear. The driver, of two attributes or more, is
    the attribute in which the group differs from people who share all its others, where those
    fare better most clearly: smallest ``(p - q) / sqrt(s_p^2 + s_q^2)`` with smoothed rates
    (Agresti and Caffo), of the attributes where this interval of ``p - q``, corrected for the
    number of groups and attributes (Bonferroni), and the raw difference lie below 0. The worst of
    many groups lie below their neighbours by chance. It describes decisions, and explains nothing.
    """
    own = _favored(counts, attributes)
    rates = own.rates[0]
    low, high = wilson_interval(rates, own.totals[0], confidence)
    driver, others = _drivers(counts, own, confidence)
    clear = _clearly_below(own, _favored(counts, ()), confidence)
    frame = pd.DataFrame(
        {
            "group": np.array(own.counts.names, dtype=object),
            **attribute_columns(own.counts.groups, attributes),
            "count": own.counts.sizes,
            "favored": rates,
            "lower": low,
            "upper": high,
            "difference": rates - _favored(counts, ()).rates[0],
            "clearly_below": clear,
            "driver": driver,
            "others": others,
        }
    )
    order = np.lexsort((-own.counts.sizes, rates, ~clear))  # NaN last, of equals the largest first
    return frame.iloc[order].reset_index(drop=True)


def count_worse_off(counts: ConfusionCounts, confidence: float) -> int:
    """Groups whose interval, corrected for their number, lies below the rate of all rows."""
    own = _favored(counts, counts.groups.attributes)
    return int(_clearly_below(own, _favored(counts, ()), confidence).sum())


def groups_below(
    counts: ConfusionCounts, groupings: Sequence[Sequence[str]], confidence: float
) -> pd.DataFrame:
    """The groups of each grouping that are clearly below all rows, the lowest rate first."""
    everyone, frames = _favored(counts, ()), []
    for attributes in groupings:
        own = _favored(counts, attributes)
        kept = np.flatnonzero(_clearly_below(own, everyone, confidence))
        kept = kept[np.argsort(own.rates[0][kept], kind="stable")]
        found = {
            "by": grouping_name(attributes),
            "group": np.array(own.counts.names, dtype=object)[kept],
            "count": own.counts.sizes[kept],
            "favored": own.rates[0][kept],
        }
        frames.append(pd.DataFrame(found, index=range(len(kept))))
    return pd.concat(frames, ignore_index=True)


def _clearly_below(own: GroupRates, everyone: GroupRates, confidence: float) -> np.ndarray:
    """Groups whose limit, corrected for their number, lies below the rate of all rows.

    It is the limit of Clopper and Pearson: of many small groups, where nearly everybody gets the
    favorable decision, Wilson's interval leaves out the true rate far too often.
    """
    alpha = (1 - confidence) / 2 / len(own.counts.groups)
    high = upper_limit((own.successes, np.maximum(own.totals, 1)), alpha)
    return ((own.totals > 0) & (high < everyone.rates))[0]


def _favored(counts: ConfusionCounts, attributes: Sequence[str]) -> GroupRates:
    """Favorable decisions among all decisions, as one rate; all groups count."""
    return GroupRates.of(counts.of_favorable().by(attributes), "dp")


def _drivers(
    counts: ConfusionCounts, own: GroupRates, confidence: float
) -> tuple[np.ndarray, np.ndarray]:
    """The driving attribute of each group, or None, and the rate of its others."""
    groups, k = own.counts.groups, len(own.counts.groups)
    best = np.zeros(k)
    driver, others = np.full(k, None, dtype=object), np.full(k, np.nan)
    if len(groups.attributes) < 2:  # one attribute alone is the group itself, and drives nothing
        return driver, others
    stricter = 1 - (1 - confidence) / (k * len(groups.attributes))
    for name in groups.attributes:
        rest = tuple(other for other in groups.attributes if other != name)
        rate, totals = _without(_favored(counts, rest), groups.parent_codes(rest), own)
        score = _score(own.rates[0], own.totals[0], rate, totals, stricter)
        leads = score < best
        best = np.where(leads, score, best)
        driver, others = np.where(leads, name, driver), np.where(leads, rate, others)
    return driver, others


def _without(
    parent: GroupRates, codes: np.ndarray, own: GroupRates
) -> tuple[np.ndarray, np.ndarray]:
    """Rate and effective size of a group's parent without the group itself."""
    above = np.maximum(parent.numerator[0, codes] - own.numerator[0], 0)
    below = np.maximum(parent.denominator[0, codes] - own.denominator[0], 0)
    rate = np.minimum(quotient(above, below), 1)  # rounding of weights
    return rate, np.maximum(parent.totals[0, codes] - own.totals[0], 0)


def _score(
    p: np.ndarray, n: np.ndarray, q: np.ndarray, m: np.ndarray, confidence: float
) -> np.ndarray:
    """How clearly p lies below q, as a negative number; 0 where it does not."""
    known = (n > 0) & (m > 0) & ~np.isnan(q)
    n, m = np.where(known, n, 1), np.where(known, m, 1)
    p, q = np.where(known, p, 0), np.where(known, q, 0)
    below = known & (p < q)  # smoothing alone would set a few rows apart
    p, q = (p * n + 1) / (n + 2), (q * m + 1) / (m + 2)
    score = (p - q) / np.sqrt(p * (1 - p) / (n + 2) + q * (1 - q) / (m + 2))
    return np.where(below & (score < -norm.ppf(0.5 + confidence / 2)), score, 0.0)
