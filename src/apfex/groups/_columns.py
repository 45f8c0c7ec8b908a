"""Sensitive columns in every accepted form, and their levels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from apfex.plain import printable
from apfex.tables import check_indexes, in_memory, inferred, unmasked

MISSING = "<missing>"
"""How a missing value is shown; it is a level of its own."""


def read_columns(data: Any, argument: str = "sensitive_features") -> dict[str, pd.Series]:
    """Read every accepted form into named columns of equal length."""
    check_indexes(**{argument: data})
    data = in_memory(argument, data)
    if is_named(data):
        columns = _named_columns(data, argument)
    elif _is_series(data):
        columns = {str(getattr(data, "name", None) or "attribute0"): _column(data, argument)}
    else:
        columns = _array_columns(data, argument)
    if not columns:
        raise ValueError(f"{argument} must have at least one attribute, got none.")
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"{argument} must have columns of one length, got {lengths}.")
    return columns


def _named_columns(table: Any, argument: str) -> dict[str, pd.Series]:
    keys = list(table if isinstance(table, Mapping) else table.columns)
    names = [str(key) for key in keys]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise ValueError(
            f"{argument} must have distinct column names, also once they are text, got {repeated} "
            "twice; rename one."
        )
    return {name: _column(table[key], argument) for name, key in zip(names, keys, strict=True)}


def _array_columns(values: Any, argument: str) -> dict[str, pd.Series]:
    array = unmasked(values if hasattr(values, "__array__") else _object_array(values, argument))
    if array.ndim not in (1, 2):
        raise ValueError(f"{argument} must have one or two dimensions, got shape {array.shape}.")
    array = array[:, None] if array.ndim == 1 else array
    return {f"attribute{j}": _column(array[:, j], argument) for j in range(array.shape[1])}


def _object_array(values: Any, argument: str) -> np.ndarray:
    """Keep a list's values as they are: numpy would turn [1, 'a', None] into strings."""
    if not isinstance(values, Sequence) or isinstance(values, str | bytes):
        raise TypeError(
            f"{argument} must be a column, a table, or a mapping from names to columns, got "
            f"{type(values).__name__}."
        )
    values = [None if value is np.ma.masked else value for value in values]
    rows = {kind for kind in set(map(type, values)) if _is_row(kind)}
    if not rows:
        return _fill(values)
    lengths = {len(value) if type(value) in rows else 1 for value in values}
    if len(lengths) > 1:
        raise ValueError(
            f"{argument} must have rows of one length, got rows of "
            f"{' and '.join(map(str, sorted(lengths)))} values; fill them up with None."
        )
    return np.array(values, dtype=object)


def _is_row(kind: type) -> bool:
    return issubclass(kind, (Sequence, np.ndarray)) and not issubclass(kind, (str, bytes))


def _fill(values: Sequence) -> np.ndarray:
    array = np.empty(len(values), dtype=object)
    array[:] = list(values)
    return array


def _column(values: Any, argument: str) -> pd.Series:
    values = in_memory(argument, values)
    if not isinstance(values, pd.Series):
        if hasattr(values, "to_list"):
            values = _fill(values.to_list())
        values = unmasked(
            values if hasattr(values, "__array__") else _object_array(values, argument)
        )
        if values.ndim != 1:
            raise ValueError(
                f"{argument} must have one value per row in each column, got shape {values.shape}."
            )
        values = inferred(pd.Series(values))
    if values.dtype == np.float16:  # pandas has no index of these
        values = values.astype(np.float32)
    values = _in_utc(values)
    kinds = set(map(type, values)) if values.dtype == object else ()
    for kind in kinds:
        if kind.__hash__ is None:  # as of lists and arrays
            raise ValueError(
                f"{argument} must have single values in each column, got a {kind.__name__}."
            )
    return values.reset_index(drop=True)


def _in_utc(values: pd.Series) -> pd.Series:
    """Times with a zone in UTC: files and engines keep the moment, and not the zone."""
    if isinstance(values.dtype, pd.CategoricalDtype):
        levels = values.cat.categories
        if getattr(levels.dtype, "tz", None) is None:
            return values
        return values.cat.rename_categories(levels.tz_convert("UTC"))
    if values.dtype.kind != "M" or values.dt.tz is None:
        return values
    return values.dt.tz_convert("UTC")


