"""Rates of groups as a table."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from apfex.auditing._wilson import wilson_interval
from apfex.groups import grouping_name
from apfex.metrics import GroupRates


def rates_frame(
    table: GroupRates, overall: np.ndarray, shrunken: np.ndarray, confidence: float
) -> pd.DataFrame:
    """A row per group, and per class where there are several.

    Parameters
    ----------
    overall : array of shape [c, 1]
        The rate of all rows.
    shrunken : array of shape [c, k]
    """
    c, k = table.rates.shape
    lower, upper = wilson_interval(table.rates, table.totals, confidence)
    columns: dict[str, Any] = {
        "by": [grouping_name(table.counts.groups.attributes) or "overall"] * (c * k),
        "group": np.repeat(np.array(table.counts.names, dtype=object), c),
        "of": [table.rate] * (c * k),
    }
    if table.classes:
        columns["class"] = list(table.classes) * k
    columns["count"] = np.repeat(table.counts.sizes, c)
    for name, values in {
        "numerator": table.numerator,
        "denominator": table.denominator,
        "effective": table.totals,
        "rate": table.rates,
        "lower": lower,
        "upper": upper,
        "difference": table.rates - overall,
        "shrunken": shrunken,
        "in_gap": table.counted,
    }.items():
        columns[name] = values.T.ravel()
    return pd.DataFrame(columns)
