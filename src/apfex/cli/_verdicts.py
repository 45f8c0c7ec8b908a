"""An audit in a terminal of 80 columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from apfex.cli._screen import Screen, shown

if TYPE_CHECKING:
    from apfex.auditing import Audit

_STYLES = {"violation": "red", "inconclusive": "yellow", "within tolerance": "green"}
_MOST_GAPS, _MOST_GROUPS = 8, 5


def show_audit(audit: Audit, screen: Screen) -> None:
    """The worst gaps and the worst-off groups; the rest is in the report and in JSON."""
    _show_gaps(audit, screen)
    _show_groups(audit, screen)
    if audit.notes:
        screen.say()
    for note in audit.notes:
        screen.say(shown(note))


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
                shown(row["by"], 36),
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
    label = shown(audit.settings.favorable_label, 30)
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
            [shown(row["group"], 44), f"{row['count']:,}", _share(row), _driver(row)]
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
    return f"{shown(row['driver'], 20)} (else {100 * row['others']:.1f}%)"


def _known(value: float, form: str) -> str:
    return "-" if value != value else format(value, form)


def _left_out(n: int, most: int) -> str:
    return f"; {most} of {n:,}, the worst first" if n > most else ""