def levels_of(column: pd.Series) -> pd.Index:
    """Sorted distinct values, a missing value last."""
    values = pd.Index(column.dropna().unique())
    if isinstance(values, pd.CategoricalIndex):
        values = pd.Index(values.astype(object)).infer_objects()
    try:
        values = values.sort_values()
    except TypeError:  # values of kinds that do not compare, as 1 and "a"
        values = pd.Index(sorted(values, key=lambda v: (type(v).__name__, str(v))), dtype=object)
    if column.isna().any():
        values = pd.Index([*values, None], dtype=object)
    return values


def check_levels(name: str, levels: pd.Index, argument: str) -> None:
    """Refuse levels that are shown alike, as 1 and "1": two groups would have one name."""
    if levels.dtype != object:
        return
    seen: dict[str, Any] = {}
    for level in levels:
        text = text_of(level)
        shown = MISSING if text is None else text
        if shown in seen:
            if text is None:
                alike, remedy = f"{shown!r} beside missing values", "give one of them another name"
                raise _alike(argument, alike, name, remedy)
            both = f"{printable(repr(seen[shown]), 40)} and {printable(repr(level), 40)}"
            raise _alike(argument, both, name)
        seen[shown] = level


def check_truths(name: str, column: pd.Series, argument: str) -> None:
    """Refuse True beside 1, and False beside 0: pandas would take them for one level."""
    kinds = set(map(type, column)) if column.dtype == object else set()
    if not any(map(_is_truth, kinds)) or all(map(_is_truth, kinds)):
        return
    truths, others = {}, {}
    for value in column:
        found = truths if _is_truth(type(value)) else others
        found.setdefault(value, value)
    for value, truth in truths.items():
        if value in others:
            raise _alike(argument, f"{bool(truth)} and {others[value]!r}", name)


def _is_truth(kind: type) -> bool:
    return issubclass(kind, bool | np.bool_)


def _alike(
    argument: str, alike: str, name: str, remedy: str = "write them alike, as by astype(str)"
) -> ValueError:
    return ValueError(
        f"{argument} must have levels that differ as text, got {alike} in {name!r}; {remedy}."
    )


def level_codes(column: pd.Series, levels: pd.Index) -> np.ndarray:
    """Position of each value among the levels, -1 where it is none of them."""
    has_missing = len(levels) > 0 and levels[-1] is None
    known = pd.Index(levels[:-1]).infer_objects() if has_missing else levels
    uniques_code, uniques = pd.factorize(column, use_na_sentinel=True)
    if isinstance(uniques, pd.CategoricalIndex):
        uniques = pd.Index(uniques.astype(object)).infer_objects()
    positions = known.get_indexer(pd.Index(uniques))
    missing = len(known) if has_missing else -1
    return np.append(positions, missing)[uniques_code].astype(np.int64)


def _is_series(data: Any) -> bool:
    return hasattr(data, "name") and hasattr(data, "__len__") and not hasattr(data, "columns")


def is_named(data: Any) -> bool:
    return isinstance(data, Mapping) or hasattr(data, "columns")


def grouping_name(attributes: Sequence[str]) -> str:
    """Name of the groups that some attributes form, as in ``sex x race``.

    Different attributes have different names: one that could be read as several is quoted, so
    that the column ``a x b`` is not taken for the crossing of ``a`` and ``b``.

    Examples
    --------
    >>> grouping_name(["sex", "race"]), grouping_name(["sex x race"])
    ('sex x race', '"sex x race"')
    """
    crossed = len(attributes) > 1
    return " x ".join(_quoted_if(_is_ambiguous(name, crossed), name) for name in attributes)


def _is_ambiguous(name: str, crossed: bool) -> bool:
    return name.startswith('"') or " x " in (f" {name} " if crossed else name)


def _quoted_if(needed: bool, name: str) -> str:
    return '"' + name.replace('"', '""') + '"' if needed else name


def text_of(level: Any) -> str | None:
    """A level as text; None where it is a missing value."""
    if level is None or level is pd.NA or level is pd.NaT or level != level:
        return None
    return str(int(level) if isinstance(level, float) and level.is_integer() else level)


def show(level: Any) -> str:
    text = text_of(level)
    if text is None:
        return MISSING
    return repr(text) if any(mark in text for mark in ",='\"<") or text != text.strip() else text
