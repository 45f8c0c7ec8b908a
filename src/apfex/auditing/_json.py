"""An audit as JSON, and back."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import pandas as pd

from apfex.arguments import require_kind
from apfex.auditing._settings import AuditSettings
from apfex.auditing._thresholds import THRESHOLDS
from apfex.plain import jsonable
from apfex.rates import ConfusionCounts
from apfex.strict_json import read_strict_json

if TYPE_CHECKING:
    from apfex.auditing._result import Audit

KIND, SCHEMA_VERSION = "apfex.audit", 4
FRAMES = ("metrics", "metric_gaps", "calibration", "gaps_within")
"""Tables that only rows can tell, so that they are stored."""
_GAP = ("by", "gap", "lower", "upper", "lowest", "highest", "groups_compared", "groups")
_ENDS = ("lower", "upper", "count", "group", "by")
_NEEDED = {
    "metrics": ("metric", "value", "compared", *_ENDS),
    "metric_gaps": ("metric", "lowest_value", "highest_value", *_GAP),
    "calibration": ("score_from", "score_to", "mean_score", "observed", *_ENDS),
    "gaps_within": ("criterion", "verdict", "count", "lowest_rate", "highest_rate", *_GAP),
}
"""Columns that these tables have, beside those of attributes."""
_MOST_RATES = 5_000_000
"""Groupings times groups; two million rates are minutes of work."""
_COUNTS = ("count", "groups_compared", "groups")
_NUMBERS = (
    *("value", "lower", "upper", "gap", "lowest_value", "highest_value", "lowest_rate"),
    *("highest_rate", "score_from", "score_to", "mean_score", "observed"),
    *("noise_floor", "p_value", "p_adjusted"),
)
_WORDS = ("criterion", "by", "lowest", "highest")  # the other columns of thresholds are numbers
_TEXT = pd.Series(["text"]).dtype  # its name depends on the version of pandas


def as_json(audit: Audit, counts: ConfusionCounts, indent: int | None) -> str:
    """Settings, tables and counts; a number that is not known is null."""
    thresholds = audit.thresholds
    content = {
        "kind": KIND,
        "schema_version": SCHEMA_VERSION,
        "summary": asdict(audit.summary),
        "n_rows": audit.n_rows,
        "attributes": list(audit.attributes),
        "settings": asdict(audit.settings),
        "notes": list(audit.notes),
        "gaps": _records(audit.gaps),
        "overall": _records(audit.overall),
        "groups": _records(audit.groups),
        "worst": _records(audit.worst(audit.n_groups)),
        "thresholds": None if thresholds is None else _records(thresholds),
        **{name: _stored(getattr(audit, name)) for name in FRAMES},
        "counts": counts.to_dict(),
    }
    return json.dumps(jsonable(content), indent=indent, allow_nan=False, ensure_ascii=False)


def read_json(text: str) -> Audit:
    """An audit that was stored, computed again; an error that says what is wrong."""
    from apfex.auditing._agreement import check_agreement
    from apfex.auditing._from_counts import audit_counts

    require_kind("text", text, (str, bytes, bytearray), "JSON from Audit.to_json")
    try:
        content = read_strict_json(text)
    except (ValueError, TypeError) as error:
        raise ValueError(f"text must be JSON from Audit.to_json, got none: {error}.") from error
    if not isinstance(content, dict) or content.get("kind") != KIND:
        raise ValueError(f"text must be an audit (kind {KIND!r}), got something else.")
    version = content.get("schema_version")
    if version != SCHEMA_VERSION:
        raise ValueError(
            f"text must have schema_version {SCHEMA_VERSION}, got {version!r}; read it with the "
            "version of apfex that wrote it."
        )
    try:
        counts = ConfusionCounts.from_dict(content["counts"])
        _check_size(counts)
        settings = AuditSettings(**content["settings"])
        notes = tuple(map(str, content["notes"]))
        thresholds = _read_thresholds(content["thresholds"])
        frames: dict[str, Any] = {name: _read_frame(content[name], name) for name in FRAMES}
        if (frames["metrics"] is None) != (frames["metric_gaps"] is None):
            raise ValueError("metrics and their gaps belong together")
        found = audit_counts(counts, settings)
        found = replace(found, notes=notes, thresholds=thresholds, **frames)
        check_agreement(content, found)
        str(found)  # what cannot be shown is no audit
    except Exception as error:  # whoever has written it may make any of them
        said = str(error) if isinstance(error, ValueError) else repr(error)
        raise ValueError(
            f"text must be a whole audit, got a damaged one: {said.rstrip(chr(46))}."
        ) from error
    return found


def _check_size(counts: ConfusionCounts) -> None:
    """Refuse attributes whose groupings would take far more room than the file has bytes."""
    q, k = len(counts.groups.attributes), len(counts.groups)
    groupings = 1 + q * (q + 1) // 2
    n_names = sum(map(len, counts.groups.names[:1])) * groupings * k  # about as long
    if groupings * k > _MOST_RATES or n_names > 100 * _MOST_RATES:
        raise ValueError(f"{q:,} attributes of {k:,} groups are more than an audit can cross")


def _records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    return frame.to_dict("records")


def _stored(frame: pd.DataFrame | None) -> list[dict[str, Any]] | None:
    return None if frame is None else _records(frame)


def plain_frame(frame: pd.DataFrame) -> pd.DataFrame:
    """The same table with the kinds of columns that :func:`read_json` gives it."""
    return pd.DataFrame({name: frame[name].tolist() for name in frame.columns})


def _read_frame(stored: list[Mapping[str, Any]] | None, kind: str) -> pd.DataFrame | None:
    """A table as it was, with its kinds of columns."""
    if stored is None:
        return None
    if not isinstance(stored, list) or any(row.keys() != stored[0].keys() for row in stored):
        raise ValueError(f"{kind} must be rows of the same columns")
    lacking = set(_NEEDED[kind]) - set(stored[0] if stored else _NEEDED[kind])
    if lacking:
        raise ValueError(f"{kind} must have the columns {sorted(lacking)}")
    columns: dict[str, Any] = {}
    for name in stored[0].keys() if stored else ():
        values = [row[name] for row in stored]
        if name in _NUMBERS:
            values = [math.nan if value is None else float(value) for value in values]
        columns[name] = [int(value) for value in values] if name in _COUNTS else values
    return pd.DataFrame(columns)


def _read_thresholds(stored: list[Mapping[str, Any]] | None) -> pd.DataFrame | None:
    if stored is None:
        return None
    columns: dict[str, list[Any]] = {}
    for name in THRESHOLDS:
        convert = str if name in _WORDS else float
        columns[name] = [math.nan if row[name] is None else convert(row[name]) for row in stored]
    words = {name: pd.Series(columns[name], dtype=_TEXT) for name in _WORDS}
    return pd.DataFrame({**columns, **words})
