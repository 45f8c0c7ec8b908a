"""Columns by their roles: features that a model can read, sensitive columns, weights of rows."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, final

import numpy as np

from apfex.files import unusable_columns
from apfex.plain import listed, nearest, printable
from apfex.runs._dates import is_date, to_days
from apfex.sources import RunError, RunWarning, Table, hint, named, stored_schema, to_pandas

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from apfex.groups import Groups
    from apfex.runs._settings import TableSettings

FeatureType = Literal["number", "text", "boolean", "date"]
_MANY_NUMBERS = 20


@final
@dataclass(frozen=True)
class GroupCounts:
    """How many groups there are, and the smallest of them.

    Attributes
    ----------
    levels : mapping from attribute to its number of levels
    groups : int
        Cells of the crossing that occur.
    smallest : str
        Name of the smallest.
    smallest_rows : int
    """

    levels: Mapping[str, int]
    groups: int
    smallest: str
    smallest_rows: int

    @staticmethod
    def of(groups: Groups, rows: np.ndarray | None = None) -> GroupCounts:
        """Count; ``rows`` tells how many rows each code stands for, where that is not one."""
        counts = groups.counts if rows is None else np.bincount(groups.codes, rows, len(groups))
        place = int(counts.argmin())
        levels = dict(zip(groups.attributes, map(len, groups.levels), strict=True))
        return GroupCounts(levels, len(groups), groups.names[place], int(counts[place]))


def find_columns(
    table: Table, settings: TableSettings, arguments: Sequence[str], needed: Sequence[str]
) -> tuple[dict[str, str], list[str]]:
    """The columns that arguments name, by the argument, and the sensitive ones.

    Nothing is guessed: a user says what is predicted, and for whom it must be fair.
    """
    lacking = [name for name in needed if not getattr(settings, name)]
    if lacking:
        raise RunError(
            f"{named(*lacking)} must name columns of {table.name}, which has "
            f"{listed(table.columns)}."
        )
    given = {name: getattr(settings, name) for name in arguments}
    columns = {
        name: table.column(value, name) for name, value in given.items() if value is not None
    }
    sensitive = table.names(settings.sensitive, "sensitive")
    if len(set(columns.values())) < len(columns):
        raise RunError(f"{named(*columns)} must name different columns.")
    if set(sensitive) & set(columns.values()):
        raise RunError(f"{named(*columns, 'sensitive')} must name different columns.")
    return columns, sensitive


def feature_types(X: pd.DataFrame) -> dict[str, FeatureType]:
    """What each column holds; a column without values counts as numbers."""
    return {str(name): _feature_type(column) or "text" for name, column in X.items()}


def make_features(X: pd.DataFrame, table: str) -> tuple[pd.DataFrame, dict[str, FeatureType]]:
    """The columns as a model can read them, dates as numbers of days, and what each held.

    An error names those that no model can read.
    """
    types = feature_types(X)
    for name, column in X.items():
        if types[str(name)] == "text" and is_date(column):
            types[str(name)] = "date"
    return check_features(with_days(X, types), table), types


def with_days(X: pd.DataFrame, types: Mapping[str, str]) -> pd.DataFrame:
    """The columns, with dates as numbers of days."""
    days = {str(n): to_days(column) for n, column in X.items() if types[str(n)] == "date"}
    return X.assign(**days) if days else X


def check_features(X: pd.DataFrame, table: str, *, needed: bool = False) -> pd.DataFrame:
    """The columns, if a model can read them all; an error that names those it cannot.

    ``needed``: none can be left out, as a model that was trained with them decides.
    """
    refuse_features(
        [str(name) for name, column in X.items() if _feature_type(column) is None], table
    )
    for name, column in X.select_dtypes("floating").items():
        infinite = int(np.isinf(column.to_numpy()).sum())
        if infinite:
            rest = "." if needed else f", or leave the column out: {hint('drop')}"
            raise RunError(
                f"{table}: {name} is infinite in {infinite:,} rows; empty these cells{rest}",
                drop=[str(name)],
                found=infinite,
            )
    return X


def check_usable(table: Table, features: Sequence[str]) -> None:
    """Refuse features of lists or records unread: a few bytes may hold any number of them."""
    if not table.dialect:
        refuse_features(unusable_columns(stored_schema(table), features), table.name)


def refuse_features(features: Sequence[str], table: str) -> None:
    """Refuse a table for features that no model can read, if there are any."""
    if features:
        raise RunError(
            f"{table} has columns that hold neither numbers, text, dates nor yes and no: "
            f"{listed(features)}. Leave them out: {hint('drop')}",
            drop=list(features),
            found=tuple(features),
        )


def check_lacking(columns: Sequence[str], types: Mapping[str, str], table: str) -> None:
    """Refuse new rows without some feature of a run; others, the sensitive too, are not needed."""
    lacking = [name for name in types if name not in columns]
    if lacking:
        near = nearest(lacking[0], [name for name in columns if name not in types])
        hint = f"; is '{near}' meant to be {lacking[0]}?" if near else "."
        raise RunError(
            f"{table} lacks columns of the run: {listed(lacking)}{hint}",
            found=tuple(lacking),
            suggestion=near,
        )


def to_features(rows: pa.Table, types: Mapping[str, str], table: str) -> pd.DataFrame:
    """The features of a run in new rows, if they hold what they held in training."""
    text = [name for name, kind in types.items() if kind == "text"]
    X = to_pandas(rows.select(list(types)), text)
    for name, column in X.items():
        check_kind(column, types[str(name)], table)
    return check_features(with_days(X, types), table, needed=True)


def check_kind(column: pd.Series, wanted: str, table: str) -> None:
    """Refuse a column of new rows that does not hold what it held in training."""
    words = {
        "number": "numbers",
        "text": "text",
        "boolean": "true and false",
        "date": "dates such as 2024-01-31",
    }
    fits = is_date(column) if wanted == "date" else _feature_type(column) == wanted
    if column.count() and not fits:
        example = printable(_example(column, wanted), 40)
        raise RunError(
            f"{table}: {column.name} must hold {words[wanted]} as it did in the run, got "
            f"'{example}'.",
            found=example,
        )


def read_groups(
    frame: pd.DataFrame,
    bins: Mapping[str, Sequence[float]] | None,
    *,
    most_levels: int | None = None,
) -> Groups:
    """The groups that sensitive columns make, numbers in bins where there are such.

    Parameters
    ----------
    frame : DataFrame of the sensitive columns
    bins : mapping from a column to where it is cut
    most_levels : int, optional
        Different values beyond which a column is refused.
    """
    from apfex.groups import make_groups

    bins = bins or {}
    check_bins(bins, list(frame.columns))
    cut = {str(n): _cut(column, bins[str(n)]) for n, column in frame.items() if str(n) in bins}
    frame = frame.assign(**cut)
    for name, column in frame.items():
        levels = column.nunique()
        if most_levels is not None and levels > most_levels:
            raise _too_many_levels(str(name), column, levels, most_levels)
    return make_groups(frame)


def check_bins(bins: Mapping[str, Sequence[float]], columns: Sequence[str]) -> None:
    """Refuse bins of columns that form no groups."""
    stray = [name for name in bins if name not in columns]
    if stray:
        raise RunError(
            f"{hint('bins')} names '{stray[0]}', which is not among {hint('sensitive')}.",
            found=stray[0],
        )


def without_bins(columns: Sequence[str], bins: Mapping[str, Any] | None) -> list[str]:
    """Columns whose very values are groups, each once."""
    return [name for name in dict.fromkeys(columns) if name not in (bins or {})]


def group_columns(groups: Groups) -> dict[str, pd.Index]:
    """The sensitive columns that rows in groups have: what a classifier takes at ``predict``."""
    cells = zip(groups.attributes, groups.levels, groups.cells[groups.codes].T, strict=True)
    return {name: levels.take(column) for name, levels, column in cells}


def warn_of_many_levels(numbers: pd.DataFrame, rows: np.ndarray | None = None) -> None:
    """Sensitive numbers with many levels are probably meant to be in bins.

    ``rows`` tells how many rows each one stands for, where that is not one.
    """
    for name, column in numbers.select_dtypes("number").items():
        levels = column.nunique()
        if levels > _MANY_NUMBERS:
            said = (
                f"{name} is a number with {levels:,} different values; to put them into ranges: "
                f"{hint('bins')}"
            )
            warning = RunWarning(said, bins=_bins_for(column, rows), found=levels)
            warnings.warn(warning, stacklevel=4)


def read_weight(column: pd.Series) -> np.ndarray:
    """Weights of rows: numbers from 0 on, none missing."""
    if not is_numeric(column):
        raise RunError(f"{hint('weight')} {column.name} must hold numbers.", found=column.name)
    values = column.to_numpy(np.float64)
    if not (np.isfinite(values).all() and (values >= 0).all() and values.any()):
        raise RunError(
            f"{hint('weight')} {column.name} must have a number of at least 0 in every row, "
            "and some "
            "above 0.",
            found=column.name,
        )
    return values


def is_numeric(column: pd.Series) -> bool:
    """Whether it is stored as numbers."""
    if column.dtype == object:
        return column.notna().any() and set(map(type, column.dropna())) == {Decimal}
    return getattr(column.dtype, "kind", "O") in "iuf"


def bits_of(column: pd.Series) -> int:
    """Of the floats of a column; 64 where it holds whole numbers."""
    kind: Any = getattr(column.dtype, "numpy_dtype", column.dtype)
    return 8 * kind.itemsize if kind.kind == "f" else 64


def _cut(column: pd.Series, cuts: Sequence[float]) -> pd.Series:
    import pandas as pd

    from apfex.auditing import precise_threshold

    if not is_numeric(column):
        raise RunError(
            f"{hint('bins')} needs numbers, but '{column.name}' holds text.", found=column.name
        )
    own = [precise_threshold(cut, bits_of(column)) for cut in cuts]
    places = np.searchsorted(own, column.to_numpy(float), side="right")
    return in_bins(pd.Series(places, index=column.index).where(column.notna()), cuts)


def in_bins(places: pd.Series, cuts: Sequence[float]) -> pd.Series:
    """Names of bins from places among the cuts; a missing place has none."""
    import pandas as pd

    marks = [f"{cut:g}" for cut in cuts]
    names = [f"under {marks[0]}"]
    names += [f"{low} up to {high}" for low, high in pairwise(marks)]
    names += [f"{marks[-1]} and over"]
    codes = places.fillna(-1).astype(int)
    return pd.Series(pd.Categorical.from_codes(codes, names), index=places.index)


def _bins_for(column: pd.Series, rows: np.ndarray | None = None) -> dict[str, list[float]]:
    """What would cut numbers into three parts, at round numbers."""
    numbers = column.to_numpy(float)
    known = ~np.isnan(numbers)
    values = numbers[known]
    counts = np.ones(len(values), np.int64) if rows is None else rows[known]
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(counts[order])
    cuts = []
    for share in (1 / 3, 2 / 3):  # by linear interpolation, as pandas has it
        place = share * (reached[-1] - 1)
        ends = values[order][np.searchsorted(reached, [np.floor(place), np.ceil(place)], "right")]
        cuts.append(float(f"{ends[0] + (ends[1] - ends[0]) * (place % 1):.2g}"))
    return {str(column.name): list(dict.fromkeys(cuts))}


def _too_many_levels(name: str, column: pd.Series, levels: int, most: int) -> RunError:
    said = (
        f"{hint('sensitive')} {name} has {levels:,} different values; at most {most:,} can be "
        "compared. "
    )
    if is_numeric(column):
        said += f"Put its numbers into ranges, for instance {hint('bins')}"
        return RunError(said, bins=_bins_for(column), found=levels)
    said += "Does it name single rows? Put values together, or take another column."
    return RunError(said, found=levels)


def _example(column: pd.Series, wanted: str) -> object:
    """A value that is not of the type."""
    import pandas as pd

    values = column.dropna().tolist()
    fits = {"number": _is_number, "date": lambda v: is_date(pd.Series([v], dtype=object))}
    check = fits.get(wanted, lambda _: False)
    return next((value for value in values if not check(value)), values[0])


def _is_number(value: object) -> bool:
    try:
        float(str(value))
    except ValueError:
        return False
    return True


def _feature_type(column: pd.Series) -> FeatureType | None:
    """None for what no model can read, such as lists and bytes; text may still hold dates."""
    import pandas as pd

    dtype = column.dtype
    if isinstance(dtype, pd.CategoricalDtype | pd.StringDtype):
        return "text"
    if dtype.kind in "iuf":
        return "number"
    if dtype.kind == "b":
        return "boolean"
    if dtype.kind == "M":
        return "date"
    return _object_type(set(map(type, column.dropna()))) if dtype.kind == "O" else None


def _object_type(types: set[type[Any]]) -> FeatureType | None:
    if not types:
        return "number"
    if types == {bool}:
        return "boolean"
    if types == {str}:
        return "text"
    if all(issubclass(kind, date) for kind in types):
        return "date"
    return "number" if types <= {int, float, Decimal} else None
