"""Features of a file: which columns a model can read, and how they were read."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from apfex.cli._errors import CommandError, listed
from apfex.cli._screen import shown

if TYPE_CHECKING:
    import pandas as pd

Kind = Literal["number", "text", "boolean"]


def kinds_of(X: pd.DataFrame) -> dict[str, Kind]:
    """What each column holds; a column without values counts as numbers."""
    return {str(name): _kind(column) or "text" for name, column in X.items()}


def usable(X: pd.DataFrame, path: Path) -> pd.DataFrame:
    """The columns, if a model can read them all; an error that names those it cannot."""
    import numpy as np

    unusable = [str(name) for name, column in X.items() if _kind(column) is None]
    if unusable:
        names = ",".join(unusable)
        raise CommandError(
            f"{path} has columns that hold neither numbers, text nor yes and no: "
            f"{listed(unusable)}. Leave them out: --drop {shown(names, 200)}"
        )
    numbers = X.select_dtypes("floating")
    for name, column in numbers.items():
        infinite = int(np.isinf(column.to_numpy()).sum())
        if infinite:
            raise CommandError(
                f"{path}: {shown(name)} is infinite in {infinite:,} rows; empty these cells, or "
                f"leave the column out: --drop {shown(name)}"
            )
    return X


def describe_features(kinds: Mapping[str, str]) -> str:
    """How many, of what kind, and the first names."""
    counts = {kind: list(kinds.values()).count(kind) for kind in ("number", "text", "boolean")}
    words = {"number": "numbers", "text": "text", "boolean": "yes/no"}
    said = ", ".join(f"{n} {words[kind]}" for kind, n in counts.items() if n)
    return f"{len(kinds)} ({said}): {listed(list(kinds), 8)}"


def like_training(X: pd.DataFrame, kinds: Mapping[str, str], path: Path) -> pd.DataFrame:
    """New rows, if their columns hold what they held in training."""
    words = {"number": "numbers", "text": "text", "boolean": "true and false"}
    for name, column in X.items():
        wanted = kinds[str(name)]
        if column.count() and _kind(column) != wanted:
            raise CommandError(
                f"{path}: {shown(name)} must hold {words[wanted]} as it did in the run, got "
                f"'{shown(_example(column, wanted), 40)}'."
            )
    return usable(X, path)


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
