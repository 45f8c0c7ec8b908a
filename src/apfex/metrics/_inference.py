"""Statistics of a gap, from rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal, overload

import numpy as np

from apfex.metrics._inputs import read_inputs
from apfex.metrics._interval import GapInterval, effective_counts, largest_interval
from apfex.metrics._tables import (
    Grouping,
    RateTable,
    check_choices,
    rate_tables,
    require_labels,
    warn_left_out,
)
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
        counts are then Kish's (:func:`effective_counts`), while ``gap`` stays the weighted one.

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
    check_choices(rate, grouping, min_count)
    require_labels(rate, y_true)
    symmetric = rate == "accuracy"
    data = read_inputs(
        y_true, y_pred, sensitive_features, sample_weight, pos_label, symmetric=symmetric
    )
    tables = rate_tables(rate, data, grouping)
    warn_left_out(list(tables.values()), min_count, 2)
    approximate = data.weight is not None and len(data.weight.unique()) > 1
    results = {
        name: _infer(table, min_count, confidence, n_draws, random_state, approximate)
        for name, table in tables.items()
    }
    return results[""] if grouping == "intersectional" else results


def _infer(
    table: RateTable,
    min_count: float,
    confidence: float,
    n_draws: int,
    random_state: int | np.random.Generator | None,
    approximate: bool,
) -> GapInterval:
    known = table.estimable(min_count).numpy()
    above, below = table.sums.numerator.numpy(), table.sums.denominator.numpy()
    if table.squares is None:
        successes, totals = above.astype(np.int64), below.astype(np.int64)
    else:
        successes, totals = effective_counts(above, below, table.squares.numpy())
    # A group that is left out has no rows, as far as the interval can tell.
    successes, totals = np.where(known, successes, 0), np.where(known, totals, 0)
    found = largest_interval(successes, totals, confidence, n_draws, random_state, approximate)
    return replace(found, gap=table.gap(min_count))
