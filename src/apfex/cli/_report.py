"""``apfex report``."""

from __future__ import annotations

from apfex.cli import _options as options
from apfex.cli._screen import Screen

EXAMPLES = options.examples("apfex report apfex-adult")


def report(run: options.Run, json: options.Json = False) -> None:
    """Write the page of a run again, from what the run has stored."""
    from apfex.cli._rebuilding import rebuild

    screen = Screen(json)
    screen.finish(rebuild(run, screen))
