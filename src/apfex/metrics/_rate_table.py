"""Rates of every group, from rows: as values, and as a table."""

from __future__ import annotations

from typing import Any, Literal, get_args

import pandas as pd

from apfex.arguments import require_numbers
from apfex.metrics._group_rates import GroupRates
from apfex.metrics._inputs import read_inputs
from apfex.rates import RATES, RateName

Grouping = Literal["intersectional", "attributes"]


def group_rates(
    y_true: Any,
    y_pred: Any,
    *,
    rate: RateName,
    sensitive_features: Any,
    grouping: Grouping = "intersectional",
    sample_weight: Any = None,
    pos_label: Any = 1,
    min_count: float = 1,
) -> pd.DataFrame:
    """One rate of every group, with the sums it is made of.

    Parameters
    ----------
    y_true, y_pred, sensitive_features, grouping, sample_weight, pos_label, min_count
        As for :func:`dp_gap`.
    rate : {"dp", "tpr", "fpr", "tnr", "fnr", "ppv", "npv", "accuracy"}

    Returns
    -------
    pandas.DataFrame
        A row per group, and per class where there are more than two; columns ``attribute`` (only
        for ``grouping="attributes"``), ``group``, ``class`` (only for more than two), ``count``
        (rows of the group), ``numerator``, ``denominator`` (sums of weights) and ``rate``, which
        is NaN where it is not estimable.

    Examples
    --------
    >>> y, decided, sex = [1, 1, 0, 1], [1, 0, 1, 1], ["F", "F", "M", "M"]
    >>> print(group_rates(y, decided, rate="tpr", sensitive_features={"sex": sex}))
       group  count  numerator  denominator  rate
    0  sex=F      2        1.0          2.0   0.5
    1  sex=M      2        1.0          1.0   1.0
    """
    tables = rate_tables(
        (rate,), y_true, y_pred, sensitive_features, grouping, sample_weight, pos_label, min_count
    )
    frames = []
    for attribute, (table,) in tables.items():
        frame = table.frame(rate=table.counted_rates)
        if grouping == "attributes":
            frame.insert(0, "attribute", attribute)
        frames.append(frame)
    return pd.concat(frames, ignore_index=True)


def rate_tables(
    rates: tuple[RateName, ...],
    y_true: Any,
    y_pred: Any,
    sensitive_features: Any,
    grouping: Grouping,
    sample_weight: Any,
    pos_label: Any,
    min_count: float,
) -> dict[str, list[GroupRates]]:
    """The rates of each attribute, or of the crossing under the name ``""``; rows count as such."""
    for rate in rates:
        check_choices(rate, grouping, min_count)
        if y_true is None and RATES[rate].needs_labels:
            raise ValueError(f"y_true must be given for the rate {rate!r}, got None.")
    symmetric = rates == ("accuracy",)
    data = read_inputs(
        y_true, y_pred, sensitive_features, sample_weight, pos_label, symmetric=symmetric
    )
    counts = data.count()
    grouped = {"": counts}
    if grouping == "attributes":
        grouped = {name: counts.by(name) for name in counts.groups.attributes}
    return {
        name: [GroupRates.of(one, rate, min_count, effective=False) for rate in rates]
        for name, one in grouped.items()
    }


def check_choices(rate: str, grouping: str, min_count: float) -> None:
    """Refuse unknown names and counts below 1."""
    for name, value, known in (
        ("rate", rate, tuple(RATES)),
        ("grouping", grouping, get_args(Grouping)),
    ):
        if value not in known:
            raise ValueError(f"{name} must be one of {list(known)}, got {value!r}.")
    require_numbers(min_count=min_count)
    if not min_count >= 1:
        raise ValueError(f"min_count must be at least 1, got {min_count}.")
