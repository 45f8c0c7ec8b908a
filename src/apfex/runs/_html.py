"""A run in a notebook: what it came to, and its points on the test rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from apfex.markup import html_section, html_table, in_html

if TYPE_CHECKING:
    from apfex.runs._run import Run


def run_as_html(run: Run) -> str:
    """A fragment without scripts; names from data are escaped."""
    if not run.is_finished:
        return html_section("apfex-run", f"<p>{in_html(repr(run).strip('<>'))}</p>")
    described = run.described
    by = described["groupings"][-1]["by"]
    columns = ["point", "error", *(f"{one['key']} gap" for one in described["criteria"]), "remarks"]
    rows = [_row(point, by, described["chosen"]) for point in described["points"]]
    caption = (
        f"{in_html(run.record['data']['name'])}: points measured on {described['rows']:,} test "
        f"rows, gaps between groups of {in_html(by)}"
    )
    caveats = [f"<li>{in_html(str(caveat))}</li>" for caveat in run.caveats]
    report = "" if run.folder is None else f"<p>Report: {in_html(run.folder / 'report.html')}</p>"
    return html_section(
        "apfex-run",
        f"<p>{in_html(run.conclusion.text)}</p>",
        html_table(caption, columns, rows),
        f"<ul>{''.join(caveats)}</ul>" if caveats else "",
        report,
    )


def _row(point: Mapping[str, Any], by: str, chosen: int) -> list[str]:
    gaps = [
        _interval(gap["gap"], gap["lower"], gap["upper"])
        for gap in point["gaps"]
        if gap["by"] == by
    ]
    remarks = ["chosen"] * (point["point"] == chosen) + ["trivial"] * point["trivial"]
    remarks += ["nearly constant"] * (point["near_constant"] and not point["trivial"])
    remarks += ["no group gains"] * bool(point["levelled_down"])
    error = _interval(point["error"], point["error_lower"], point["error_upper"])
    return [str(point["point"]), error, *gaps, ", ".join(remarks)]


def _interval(middle: float | None, lower: float | None, upper: float | None) -> str:
    if middle is None:
        return "not estimable"
    low, high = (("-" if end is None else f"{end:.3f}") for end in (lower, upper))
    return f"{middle:.3f} ({low} to {high})"
