"""``apfex audit``: options, and an audit in a terminal of 80 columns."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from json import loads
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from apfex.cli import _options as options
from apfex.cli._screen import Screen
from apfex.plain import printable, told_apart

if TYPE_CHECKING:
    from apfex.auditing import Audit
    from apfex.runs import AuditRun, GateResult

EXAMPLES = options.examples(
    "apfex audit decisions.csv --prediction decision --positive-prediction approved "
    "--label repaid --positive Y --sensitive sex,race",
    "apfex audit scores.parquet --prediction score --threshold 0.5 --sensitive sex,race",
    "apfex audit 'data/*.parquet' --prediction yhat --label y --sensitive sex,race --where month=5",
    'apfex audit d.csv --prediction yhat --sensitive sex,race --fail-on "dp_gap.lower > 0.05"',
    "apfex audit d.csv --prediction yhat --sensitive sex --fail-on violation --markdown summary.md",
)


_STYLES = {"violation": "red", "inconclusive": "yellow", "within tolerance": "green"}
_MOST_GAPS, _MOST_GROUPS, _MOST_METRICS = 8, 5, 12
_LONGEST = 36
"""Letters beyond which a terminal gets a name cut, if it can be told from the others."""


def audit(
    file: Annotated[
        str,
        typer.Argument(
            help="CSV, Parquet, Arrow or Excel file; a pattern such as 'data/*.parquet', a folder "
            "of Parquet files, a DuckDB or SQLite file, or a URL.",
            metavar="FILE",
        ),
    ],
    prediction: Annotated[str, typer.Option(help="Column with the decisions.", metavar="COLUMN")],
    sensitive: options.Sensitive = None,
    label: options.Label = None,
    positive: options.Positive = None,
    positive_prediction: Annotated[
        str | None,
        typer.Option(
            help="Positive value of the decisions, where labels are in other words.",
            metavar="VALUE",
        ),
    ] = None,
    threshold: Annotated[
        float | None, typer.Option(help="Decide for scores from here on.", metavar="SCORE")
    ] = None,
    score: Annotated[
        str | None,
        typer.Option(help="Column with scores, beside one with decisions.", metavar="COLUMN"),
    ] = None,
    metrics: Annotated[
        list[str] | None,
        typer.Option(help="Also by group: auc, brier, precision, recall, f1, ...", metavar="NAMES"),
    ] = None,
    control: Annotated[
        list[str] | None,
        typer.Option(
            help="Also compare groups only among people alike in these columns.",
            metavar="COLUMNS",
        ),
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
    where: Annotated[
        list[str] | None,
        typer.Option(
            help="Only rows with this value, or one of several; may be given several times.",
            metavar="month=5",
        ),
    ] = None,
    encoding: options.Encoding = None,
    sheet: options.Sheet = None,
    table: Annotated[
        str | None, typer.Option(help="Of a database with several.", metavar="NAME")
    ] = None,
    markdown: Annotated[
        Path | None,
        typer.Option(
            help="File that a summary in Markdown is added to, for a pull request or a job.",
            metavar="FILE",
        ),
    ] = None,
    out: options.Out = None,
    json: options.Json = False,
) -> None:
    """Audit any model's decisions: gaps between groups with intervals and verdicts; a gate."""
    given = options.arguments(locals(), "file", "fail_on", "allow_not_estimable", "markdown")
    from apfex.engines import without_secrets
    from apfex.runs import audit_file, check_gates, free_folder, read_rule

    screen = Screen(json)
    rules = [read_rule(text) for text in fail_on or ()]
    folder = None if out is None else free_folder(out)
    if markdown is not None:
        _check_summary(markdown, file)
    screen.aside(f"Reading {printable(without_secrets(file))} ...")
    run = audit_file(file, **given)
    checked = check_gates(run.audit, rules, allow_not_estimable=allow_not_estimable)
    # before anything is said: who reads it may stop reading
    written = None if folder is None else str(run.save(folder).absolute())
    if markdown is not None:
        _add_summary(markdown, run, checked)
    screen.say(run.audit.summary.text)
    screen.say()
    _show_data(run, screen)
    _show_tables(run.audit, screen)
    screen.say()
    if written is None:
        screen.say("Nothing is written; for a page and JSON add --out FOLDER.")
    else:
        screen.facts({"Report": str(Path(written) / "report.html"), "Folder": written})
    _show_gates(checked, screen)
    hit = any(one.hit for one in checked)
    gates = [one.to_dict() for one in checked]
    content = loads(run.audit.to_json())
    screen.finish({"hit": hit, "rules": gates, "folder": written, "audit": content})
    if hit:
        raise typer.Exit(1)


