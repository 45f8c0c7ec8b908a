"""Whether a description has all that a page reads of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import NoneType
from typing import Any

from apfex.auditing import VERDICTS

_NUMBER = (int, float, NoneType)
_TEXT = (str, NoneType)
_GAP = {
    **dict.fromkeys(("criterion", "by", "verdict"), str),
    **dict.fromkeys(("gap", "lower", "upper", "noise_floor", "p_adjusted"), _NUMBER),
    "ends": [{"group": str, "rate": _NUMBER}],
}
_COLUMN = {"rate": [_NUMBER], "lower": [_NUMBER], "upper": [_NUMBER], "few": [int]}
_CHANGE = {
    "gained": [_NUMBER],
    "lost": [_NUMBER],
    "net_share": [_NUMBER],
    "direction": [_NUMBER],
}
_POINT = {
    "point": int,
    "share_favored": _NUMBER,
    "gaps": [_GAP],
    "rates": Mapping,
    "doubts": [{"kind": str, "text": str, "groups": [str]}],
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
_WHOLE = {
    "title": str,
    **dict.fromkeys(("source", "command"), _TEXT),
    **dict.fromkeys(("rows", "groups"), _NUMBER),
    "settings": dict.fromkeys(("tolerance", "confidence", "min_count"), (int, float)),
    "favorable": str,
    "criteria": [dict.fromkeys(("key", "title", "also", "text"), str)],
    "rates": [dict.fromkeys(("key", "title", "text"), str)],
    "levels": [
        {
            "by": str,
            "attributes": [str],
            "groups": [{"name": str, "values": (list, NoneType), "rows": _NUMBER}],
            "left_out": int,
        }
    ],
    "chosen": int,
    "baseline": int,
}
_TIMELINE = {
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
    _check(described, {**_WHOLE, "points": [point]}, "")
    _check(described, {} if is_front else _AUDIT_ONLY, "")
    if described.get("timeline") is not None:
        _check(described["timeline"], _TIMELINE, "timeline")
    if described.get("names") is not None:
        _check(described["names"], dict.fromkeys(described["names"], str), "names")
    for name in ("criteria", "rates", "levels", "points"):
        _require(len(described[name]) > 0, name, "not be empty", described[name])
    for name in ("chosen", "baseline"):
        places = range(len(described["points"]))
        _require(described[name] in places, name, "be the place of a point", described[name])
    for place, one in enumerate(described["points"]):
        where = f"points[{place}]"
        _require(one["point"] == place, f"{where}.point", f"be {place}", one["point"])
        _check_gaps(one["gaps"], described, f"{where}.gaps")
        _check_rates(one["rates"], described, is_front, f"{where}.rates")
        if is_front:
            _check_changes(one["changes"], described, f"{where}.changes")
            gaps, number = one["validation"]["gaps"], {"gap": _NUMBER}
            _check(gaps, dict.fromkeys(gaps, number), f"{where}.validation.gaps")


def _check_gaps(gaps: list[Any], described: Mapping[str, Any], where: str) -> None:
    found = {(gap["criterion"], gap["by"]) for gap in gaps}
    for criterion in described["criteria"]:
        for level in described["levels"]:
            wanted = (criterion["key"], level["by"])
            _require(wanted in found, where, f"have {wanted[0]!r} by {wanted[1]!r}", sorted(found))
    for place, gap in enumerate(gaps):
        own = f"{where}[{place}]"
        known = gap["verdict"] in VERDICTS
        _require(known, f"{own}.verdict", f"be one of {VERDICTS}", gap["verdict"])
        _require(len(gap["ends"]) in (0, 2), f"{own}.ends", "name two groups", gap["ends"])


def _check_rates(
    rates: Mapping[str, Any], described: Mapping[str, Any], is_front: bool, where: str
) -> None:
    keys = [rate["key"] for rate in described["rates"]]
    for key in dict.fromkeys([*keys, "favored"] if is_front else keys):
        _check(rates, {key: {"overall": {"rate": [_NUMBER]}, "levels": Mapping}}, where)
        own = f"{where}.{key}"
        _require(len(rates[key]["overall"]["rate"]) == 1, f"{own}.overall.rate", "be one", rates)
        _check_columns(rates[key]["levels"], _COLUMN, described, f"{own}.levels")


def _check_changes(changes: Mapping[str, Any], described: Mapping[str, Any], where: str) -> None:
    _check_columns(changes, _CHANGE, described, where)
    for by, change in changes.items():
        fine = set(change["direction"]) <= {-1, 0, 1}
        _require(fine, f"{where}.{by}.direction", "be -1, 0 or 1", change["direction"])


def _check_columns(
    levels: Mapping[str, Any], shape: Mapping[str, Any], described: Mapping[str, Any], where: str
) -> None:
    """A column has a number for every group of its level."""
    for level in described["levels"]:
        by, size = level["by"], len(level["groups"])
        _check(levels, {by: shape}, where)
        for name in shape.keys() - {"few"}:
            own = levels[by][name]
            _require(len(own) == size, f"{where}.{by}.{name}", f"have {size} numbers", own)


def _check(value: Any, shape: Any, where: str) -> None:
    """A mapping with these parts, a list of such parts, or one of these types."""
    if isinstance(shape, Mapping):
        _require(isinstance(value, Mapping), where or "described", "be a mapping", value)
        for key, part in shape.items():
            own = f"{where}.{key}" if where else key
            _require(key in value, own, "be there", "nothing")
            _check(value[key], part, own)
    elif isinstance(shape, list):
        _require(isinstance(value, list), where, "be a list", value)
        for place, part in enumerate(value):
            _check(part, shape[0], f"{where}[{place}]")
    else:
        _require(isinstance(value, shape), where, f"be {_named(shape)}", value)


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
