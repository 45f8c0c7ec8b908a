"""The description that pages are drawn from: what fronts and audits share, and its check."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from types import NoneType
from typing import Any, final

import numpy as np

from apfex.auditing import VERDICTS, Audit, verdict_of
from apfex.plain import jsonable
from apfex.report._caveats import Caveat
from apfex.report._constant import Gain
from apfex.report._groupings import (
    Grouping,
    describe_groupings,
    names_within,
    read_groupings,
    shown_groups,
)
from apfex.report._rates import Rates, describe_criteria, describe_rates, list_rates

FRONT, AUDIT, SCHEMA_VERSION = "apfex.front", "apfex.audit-page", 2


@final
@dataclass(frozen=True, eq=False)
class Shown:
    """What a page shows of decisions: rates, and the places of groups of each grouping.

    ``labels`` are the words of the classes; of an audit of two classes they are not known.
    """

    favorable: str
    labels: Sequence[str]
    groupings: list[Grouping]
    groups: dict[str, np.ndarray]
    rates: list[dict[str, Any]]

    @staticmethod
    def of(
        audits: Sequence[Audit], rates: Sequence[Rates], favorable: str, labels: Sequence[str]
    ) -> Shown:
        """What fits, of the audits of one or more points and their rates."""
        listed = list_rates(audits[0], rates[0], favorable, labels)
        groupings = read_groupings(audits[0])
        gaps = [gap for audit in audits for gap in describe_gaps(audit)]
        groups = shown_groups(groupings, rates, [rate["key"] for rate in listed], gaps)
        return Shown(favorable, labels, groupings, groups, listed)


def describe(
    kind: str,
    audit: Audit,
    shown: Shown,
    points: list[dict[str, Any]],
    parts: Mapping[str, Any],
    settings: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """A whole description, as plain values.

    Parameters
    ----------
    kind : str
        ``FRONT`` or ``AUDIT``.
    audit : Audit
        Of any point: rows, groups and settings are the same.
    points : list
        From :func:`describe_decisions`, with what else is told of each.
    parts, settings : mapping
        All that is of this kind alone, and title, source and command.
    """
    limits = ("tolerance", "confidence", "min_count")
    described = jsonable(
        {
            "kind": kind,
            "schema_version": SCHEMA_VERSION,
            "rows": audit.n_rows,
            "groups": audit.n_groups,
            "weighted": audit.is_approximate,
            "settings": {name: getattr(audit.settings, name) for name in limits}
            | dict(settings or {}),
            "favorable": shown.favorable,
            "criteria": describe_criteria(audit, shown.favorable),
            "rates": shown.rates,
            "groupings": describe_groupings(shown.groupings, shown.groups),
            "chosen": 0,
            "baseline": 0,
            "points": points,
            **parts,
        }
    )
    return described | {"names": names_within(described, shown.groupings)}


def describe_decisions(
    audit: Audit,
    rates: Rates,
    shown: Shown,
    caveats: Sequence[Caveat],
    gain: Gain | None,
) -> dict[str, Any]:
    """What a page shows of any decisions, of a point or of another model."""
    return {
        "share_favored": audit.share_favored,
        "gain": None if gain is None else gain.size,
        "gain_share": None if gain is None else gain.share,
        "near_constant": gain is not None and gain.near_constant,
        "gaps": describe_gaps(audit),
        "rates": describe_rates(rates, [rate["key"] for rate in shown.rates], shown.groups),
        "caveats": [asdict(caveat) for caveat in caveats],
    }


def describe_gaps(audit: Audit) -> list[dict[str, Any]]:
    """Gaps of every criterion and grouping, with the two groups that make each."""
    return [
        {**row, "ends": audit.ends(row["criterion"], row["by"]).to_dict("records")}
        for row in audit.gaps.to_dict("records")
    ]


_NUMBER = (int, float, NoneType)
_TEXT = (str, NoneType)
_GAP = {
    **dict.fromkeys(("criterion", "by", "verdict"), str),
    **dict.fromkeys(("gap", "lower", "upper", "noise_floor", "p_adjusted"), _NUMBER),
    "ends": [{"group": str, "rate": _NUMBER}],
    **dict.fromkeys(("groups_compared", "groups"), int),
}
_COLUMN = {"rate": [_NUMBER], "lower": [_NUMBER], "upper": [_NUMBER], "few": [int]}
_CHANGE = {
    "gained": [_NUMBER],
    "lost": [_NUMBER],
    "net_share": [_NUMBER],
    "direction": [_NUMBER],
}
_CAVEAT = {"code": str, "level": str, "text": str, "data": Mapping}
_DECISION = {"point": (int, NoneType), "name": str, "date": str, "reason": str}
_POINT = {
    "point": int,
    **dict.fromkeys(("share_favored", "gain", "gain_share"), _NUMBER),
    "near_constant": bool,
    "summary": {"headline": str, "parts": [{"title": str, "text": list}]},
    "gaps": [_GAP],
    "rates": Mapping,
    "caveats": [_CAVEAT],
}
_POINT_OF_FRONT = {
    **dict.fromkeys(("error", "error_lower", "error_upper", "balanced_error"), _NUMBER),
    "trivial": bool,
    "levelled_down": [str],
    "tally": dict.fromkeys(("gained", "lost", "groups_gain", "groups_lose", "groups_same"), int),
    "changes": Mapping,
    "validation": {"error": _NUMBER, "gaps": Mapping},
}
_POINT_OF_AUDIT = {
    "worst": [
        {
            "group": str,
            **dict.fromkeys(("count", "favored", "lower", "upper", "difference"), _NUMBER),
        }
    ]
}
_PAGE = {
    "title": str,
    **dict.fromkeys(("source", "command"), _TEXT),
    **dict.fromkeys(("rows", "groups"), _NUMBER),
    "settings": dict.fromkeys(("tolerance", "confidence", "min_count"), (int, float)),
    "favorable": str,
    "criteria": [dict.fromkeys(("key", "title", "also", "text"), str)],
    "rates": [dict.fromkeys(("key", "title", "text"), str)],
    "groupings": [
        {
            "by": str,
            "attributes": [str],
            "groups": [{"name": str, "values": [str], "rows": _NUMBER}],
            "left_out": int,
        }
    ],
    "chosen": int,
    "baseline": int,
}
_HISTORY = {
    "objectives": [str],
    "members": [
        {
            "step": [_NUMBER],
            "direction_norm": [_NUMBER],
            "losses": [[_NUMBER]],
            "weights": [[_NUMBER]],
        }
    ],
}
_AUDIT_ONLY = {
    "thresholds": (list, NoneType),
    "plan": [{"criterion": str, "by": str, "more_rows": _NUMBER, "groups": [{"group": str}]}],
}


def check_described(described: Mapping[str, Any], *, is_front: bool) -> None:
    """Refuse what a page could not show, by the name of the part."""
    point = {**_POINT, **(_POINT_OF_FRONT if is_front else _POINT_OF_AUDIT)}
    _check(described, {**_PAGE, "points": [point]}, "")
    _check(described, {} if is_front else _AUDIT_ONLY, "")
    if described.get("history") is not None:
        _check(described["history"], _HISTORY, "history")
    if described.get("decision") is not None:
        _check(described["decision"], _DECISION, "decision")
    if described.get("names") is not None:
        _check(described["names"], dict.fromkeys(described["names"], str), "names")
    for name in ("criteria", "rates", "groupings", "points"):
        _require(len(described[name]) > 0, name, "not be empty", described[name])
    for name in ("chosen", "baseline"):
        places = range(len(described["points"]))
        _require(described[name] in places, name, "be the place of a point", described[name])
    for place, one in enumerate(described["points"]):
        where = f"points[{place}]"
        _require(one["point"] == place, f"{where}.point", f"be {place}", one["point"])
        _check_gaps(one["gaps"], described, f"{where}.gaps")
        _check_rates(one["rates"], described, is_front, f"{where}.rates")
        for number, caveat in enumerate(one["caveats"]):
            groups = caveat["data"].get("groups", [])
            _check(groups, [str], f"{where}.caveats[{number}].data.groups")
        if is_front:
            _check_changes(one["changes"], described, f"{where}.changes")
            gaps, number = one["validation"]["gaps"], {"gap": _NUMBER}
            _check(gaps, dict.fromkeys(gaps, number), f"{where}.validation.gaps")


def _check_gaps(gaps: list[Any], described: Mapping[str, Any], where: str) -> None:
    found = {(gap["criterion"], gap["by"]) for gap in gaps}
    for criterion in described["criteria"]:
        for grouping in described["groupings"]:
            wanted = (criterion["key"], grouping["by"])
            _require(wanted in found, where, f"have {wanted[0]!r} by {wanted[1]!r}", sorted(found))
    for place, gap in enumerate(gaps):
        own = f"{where}[{place}]"
        known = gap["verdict"] in VERDICTS
        _require(known, f"{own}.verdict", f"be one of {VERDICTS}", gap["verdict"])
        low, high = (math.nan if gap[end] is None else gap[end] for end in ("lower", "upper"))
        told = verdict_of(low, high, described["settings"]["tolerance"])
        fine = gap["verdict"] == told
        _require(fine, f"{own}.verdict", f"be {told!r} by its ends", gap["verdict"])
        for name in ("gap", "lower", "upper"):
            _require(_is_share(gap[name]), f"{own}.{name}", "be a share", gap[name])
        _require(len(gap["ends"]) in (0, 2), f"{own}.ends", "name two groups", gap["ends"])


def _check_rates(
    rates: Mapping[str, Any], described: Mapping[str, Any], is_front: bool, where: str
) -> None:
    keys = [rate["key"] for rate in described["rates"]]
    for key in dict.fromkeys([*keys, "favored"] if is_front else keys):
        _check(rates, {key: {"overall": {"rate": [_NUMBER]}, "groupings": Mapping}}, where)
        own = f"{where}.{key}"
        _require(len(rates[key]["overall"]["rate"]) == 1, f"{own}.overall.rate", "be one", rates)
        _check_columns(rates[key]["groupings"], _COLUMN, described, f"{own}.groupings")
        for part in (rates[key]["overall"], *rates[key]["groupings"].values()):
            for name in ("rate", "lower", "upper"):
                fine = all(map(_is_share, part.get(name, ())))
                _require(fine, f"{own}.{name}", "be shares", part.get(name))


def _is_share(value: float | None) -> bool:
    return value is None or math.isnan(value) or -1e-9 <= value <= 1 + 1e-9


def _check_changes(changes: Mapping[str, Any], described: Mapping[str, Any], where: str) -> None:
    _check_columns(changes, _CHANGE, described, where)
    for by, change in changes.items():
        fine = set(change["direction"]) <= {-1, 0, 1}
        _require(fine, f"{where}.{by}.direction", "be -1, 0 or 1", change["direction"])


def _check_columns(
    columns: Mapping[str, Any], schema: Mapping[str, Any], described: Mapping[str, Any], where: str
) -> None:
    """A column has a number for every group of its grouping."""
    for grouping in described["groupings"]:
        by, size = grouping["by"], len(grouping["groups"])
        _check(columns, {by: schema}, where)
        for name in schema.keys() - {"few"}:
            own = columns[by][name]
            _require(len(own) == size, f"{where}.{by}.{name}", f"have {size} numbers", own)


def _check(value: Any, schema: Any, where: str) -> None:
    """A mapping with these parts, a list of such parts, or one of these types."""
    if isinstance(schema, Mapping):
        _require(isinstance(value, Mapping), where or "described", "be a mapping", value)
        for key, part in schema.items():
            own = f"{where}.{key}" if where else key
            _require(key in value, own, "be there", "nothing")
            _check(value[key], part, own)
    elif isinstance(schema, list):
        _require(isinstance(value, list), where, "be a list", value)
        for place, part in enumerate(value):
            _check(part, schema[0], f"{where}[{place}]")
    else:
        _require(isinstance(value, schema), where, f"be {_named(schema)}", value)


def _named(kinds: Any) -> str:
    each: Iterable[type] = kinds if isinstance(kinds, tuple) else (kinds,)
    words = {str: "text", int: "a whole number", float: "a number", NoneType: "null"}
    words |= {bool: "true or false", Mapping: "a mapping", list: "a list"}
    return " or ".join(words[kind] for kind in each if not (kind is int and float in each))


def _require(fine: bool, where: str, rule: str, found: Any) -> None:
    if fine:
        return
    text = found if found == "nothing" else repr(found)
    short = text if len(text) <= 60 else f"{text[:59]}…"
    raise ValueError(
        f"described must be whole, as from describe_front: {where} must {rule}, got {short}. "
        "Nothing was written; describe the front again."
    )
