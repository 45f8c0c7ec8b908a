"""Weights of the rows of a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from apfex.cli._errors import CommandError
from apfex.cli._screen import shown

if TYPE_CHECKING:
    import pandas as pd


def read_weight(column: pd.Series) -> np.ndarray:
    """Numbers from 0 on, none missing."""
    if getattr(column.dtype, "kind", "O") not in "iuf":
        raise CommandError(f"--weight {shown(column.name)} must hold numbers.")
    values = column.to_numpy(np.float64)
    if not (np.isfinite(values).all() and (values >= 0).all() and values.any()):
        raise CommandError(
            f"--weight {shown(column.name)} must have a number of at least 0 in every row, and "
            "some above 0."
        )
    return values
