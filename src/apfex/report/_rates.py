"""Rates of groups as columns, and criteria and rates in words that a review board knows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from apfex.auditing import Audit
from apfex.metrics import TITLES

_TITLES = {**TITLES, "favored": "Favorable decisions"}
_TEXTS = {
    "dp": "share of a group that is decided {label}",
    "tpr": "of those who are {label}, the share that is decided so",
    "fpr": "of those who are not {label}, the share that is decided {label}",
    "tnr": "of those who are not {label}, the share that is decided so",
    "fnr": "of those who are {label}, the share that is not decided so",
    "ppv": "of those decided {label}, the share that is so",
    "npv": "of those not decided {label}, the share that is not so",
    "accuracy": "share of a group that is decided rightly",
    "equalized_odds": "the larger of the gaps in true and in false positive rates",
    "favored": "share of a group that gets the favorable label, {label}",
}
_ALSO = {"dp": "demographic parity", "tpr": "equal opportunity"}


@final
@dataclass(frozen=True, eq=False)
class RateColumn:
    """One rate of the groups of a grouping, shape [k] each."""

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
"""By key of the rate and name of the grouping; None is that of all rows together."""


def rates_of(audit: Audit, *, min_count: float | None = None) -> Rates:
    """Rates of all groups; ``min_count`` where the audit had another one.

    Where the audit has selection rates, that of the favorable label is there as ``favored``.
    """
    found: Rates = {}
    frames: list[Any] = [audit.overall, audit.groups]
    for frame in frames:
        for (by, of), part in frame.groupby(["by", "of"], sort=False):
            grouping = None if frame is audit.overall else by
            is_split = "class" in part and part["class"].notna().any()
            for place, label in enumerate(audit.counts.classes if is_split else [None]):
                own = part[part["class"] == label] if is_split else part
                key = _key(of, place if is_split else None)
                found[key, grouping] = _column(own, min_count)
    source = _favorable_key(audit)
    return found | {("favored", by): column for (key, by), column in found.items() if key == source}


def _column(frame: Any, min_count: float | None) -> RateColumn:
    rate, lower, upper = (frame[name].to_numpy(float) for name in ("rate", "lower", "upper"))
    enough = frame["in_gap"].to_numpy(bool)
    if min_count is not None:
        enough = frame["effective"].to_numpy(float) >= min_count
    return RateColumn(rate, lower, upper, enough)


def _key(of: str, place: int | None) -> str:
    """Name of a rate in the description; with several classes their places tell them apart."""
    return of if place is None else f"{of}:{place}"


def _favorable_key(audit: Audit) -> str:
    """The selection rate that is the share of favorable decisions."""
    return _key("dp", audit.counts.favorable if audit.counts.classes else None)


def describe_rates(
    rates: Rates, keys: Sequence[str], shown: Mapping[str, np.ndarray]
) -> dict[str, Any]:
    """``{key: {"overall": column, "groupings": {by: column}}}`` of the groups that are shown."""
    return {
        key: {
            "overall": rates[key, None].take(np.zeros(1, dtype=np.int64)),
            "groupings": {by: rates[key, by].take(kept) for by, kept in shown.items()},
        }
        for key in keys
    }


def list_rates(
    audit: Audit, rates: Rates, favorable: str, labels: Sequence[str]
) -> list[dict[str, Any]]:
    """Rates that a page can show, in words: that of the favorable label first, none twice.

    ``labels`` are the words of several classes; of two, all rates are of the favorable one.
    """
    keys = dict.fromkeys(key for key, _ in rates if key != _favorable_key(audit))
    found = []
    for key in sorted(keys, key=lambda key: key != "favored"):
        of, _, place = key.partition(":")
        label = labels[int(place)] if place else favorable
        title = f"{title_of(of)}: {label}" if place else title_of(of)
        found.append({"key": key, "of": of, "title": title, "text": _text(of, f"“{label}”")})
    return found


def describe_criteria(audit: Audit, favorable: str) -> list[dict[str, Any]]:
    """Criteria of an audit, in words."""
    found = []
    for name in audit.settings.criteria:
        text = _text(name, f"“{favorable}”")
        if audit.counts.classes:
            text = _text(name, "a label")
            text += "" if name == "accuracy" else " (the label with the largest gap counts)"
        also = _ALSO.get(name, "")
        found.append({"key": name, "title": title_of(name), "also": also, "text": text})
    return found


def labels_in_words(classes: np.ndarray, words: Mapping[Any, str] | None) -> list[str]:
    """Labels as they are to be shown."""
    known, words = classes.tolist(), {} if words is None else words
    strange = [label for label in words if label not in known]
    if strange:
        raise ValueError(f"words must be of the labels {known}, got {strange}.")
    found = [str(words.get(label, label)) for label in known]
    if len(set(found)) < len(found):
        raise ValueError(f"words must tell the labels {known} apart, got {found}.")
    return found


def title_of(name: str) -> str:
    """A criterion or rate in a few words."""
    return _TITLES[name]


def _text(name: str, label: str) -> str:
    return _TEXTS[name].format(label=label)
