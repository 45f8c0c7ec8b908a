"""Whether a record has the shape of one: a damaged one is told, before anything is done by it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from apfex.cli._errors import CommandError
from apfex.cli._screen import shown

Check = Callable[[Any], bool]
_KINDS = ("number", "text", "boolean")
_COMMANDS = ("explore", "audit")


def check_shape(record: Mapping[str, Any], file: Path) -> None:
    """Refuse a record that lacks parts, or has others, with the first that is wrong."""
    _check(record, _EVERY, file)
    if record["command"] == "explore":
        _check(record, _EXPLORE, file)
        if record.get("finished", True):
            _check(record, _FINISHED, file)


def _check(record: Mapping[str, Any], rules: Mapping[str, tuple[Check, str]], file: Path) -> None:
    for path, (fits, wanted) in rules.items():
        value: Any = record
        for name in path.split("."):
            value = value.get(name) if isinstance(value, dict) else None
        if not fits(value):
            raise CommandError(
                f"{file} is damaged: {path} must be {wanted}, got {shown(repr(value), 40)}; take "
                "it from a copy, or do the run again."
            )


def is_text(value: Any) -> bool:
    """Whether it is a text."""
    return isinstance(value, str)


def is_texts(value: Any) -> bool:
    """Whether it is a list of texts."""
    return isinstance(value, list) and all(map(is_text, value))


def is_whole(value: Any) -> bool:
    """Whether it is a whole number from 0 on."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def is_number(value: Any) -> bool:
    """Whether it is a number."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def maybe(fits: Check) -> Check:
    """The same, or nothing."""
    return lambda value: value is None or fits(value)


def _is_pair(value: Any) -> bool:
    same = isinstance(value, list) and len(value) == 2 and type(value[0]) is type(value[1])
    return same and isinstance(value[0], str | int) and value[0] != value[1]


def _is_features(value: Any) -> bool:
    return isinstance(value, dict) and bool(value) and all(k in _KINDS for k in value.values())


def _is_versions(value: Any) -> bool:
    return isinstance(value, dict) and all(map(is_text, value.values()))


def _is_points(value: Any) -> bool:
    if not isinstance(value, list) or not value:
        return False
    return all(isinstance(p, dict) and all(map(maybe(is_number), p.values())) for p in value)


_EVERY: dict[str, tuple[Check, str]] = {
    "command": (lambda value: value in _COMMANDS, " or ".join(_COMMANDS)),
    "versions": (_is_versions, "names of packages and their versions"),
    "settings": (lambda value: isinstance(value, dict), "the options of the run"),
    "data.name": (is_text, "the name of the data"),
    "data.path": (maybe(is_text), "a file, or null"),
    "data.sha256": (is_text, "a checksum"),
    "data.rows": (is_whole, "a number of rows"),
    "finished": (lambda value: value in (None, True, False), "true or false"),
}
_EXPLORE: dict[str, tuple[Check, str]] = {
    "classes": (_is_pair, "two labels"),
    "words": (lambda value: _is_pair(value) and is_texts(value), "the words for two labels"),
    "features": (_is_features, f"columns, each {', '.join(_KINDS[:-1])} or {_KINDS[-1]}"),
}
_FINISHED: dict[str, tuple[Check, str]] = {
    "results.point": (is_whole, "the place of a point"),
    "results.points": (_is_points, "the figures of every point"),
}
