"""Names from data, made safe for where they are shown."""

from __future__ import annotations

import html
import unicodedata

from apfex.plain import printable as plain

_JOINER = "\u200d"  # holds emoji together


def width(text: str) -> int:
    """Columns that a text takes in a terminal."""
    wide = sum(unicodedata.east_asian_width(mark) in "WF" for mark in text)
    none = sum(unicodedata.combining(mark) > 0 or mark == _JOINER for mark in text)
    return len(text) + wide - none


def escaped(text: object) -> str:
    """For HTML: markup and quotes are text, and the direction of a name ends with it."""
    return f"<bdi>{html.escape(plain(text), quote=True)}</bdi>"


def in_markdown(text: object) -> str:
    """For a cell of a Markdown table."""
    safe = html.escape(plain(text), quote=False)
    return "".join(f"\\{mark}" if mark in "\\|`*_[]~#" else mark for mark in safe)
