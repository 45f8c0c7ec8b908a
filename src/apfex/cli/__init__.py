"""What people type: ``apfex explore``, ``audit``, ``predict``, ``report``, ``rerun``, ``datasets``.

:func:`main` runs a command and returns its exit code. See ``docs/cli.md``.
"""

from apfex.cli._main import main

__all__ = ["main"]
