"""Sensitive columns of a file: numbers are put into bins, and too many levels are refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from apfex.cli._errors import CommandError
from apfex.cli._screen import shown

if TYPE_CHECKING:
    import pandas as pd

    from apfex.groups import Groups

MOST_GROUPS = 200
"""Cells of the crossing beyond which training takes minutes, and rates of cells say little."""


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
        raise CommandError(f"--bins names '{shown(stray[0])}', which is not among --sensitive.")
    cut = {n: _cut(column, bins[str(n)]) for n, column in frame.items() if str(n) in bins}
    frame = frame.assign(**{str(name): column for name, column in cut.items()})
    for name, column in frame.items():
        levels = column.nunique()
        if levels > most:
            raise CommandError(_too_many(str(name), column, levels, most))
    return frame


def check_few(groups: Groups) -> None:
    """Refuse more groups than a front can be made for."""
    if len(groups) > MOST_GROUPS:
        raise CommandError(
            f"--sensitive makes {len(groups):,} groups where the columns cross, but a front is "
            f"made for at most {MOST_GROUPS}: name fewer columns, or merge levels."
        )


def describe_groups(groups: Groups) -> str:
    """Attributes with their levels, and the smallest group."""
    sizes = [
        f"{shown(name, 30)} ({len(levels):,})"
        for name, levels in zip(groups.attributes, groups.levels, strict=True)
    ]
    smallest = int(groups.counts.argmin())
    rows = groups.counts[smallest]
    return (
        f"{' x '.join(sizes)}: {len(groups):,} groups, the smallest has {rows:,} "
        f"{'row' if rows == 1 else 'rows'} ({shown(groups.names[smallest], 60)})"
    )


def _cut(column: pd.Series, cuts: Sequence[float]) -> pd.Series:
    import numpy as np
    import pandas as pd

    if getattr(column.dtype, "kind", "O") not in "iuf":
        raise CommandError(f"--bins needs numbers, but '{shown(column.name)}' holds text.")
    marks = [f"{cut:g}" for cut in cuts]
    names = [f"under {marks[0]}"]
    names += [f"{low} up to {high}" for low, high in pairwise(marks)]
    names += [f"{marks[-1]} and over"]
    places = np.searchsorted(cuts, column.to_numpy(float), side="right")
    cut = pd.Series(pd.Categorical.from_codes(places, names), index=column.index, name=column.name)
    return cut.where(column.notna())


def _too_many(name: str, column: pd.Series, levels: int, most: int) -> str:
    said = f"--sensitive {shown(name)} has {levels:,} levels; at most {most} can be compared"
    if getattr(column.dtype, "kind", "O") not in "iuf":
        return f"{said}. Is it an identifier? Merge levels, or take another column."
    return f"{said}. Put its numbers into bins, for instance {bins_for(column)}"


def bins_for(column: pd.Series) -> str:
    """The option that would cut numbers into three parts, at round numbers."""
    cuts = [float(f"{column.quantile(q):.2g}") for q in (1 / 3, 2 / 3)]
    return f"--bins {shown(column.name)}={','.join(f'{cut:.10g}' for cut in dict.fromkeys(cuts))}"
