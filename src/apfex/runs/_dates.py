"""Columns of dates: how they are recognised, and what a model gets of them."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

_ISO = re.compile(r"\d{4}-\d{2}-\d{2}([ T]\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?(Z|[+-]\d{2}:?\d{2})?)?")
_OTHER = re.compile(r"\d{1,2}([./-])\d{1,2}\1(\d{4}|\d{2})|\d{4}[./]\d{1,2}[./]\d{1,2}")
"""Here nobody can say which number is the month: 03/04/2024."""
_START, _DAY = datetime(1970, 1, 1, tzinfo=UTC), timedelta(days=1)


def is_date(column: pd.Series) -> bool:
    """Whether a column holds dates: as such, or as text like 2024-01-31 throughout.

    Examples
    --------
    >>> import pandas as pd
    >>> is_date(pd.Series(["2024-01-31", None])), is_date(pd.Series(["2024-01-31", "later"]))
    (True, False)
    """
    if _is_stored_as_date(column):
        return True
    values = _distinct(column)
    return len(values) > 0 and all(_days(value) is not None for value in values)


def is_unclear_date(column: pd.Series) -> bool:
    """Whether text looks like dates of which nobody can say which number is the month."""
    values = _distinct(column)
    return len(values) > 0 and all(
        isinstance(value, str) and _OTHER.fullmatch(value.strip()) for value in values
    )


def to_days(column: pd.Series) -> pd.Series:
    """Days since 1 January 1970, with the time of day as a part of one; NaN where it is missing.

    Times with a zone are counted in UTC.

    Examples
    --------
    >>> import pandas as pd
    >>> to_days(pd.Series(["1970-01-02", None, "1971-01-01 12:00"])).tolist()
    [1.0, nan, 365.5]
    """
    import pandas as pd

    if _is_stored_as_date(column):
        times = column.dt.tz_localize("UTC") if column.dt.tz is None else column
        days = ((times - pd.Timestamp(_START)) / pd.Timedelta(days=1)).to_numpy(np.float64)
    else:
        codes, values = pd.factorize(column)
        known = [_days(value) for value in values]
        days = np.array([*known, np.nan], np.float64)[codes]
    return pd.Series(days, index=column.index, name=column.name)


def _is_stored_as_date(column: pd.Series) -> bool:
    return getattr(column.dtype, "kind", "O") == "M"


def _days(value: object) -> float | None:
    """Days of one value; None where it is no date, or a day that there is not."""
    if isinstance(value, str):
        text = value.strip()
        if not _ISO.fullmatch(text):
            return None
        try:
            value = datetime.fromisoformat(text)
        except ValueError:
            return None
    if not isinstance(value, datetime):
        if not isinstance(value, date):
            return None
        value = datetime.combine(value, time())
    return ((value if value.tzinfo else value.replace(tzinfo=UTC)) - _START) / _DAY


def _distinct(column: pd.Series) -> list[Any]:
    """Values of text or objects, each once; nothing of columns of numbers."""
    import pandas as pd

    if getattr(column.dtype, "kind", "O") != "O":
        return []
    kinds = set(map(type, column.cat.categories if hasattr(column, "cat") else column.dropna()))
    if not all(issubclass(kind, str | date) for kind in kinds):
        return []
    return list(pd.factorize(column)[1])
