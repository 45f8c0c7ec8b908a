"""Indexes of pandas: columns that belong together must be in the same order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd


def check_indexes(**arguments: Any) -> None:
    """Refuse pandas arguments whose indexes disagree, rather than pair up the wrong rows.

    Examples
    --------
    >>> check_indexes(  # doctest: +ELLIPSIS
    ...     y_true=pd.Series([0, 1]), y_pred=pd.Series([0, 1], index=[1, 0])
    ... )
    Traceback (most recent call last):
    ValueError: y_pred must have the index of y_true, got another; align them, or pass ...
    """
    first, known = "", None
    for argument, value in arguments.items():
        parts = {argument: value}
        if isinstance(value, Mapping):
            parts = {f"{argument}[{key!r}]": part for key, part in value.items()}
        for name, part in parts.items():
            if not isinstance(part, pd.Series | pd.DataFrame):
                continue
            if known is None:
                first, known = name, part.index
            elif len(known) == len(part) and not known.equals(part.index):
                # of several columns the argument is named, unless it disagrees with itself
                named = name if first.startswith(f"{argument}[") else argument
                raise ValueError(
                    f"{named} must have the index of {first}, got another; align them, or "
                    "pass `.to_numpy()` if the rows are in the same order."
                )
