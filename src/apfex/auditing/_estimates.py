"""Rates of groups as estimates: a table, intervals, and rates shrunken towards those of parents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from scipy.stats import norm

from apfex.groups import MISSING, Groups, grouping_name
from apfex.metrics import GroupRates

_OWN_COLUMNS = {
    *("by", "group", "of", "class", "count", "numerator", "denominator", "effective", "rate"),
    *("lower", "upper", "difference", "shrunken", "in_gap"),
    *("favored", "clearly_below", "driver", "others"),
    *("metric", "value", "compared", "score_from", "score_to", "mean_score", "observed"),
}
"""Columns of tables of groups, which an attribute of the same name must not hide."""


def column_of(attribute: str) -> str:
    """The column of an attribute in tables of groups: its name, unless that is taken.

    Examples
    --------
    >>> column_of("sex"), column_of("group")
    ('sex', 'group (attribute)')
    """
    return f"{attribute} (attribute)" if attribute in _OWN_COLUMNS else attribute


def attribute_columns(groups: Groups, attributes: Sequence[str]) -> dict[str, np.ndarray]:
    """The level of each attribute in each group, as text; None where the grouping lacks it.

    Examples
    --------
    >>> from apfex.groups import make_groups
    >>> attribute_columns(make_groups({"sex": ["F", "M"]}), ("sex", "race"))["sex"].tolist()
    ['F', 'M']
    """
    values = groups.values
    found = {}
    for name in attributes:
        column = np.full(len(groups), None, dtype=object)
        if name in groups.attributes:
            place = groups.attributes.index(name)
            column[:] = [MISSING if cell[place] is None else cell[place] for cell in values]
        found[column_of(name)] = column
    return found


def rates_frame(
    table: GroupRates,
    overall: np.ndarray,
    shrunken: np.ndarray,
    confidence: float,
    columns: Mapping[str, np.ndarray],
) -> pd.DataFrame:
    """A row per group, and per class where there are several.

    Parameters
    ----------
    columns : mapping from name to array of shape [k]
        Columns that tell the groups apart.
    overall : array of shape [c, 1]
        The rate of all rows.
    shrunken : array of shape [c, k]
    """
    lower, upper = wilson_interval(table.rates, table.totals, confidence)
    frame = table.frame(
        effective=table.totals,
        rate=table.rates,
        lower=lower,
        upper=upper,
        difference=table.rates - overall,
        shrunken=shrunken,
        in_gap=table.counted,
    )
    frame.insert(0, "by", grouping_name(table.counts.groups.attributes) or "overall")
    for place, (name, values) in enumerate(columns.items(), 2):
        frame.insert(place, name, np.repeat(values, len(table.numerator)))
    frame.insert(2 + len(columns), "of", table.rate)
    return frame


def wilson_interval(
    rates: np.ndarray, totals: np.ndarray, confidence: float
) -> tuple[np.ndarray, np.ndarray]:
    """Wilson's score interval; NaN where there are no rows.

    Notes
    -----
    The rates p whose score ``|rate - p| / sqrt(p (1 - p) / n)`` is at most z.
    """
    z2 = norm.ppf(0.5 + confidence / 2) ** 2
    n = np.where(totals > 0, totals, np.nan)
    centre = (rates + z2 / (2 * n)) / (1 + z2 / n)
    half = np.sqrt(z2 / n * (rates * (1 - rates) + z2 / (4 * n))) / (1 + z2 / n)
    # Rounding must not leave the rate itself, 0 or 1, outside.
    return np.clip(centre - half, 0, rates), np.clip(centre + half, rates, 1)


def difference_interval(
    now: np.ndarray,
    now_totals: np.ndarray,
    earlier: np.ndarray,
    earlier_totals: np.ndarray,
    confidence: float,
) -> tuple[np.ndarray, np.ndarray]:
    """Newcombe's interval of ``now - earlier`` for two independent samples."""
    low, high = wilson_interval(now, now_totals, confidence)
    low_before, high_before = wilson_interval(earlier, earlier_totals, confidence)
    change = now - earlier
    return (
        change - np.hypot(now - low, high_before - earlier),
        change + np.hypot(high - now, earlier - low_before),
    )


def shrunken_rates(
    table: GroupRates, everyone: GroupRates, parents: Mapping[str, GroupRates]
) -> np.ndarray:
    """Empirical Bayes estimates [c, k] of the rates of a grouping; never part of a verdict.

    Parameters
    ----------
    table : GroupRates
    everyone : GroupRates
        Of all rows.
    parents : mapping from attribute to GroupRates
        Of each single attribute.

    Notes
    -----
    The prior of a group is Beta with mean m and weight M: m is the overall rate for the groups of
    one attribute, and for crossings what the shrunken rates of their attributes add up to on the
    logit scale, without interaction. The misfit of the grouping, ``Var x = n m (1 - m) (1 + (n - 1)
    / (M + 1))``, gives M by moments. The estimate is ``(x + M m) / (n + M)``: a large group keeps
    its own rate, a small one goes to its parents', and a group without rows is NaN.
    """
    overall = _inner(everyone.successes, everyone.totals)  # [c, 1]
    attributes = table.counts.groups.attributes
    if len(attributes) < 2:
        return _shrink(table, np.broadcast_to(overall, table.totals.shape), 1)
    logits, n_parameters = _logit(overall), 1
    for name in attributes:
        parent = parents[name]
        shrunken = shrunken_rates(parent, everyone, parents)
        shrunken = np.where(np.isnan(shrunken), overall, shrunken)
        floor = 0.5 / (parent.totals + 1)
        effect = _logit(np.clip(shrunken, floor, 1 - floor)) - _logit(overall)
        logits = logits + effect[:, table.counts.groups.parent_codes(name)]
        n_parameters += parent.totals.shape[1] - 1
    return _shrink(table, 1 / (1 + np.exp(-logits)), n_parameters)


def _shrink(table: GroupRates, mean: np.ndarray, n_parameters: int) -> np.ndarray:
    x, n = table.successes, table.totals
    known = n > 0
    pearson = np.where(known, (x - n * mean) ** 2 / np.where(known, n * mean * (1 - mean), 1), 0)
    freedom = np.maximum(known.sum(1) - n_parameters, 1)
    rows = np.maximum((n - known).sum(1), 1)
    share = np.clip((pearson.sum(1) - freedom) / rows, 0, 1)[:, None]  # 1 / (M + 1)
    # (x + M m) / (n + M), both times the share, so that M may be infinite.
    estimate = (share * x + (1 - share) * mean) / np.where(known, share * n + 1 - share, 1)
    return np.where(known, estimate, np.nan)


def _inner(successes: np.ndarray, totals: np.ndarray) -> np.ndarray:
    """A rate strictly between 0 and 1."""
    return (successes + 0.5) / (totals + 1)


def _logit(rate: np.ndarray) -> np.ndarray:
    return np.log(rate) - np.log1p(-rate)
