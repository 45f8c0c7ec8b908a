"""``apfex diff``: what changed between two audits that are stored."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from apfex.cli import _options as options
from apfex.cli._screen import Screen
from apfex.plain import told_apart

if TYPE_CHECKING:
    import pandas as pd

    from apfex.runs import AuditRun, Run

EXAMPLES = options.examples(
    "apfex diff audit-april audit-may", "apfex diff apfex-people audit-may --json"
)

_MOST = 8
_LONGEST = 36
"""Letters beyond which a terminal gets the name of a group cut."""
_STYLES = {"larger": "red", "smaller": "green"}


def diff(
    earlier: Annotated[
        Path,
        typer.Argument(
            help="Folder of `apfex audit --out`; or of `apfex explore`, which has audited its "
            "chosen model.",
            metavar="EARLIER",
        ),
    ],
    now: Annotated[Path, typer.Argument(help="The same of other people, later.", metavar="NOW")],
    json: options.Json = False,
) -> None:
    """Say what changed between two audits: gaps and rates of groups, with intervals."""
    from apfex.runs import audit_in_words, common_rows, load_any

    screen = Screen(json)
    before, after = load_any(earlier), load_any(now)
    common = common_rows(before.record, after.record)
    if common == "all":
        screen.warn(
            f"{earlier} and {now} are of the same data; the intervals take the two to be of "
            "different people, and do not hold here."
        )
    elif common == "some":
        screen.warn(
            f"{earlier} and {now} are of the same data, and some rows may meet the conditions of "
            "both; the intervals take the two to be of different people, and hold only where no "
            "row is in both."
        )
    change = audit_in_words(after).diff(audit_in_words(before))
    screen.facts({"Earlier": _of(earlier, before), "Now": _of(now, after)})
    confidence = f"{100 * after.audit.settings.confidence:g}% intervals"
    _show("Gaps between groups", ["criterion", "by"], change.gaps, confidence, screen)
    names = [name for name in ("by", "group", "of", "class") if name in change.groups]
    _show("Rates of groups", names, change.groups, confidence, screen)
    for note in change.notes:
        screen.say()
        screen.say(note)
    tables = {name: getattr(change, name).to_dict("records") for name in ("gaps", "groups")}
    screen.finish({"earlier": str(earlier), "now": str(now), **tables})


def _of(folder: Path, run: Run | AuditRun) -> str:
    from apfex.runs import rows_in_words

    return f"{folder}: {rows_in_words(run.record)}, {run.audit.n_rows:,} decisions"


def _show(title: str, names: list[str], changes: pd.DataFrame, sure: str, screen: Screen) -> None:
    """How many have clearly changed, and a table of those that have changed most."""
    clear = changes["verdict"].isin(["larger", "smaller"])
    order = changes.assign(clear=clear, far=changes["change"].abs())
    order = order.sort_values(["clear", "far"], ascending=False, kind="stable", na_position="last")
    rows = order.head(_MOST).to_dict("records")
    shown = told_apart(
        (row[name] for row in rows for name in names),
        _LONGEST if screen.results.is_terminal else None,
    )
    counts = changes["verdict"].value_counts()
    told = ", ".join(f"{n:,} {verdict}" for verdict, n in counts.items())
    most = f"; {_MOST} of {len(changes):,}" if len(changes) > _MOST else ""
    screen.say()
    screen.say(f"{title}, {sure}: {told}{most}")
    screen.table(
        [*names, "earlier", "now", "change", "verdict"],
        [
            [
                *(shown[row[name]] for name in names),
                _known(row["earlier"]),
                _known(row["now"]),
                _interval(row),
                row["verdict"],
            ]
            for row in rows
        ],
        left=(*names, "change", "verdict"),
        styles=_STYLES,
    )


def _known(value: float) -> str:
    return "-" if value != value else f"{value:.3f}"


def _interval(row: dict) -> str:
    if row["change"] != row["change"] or row["lower"] != row["lower"]:
        return "-"
    return f"{row['change']:+.3f} ({row['lower']:+.3f} to {row['upper']:+.3f})"
