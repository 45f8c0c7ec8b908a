"""UCI German Credit: space-separated codes, no header; the label is 1 for good and 2 for bad."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from apfex.datasets._dataset import Parts

COLUMNS = [
    *("checking_status", "duration", "credit_history", "purpose", "credit_amount", "savings"),
    *("employment", "installment_rate", "personal_status_sex", "other_debtors"),
    *("residence_since", "property", "age", "other_plans", "housing", "existing_credits", "job"),
    *("dependents", "telephone", "foreign_worker", "label"),
]
_WOMEN = ["A92", "A95"]
_FOREIGN = "A201"


def parse(paths: Sequence[Path], *, include_sensitive: bool, foreign_worker: bool) -> Parts:
    """Read the rows; see the registry for the options."""
    rows = pd.read_csv(paths[0], sep=r"\s+", names=COLUMNS)
    y = (rows.pop("label") == 1).to_numpy(np.int64)
    sensitive = pd.DataFrame(
        {
            "age": np.where(rows["age"] > 25, "over 25", "up to 25"),
            "sex": np.where(rows["personal_status_sex"].isin(_WOMEN), "female", "male"),
        }
    )
    raw = ["age", "personal_status_sex"]
    if foreign_worker:
        sensitive["foreign_worker"] = np.where(rows["foreign_worker"] == _FOREIGN, "yes", "no")
        raw.append("foreign_worker")
    return Parts(rows if include_sensitive else rows.drop(columns=raw), y, sensitive)
