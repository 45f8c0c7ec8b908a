"""What people type: ``apfex explore``, ``audit``, ``predict``, ``report``, ``rerun``, ``datasets``.

:func:`main` runs a command and returns its exit code; :class:`Screen` is where commands print, also
those that other distributions add. See ``docs/cli.md``.
"""

from apfex.cli._main import main
from apfex.cli._screen import Screen

__all__ = ["Screen", "main"]
