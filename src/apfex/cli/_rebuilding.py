"""``apfex report``: the page again, from what a run has stored."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from apfex.cli._auditing import page_words
from apfex.cli._folder import AUDIT, FRONT, REPORT
from apfex.cli._front import show_front
from apfex.cli._record import read_record
from apfex.cli._screen import Screen
from apfex.cli._verdicts import show_audit


def rebuild(run: Path, screen: Screen) -> dict[str, Any]:
    """Write ``report.html`` anew, by this version, and show the front or the audit."""
    from apfex.auditing import Audit
    from apfex.persistence import read_json
    from apfex.report import write_audit_page, write_front_page

    folder, record = read_record(run)
    if record["command"] == "explore":
        described = read_json(folder / FRONT)
        write_front_page(described, folder / REPORT)
        show_front(described, screen)
    else:
        audit = Audit.from_json((folder / AUDIT).read_text(encoding="utf-8"))
        write_audit_page(audit, folder / REPORT, **page_words(record["data"]))
        show_audit(audit, screen)
    screen.say()
    screen.facts({"Report": str(folder / REPORT)})
    return {"run": str(folder), "report": str(folder / REPORT)}