def _check_summary(file: Path, audited: str) -> None:
    """Refuse what no file can be, or what is a table, before anything is read."""
    from apfex.sources import ENDINGS

    tables = tuple(ending for ending in ENDINGS if ending != ".txt")  # which text may have, too
    is_table = file.exists() and file.resolve().name.lower().endswith(tables)
    if is_table or (file.is_file() and Path(audited).is_file() and file.samefile(audited)):
        raise _unwritten(file, "a summary would be added to the rows of a table")
    if file.is_dir():
        raise _unwritten(file, os.strerror(errno.EISDIR))
    if not file.parent.is_dir():
        raise _unwritten(file, os.strerror(errno.ENOENT))


def _add_summary(file: Path, run: AuditRun, checked: Sequence[GateResult]) -> None:
    """At the end of the file, where a job or an earlier audit may have written already."""
    text, before = run.to_markdown(checked), file.stat().st_size if file.exists() else None
    try:
        with file.open("a", encoding="utf-8") as end:
            end.write(text)
    except OSError as error:
        with suppress(OSError):  # no half of a summary, and no empty file
            if before is None:
                file.unlink()
            elif file.is_file():
                os.truncate(file, before)
        raise _unwritten(file, error.strerror or str(error)) from error


def _unwritten(file: Path, why: str) -> OSError:
    return OSError(f"--markdown {file} cannot be written: {why}; name another file.")


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
    facts = {
        "Data": f"{data.description}, {data.rows:,} rows{dropped}",
        "Decisions": decided,
        "Label": label,
        "Groups": describe_groups(data.groups),
    }
    if data.score is not None:
        facts["Scores"] = printable(data.score)
    if data.control is not None:
        facts["Strata"] = describe_groups(data.control)
    screen.facts(facts)


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
    """The summary, the worst gaps and groups; the rest is in the report and in JSON."""
    screen.say()
    screen.say(audit.summary.text)
    _show_tables(audit, screen)


def _show_tables(audit: Audit, screen: Screen) -> None:
    _show_gaps(audit, screen)
    _show_groups(audit, screen)
    _show_metrics(audit, screen)
    _show_strata(audit, screen)
    if audit.notes:
        screen.say()
    for note in audit.notes:
        screen.say(printable(note))


def _show_gaps(audit: Audit, screen: Screen) -> None:
    from apfex.auditing import worst_first

    settings, gaps = audit.settings, worst_first(audit.gaps)
    rows = gaps.head(_MOST_GAPS).to_dict("records")
    by = _names(screen, (row["by"] for row in rows))
    screen.say()
    screen.say(
        f"Gaps between groups, {100 * settings.confidence:g}% intervals, limit "
        f"{settings.tolerance:g}{_left_out(len(gaps), _MOST_GAPS)}"
    )
    screen.table(
        ["criterion", "by", "gap", "noise", "compared", "verdict"],
        [
            [
                row["criterion"],
                by[row["by"]],
                _gap(row),
                _known(row["noise_floor"], ".3f"),
                _compared(row),
                row["verdict"],
            ]
            for row in rows
        ],
        left=("criterion", "by", "gap", "compared", "verdict"),
        styles=_STYLES,
    )


def _show_groups(audit: Audit, screen: Screen) -> None:
    from apfex.auditing import column_of

    label = printable(audit.settings.favorable_label, 30)
    of_all = f"{100 * audit.share_favored:.1f}% of all{', weighted' * audit.is_approximate}"
    worst = audit.worst(audit.n_groups, only_below=True)
    screen.say()
    if worst.empty:
        shares: Any = audit.worst(audit.n_groups)["favored"]
        who = "All groups that have rows with weight" if shares.isna().any() else "All groups"
        screen.say(f"{who} get the decision {label} equally often ({of_all})")
        return
    more = _left_out(len(worst), _MOST_GROUPS)
    screen.say(f"Who gets the decision {label} least ({of_all}){more}")
    rows = worst.head(_MOST_GROUPS).to_dict("records")
    columns = [column_of(name) for name in audit.attributes]
    levels = {name: _names(screen, (row[name] for row in rows)) for name in columns}
    heads = [printable(name) for name in columns]
    several = len(columns) > 1
    screen.table(
        [*heads, "rows", "share", "clearly below", *(["driven by"] if several else [])],
        [
            [
                *(levels[name][row[name]] for name in columns),
                f"{row['count']:,}",
                _share(row),
                "yes" if row["clearly_below"] else "no",
                *([_driver(row)] if several else []),
            ]
            for row in rows
        ],
        left=(*heads, "share", "clearly below", "driven by"),
    )
    if not audit.n_worse_off:
        screen.say("None of these is clearly worse off than all rows.")
    _show_larger_groups(audit, screen)


