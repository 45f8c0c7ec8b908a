"""Frames of pandas as Arrow; what Arrow has no values for is text, as an audit of rows has it."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

_IN_WORDS = ("interval", "period", "timedelta", "complex")
"""What pandas calls values that form groups by their text alone."""

FOR_GROUPS = b"apfex_for_groups"
"""Marks a column whose text tells groups apart, and is nothing that a model should learn from."""


def frame_to_arrow(frame: Any) -> pa.Table:
    """All columns; ValueError says, after the name of the frame, what is wrong with one."""
    import pandas as pd
    import pyarrow as pa

    names = [str(name) for name in frame.columns]
    repeated = next((name for name, n in Counter(names).items() if n > 1), None)
    if repeated is not None:
        raise ValueError(f"has two columns named {repeated!r}; rename one.")
    frame = frame.set_axis(names, axis=1)
    columns = {name: frame[name] for name in names}
    plain = {name: _plain(column) for name, column in columns.items()}
    if any(plain[name] is not column for name, column in columns.items()):
        frame = pd.DataFrame(plain, index=frame.index, copy=False)
    try:
        rows = pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowException, TypeError, ValueError, KeyError, OverflowError):
        name = _refused(plain)
        if name is None:
            raise
        raise ValueError(
            f"has {_kind(plain[name])} values in column {name!r} (of type {plain[name].dtype}), "
            "which Arrow does not hold as values of one kind; convert the column with "
            "astype(str), or leave it out."
        ) from None  # Arrow's words show a value, which may be about people
    for place, (name, column) in enumerate(columns.items()):
        if plain[name] is not column and _has_words_alone(column):
            field = rows.schema.field(place).with_metadata({FOR_GROUPS: _kind(column)})
            rows = rows.set_column(place, field, rows[name])
    return rows


def _plain(column: pd.Series) -> pd.Series:
    """The column in a form that Arrow and engines know; the same one if it is that already."""
    import pandas as pd

    if isinstance(column.dtype, pd.SparseDtype):
        column = column.sparse.to_dense()
    if isinstance(column.dtype, pd.CategoricalDtype):
        levels = column.cat.categories
        if _has_words_alone(levels):
            return column.cat.rename_categories(list(map(str, levels)))
    elif _has_words_alone(column):
        return column.astype(object).map(str, na_action="ignore")
    return column


def _has_words_alone(values: Any) -> bool:
    import pandas as pd

    if isinstance(values.dtype, pd.StringDtype) or values.dtype.kind not in "Omc":
        return False  # at once, without a look at each
    return _kind(values) in _IN_WORDS


def _kind(values: Any) -> str:
    """What pandas calls the values."""
    import pandas as pd

    return pd.api.types.infer_dtype(values, skipna=True).removesuffix("64")


def _refused(columns: dict[str, pd.Series]) -> str | None:
    """The column that Arrow does not take."""
    import pyarrow as pa

    for name, column in columns.items():
        try:
            pa.Array.from_pandas(column)
        except (pa.ArrowException, TypeError, ValueError, KeyError, OverflowError):
            return name
    return None
