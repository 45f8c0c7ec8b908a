"""UCI Heart Disease, Cleveland: comma-separated numbers, no header, '?' for missing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from apfex.datasets._dataset import Parts

COLUMNS = [
    *("age", "sex", "cp", "trestbps", "chol", "fbs", "restecg", "thalach", "exang", "oldpeak"),
    *("slope", "ca", "thal", "num"),
]
_CODES = ["cp", "restecg", "slope", "ca", "thal"]


def parse(paths: Sequence[Path], *, include_sensitive: bool, rows: str) -> Parts:
    """Read the rows; see the registry for the options."""
    table = pd.read_csv(paths[0], names=COLUMNS, na_values=["?"])
    if rows == "complete":
        table = table.dropna().reset_index(drop=True)
    y = (table.pop("num") > 0).to_numpy(np.int64)
    sensitive = pd.DataFrame(
        {
            "age": np.where(table["age"] >= 55, "55 and over", "under 55"),
            "sex": np.where(table["sex"] == 1, "male", "female"),
        }
    )
    for code in _CODES:  # numbers without an order: text, so that each gets an input of its own
        table[code] = table[code].map("{:.0f}".format, na_action="ignore").astype(object)
    return Parts(table if include_sensitive else table.drop(columns=["age", "sex"]), y, sensitive)
