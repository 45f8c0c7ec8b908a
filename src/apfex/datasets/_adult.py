"""UCI Adult: comma-separated, no header, '?' for missing; the second part's labels end in a dot."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from apfex.datasets._dataset import Parts

COLUMNS = [
    *("age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation"),
    *("relationship", "race", "sex", "capital-gain", "capital-loss", "hours-per-week"),
    *("native-country", "income"),
]
_NOT_IN_MAMO = ["education", "fnlwgt"]
_CAPITAL = ["capital-gain", "capital-loss"]
_RARE_COUNTRY = 150


def parse(paths: Sequence[Path], *, include_sensitive: bool, columns: str, race: str) -> Parts:
    """Read both parts; see the registry for the options."""
    rows = pd.concat([_read(path, columns) for path in paths], ignore_index=True)
    y = rows.pop("income").str.rstrip(".").eq(">50K").to_numpy(np.int64)
    sensitive = rows.filter(["sex", "race"])
    if race == "binary":
        sensitive["race"] = np.where(rows["race"] == "White", "White", "Non-White")
    X = rows if include_sensitive else rows.drop(columns=["sex", "race"])
    if columns != "all":
        X = _mamo(X, capital=columns == "mamo+capital")
    return Parts(X, y, sensitive)


def _read(path: Path, columns: str) -> pd.DataFrame:
    # In the MAMO variants a missing value is a category like any other.
    missing = ["?"] if columns == "all" else []
    return pd.read_csv(
        path,
        names=COLUMNS,
        skipinitialspace=True,
        comment="|",
        na_values=missing,
        keep_default_na=False,
    )


def _mamo(X: pd.DataFrame, *, capital: bool) -> pd.DataFrame:
    country = X["native-country"]
    counts = Counter(country)
    joined = ["other" if counts[name] <= _RARE_COUNTRY else name for name in country]
    X = X.assign(**{"native-country": joined})
    return X.drop(columns=_NOT_IN_MAMO + ([] if capital else _CAPITAL))
