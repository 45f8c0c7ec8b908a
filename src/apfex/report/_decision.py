"""The decision of a review board: a file that its page hands out, and that a report reads back."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import date, datetime
from typing import Any

from apfex.persistence import read_json

KIND, SCHEMA_VERSION = "apfex.decision", 1
_TEXTS = ("name", "date", "reason")
_BRIEF = 32


def read_decision(
    path: str | os.PathLike[str],
    *,
    n_points: int | None,
    sha256: str | None,
    run: Mapping[str, Any] | None = None,
    follow: bool = True,
) -> dict[str, Any]:
    """Read ``decision.json``, if it is of this run.

    Parameters
    ----------
    path : path
        Of the file that the page has saved.
    n_points : int, optional
        Points of the front; None for an audit, where no point is decided on.
    sha256 : str, optional
        Of the data of the run; a decision on other data is refused.
    run : mapping, optional
        What tells the run from all others on the same data, by the names that the page writes:
        ``run_id``, or ``run_date`` and ``run_settings``. A decision that has not the same is
        refused.
    follow : bool
        Whether the file may be a link.

    Returns
    -------
    dict
        ``point`` (None for an audit), ``name``, ``date``, ``reason``, ``data_sha256``,
        ``run_id``, ...
    """
    found = read_json(path, follow=follow)
    version = (found.get("kind"), found.get("schema_version")) if isinstance(found, Mapping) else ()
    if version != (KIND, SCHEMA_VERSION):
        raise ValueError(
            f"decision must be a file that the button “Save decision.json” of a report has saved "
            f"(kind {KIND!r}, schema_version {SCHEMA_VERSION}), got {os.fspath(path)}."
        )
    for name in _TEXTS:
        if not isinstance(found.get(name), str) or not found[name].strip():
            raise ValueError(
                f"decision must have a {name}, got {found.get(name)!r} in {os.fspath(path)}; fill "
                "it in on the page, and save it again."
            )
    _check_date(found["date"])
    _check_point(found.get("point"), n_points)
    of = found.get("data_sha256")
    if sha256 is not None and of is not None and of != sha256:
        raise ValueError(
            f"decision must be on the data of this run (sha256 {sha256[:12]}), got one on "
            f"{str(of)[:12]}; use the report of this run to decide."
        )
    for name, value in (run or {}).items():
        if found.get(name) != value:
            raise ValueError(
                f"decision must be on this run ({name} {_brief(value)}), got one on another run "
                f"({name} {_brief(found.get(name))}) in {os.fspath(path)}; open the report of this "
                "run, and sign there."
            )
    return dict(found)


def _check_date(text: str) -> None:
    """Refuse what is no day, or a day to come."""
    today = datetime.now().astimezone().date()
    try:
        day = date.fromisoformat(text)
    except ValueError:
        raise ValueError(f"decision must have a date such as {today}, got {text!r}.") from None
    if day > today:
        raise ValueError(
            f"decision must have a date that is not in the future (today is {today}), got {text}."
        )


def _brief(value: Any) -> str:
    """An identity, as far as a reader can compare it."""
    if value is None:
        return "not given"
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= _BRIEF else f"{text[:_BRIEF]}..."


def _check_point(point: Any, n_points: int | None) -> None:
    if n_points is None:
        if point is not None:
            raise ValueError(f"decision must be on an audit, got one on point {point!r}.")
        return
    is_place = isinstance(point, int) and not isinstance(point, bool)
    if not is_place or not 0 <= point < n_points:
        raise ValueError(f"decision must be on a point from 0 to {n_points - 1}, got {point!r}.")
