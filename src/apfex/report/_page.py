"""One HTML file with all that it needs inside, and nothing else allowed."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import os
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from apfex.arguments import require_kind
from apfex.auditing import Audit
from apfex.persistence import write_text_atomically
from apfex.plain import jsonable, printable
from apfex.report._audit import describe_audit
from apfex.report._caveats import Caveat
from apfex.report._description import AUDIT, FRONT, SCHEMA_VERSION, check_described

_SCRIPTS = (
    "base",
    "export",
    "marks",
    "point",
    "plot",
    "gaps",
    "changes",
    "heatmap",
    "groups",
    "compare",
    "lines",
    "calibration",
    "audit",
    "made",
    "decision",
    "start",
)
"""Read one after the other in one scope."""
_DIGITS = 5
"""As many as a page can show."""


def write_front_page(described: Mapping[str, Any], path: str | os.PathLike[str]) -> Path:
    """Write the page of a front.

    Parameters
    ----------
    described : mapping
        From :func:`describe_front`, also after a way through JSON; a damaged one is refused, by
        the name of the part.
    path : path
        Where to; a file there is replaced once the new one is whole.

    Returns
    -------
    Path
        ``path``.

    Notes
    -----
    The page works from disk, without a network. Its Content-Security-Policy allows its one script
    and one style sheet by their hashes, and nothing else; names from data are only ever text.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from apfex import APFExClassifier, make_biased
    >>> from apfex.report import describe_front
    >>> data, new = make_biased(n=400, random_state=0), make_biased(n=400, random_state=1)
    >>> clf = APFExClassifier(model="linear", max_gap=1.0, epochs=2, random_state=0)
    >>> clf = clf.fit(data.X, data.y, sensitive_features=data.sensitive)
    >>> described = describe_front(clf, new.X, new.y, sensitive_features=new.sensitive)
    >>> with TemporaryDirectory() as folder:
    ...     page = write_front_page(described, f"{folder}/report.html")
    ...     page.stat().st_size < 500_000
    True
    """
    require_kind("described", described, Mapping, "a mapping, from describe_front")
    found = (described.get("kind"), described.get("schema_version"))
    if found not in ((FRONT, SCHEMA_VERSION), (AUDIT, SCHEMA_VERSION)):
        raise ValueError(
            f"described must come from describe_front (kind {FRONT!r}, schema_version "
            f"{SCHEMA_VERSION}), got {found}; describe the front again with this version."
        )
    check_described(described, is_front=described["kind"] == FRONT)
    return write_text_atomically(path, page_of(described))


def write_audit_page(
    audit: Audit,
    path: str | os.PathLike[str],
    *,
    title: str | None = None,
    source: str | None = None,
    command: str | None = None,
    caveats: Sequence[Caveat] = (),
    run: Mapping[str, Any] | None = None,
    decision: Mapping[str, Any] | None = None,
) -> Path:
    """Write the page of an audit.

    Parameters
    ----------
    audit : Audit
    path : path
        Where to; a file there is replaced once the new one is whole.
    title, source, command : str, optional
        What the page is called, where its rows come from, and what made it.
    caveats : sequence of Caveat
        What else is to be known, as what was found in the data.
    run : mapping, optional
        How it was made, for the section of that name.
    decision : mapping, optional
        Who signed for it, and why: what ``decision.json`` holds.

    Returns
    -------
    Path
        ``path``.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from apfex import audit
    >>> sex, decided = ["F"] * 200 + ["M"] * 200, [0, 0, 0, 1] * 50 + [0, 1] * 100
    >>> result = audit(None, decided, sensitive_features={"sex": sex}, criteria="dp")
    >>> with TemporaryDirectory() as folder:
    ...     write_audit_page(result, f"{folder}/audit.html").name
    'audit.html'
    """
    if not isinstance(audit, Audit):
        raise TypeError(f"audit must be an Audit, got {type(audit).__name__}.")
    described = describe_audit(
        audit, title=title, source=source, command=command, caveats=caveats, run=run
    )
    if decision is not None:
        described["decision"] = dict(decision)
    return write_text_atomically(path, page_of(described))


def page_of(described: Mapping[str, Any]) -> str:
    """The page as text."""
    style, script = _read("page.css"), "\n".join(_read(f"{name}.js") for name in _SCRIPTS)
    parts = {
        "POLICY": _policy(style, script),
        "TITLE": html.escape(printable(described["title"])),
        "STYLE": style,
        "DATA": _as_data(described),
        "SCRIPT": script,
    }
    # Split first: a placeholder inside one of the parts is text.
    page, *rest = _read("page.html").split("{{")
    for piece in rest:
        name, after = piece.split("}}", 1)
        page += parts[name] + after
    return page


def _policy(style: str, script: str) -> str:
    return (
        f"default-src 'none'; script-src 'sha256-{_hash(script)}'; "
        f"style-src 'sha256-{_hash(style)}'; base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _as_data(described: Mapping[str, Any]) -> str:
    """JSON in ASCII without anything that ends a script element or opens a comment."""
    text = json.dumps(_rounded(jsonable(described)), allow_nan=False, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _rounded(value: Any) -> Any:
    """Numbers with the digits that a page can show: it is a third of the size."""
    if isinstance(value, dict):
        return {key: _rounded(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_rounded(part) for part in value]
    return float(f"{value:.{_DIGITS}g}") if isinstance(value, float) else value


def _read(name: str) -> str:
    """A part of the page, with the line ends that a browser hashes."""
    text = files("apfex.report").joinpath("page", name).read_text(encoding="utf-8")
    return text.replace("\r\n", "\n")
