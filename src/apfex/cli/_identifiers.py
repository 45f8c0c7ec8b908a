"""Features that name rows: with a value of its own for (nearly) each, nothing can be learnt."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from apfex.cli._errors import listed
from apfex.cli._screen import shown

if TYPE_CHECKING:
    import pandas as pd

_LEAST_ROWS = 50
_OWN = 0.95
"""Share of rows with a text of their own."""
_NAMED = re.compile(r"(?i:(^|[^a-z])(id|uuid|guid|index|key|row)$)|[a-z]ID$")


def find_identifiers(X: pd.DataFrame, kinds: Mapping[str, str]) -> list[str]:
    """Columns that name rows, in the order of the file.

    Parameters
    ----------
    X : DataFrame with n rows
    kinds : mapping from column to "number", "text" or "boolean"

    Notes
    -----
    Text counts where 95% of its values occur once. Whole numbers count where all differ and
    they leave few gaps, rise from row to row, or their column is called such as ``id``: amounts
    differ from row to row, too.
    """
    checks = {"text": _is_text_of_rows, "number": _is_number_of_rows}
    found = []
    for name, column in X.items():
        values = column.dropna()
        check = checks.get(kinds[str(name)])
        if check is not None and len(values) >= _LEAST_ROWS and check(values):
            found.append(str(name))
    return found


def describe_identifiers(names: Sequence[str]) -> str:
    """In words, with the option that leaves them out."""
    drop = " ".join(f"--drop {shlex.quote(shown(name))}" for name in names[:12])
    return (
        f"Nearly every row has a value of its own in {listed(names)}, as in an identifier: from "
        f"that a model can but learn rows by heart. Leave it out: {drop}"
    )


def _is_text_of_rows(values: pd.Series) -> bool:
    return values.nunique() > _OWN * len(values)


def _is_number_of_rows(values: pd.Series) -> bool:
    numbers = values.to_numpy(np.float64)
    if (numbers != np.floor(numbers)).any() or len(np.unique(numbers)) < len(numbers):
        return False
    is_dense = np.ptp(numbers) < 2 * len(numbers)
    is_rising = bool((np.diff(numbers) > 0).all())
    return is_dense or is_rising or _NAMED.search(str(values.name)) is not None
