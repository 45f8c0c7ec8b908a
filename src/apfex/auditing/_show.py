"""An audit shown to people: in a terminal, in Markdown, in HTML, and drawn."""

from __future__ import annotations

import html
import math
import textwrap
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

from apfex.auditing._estimates import column_of
from apfex.auditing._verdicts import worst_first
from apfex.groups import grouping_name
from apfex.markup import html_table, in_html, in_markdown
from apfex.plain import printable, told_apart

if TYPE_CHECKING:
    from apfex.auditing._result import Audit

Style = Callable[[object], str]
Names = Callable[[Iterable[object]], Mapping[Any, str]]
"""How the names of one column are written, so that those that differ look different."""
_NUMBERS = {"all rows", "gap", "noise floor", "p adjusted", "rows", "favored", "to overall"}
_NAMED = 3
_JOINER = "\u200d"  # holds emoji together


def as_text(audit: Audit, most_gaps: int = 8, most_groups: int = 5) -> str:
    """A screenful at most, the summary first; names that differ look different."""
    tables = [
        _gaps_table(audit, most_gaps, _readable),
        _worst_table(audit, most_groups, _readable),
        *_more_tables(audit, most_gaps, _readable),
    ]
    summary = textwrap.fill(printable(audit.summary.text), 100, break_long_words=False)
    parts = [summary, _head_of(audit, printable), *map(_aligned, tables)]
    return "\n\n".join([*parts, *(["\n".join(map(printable, audit.notes))] if audit.notes else [])])


def as_markdown(audit: Audit, max_rows: int) -> str:
    """The summary and tables; names cannot leave their cell."""
    tables = _all_tables(audit, max_rows, _each(in_markdown))
    summary = f"**{in_markdown(audit.summary.text)}**"
    parts = [summary, _head_of(audit, in_markdown), *map(_pipes, tables)]
    parts += ["\n".join(f"- {in_markdown(note)}" for note in audit.notes)] if audit.notes else []
    return "\n\n".join(parts) + "\n"


def as_html(audit: Audit, max_rows: int) -> str:
    """A ``section`` with the summary, tables and the notes."""
    tables = _all_tables(audit, max_rows, _each(in_html))
    notes = "".join(f"<li>{in_html(note)}</li>" for note in audit.notes)
    return "\n".join(
        [
            '<section class="apfex-audit">',
            f"<p>{in_html(audit.summary.text)}</p>",
            f"<p>{_head_of(audit, in_html)}</p>",
            *map(_html_table, tables),
            *([f"<ul>{notes}</ul>"] if notes else []),
            "</section>",
        ]
    )


