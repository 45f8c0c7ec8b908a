"""What a user can put right."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

_NAMED = 12


class CommandError(Exception):
    """Shown in a line or two, without a traceback; the exit code is 2."""


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that was probably meant."""
    by_form = {}
    for one in known:
        by_form.setdefault(one.strip().casefold(), one)
    near = get_close_matches(name.strip().casefold(), list(by_form), n=1, cutoff=0.65)
    return by_form[near[0]] if near else None


def listed(names: Sequence[str], most: int = _NAMED) -> str:
    """Some names, and how many more there are."""
    from apfex.cli._screen import shown

    some = ", ".join(shown(name, 40) for name in names[:most])
    return some if len(names) <= most else f"{some} and {len(names) - most:,} more"
