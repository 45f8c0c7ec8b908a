"""Rates of tiny groups that borrow strength from their parents; never part of a verdict."""

from __future__ import annotations

import numpy as np

from apfex.metrics import GroupRates


def shrunken_rates(
    table: GroupRates, everyone: GroupRates, parents: dict[str, GroupRates]
) -> np.ndarray:
    """Empirical Bayes estimates [c, k] of the rates of a grouping.

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
