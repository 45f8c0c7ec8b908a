"""What was found in the data, as caveats for page and record and as warnings for the user."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

from apfex.plain import listed, printable
from apfex.sources import RunWarning, hint

if TYPE_CHECKING:
    from apfex.metrics import NotEstimableWarning
    from apfex.report import Caveat
    from apfex.runs._data import RunData

_MOST_NAMED = 12
_WHOLE = 0.9
"""Share of a group that a feature must find to reproduce its attribute."""


@final
@dataclass(frozen=True)
class _Finding:
    """A sentence on some features, and what a user may do about it."""

    code: str
    text: str
    remedy: str
    drop: Sequence[str]
    found: Any
    level: str = "warning"


def caveats_of_data(data: RunData, words: Sequence[str]) -> list[Caveat]:
    """What to know of the data before a model of it is used.

    Codes are "sensitive_inputs", "leak", "identifier", "proxy" and "date"; ``data`` of each has
    the ``features``. ``words`` are those for the two labels.
    """
    from apfex.report import Caveat

    inputs = [name for name in data.groups.levels if name in data.features]
    given = []
    if inputs:
        text = (
            f"Decides by sensitive columns themselves ({listed(inputs)}): people who differ in "
            "nothing else may be treated differently. That may be unlawful where it is to be used."
        )
        given = [Caveat("sensitive_inputs", "warning", text, {"features": inputs})]
    return given + [
        Caveat(
            one.code,
            "note" if one.level == "note" else "warning",
            one.text,
            {"features": list(one.drop)},
        )
        for one in _findings(data, words)
    ]


def caveats_of_training(caught: Sequence[NotEstimableWarning]) -> list[Caveat]:
    """Groups that the gaps that chose the model do not count, one caveat for each criterion.

    The code is "groups_left_out"; ``data`` has the ``criterion`` and the ``groups``.
    """
    from apfex.report import Caveat

    found = []
    for warning in caught:
        for criterion, groups in warning.left_out:
            text = (
                f"The model was chosen without these groups: among the {warning.n_rows:,} "
                f"validation rows they have none that counts for {criterion}, so the {criterion} "
                "gap that was looked at says nothing of them."
            )
            data = {"criterion": criterion, "groups": list(groups)}
            found.append(Caveat("groups_left_out", "warning", text, data))
    return found


def warn_of_data(data: RunData, words: Sequence[str]) -> None:
    """Warn of the same, with what to type; what is only good to know is no warning.

    That sensitive columns are among the features was asked for: it is told with the result.
    """
    for one in _findings(data, words):
        if one.level == "note":
            continue
        said = f"{one.text} {one.remedy}: {hint('drop')}"
        warning = RunWarning(said, drop=list(one.drop[:_MOST_NAMED]), found=one.found)
        warnings.warn(warning, stacklevel=5)


def _findings(data: RunData, words: Sequence[str]) -> Iterator[_Finding]:
    for leak in data.leaks:
        label = printable(words[leak.label], 40)
        yield _Finding(
            "leak",
            f"{_name(leak.feature)} gives the label away: by it alone {leak.rows:,} rows are taken "
            f"for “{label}”, and {_right(leak.rows, leak.wrong)}, {100 * leak.covered:.0f}% of all "
            f"“{label}”. A model that may see it looks better than it can be in use.",
            "If it is not known when decisions are made, leave it out",
            [leak.feature],
            leak,
        )
    for proxy in data.proxies:
        group = printable(f"{proxy.attribute}={proxy.level}", 60)
        attribute = _name(proxy.attribute)
        is_whole = proxy.covered >= _WHOLE
        verb = f"reproduces {attribute}" if is_whole else f"tells {attribute} of many rows"
        yield _Finding(
            "proxy",
            f"{_name(proxy.feature)} {verb}: by it alone "
            f"{proxy.rows:,} rows are taken for {group}, and {_right(proxy.rows, proxy.wrong)}, "
            f"{100 * proxy.covered:.0f}% of all {group}. The model is given no sensitive columns, "
            f"but this one tells it {attribute}.",
            "If it should not know, leave it out",
            [proxy.feature],
            proxy,
        )
    if data.identifiers:
        yield _Finding(
            "identifier",
            f"Nearly every row has its own value in {listed(data.identifiers)}, as an identifier "
            "has: all that a model can learn from it is single rows.",
            "Leave it out",
            data.identifiers,
            data.identifiers,
        )
    unclear = data.unclear_dates
    if unclear:
        yield _Finding(
            "date",
            f"{listed(unclear)} looks like dates in which day and month cannot be told apart: it "
            "is taken as text, which says nothing of earlier and later. Write dates as 2024-01-31.",
            "Or leave it out",
            unclear,
            unclear,
        )
    dates = [name for name, kind in data.features.items() if kind == "date"]
    if dates:
        yield _Finding(
            "date",
            f"{listed(dates)}: dates are taken as numbers, the days since 1 January 1970. New rows "
            "have later dates than any row that the model was trained on.",
            "If that is not meant, leave them out",
            dates,
            tuple(dates),
            "note",
        )


def _right(rows: int, wrong: int) -> str:
    return "all of them are" if wrong == 0 else f"{rows - wrong:,} of them are"


def _name(column: str) -> str:
    return printable(column, 40)
