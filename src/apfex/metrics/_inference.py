"""Statistics of a gap, from rows and from rates of groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, overload

import numpy as np

from apfex.metrics._group_rates import GroupRates
from apfex.metrics._interval import GapInterval, largest_interval
from apfex.metrics._not_estimable import warn_left_out
from apfex.metrics._rate_table import Grouping, rate_tables
from apfex.rates import RateName


@overload
def gap_inference(
    y_true: Any,
    y_pred: Any,
    *,
    rate: RateName,
    sensitive_features: Any,
    grouping: Literal["intersectional"] = "intersectional",
    sample_weight: Any = None,
    confidence: float = 0.95,
    min_count: float = 1,
    pos_label: Any = 1,
    n_draws: int = 1999,
    random_state: int | np.random.Generator | None = 0,
) -> GapInterval: ...
@overload
def gap_inference(
    y_true: Any,
    y_pred: Any,
    *,
    rate: RateName,
    sensitive_features: Any,
    grouping: Literal["attributes"],
    sample_weight: Any = None,
    confidence: float = 0.95,
    min_count: float = 1,
    pos_label: Any = 1,
    n_draws: int = 1999,
    random_state: int | np.random.Generator | None = 0,
) -> dict[str, GapInterval]: ...
def gap_inference(
    y_true: Any,
    y_pred: Any,
    *,
    rate: RateName,
    sensitive_features: Any,
    grouping: Grouping = "intersectional",
    sample_weight: Any = None,
    confidence: float = 0.95,
    min_count: float = 1,
    pos_label: Any = 1,
    n_draws: int = 1999,
    random_state: int | np.random.Generator | None = 0,
) -> GapInterval | dict[str, GapInterval]:
    """A gap with its interval, parity test and noise floor.

    Parameters
    ----------
    y_true, y_pred, sensitive_features, grouping, sample_weight, min_count, pos_label
        As for :func:`dp_gap`.
    rate : {"dp", "tpr", "fpr", "tnr", "fnr", "ppv", "npv", "accuracy"}
    confidence, n_draws, random_state
        As for :func:`gap_interval`.

    Returns
    -------
    GapInterval, or dict from attribute to GapInterval
        Its ``gap`` is that of the function of the same name. Unequal weights make it approximate:
        counts are then Kish's effective ones, while ``gap`` stays the weighted one.

    Notes
    -----
    With more than two labels the gap is the largest over c classes. The lower end and the p-value
    are corrected for that (Bonferroni: each class is tested at 1/c of the level), the upper end
    need not be. The noise floor is that of the largest gap.

    Examples
    --------
    >>> decided, sex = [0] * 70 + [1] * 30 + [0] * 40 + [1] * 60, ["F"] * 100 + ["M"] * 100
    >>> result = gap_inference(None, decided, rate="dp", sensitive_features=sex)
    >>> round(result.gap, 2), result.lower > 0, result.noise_floor < 0.1
    (0.3, True, True)
    """
    tables = rate_tables(
        (rate,), y_true, y_pred, sensitive_features, grouping, sample_weight, pos_label, min_count
    )
    warn_left_out([table for (table,) in tables.values()], min_count, 2)
    results = {
        name: interval_of_rates(
            found, confidence=confidence, n_draws=n_draws, random_state=random_state
        )
        for name, found in tables.items()
    }
    return results[""] if grouping == "intersectional" else results


def interval_of_rates(
    tables: Sequence[GroupRates],
    *,
    confidence: float = 0.95,
    n_draws: int = 1999,
    random_state: int | np.random.Generator | None = 0,
) -> GapInterval:
    """Interval of the largest gap over rates, and over their classes, tested together.

    Parameters
    ----------
    tables : sequence of GroupRates
        Of the same groups.
    confidence, n_draws, random_state
        As for :func:`gap_interval`.

    Returns
    -------
    GapInterval
        All NaN where one of the rates has no two groups that count; without a warning. Unequal
        weights make it approximate.

    Examples
    --------
    >>> from apfex.groups import make_groups
    >>> from apfex.rates import count_rows
    >>> decided, sex = np.repeat([0, 1, 0, 1], [70, 30, 40, 60]), make_groups(["F", "M"] * 100)
    >>> counts = count_rows(None, decided, sex)
    >>> interval_of_rates([GroupRates.of(counts, "dp")]).gap
    0.0
    """
    largest = GroupRates.widest(tables)
    tables = tables if largest.usable.any() else [largest]
    # A group that does not count has no rows, as far as the interval can tell.
    x = np.concatenate([np.where(table.counted, table.successes, 0) for table in tables])
    n = np.concatenate([np.where(table.counted, table.totals, 0) for table in tables])
    approximate = largest.counts.weight is None
    found = largest_interval(x, n, confidence, n_draws, random_state, approximate)
    return replace(found, gap=largest.gap)
