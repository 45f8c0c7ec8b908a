"""Masked arrays: what is masked is missing."""

from __future__ import annotations

from typing import Any

import numpy as np


def unmasked(values: Any) -> np.ndarray:
    """An array whose masked entries are missing: NaN among numbers, None among all else.

    ``np.asarray`` alone would bring back whatever lies under a mask.

    Examples
    --------
    >>> unmasked(np.ma.masked_equal([1, 2, -99], -99))
    array([ 1.,  2., nan])
    >>> unmasked(np.ma.array(["a", "b"], mask=[False, True])).tolist()
    ['a', None]
    """
    if isinstance(values, list | tuple) and any(isinstance(v, np.ma.MaskedArray) for v in values):
        return np.asarray([None if v is np.ma.masked else unmasked(v) for v in values])
    if not isinstance(values, np.ma.MaskedArray):
        return np.asarray(values)
    hidden = np.ma.getmaskarray(values)
    if not hidden.any():
        return np.asarray(values.data)
    if values.dtype.kind in "fiu":
        return np.where(hidden, np.nan, values.data)
    found = values.data.astype(object)
    found[hidden] = None
    return found
