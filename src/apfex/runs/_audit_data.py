"""What was taken for what in a table of decisions, and the rules that rows and engines share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from apfex.plain import printable
from apfex.runs._columns import GroupCounts, find_columns
from apfex.runs._labels import Outcome
from apfex.runs._settings import AuditFileSettings
from apfex.sources import RunError, hint

if TYPE_CHECKING:
    from apfex.groups import Groups
    from apfex.sources import Table

MOST_LEVELS = 100_000


@final
@dataclass(frozen=True, eq=False)
class AuditData:
    """What was taken for what in a table of decisions.

    Attributes
    ----------
    description : str
        Name and form of the table.
    decided, label : Outcome
        With name, positive, negative and share; label is None where there are no labels.
    groups : GroupCounts
    dropped : int
        Rows without a decision, label or score, left out because the user said so.
    score : str or None
        Column of scores.
    control : GroupCounts or None
        Strata of the control features.
    """

    description: str
    decided: Outcome
    label: Outcome | None
    groups: GroupCounts
    dropped: int
    score: str | None = None
    control: GroupCounts | None = None

    @property
    def rows(self) -> int:
        """Rows that are audited."""
        return self.decided.n_rows


def named_columns(
    table: Table, settings: AuditFileSettings
) -> tuple[dict[str, str], list[str], list[str]]:
    """Columns by the argument that names them, sensitive ones, and control features."""
    arguments = ("prediction", "label", "weight", "score")
    columns, sensitive = find_columns(table, settings, arguments, ("sensitive",))
    control = table.names(settings.control, "control")
    both = [name for name in control if name in sensitive]
    if both:
        raise RunError(
            f"{hint('control')} {both[0]} is among {hint('sensitive')}: people who are alike "
            "in it have "
            "no gap between its groups.",
            found=both[0],
        )
    return columns, sensitive, control


def check_groups(groups: Groups) -> Groups:
    """Refuse a single group."""
    if len(groups) < 2:
        raise RunError(
            f"{hint('sensitive')} must tell groups apart, got one: "
            f"{printable(groups.names[0], 80)}.",
            found=groups.names[0],
        )
    return groups


def check_strata(strata: Groups) -> Groups:
    """Refuse more strata than anybody compares."""
    from apfex.auditing import MOST_STRATA

    if len(strata) > MOST_STRATA:
        raise RunError(
            f"{hint('control')} must form at most {MOST_STRATA} strata, got {len(strata):,}; put "
            f"numbers into bins ({hint('bins')}), merge levels or leave a column out.",
            found=len(strata),
        )
    return strata


def missing_values(table: str, found: Mapping[str, int], rows: int) -> RunError:
    """Rows without a decision may be the ones that matter: nobody leaves them out unasked.

    ``found`` has the number of rows without a value of each column.
    """
    if not rows:
        return RunError(f"{table} has no rows that could be audited.", found=0)
    said = " and of ".join(f"{name} in {n:,}" for name, n in found.items())
    return RunError(
        f"{table} has no value of {said} of {rows:,} rows; fill them in, or leave these rows out: "
        f"{hint('drop_missing')}",
        drop_missing=True,
        found=dict(found),
    )
