"""The decision of a review board: a file that its page hands out, and that a report reads back."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from apfex.persistence import read_json

KIND, SCHEMA_VERSION = "apfex.decision", 1
_TEXTS = ("name", "date", "reason")


def read_decision(
    path: str | os.PathLike[str], *, n_points: int | None, sha256: str | None
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

    Returns
    -------
    dict
        ``point`` (None for an audit), ``name``, ``date``, ``reason``, ``data_sha256``, ...
    """
    found = read_json(path)
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
    _check_point(found.get("point"), n_points)
    of = found.get("data_sha256")
    if sha256 is not None and of is not None and of != sha256:
        raise ValueError(
            f"decision must be on the data of this run (sha256 {sha256[:12]}), got one on "
            f"{str(of)[:12]}; use the report of this run to decide."
        )
    return dict(found)


def _check_point(point: Any, n_points: int | None) -> None:
    if n_points is None:
        if point is not None:
            raise ValueError(f"decision must be on an audit, got one on point {point!r}.")
        return
    is_place = isinstance(point, int) and not isinstance(point, bool)
    if not is_place or not 0 <= point < n_points:
        raise ValueError(f"decision must be on a point from 0 to {n_points - 1}, got {point!r}.")
