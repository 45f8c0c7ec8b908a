"""Columns of Python's values as pandas infers them, without a loss of digits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

_EXACT = 2**53  # whole numbers below are floats, too


def inferred(column: pd.Series) -> pd.Series:
    """The column in a type of its own, if it is of objects and has one.

    Pandas makes floats of whole numbers beside missing ones. Those beyond 2^53 stay objects: two
    of them would become one number.

    Examples
    --------
    >>> import pandas as pd
    >>> inferred(pd.Series([1, None], dtype=object)).tolist()
    [1.0, nan]
    >>> inferred(pd.Series([2**53, 2**53 + 1, None], dtype=object)).tolist()
    [9007199254740992, 9007199254740993, None]
    """
    if column.dtype != object:
        return column
    found = column.infer_objects()
    if found.dtype.kind != "f":
        return found
    whole = (v for v in column if isinstance(v, int | np.integer))
    return column if any(abs(int(v)) >= _EXACT for v in whole) else found
