"""``apfex audit``: verdicts on the decisions of a file, and gates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from apfex.cli._decisions import AuditOptions, Decisions, read_decisions
from apfex.cli._errors import CommandError
from apfex.cli._folder import AUDIT, REPORT, RUN, free_place, new_folder
from apfex.cli._gate import Checked, Gate, Rule
from apfex.cli._groups import describe_groups
from apfex.cli._record import new_record
from apfex.cli._screen import Screen, shown
from apfex.cli._verdicts import show_audit

if TYPE_CHECKING:
    from apfex.auditing import Audit


def audit_file(
    options: AuditOptions, rules: Sequence[Rule], out: Path | None, screen: Screen
) -> Audit:
    """Read, tell what was taken, audit, print, and write if a folder is named."""
    place = None if out is None else free_place(out, options.source)
    screen.aside(f"Reading {shown(options.source)} ...")
    rows = read_decisions(options)
    _tell(rows, screen)
    audit = _audit(rows, options)
    for rule in rules:
        rule.rows(audit.gaps)  # one that fits nothing is an error before anything is written
    show_audit(audit, screen)
    if place is not None:
        with new_folder(place, screen) as folder:
            _write(audit, rows, options, folder)
        screen.say()
        screen.facts({"Report": str(place / REPORT)})
    return audit


def check_rules(
    audit: Audit, rules: Sequence[Rule], screen: Screen, *, allow_not_estimable: bool
) -> list[Checked]:
    """Tell which gates are hit, and by what."""
    checked = Gate(rules).check(
        audit.gaps,
        audit.settings.tolerance,
        audit.exceeds,
        allow_not_estimable=allow_not_estimable,
    )
    if checked:
        screen.say()
    for one in checked:
        screen.say(f"{'HIT ' if one.hit else 'pass'}  {shown(one.rule.text)}")
        for line in one.lines():
            screen.say(f"      {line}")
    n_tests = max((one.n_tests for one in checked), default=1)
    if n_tests > 1:
        screen.say(f"Gates are corrected for the {n_tests} gaps that they look at (Holm).")
    return checked


def document(audit: Audit, checked: Sequence[Checked], out: Path | None) -> dict[str, Any]:
    """For machines: the audit, as ``to_json`` has it, and the gates."""
    import json

    return {
        "hit": any(one.hit for one in checked),
        "rules": [one.to_dict() for one in checked],
        "folder": None if out is None else str(out),
        "audit": json.loads(audit.to_json()),
    }


def _tell(rows: Decisions, screen: Screen) -> None:
    decided, label = rows.decided, rows.label
    dropped = f"; {rows.dropped:,} without a value dropped" if rows.dropped else ""
    facts = {
        "Data": f"{rows.table.describe()}, {len(decided.codes):,} rows{dropped}",
        "Decisions": f"{shown(decided.name)}, positive: {shown(decided.positive, 40)} "
        f"({100 * decided.share:.1f}%)",
        "Label": "none: selection rates only",
        "Groups": describe_groups(rows.groups),
    }
    if label is not None:
        facts["Label"] = (
            f"{shown(label.name)}, positive: {shown(label.positive, 40)} ({100 * label.share:.1f}%)"
        )
    screen.facts(facts)


def _audit(rows: Decisions, options: AuditOptions) -> Audit:
    from apfex.auditing import AuditSettings, audit_counts, count_rows

    settings = AuditSettings(
        options.criteria,
        options.tolerance,
        options.confidence,
        options.min_count,
        rows.decided.positive,
    )
    notes = list(rows.notes)
    if rows.label is None:
        blind, needy = settings.without_labels()
        if not blind:
            raise CommandError(
                f"--criteria {','.join(needy)} needs --label; without labels there is only dp."
            )
        notes += [f"Without --label: {', '.join(needy)} left out."] if needy else []
        settings = replace(settings, criteria=blind)
    counts = count_rows(
        None if rows.label is None else rows.label.codes,
        rows.decided.codes,
        rows.groups,
        rows.weight,
        score=rows.score,
    )
    return audit_counts(counts, settings, notes)


def _write(audit: Audit, rows: Decisions, options: AuditOptions, folder: Path) -> None:
    from apfex.persistence import write_json, write_text_atomically
    from apfex.report import write_audit_page

    data: dict[str, Any] = {
        "name": rows.table.path.name,
        "path": str(rows.table.path.resolve()),
        "sha256": rows.table.sha256(),
        "rows": len(rows.decided.codes),
        "dropped": rows.dropped,
    }
    write_text_atomically(folder / AUDIT, audit.to_json())
    write_audit_page(audit, folder / REPORT, **page_words(data))
    write_json(folder / RUN, new_record("audit", options.to_dict(), data))


def page_words(data: dict[str, Any]) -> dict[str, str]:
    """Title and source of the page."""
    return {
        "title": f"Audit of {data['name']}",
        "source": f"{data['name']}, {data['rows']:,} rows, sha256 {data['sha256'][:12]}",
    }
