"""``apfex audit``: options, and an audit in a terminal of 80 columns."""

from __future__ import annotations

from collections.abc import Sequence
from json import loads
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from apfex.cli import _options as options
from apfex.cli._screen import Screen
from apfex.plain import printable

if TYPE_CHECKING:
    from apfex.auditing import Audit
    from apfex.runs import AuditRun, GateResult

EXAMPLES = options.examples(
    "apfex audit decisions.csv --prediction approved --label repaid --sensitive sex,race",
    "apfex audit scores.parquet --prediction score --threshold 0.5 --sensitive sex,race",
    'apfex audit d.csv --prediction yhat --sensitive sex,race --fail-on "dp_gap.lower > 0.05"',
)


_STYLES = {"violation": "red", "inconclusive": "yellow", "within tolerance": "green"}
_MOST_GAPS, _MOST_GROUPS = 8, 5


def audit(
    file: Annotated[Path, typer.Argument(help="CSV, Parquet or Arrow file.")],
    prediction: Annotated[str, typer.Option(help="Column with the decisions.", metavar="COLUMN")],
    sensitive: options.Sensitive = None,
    label: options.Label = None,
    positive: options.Positive = None,
    threshold: Annotated[
        float | None, typer.Option(help="Decide for scores from here on.", metavar="SCORE")
    ] = None,
    bins: options.Bins = None,
    weight: options.Weight = None,
    criteria: options.Criteria = options.CRITERIA,
    tolerance: options.Tolerance = 0.05,
    confidence: options.Confidence = 0.95,
    min_count: Annotated[
        float, typer.Option(help="Fewest rows that a rate must rest on.", metavar="ROWS")
    ] = 10,
    fail_on: Annotated[
        list[str] | None,
        typer.Option(
            help="Exit with 1 where 'dp_gap > 0.1', 'tpr_gap.lower > 0.05' or a violation is "
            "found; may be given several times.",
            metavar="RULE",
        ),
    ] = None,
    allow_not_estimable: Annotated[
        bool,
        typer.Option(
            "--allow-not-estimable", help="Let gaps pass that too few rows speak of; else they hit."
        ),
    ] = False,
    drop_missing: Annotated[
        bool, typer.Option("--drop-missing", help="Leave out rows without decision or label.")
    ] = False,
    encoding: options.Encoding = None,
    out: options.Out = None,
    json: options.Json = False,
) -> None:
    """Audit any model's decisions: gaps between groups with intervals and verdicts; a gate."""
    given = options.arguments(locals(), "file", "fail_on", "allow_not_estimable")
    from apfex.runs import audit_file, check_gates, free_folder, read_rule

    screen = Screen(json)
    rules = [read_rule(text) for text in fail_on or ()]
    folder = None if out is None else free_folder(out)
    screen.aside(f"Reading {printable(file)} ...")
    run = audit_file(file, **given)
    _show_data(run, screen)
    checked = check_gates(run.audit, rules, allow_not_estimable=allow_not_estimable)
    show_audit(run.audit, screen)
    if folder is not None:
        run.save(folder)
        screen.say()
        screen.facts({"Report": str(folder / "report.html")})
    _show_gates(checked, screen)
    hit = any(one.hit for one in checked)
    gates = [one.to_dict() for one in checked]
    content = loads(run.audit.to_json())
    screen.finish({"hit": hit, "rules": gates, "folder": out, "audit": content})
    if hit:
        raise typer.Exit(1)


def _show_data(run: AuditRun, screen: Screen) -> None:
    """What was taken for what; nothing is guessed silently."""
    from apfex.cli._explore import describe_groups

    data = run.data
    assert data is not None
    dropped = f"; {data.dropped:,} without a value dropped" if data.dropped else ""
    decided, label = (
        f"{printable(one.name)}, positive: {printable(one.positive, 40)} ({100 * one.share:.1f}%)"
        if one is not None
        else "none: selection rates only"
        for one in (data.decided, data.label)
    )
    screen.facts(
        {
            "Data": f"{data.description}, {data.rows:,} rows{dropped}",
            "Decisions": decided,
            "Label": label,
            "Groups": describe_groups(data.groups),
        }
    )


def _show_gates(checked: Sequence[GateResult], screen: Screen) -> None:
    """Which rules are hit, and by what."""
    if checked:
        screen.say()
    for one in checked:
        screen.say(f"{'HIT ' if one.hit else 'pass'}  {printable(one.rule.text)}")
        for line in one.lines():
            screen.say(f"      {line}")
    n_tests = max((one.n_tests for one in checked), default=1)
    if n_tests > 1:
        screen.say(f"Gates are corrected for the {n_tests} gaps that they look at (Holm).")


def show_audit(audit: Audit, screen: Screen) -> None:
    """The worst gaps and the worst-off groups; the rest is in the report and in JSON."""
    _show_gaps(audit, screen)
    _show_groups(audit, screen)
    if audit.notes:
        screen.say()
    for note in audit.notes:
        screen.say(printable(note))


def _show_gaps(audit: Audit, screen: Screen) -> None:
    from apfex.auditing import worst_first

    settings, gaps = audit.settings, worst_first(audit.gaps)
    screen.say()
    screen.say(
        f"Gaps between groups, {100 * settings.confidence:g}% intervals, tolerance "
        f"{settings.tolerance:g}{_left_out(len(gaps), _MOST_GAPS)}"
    )
    screen.table(
        ["criterion", "by", "gap", "noise floor", "verdict"],
        [
            [
                row["criterion"],
                printable(row["by"], 36),
                _gap(row),
                _known(row["noise_floor"], ".3f"),
                row["verdict"],
            ]
            for row in gaps.head(_MOST_GAPS).to_dict("records")
        ],
        left=("criterion", "by", "gap", "verdict"),
        styles=_STYLES,
    )


def _show_groups(audit: Audit, screen: Screen) -> None:
    label = printable(audit.settings.favorable_label, 30)
    of_all = f"{100 * audit.share_favored:.1f}% of all{', weighted' * audit.is_approximate}"
    worst = audit.worst(audit.n_groups, only_below=True)
    screen.say()
    if worst.empty:
        screen.say(f"All groups get the label {label} equally often ({of_all})")
        return
    screen.say(f"Who gets the label {label} least ({of_all}){_left_out(len(worst), _MOST_GROUPS)}")
    screen.table(
        ["group", "rows", "share", "driven by"],
        [
            [printable(row["group"], 44), f"{row['count']:,}", _share(row), _driver(row)]
            for row in worst.head(_MOST_GROUPS).to_dict("records")
        ],
        left=("group", "share", "driven by"),
    )
    if not audit.n_worse_off:
        screen.say("None of these is clearly worse off than all rows.")


def _gap(row: dict[Any, Any]) -> str:
    if row["gap"] != row["gap"]:
        return "-"
    return f"{row['gap']:.3f} ({row['lower']:.3f} to {row['upper']:.3f})"


def _share(row: dict[Any, Any]) -> str:
    low, high = 100 * row["lower"], 100 * row["upper"]
    return f"{100 * row['favored']:.1f}% ({low:.1f} to {high:.1f})"


def _driver(row: dict[Any, Any]) -> str:
    if row["driver"] is None or row["driver"] != row["driver"]:
        return "-"
    return f"{printable(row['driver'], 20)} (else {100 * row['others']:.1f}%)"


def _known(value: float, form: str) -> str:
    return "-" if value != value else format(value, form)


def _left_out(n: int, most: int) -> str:
    return f"; {most} of {n:,}, the worst first" if n > most else ""