@final
@dataclass(frozen=True)
class TextTable:
    """A title, columns and rows of cells, all ready to be shown, and what is left out."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    left_out: str


def _all_tables(audit: Audit, most: int, names: Names) -> list[TextTable]:
    tables = [_gaps_table(audit, most, names), _worst_table(audit, most, names)]
    return [*tables, *_more_tables(audit, most, names)]


def _more_tables(audit: Audit, most: int, names: Names) -> list[TextTable]:
    """Metrics and strata, where they were asked for."""
    tables = []
    if audit.metric_gaps is not None:
        tables.append(_metrics_table(audit, most, names))
    if audit.gaps_within is not None:
        tables.append(_strata_table(audit, most, names))
    return tables


def _metrics_table(audit: Audit, most: int, names: Names) -> TextTable:
    """The gap of each metric, and the groups at its ends."""
    metrics, gaps = audit.metrics, audit.metric_gaps
    assert metrics is not None
    assert gaps is not None
    everyone = metrics[metrics["by"] == "overall"].set_index("metric")["value"]
    shown = gaps.head(most).to_dict("records")
    texts = {
        column: names(row[column] for row in shown)
        for column in ("metric", "by", "lowest", "highest")
    }
    rows = [
        [
            texts["metric"][row["metric"]],
            texts["by"][row["by"]],
            _number(everyone[row["metric"]]),
            _number(row["gap"]),
            _between(row["lower"], row["upper"]),
            *(
                "-" if _unknown(row["gap"]) else f"{texts[end][row[end]]} {row[f'{end}_value']:.3f}"
                for end in ("lowest", "highest")
            ),
            f"{row['groups_compared']:,} of {row['groups']:,}",
        ]
        for row in shown
    ]
    columns = ("metric", "by", "all rows", "gap", "interval", "lowest", "highest")
    more = _left_out(len(gaps), most, ".metric_gaps; every group is in .metrics")
    return TextTable("Metrics by group", (*columns, "groups compared"), rows, more)


def _strata_table(audit: Audit, most: int, names: Names) -> TextTable:
    """Gaps within strata, the worst first."""
    assert audit.gaps_within is not None
    gaps = worst_first(audit.gaps_within)
    controls = list(gaps.columns[: list(gaps.columns).index("count")])
    shown = gaps.head(most).to_dict("records")
    texts = {column: names(row[column] for row in shown) for column in [*controls, "by"]}
    rows = [
        [
            *(texts[column][row[column]] for column in controls),
            f"{row['count']:,}",
            row["criterion"],
            texts["by"][row["by"]],
            _number(row["gap"]),
            _between(row["lower"], row["upper"]),
            f"{row['groups_compared']:,} of {row['groups']:,}",
            row["verdict"],
        ]
        for row in shown
    ]
    heads = names(controls)
    columns = [*(heads[name] for name in controls), "rows", "criterion", "by", "gap", "interval"]
    columns += ["groups compared", "verdict"]
    return TextTable(
        "Gaps within strata", columns, rows, _left_out(len(gaps), most, ".gaps_within")
    )


def _gaps_table(audit: Audit, most: int, names: Names) -> TextTable:
    """Gaps, the worst first."""
    gaps = worst_first(audit.gaps)
    shown = gaps.head(most).to_dict("records")
    by = names(row["by"] for row in shown)
    rows = [
        [
            row["criterion"],
            by[row["by"]],
            _number(row["gap"]),
            _between(row["lower"], row["upper"]),
            _number(row["noise_floor"]),
            _number(row["p_adjusted"]),
            f"{row['groups_compared']:,} of {row['groups']:,}",
            row["verdict"],
        ]
        for row in shown
    ]
    columns = (
        "criterion",
        "by",
        "gap",
        "interval",
        "noise floor",
        "p adjusted",
        "groups compared",
        "verdict",
    )
    return TextTable("Gaps", columns, rows, _left_out(len(gaps), most, ".gaps"))


def _worst_table(audit: Audit, most: int, names: Names) -> TextTable:
    """Groups that get the favorable label less often than all rows, the clearly worse off first."""
    worst = audit.worst(audit.n_groups, only_below=True)
    shown = worst.head(most).to_dict("records")
    attributes = [column_of(name) for name in audit.attributes]
    levels = [names(row[column] for row in shown) for column in attributes]
    drivers = names(row["driver"] for row in shown)
    several = len(attributes) > 1
    rows = [
        [
            *(level[row[column]] for column, level in zip(attributes, levels, strict=True)),
            f"{row['count']:,}",
            _share(row["favored"]),
            f"{_share(row['lower'])} to {_share(row['upper'])}",
            _points(row["difference"]),
            "yes" if row["clearly_below"] else "no",
            *([_driver(row, drivers)] if several else []),
        ]
        for row in shown
    ]
    heads = names(audit.attributes)
    columns = [heads[name] for name in audit.attributes]
    columns += ["rows", "favored", "interval", "to overall", "clearly below"]
    columns += ["driven by"] if several else []
    title = "Worst-off groups"
    if not audit.n_worse_off:
        title = "Groups below the average: none is clearly worse off"
        if not rows:
            title = "Worst-off groups: none, all fare alike"
            shares: Any = audit.worst(audit.n_groups)["favored"]
            if shares.isna().any():
                title = "Worst-off groups: none, as far as groups have rows with weight"
    more = [_left_out(len(worst), most, ".groups"), _larger_groups(audit)]
    return TextTable(title, columns, rows, "; ".join(filter(None, more)))


def _larger_groups(audit: Audit) -> str:
    """Groups of fewer attributes than the crossing that are clearly worse off."""
    crossing = grouping_name(audit.attributes)
    found: Any = audit.worse_off
    rows = found[found["by"] != crossing].to_dict("records")
    texts = _readable(row["group"] for row in rows[:_NAMED])
    told = [f"{texts[row['group']]} ({_share(row['favored'])})" for row in rows[:_NAMED]]
    more = [f"{len(rows) - _NAMED:,} more in .worse_off"] if len(rows) > _NAMED else []
    return f"larger groups clearly worse off: {', '.join([*told, *more])}" if told else ""


def _head_of(audit: Audit, style: Style) -> str:
    """What was audited, in a line."""
    settings = audit.settings
    return (
        f"Audit of {audit.n_rows:,} decisions, {audit.n_groups:,} groups of "
        f"{style(grouping_name(audit.attributes))}; {_share(audit.share_favored)} favored (label "
        f"{style(settings.favorable_label)}); limit {settings.tolerance:g}, "
        f"{100 * settings.confidence:g}% confidence"
    )


def _number(value: Any) -> str:
    """Three decimals; a dash where unknown."""
    return "-" if _unknown(value) else f"{value:.3f}"


def _between(low: Any, high: Any) -> str:
    """An interval."""
    return "-" if _unknown(low) else f"{low:.3f} to {_number(high)}"


def _share(value: Any) -> str:
    """A rate in percent."""
    return "-" if _unknown(value) else f"{100 * value:.1f}%"


def _points(value: Any) -> str:
    """A difference of rates in percentage points."""
    return "-" if _unknown(value) else f"{100 * value:+.1f}"


def _driver(row: Mapping[Any, Any], names: Mapping[Any, str]) -> str:
    if row["driver"] is None or row["driver"] != row["driver"]:
        return "-"
    return f"{names[row['driver']]} (others {_share(row['others'])})"


def _readable(names: Iterable[object]) -> Mapping[Any, str]:
    """For a terminal or a pipe: long names are cut, unless two would look alike."""
    return told_apart(names, 40)


def _each(style: Style) -> Names:
    return lambda names: {name: style(name) for name in names}


def _unknown(value: Any) -> bool:
    return value is None or math.isnan(value)


def _left_out(n: int, shown: int, where: str) -> str:
    return f"{n - shown:,} more in {where}" if n > shown else ""


def _aligned(table: TextTable) -> str:
    cells = [table.columns, *table.rows]
    widths = [max(_width(row[at]) for row in cells) for at in range(len(table.columns))]
    lines = [table.title]
    for row in cells:
        padded = [
            " " * (wide - _width(cell)) + cell
            if name in _NUMBERS
            else cell + " " * (wide - _width(cell))
            for cell, wide, name in zip(row, widths, table.columns, strict=True)
        ]
        lines.append("  ".join(padded).rstrip())
    return "\n".join([*lines, *([table.left_out] if table.left_out else [])])


def _pipes(table: TextTable) -> str:
    rules = ["---:" if name in _NUMBERS else "---" for name in table.columns]
    lines = [f"| {' | '.join(row)} |" for row in (table.columns, rules, *table.rows)]
    after = ["", in_markdown(table.left_out)] if table.left_out else []
    return "\n".join([f"**{table.title}**", "", *lines, *after])


def _html_table(table: TextTable) -> str:
    marked = "data-verdict" if table.columns[-1] == "verdict" else ""
    shown = html_table(html.escape(table.title), table.columns, table.rows, marked)
    return f"{shown}\n<p>{html.escape(table.left_out)}</p>" if table.left_out else shown


def _width(text: str) -> int:
    """Columns that a text takes in a terminal."""
    wide = sum(unicodedata.east_asian_width(mark) in "WF" for mark in text)
    none = sum(unicodedata.combining(mark) > 0 or mark == _JOINER for mark in text)
    return len(text) + wide - none
