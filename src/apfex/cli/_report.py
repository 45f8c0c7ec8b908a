"""``apfex report``."""

from __future__ import annotations

from apfex.cli import _options as options
from apfex.cli._screen import Screen

EXAMPLES = options.examples("apfex report apfex-adult")


def report(run: options.Run, json: options.Json = False) -> None:
    """Write the page of a run again, from what the run has stored."""
    from apfex.cli._audit import show_audit
    from apfex.cli._explore import show_front
    from apfex.runs import Run, rewrite_report

    screen = Screen(json)
    found = rewrite_report(run)
    assert found.folder is not None
    page = found.folder / "report.html"
    if isinstance(found, Run):
        show_front(found.described, screen)
    else:
        show_audit(found.audit, screen)
    screen.say()
    screen.facts({"Report": str(page)})
    screen.finish({"run": str(found.folder), "report": str(page)})
