"""Statistics of a gap, from rows."""

from __future__ import annotations

from typing import Any, Literal, overload

import numpy as np

from apfex.metrics._interval import GapInterval, interval_of_rates
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
