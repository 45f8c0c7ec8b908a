"""Groupings of an audit, the groups that a page shows of each, and how their names are written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from apfex.auditing import Audit, groupings_of
from apfex.groups import grouping_name
from apfex.report._rates import Rates

_MOST_NUMBERS = 240_000
"""Rates and ends of intervals in one description: about 2 MB on a page."""
_FEWEST_SHOWN = 20
_MISSING = "<missing>"
"""As in the names of groups; a text that says so is quoted."""


@final
@dataclass(frozen=True, eq=False)
class Grouping:
    """Groups of some of the attributes, in the order of the audit."""

    attributes: tuple[str, ...]
    names: tuple[str, ...]
    values: tuple[tuple[str, ...], ...]
    """The value of each attribute, as it is shown."""
    rows: np.ndarray

    @property
    def by(self) -> str:
        """Its name, as in the tables of an audit."""
        return grouping_name(self.attributes)


def read_groupings(audit: Audit) -> list[Grouping]:
    """Each attribute, each pair, the crossing; the crossing is the last."""
    counted = [audit.counts.by(attributes) for attributes in groupings_of(audit.attributes)]
    return [
        Grouping(
            one.groups.attributes,
            one.names,
            tuple(tuple(map(shown_value, values)) for values in one.groups.values),
            one.sizes,
        )
        for one in counted
    ]


def shown_value(value: str | None) -> str:
    """A value of an attribute as people write it, quoted only where it would be ambiguous.

    No two values of an attribute are shown alike; None, a missing value, is ``<missing>``.
    """
    if value is None:
        return _MISSING
    is_unclear = value in ("", _MISSING) or value != value.strip() or value.startswith("“")
    return f"“{value}”" if is_unclear or "," in value or "=" in value else value


def names_within(described: Any, groupings: Sequence[Grouping]) -> dict[str, str]:
    """Names of groups in a description that a page shows otherwise, and how.

    Tables of an audit quote values so that names differ; a page shows ``race=O'Neil``.
    """
    shown = {
        name: ", ".join(map("=".join, zip(grouping.attributes, values, strict=True)))
        for grouping in groupings
        for name, values in zip(grouping.names, grouping.values, strict=True)
    }
    used = {text for text in _texts(described) if shown.get(text, text) != text}
    return {name: shown[name] for name in sorted(used)}


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list):
        for part in value.values() if isinstance(value, Mapping) else value:
            yield from _texts(part)


def shown_groups(
    groupings: Sequence[Grouping],
    points: Sequence[Rates],
    keys: Sequence[str],
    gaps: Sequence[Mapping[str, Any]],
) -> dict[str, np.ndarray]:
    """Places of the groups of each grouping that a page shows: all, or those worst off somewhere.

    Parameters
    ----------
    points : rates of each point
    keys : sequence of str
        Rates that are kept; the first one says who is worst off.
    gaps : gaps of all points, as described
        The groups that make a gap are always shown.
    """
    room = _MOST_NUMBERS // (3 * len(keys) * len(points))
    limits = _share_out([len(grouping.names) for grouping in groupings], room)
    ends = {(gap["by"], end["group"]) for gap in gaps for end in gap["ends"]}
    shown = {}
    for grouping, limit in zip(groupings, limits, strict=True):
        uppers = [rates[keys[0], grouping.by].upper for rates in points]
        worst = np.where(np.isnan(uppers), np.inf, uppers).min(0)
        worst[[(grouping.by, name) in ends for name in grouping.names]] = -np.inf
        shown[grouping.by] = np.sort(np.argsort(worst, kind="stable")[:limit])
    return shown


def _share_out(sizes: Sequence[int], room: int) -> list[int]:
    """Small groupings whole, the rest in equal parts."""
    limits = [0] * len(sizes)
    for left, place in enumerate(sorted(range(len(sizes)), key=sizes.__getitem__)):
        part = max(_FEWEST_SHOWN, (room - sum(limits)) // (len(sizes) - left))
        limits[place] = min(sizes[place], part)
    return limits


def describe_groupings(
    groupings: Sequence[Grouping], shown: Mapping[str, np.ndarray]
) -> list[dict[str, Any]]:
    """Groupings as plain values; ``left_out`` counts groups that are not shown.

    ``values`` are those of the attributes, as they are shown.
    """
    return [
        {
            "by": grouping.by,
            "attributes": list(grouping.attributes),
            "groups": [
                {
                    "name": grouping.names[g],
                    "values": grouping.values[g],
                    "rows": grouping.rows[g],
                }
                for g in shown[grouping.by].tolist()
            ],
            "left_out": len(grouping.names) - len(shown[grouping.by]),
        }
        for grouping in groupings
    ]
