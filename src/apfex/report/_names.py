"""Names of groups as people write them, without the quotes that tell them apart in tables."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_MISSING = "<missing>"
"""The value of rows without one; a text that says so is quoted."""
_LITERAL = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\"""", re.DOTALL)
_BARE = re.compile(r"[^,]*")


def shown_values(name: str, attributes: Sequence[str]) -> tuple[str, ...]:
    """From a group's name, as ``sex=F, race="O'Neil"``, to what is shown: ``F``, ``O'Neil``.

    Notes
    -----
    Names quote a value that has a comma, an equals sign or a quote in it, so that a bare one ends
    at the first comma. No two values of an attribute are shown alike.
    """
    found = []
    for attribute in attributes:
        name = name.removeprefix(f"{attribute}=")
        literal = _LITERAL.match(name)
        part = literal or _BARE.match(name)
        assert part is not None
        value = ast.literal_eval(part[0]) if literal else part[0]
        found.append(_shown(value, quotable=literal is not None))
        name = name[part.end() :].removeprefix(", ")
    return tuple(found)


def _shown(value: str, *, quotable: bool) -> str:
    """Quoted where it would be ambiguous beside others."""
    unclear = quotable and (
        "," in value or "=" in value or value != value.strip() or value == _MISSING
    )
    return f"“{value}”" if unclear or not value or value.startswith("“") else value


def shown_name(attributes: Sequence[str], values: Sequence[str]) -> str:
    """A group's name, as ``sex=F, race=O'Neil``."""
    return ", ".join(f"{name}={value}" for name, value in zip(attributes, values, strict=True))


def names_within(described: Any, shown: Mapping[str, str]) -> dict[str, str]:
    """Names in a description that are shown otherwise, and how."""
    used = {text for text in _texts(described) if shown.get(text, text) != text}
    return {name: shown[name] for name in sorted(used)}


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for part in value.values():
            yield from _texts(part)
    elif isinstance(value, list):
        for part in value:
            yield from _texts(part)
