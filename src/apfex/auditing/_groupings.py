"""Groupings of an audit: each attribute, each pair, the full crossing."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from apfex.groups import Groups

MOST_GROUPS = 100_000
"""Cells beyond which an audit refuses: names and tables would be all that it does."""


def groupings_of(attributes: Sequence[str]) -> list[tuple[str, ...]]:
    """The attributes of every grouping of an audit; the full crossing is the last.

    Examples
    --------
    >>> groupings_of(("sex", "race"))
    [('sex',), ('race',), ('sex', 'race')]
    """
    q = len(attributes)
    sizes = sorted({1, min(2, q), q})
    return [subset for size in sizes for subset in combinations(attributes, size)]


def check_size(groups: Groups) -> None:
    """Refuse more groups than anybody can look at."""
    if len(groups) > MOST_GROUPS:
        sizes = zip(groups.attributes, groups.levels, strict=True)
        name, levels = max(sizes, key=lambda pair: len(pair[1]))
        raise ValueError(
            f"sensitive_features must form at most {MOST_GROUPS:,} groups, got {len(groups):,}; "
            f"the attribute {name!r} alone has {len(levels):,} levels: is it an identifier or a "
            "number? Put it into bins, merge levels or leave it out."
        )
