"""Whether the parts of a stored audit agree: one that was edited by hand is not shown."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from apfex.auditing._settings import groupings_of
from apfex.auditing._verdicts import VERDICTS, verdict_of
from apfex.groups import grouping_name

if TYPE_CHECKING:
    from apfex.auditing._result import Audit

_CLOSE = 1e-6
_SHARES = {
    "gaps_within": ("gap", "lower", "upper", "lowest_rate", "highest_rate"),
    "calibration": ("mean_score", "observed", "lower", "upper"),
    "thresholds": ("gap", "lowest_rate", "highest_rate"),
}
"""Columns of tables that hold shares, from 0 to 1."""
_ENDS = {
    "gaps_within": ("lowest_rate", "highest_rate"),
    "metric_gaps": ("lowest_value", "highest_value"),
    "thresholds": ("lowest_rate", "highest_rate"),
}
"""Columns of tables whose difference is the gap."""
_FOLLOWS = {
    "gaps": (("criterion", "by"), "gap"),
    "overall": (("of", "count"), "rate"),
    "groups": (("by", "group", "of", "count"), "rate"),
}
"""Tables that follow from the counts: columns that are the same, and a number that is close."""
_OPPOSED = {"violation", "within tolerance"}


def check_agreement(content: Mapping[str, Any], found: Audit) -> None:
    """Refuse an audit whose parts say different things.

    Its gaps and groups follow from its counts, so that they are computed anew; what is stored of
    them is compared, as somebody may read it there. Verdicts are as close as versions of numpy
    leave them: those that oppose each other are refused. What only rows could tell must be
    possible, and of the groups that the counts are of.

    Parameters
    ----------
    content : mapping
        What the file holds.
    found : Audit
        Made from its counts, with its own tables.
    """
    counts = found.counts
    if not counts.n_rows:
        raise ValueError("its counts are of no rows")
    if counts.classes and counts.classes[counts.favorable] != found.settings.favorable_label:
        raise ValueError("its counts and its settings name different favorable labels")
    for name, told in (("n_rows", found.n_rows), ("attributes", list(found.attributes))):
        _require(content[name] == told, f"{name} is {content[name]!r}, its counts say {told!r}")
    for name, (same, number) in _FOLLOWS.items():
        _check_same(name, content[name], _rows(found, name), same, number)
    for place, (one, row) in enumerate(zip(content["gaps"], _rows(found, "gaps"), strict=True)):
        _check_verdicts(f"gaps[{place}]", one["verdict"], row["verdict"])
    for name, shares in _SHARES.items():
        _check_shares(name, _rows(found, name), shares)
    for name, ends in _ENDS.items():
        _check_ends(name, _rows(found, name), ends)
    _check_within(_rows(found, "gaps_within"), found)
    _check_counts(_rows(found, "metrics"), _rows(found, "calibration"), found)
    _check_verdicts("summary", content["summary"]["verdict"], found.summary.verdict)


def _check_same(
    name: str,
    stored: Sequence[Mapping[str, Any]],
    told: Sequence[Mapping[Any, Any]],
    same: Sequence[str],
    number: str,
) -> None:
    _require(len(stored) == len(told), f"{name} has {len(stored)} rows, its counts {len(told)}")
    for place, (one, row) in enumerate(zip(stored, told, strict=True)):
        for column in same:
            said = f"{name}[{place}].{column} is {one[column]!r}, its counts say {row[column]!r}"
            _require(one[column] == row[column], said)
        value, own = one[number], row[number]
        fine = math.isnan(own) if value is None else abs(value - own) <= _CLOSE
        _require(fine, f"{name}[{place}].{number} is {value}, its counts say {own:.6g}")


def _check_verdicts(where: str, stored: str, told: str) -> None:
    if stored not in VERDICTS or {stored, told} == _OPPOSED:
        raise ValueError(f"{where} says {stored!r}, its counts say {told!r}")


def _rows(found: Audit, name: str) -> list[dict[Any, Any]]:
    frame: pd.DataFrame | None = getattr(found, name)
    return [] if frame is None else frame.to_dict("records")


def _check_shares(name: str, rows: Sequence[Mapping[Any, Any]], shares: Sequence[str]) -> None:
    for place, row in enumerate(rows):
        for column in shares:
            value = row[column]
            fine = math.isnan(value) or -_CLOSE <= value <= 1 + _CLOSE
            _require(fine, f"{name}[{place}].{column} is {value}, no share")


def _check_ends(name: str, rows: Sequence[Mapping[Any, Any]], ends: Sequence[str]) -> None:
    for place, row in enumerate(rows):
        low, high = (row[column] for column in ends)
        if math.isnan(row["gap"]):
            continue
        spare = _CLOSE * max(1.0, abs(low), abs(high))
        fine = abs(high - low - row["gap"]) <= spare
        _require(fine, f"{name}[{place}].gap is {row['gap']}, between {low} and {high}")


def _check_within(rows: Sequence[Mapping[Any, Any]], found: Audit) -> None:
    for place, row in enumerate(rows):
        where = f"gaps_within[{place}]"
        told = verdict_of(row["lower"], row["upper"], found.settings.tolerance)
        fine = row["verdict"] == told
        _require(fine, f"{where} says {row['verdict']!r}, its interval says {told!r}")
        fine = 0 <= row["groups_compared"] <= row["groups"] and 0 <= row["count"] <= found.n_rows
        _require(fine, f"{where} has more groups or rows than there are")


def _check_counts(
    metrics: Sequence[Mapping[Any, Any]], bins: Sequence[Mapping[Any, Any]], found: Audit
) -> None:
    """Rows of groups are those of the counts."""
    sizes = {("overall", "all rows"): found.n_rows}
    for attributes in groupings_of(found.attributes) if metrics or bins else ():
        own = found.counts.by(attributes)
        by = grouping_name(attributes)
        sizes |= {(by, name): int(n) for name, n in zip(own.names, own.sizes, strict=True)}
    for name, rows in (("metrics", metrics), ("calibration", bins)):
        for place, row in enumerate(rows):
            n = sizes.get((row["by"], row["group"]))
            fine = n is not None and (row["count"] == n if name == "metrics" else row["count"] <= n)
            _require(fine, f"{name}[{place}] has {row['count']} rows of {row['group']}, not {n}")


def _require(fine: bool, said: str) -> None:
    if not fine:
        raise ValueError(said)
