"""What people type: ``apfex explore``, ``audit``, ``diff``, ``predict``, ``report`` and others.

:func:`main` runs a command and returns its exit code; :class:`Screen` is where commands print, also
those that other distributions add. See ``docs/cli.md``.
"""

import typing

from apfex.cli._main import main

if typing.TYPE_CHECKING:
    from apfex.cli._screen import Screen

__all__ = ["Screen", "main"]


def __getattr__(name: str) -> typing.Any:
    """Import what prints only when it is asked for: :func:`main` must be there before Ctrl-C is."""
    if name == "Screen":
        from apfex.cli._screen import Screen

        return Screen
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