def _show_larger_groups(audit: Audit, screen: Screen) -> None:
    """Groups of fewer attributes that surely get less, whatever those of the crossing show."""
    from apfex.groups import grouping_name

    found: Any = audit.worse_off
    rows = found[found["by"] != grouping_name(audit.attributes)].to_dict("records")
    if not rows:
        return
    names = _names(screen, (row["group"] for row in rows[:_MOST_GROUPS]))
    told = [f"{names[row['group']]} ({100 * row['favored']:.1f}%)" for row in rows[:_MOST_GROUPS]]
    rest = len(rows) - len(told)
    more = f", and {rest:,} more" if rest else ""
    screen.say(f"Larger groups that are clearly worse off than all rows: {', '.join(told)}{more}.")


def _show_metrics(audit: Audit, screen: Screen) -> None:
    metrics, gaps = audit.metrics, audit.metric_gaps
    if metrics is None or gaps is None:
        return
    everyone: Any = metrics[metrics["by"] == "overall"].set_index("metric")["value"]
    rows = gaps.head(_MOST_METRICS).to_dict("records")
    names = {
        column: _names(screen, (row[column] for row in rows))
        for column in ("by", "lowest", "highest")
    }
    screen.say()
    more = f"; {_MOST_METRICS} of {len(gaps)}" if len(gaps) > _MOST_METRICS else ""
    screen.say(f"Metrics by group{more}")
    screen.table(
        ["metric", "by", "all rows", "gap", "lowest", "highest", "compared"],
        [
            [
                printable(row["metric"]),
                names["by"][row["by"]],
                _known(everyone[row["metric"]], ".3f"),
                _gap(row),
                *(_end(row, end, names[end]) for end in ("lowest", "highest")),
                _compared(row),
            ]
            for row in rows
        ],
        left=("metric", "by", "gap", "lowest", "highest", "compared"),
    )


def _show_strata(audit: Audit, screen: Screen) -> None:
    from apfex.auditing import worst_first

    if audit.gaps_within is None:
        return
    gaps = worst_first(audit.gaps_within)
    controls = list(gaps.columns[: list(gaps.columns).index("count")])
    rows = gaps.head(_MOST_GAPS).to_dict("records")
    names = {name: _names(screen, (row[name] for row in rows)) for name in [*controls, "by"]}
    heads = [printable(name) for name in controls]
    screen.say()
    screen.say(f"Gaps within strata{_left_out(len(gaps), _MOST_GAPS)}")
    screen.table(
        [*heads, "rows", "criterion", "by", "gap", "compared", "verdict"],
        [
            [
                *(names[name][row[name]] for name in controls),
                f"{row['count']:,}",
                row["criterion"],
                names["by"][row["by"]],
                _gap(row),
                _compared(row),
                row["verdict"],
            ]
            for row in rows
        ],
        left=(*heads, "criterion", "by", "gap", "compared", "verdict"),
        styles=_STYLES,
    )


def _names(screen: Screen, names: Iterable[object]) -> dict[Any, str]:
    """Names of a column: whole in a pipe, and in a terminal never cut into the same."""
    return told_apart(names, _LONGEST if screen.results.is_terminal else None)


def _compared(row: dict[Any, Any]) -> str:
    return f"{row['groups_compared']:,} of {row['groups']:,}"


def _end(row: dict[Any, Any], end: str, names: dict[Any, str]) -> str:
    return "-" if row["gap"] != row["gap"] else f"{names[row[end]]} {row[f'{end}_value']:.3f}"


def _gap(row: dict[Any, Any]) -> str:
    if row["gap"] != row["gap"]:
        return "-"
    return f"{row['gap']:.3f} ({row['lower']:.3f} to {_known(row['upper'], '.3f')})"


def _share(row: dict[Any, Any]) -> str:
    low, high = 100 * row["lower"], 100 * row["upper"]
    return f"{100 * row['favored']:.1f}% ({low:.1f} to {high:.1f})"


def _driver(row: dict[Any, Any]) -> str:
    if row["driver"] is None or row["driver"] != row["driver"]:
        return "-"
    return f"{printable(row['driver'])} (else {100 * row['others']:.1f}%)"


def _known(value: float, form: str) -> str:
    return "-" if value != value else format(value, form)


def _left_out(n: int, most: int) -> str:
    return f"; {most} of {n:,}, the worst first" if n > most else ""
