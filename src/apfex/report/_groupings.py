"""Levels of an audit, the groups that a page shows of them, and their rates as columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from apfex.auditing import Audit, groupings_of
from apfex.groups import grouping_name
from apfex.report._names import shown_name, shown_values
from apfex.report._rates import rate_key

_MOST_NUMBERS = 240_000
"""Rates and ends of intervals in one description: about 2 MB on a page."""
_FEWEST_SHOWN = 20


@final
@dataclass(frozen=True, eq=False)
class Level:
    """Groups of some of the attributes, in the order of the audit."""

    by: str
    attributes: tuple[str, ...]
    names: tuple[str, ...]
    values: tuple[tuple[str, ...], ...]
    """The value of each attribute, as it is shown."""
    rows: np.ndarray


def levels_of(audit: Audit) -> list[Level]:
    """Each attribute, each pair, the crossing; the crossing is the last."""
    groups: Any = audit.groups
    groups = _one_class(groups[groups["of"] == groups["of"].iloc[0]])
    found: list[Level] = []
    for attributes in groupings_of(audit.attributes):
        by = grouping_name(attributes)
        part = groups[groups["by"] == by]
        names = tuple(part["group"])
        values = tuple(shown_values(name, attributes) for name in names)
        found.append(Level(by, attributes, names, values, part["count"].to_numpy()))
    return found


def shown_names(levels: Sequence[Level]) -> dict[str, str]:
    """Names of all groups, and how a page shows them."""
    return {
        name: shown_name(level.attributes, values)
        for level in levels
        for name, values in zip(level.names, level.values, strict=True)
    }


@final
@dataclass(frozen=True, eq=False)
class RateColumn:
    """One rate of the groups of a level, shape [k] each."""

    rate: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    enough: np.ndarray
    """Whether as many rows count as a gap asks for."""

    def take(self, kept: np.ndarray) -> dict[str, Any]:
        """Some of the groups, as plain columns; ``few`` are the places with too few rows."""
        return {
            "rate": self.rate[kept],
            "lower": self.lower[kept],
            "upper": self.upper[kept],
            "few": np.flatnonzero(~self.enough[kept]),
        }


Rates = dict[tuple[str, str | None], RateColumn]
"""By key of the rate and name of the level; None is the level of all rows together."""


def rates_of(audit: Audit, *, min_count: float | None = None) -> Rates:
    """Rates of all groups; ``min_count`` where the audit had another one."""
    found: Rates = {}
    frames: list[Any] = [audit.overall, audit.groups]
    for frame in frames:
        for (by, of), part in frame.groupby(["by", "of"], sort=False):
            level = None if frame is audit.overall else by
            for place, label in enumerate(classes_of(part) or [None]):
                own = part if label is None else part[part["class"] == label]
                key = rate_key(of, None if label is None else place)
                found[key, level] = _column(own, min_count)
    return found


def _column(frame: Any, min_count: float | None) -> RateColumn:
    rate, lower, upper = (frame[name].to_numpy(float) for name in ("rate", "lower", "upper"))
    enough = frame["in_gap"].to_numpy(bool)
    if min_count is not None:
        enough = frame["effective"].to_numpy(float) >= min_count
    return RateColumn(rate, lower, upper, enough)


def classes_of(groups: Any) -> list[Any]:
    """The classes in a table of rates, where there are more than two."""
    return list(dict.fromkeys(groups["class"].dropna())) if "class" in groups else []


def _one_class(groups: Any) -> Any:
    classes = classes_of(groups)
    return groups[groups["class"] == classes[0]] if classes else groups


def ends_of(audit: Audit) -> set[tuple[str, str]]:
    """Level and name of every group that makes a gap."""
    found: set[tuple[str, str]] = set()
    for criterion, by in audit.gaps[["criterion", "by"]].to_numpy().tolist():
        found |= {(by, name) for name in audit.ends(criterion, by)["group"]}
    return found


def shown_groups(
    levels: Sequence[Level], favored: Sequence[Rates], n_rates: int, ends: set[tuple[str, str]]
) -> dict[str, np.ndarray]:
    """Places of the groups of each level that a page shows: all, or those worst off somewhere.

    Parameters
    ----------
    favored : rates with the key ``favored``, one for each point
    n_rates : int
        Rates that are kept of each group and point.
    ends : set of (level, group)
        Groups that make a gap at some point; they are always shown.
    """
    room = _MOST_NUMBERS // (3 * n_rates * len(favored))
    limits = _share_out([len(level.names) for level in levels], room)
    shown = {}
    for level, limit in zip(levels, limits, strict=True):
        uppers = [rates["favored", level.by].upper for rates in favored]
        worst = np.where(np.isnan(uppers), np.inf, uppers).min(0)
        worst[[(level.by, name) in ends for name in level.names]] = -np.inf
        shown[level.by] = np.sort(np.argsort(worst, kind="stable")[:limit])
    return shown


def _share_out(sizes: Sequence[int], room: int) -> list[int]:
    """Small levels whole, the rest in equal parts."""
    limits = [0] * len(sizes)
    for left, place in enumerate(sorted(range(len(sizes)), key=sizes.__getitem__)):
        part = max(_FEWEST_SHOWN, (room - sum(limits)) // (len(sizes) - left))
        limits[place] = min(sizes[place], part)
    return limits


def describe_levels(levels: Sequence[Level], shown: dict[str, np.ndarray]) -> list[dict[str, Any]]:
    """Levels as plain values; ``left_out`` counts groups that are not shown.

    ``values`` are for maps of one attribute or two, and null where there are more.
    """
    return [
        {
            "by": level.by,
            "attributes": list(level.attributes),
            "groups": [
                {
                    "name": level.names[g],
                    "values": level.values[g] if len(level.attributes) <= 2 else None,
                    "rows": level.rows[g],
                }
                for g in shown[level.by].tolist()
            ],
            "left_out": len(level.names) - len(shown[level.by]),
        }
        for level in levels
    ]


def describe_rates(
    rates: Rates, keys: Sequence[str], shown: dict[str, np.ndarray]
) -> dict[str, Any]:
    """``{key: {"overall": column, "levels": {by: column}}}`` of the groups that are shown."""
    return {
        key: {
            "overall": rates[key, None].take(np.zeros(1, dtype=np.int64)),
            "levels": {by: rates[key, by].take(kept) for by, kept in shown.items()},
        }
        for key in keys
    }
