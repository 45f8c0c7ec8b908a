"""Roles of columns: features that a model can read, sensitive columns, weights of rows."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, final

import numpy as np

from apfex.plain import printable
from apfex.runs._errors import Argument, Part, RunError, RunWarning, listed

if TYPE_CHECKING:
    import pandas as pd

    from apfex.groups import Groups

Kind = Literal["number", "text", "boolean"]
_MANY_NUMBERS = 20
MOST_GROUPS = 200
"""Cells of the crossing beyond which training takes minutes, and rates of cells say little."""


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
    def of(groups: Groups) -> GroupCounts:
        """Count."""
        place = int(groups.counts.argmin())
        levels = zip(groups.attributes, map(len, groups.levels), strict=True)
        return GroupCounts(
            dict(levels), len(groups), groups.names[place], int(groups.counts[place])
        )


def kinds_of(X: pd.DataFrame) -> dict[str, Kind]:
    """What each column holds; a column without values counts as numbers."""
    return {str(name): _kind(column) or "text" for name, column in X.items()}


def check_features(X: pd.DataFrame, table: str) -> pd.DataFrame:
    """The columns, if a model can read them all; an error that names those it cannot."""
    unusable = [str(name) for name, column in X.items() if _kind(column) is None]
    if unusable:
        raise RunError(
            f"{table} has columns that hold neither numbers, text nor yes and no: "
            f"{listed(unusable)}. Leave them out: ",
            Argument("drop", unusable),
            found=tuple(unusable),
        )
    for name, column in X.select_dtypes("floating").items():
        infinite = int(np.isinf(column.to_numpy()).sum())
        if infinite:
            raise RunError(
                f"{table}: {name} is infinite in {infinite:,} rows; empty these cells, or leave "
                "the column out: ",
                Argument("drop", [str(name)]),
                found=infinite,
            )
    return X


def like_training(X: pd.DataFrame, kinds: Mapping[str, str], table: str) -> pd.DataFrame:
    """New rows, if their columns hold what they held in training."""
    words = {"number": "numbers", "text": "text", "boolean": "true and false"}
    for name, column in X.items():
        wanted = kinds[str(name)]
        if column.count() and _kind(column) != wanted:
            raise RunError(
                f"{table}: {name} must hold {words[wanted]} as it did in the run, got "
                f"'{printable(_example(column, wanted), 40)}'.",
                found=printable(_example(column, wanted), 40),
            )
    return check_features(X, table)


def put_into_bins(
    frame: pd.DataFrame, bins: Mapping[str, Sequence[float]] | None, *, most: int
) -> pd.DataFrame:
    """Sensitive columns with levels that people can be told apart by.

    Parameters
    ----------
    frame : DataFrame of the sensitive columns
    bins : mapping from a column to where it is cut
    most : int
        Levels beyond which a column is refused.
    """
    bins = bins or {}
    stray = [name for name in bins if name not in frame.columns]
    if stray:
        raise RunError(
            Argument("bins"),
            f" names '{stray[0]}', which is not among ",
            Argument("sensitive"),
            ".",
            found=stray[0],
        )
    cut = {n: _cut(column, bins[str(n)]) for n, column in frame.items() if str(n) in bins}
    frame = frame.assign(**{str(name): column for name, column in cut.items()})
    for name, column in frame.items():
        levels = column.nunique()
        if levels > most:
            raise _too_many(str(name), column, levels, most)
    return frame


def check_few(groups: Groups) -> None:
    """Refuse more groups than a front can be made for."""
    if len(groups) > MOST_GROUPS:
        raise RunError(
            Argument("sensitive"),
            f" makes {len(groups):,} groups where the columns cross, but a front is made for at "
            f"most {MOST_GROUPS}: name fewer columns, or merge levels.",
            found=len(groups),
        )


def bins_for(column: pd.Series) -> Argument:
    """What would cut numbers into three parts, at round numbers."""
    cuts = [float(f"{column.quantile(q):.2g}") for q in (1 / 3, 2 / 3)]
    return Argument("bins", {str(column.name): list(dict.fromkeys(cuts))})


def warn_of_levels(people: pd.DataFrame) -> None:
    """Numbers with many levels are probably meant to be in bins."""
    for name, column in people.select_dtypes("number").items():
        if column.nunique() > _MANY_NUMBERS:
            warning = RunWarning(
                f"{name} is a number with {column.nunique():,} levels; for ranges: ",
                bins_for(column),
                found=column.nunique(),
            )
            warnings.warn(warning, stacklevel=4)


def read_weight(column: pd.Series) -> np.ndarray:
    """Weights of rows: numbers from 0 on, none missing."""
    if not _is_numeric(column):
        raise RunError(Argument("weight"), f" {column.name} must hold numbers.", found=column.name)
    values = column.to_numpy(np.float64)
    if not (np.isfinite(values).all() and (values >= 0).all() and values.any()):
        raise RunError(
            Argument("weight"),
            f" {column.name} must have a number of at least 0 in every row, and some above 0.",
            found=column.name,
        )
    return values


def _cut(column: pd.Series, cuts: Sequence[float]) -> pd.Series:
    import pandas as pd

    if not _is_numeric(column):
        raise RunError(
            Argument("bins"), f" needs numbers, but '{column.name}' holds text.", found=column.name
        )
    marks = [f"{cut:g}" for cut in cuts]
    names = [f"under {marks[0]}"]
    names += [f"{low} up to {high}" for low, high in pairwise(marks)]
    names += [f"{marks[-1]} and over"]
    places = np.searchsorted(cuts, column.to_numpy(float), side="right")
    cut = pd.Series(pd.Categorical.from_codes(places, names), index=column.index, name=column.name)
    return cut.where(column.notna())


def _too_many(name: str, column: pd.Series, levels: int, most: int) -> RunError:
    said = f" {name} has {levels:,} levels; at most {most:,} can be compared. "
    identifier = "Is it an identifier? Merge levels, or take another column."
    remedy: list[Part] = [identifier]
    if _is_numeric(column):
        remedy = ["Put its numbers into bins, for instance ", bins_for(column)]
    return RunError(Argument("sensitive"), said, *remedy, found=levels)


def _example(column: pd.Series, wanted: str) -> object:
    """A value that is not of the kind."""
    values = column.dropna().tolist()
    return next((v for v in values if wanted == "number" and not _is_number(v)), values[0])


def _is_number(value: object) -> bool:
    try:
        float(str(value))
    except ValueError:
        return False
    return True


def _is_numeric(column: pd.Series) -> bool:
    return getattr(column.dtype, "kind", "O") in "iuf"


def _kind(column: pd.Series) -> Kind | None:
    """None for what no model can read: dates, lists, bytes."""
    import pandas as pd

    dtype = column.dtype
    if isinstance(dtype, pd.CategoricalDtype | pd.StringDtype):
        return "text"
    if dtype.kind in "iuf":
        return "number"
    if dtype.kind == "b":
        return "boolean"
    return _object_kind(set(map(type, column.dropna()))) if dtype.kind == "O" else None


def _object_kind(types: set[type[Any]]) -> Kind | None:
    if not types:
        return "number"
    if types == {bool}:
        return "boolean"
    if types == {str}:
        return "text"
    return "number" if types <= {int, float, Decimal} else None
