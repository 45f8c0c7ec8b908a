"""Decisions of a file, and who they are about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import numpy as np

from apfex.cli._errors import CommandError, listed
from apfex.cli._files import TableFile, open_table
from apfex.cli._groups import bins_for, put_into_bins
from apfex.cli._outcomes import MISSING, Outcome, is_score, read_outcomes
from apfex.cli._screen import shown
from apfex.cli._weights import read_weight

if TYPE_CHECKING:
    import pandas as pd

    from apfex.groups import Groups

_MOST_LEVELS = 100_000
_MANY_NUMBERS = 20


@final
@dataclass(frozen=True)
class AuditOptions:
    """What ``audit`` is asked for, as it is stored with a run."""

    source: str
    prediction: str
    sensitive: tuple[str, ...]
    label: str | None = None
    positive: str | None = None
    threshold: float | None = None
    bins: Mapping[str, Sequence[float]] | None = None
    weight: str | None = None
    criteria: tuple[str, ...] = ("dp", "tpr")
    tolerance: float = 0.05
    confidence: float = 0.95
    min_count: float = 10
    drop_missing: bool = False
    encoding: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


@final
@dataclass(frozen=True, eq=False)
class Decisions:
    """Complete rows: a decision each, a group, a label if there are labels.

    Attributes
    ----------
    table : TableFile
    decided : Outcome
    label : Outcome or None
    groups : Groups
    weight, score : array of shape [n], or None
    dropped : int
        Rows without a decision or label, left out because the user said so.
    notes : tuple of str
    """

    table: TableFile
    decided: Outcome
    label: Outcome | None
    groups: Groups
    weight: np.ndarray | None
    score: np.ndarray | None
    dropped: int
    notes: tuple[str, ...]


def read_decisions(options: AuditOptions) -> Decisions:
    """Read only the columns that are needed, and refuse what would have to be guessed."""
    from apfex.groups import make_groups

    table = open_table(Path(options.source), options.encoding)
    columns, sensitive = _columns(table, options)
    frame = table.read(list(dict.fromkeys([*columns.values(), *sensitive])))
    decided, label, score = _outcomes(frame, columns, options)
    complete = decided.codes != MISSING
    if label is not None:
        complete &= label.codes != MISSING
    dropped = int((~complete).sum())
    if dropped:
        _check_missing(table, decided, label, options)
        frame = frame[complete].reset_index(drop=True)
        decided, score = _take(decided, complete), None if score is None else score[complete]
        label = None if label is None else _take(label, complete)
    people = put_into_bins(frame[sensitive], options.bins, most=_MOST_LEVELS)
    weight = read_weight(frame[columns["--weight"]]) if "--weight" in columns else None
    groups = make_groups(people)
    if len(groups) < 2:
        raise CommandError(f"--sensitive must tell groups apart, got one: {groups.names[0]}.")
    return Decisions(table, decided, label, groups, weight, score, dropped, _notes(people))


def _columns(table: TableFile, options: AuditOptions) -> tuple[dict[str, str], list[str]]:
    """The columns that options name, and the sensitive ones."""
    if not options.sensitive:
        raise CommandError(
            f"--sensitive must name columns of {table.path}, which has {listed(table.columns)}."
        )
    given = {
        "--prediction": options.prediction,
        "--label": options.label,
        "--weight": options.weight,
    }
    columns = {
        option: table.column(name, option) for option, name in given.items() if name is not None
    }
    if len(set(columns.values())) < len(columns):
        raise CommandError(f"{' and '.join(columns)} must name different columns.")
    return columns, table.names(options.sensitive, "--sensitive")


def _outcomes(
    frame: Any, columns: Mapping[str, str], options: AuditOptions
) -> tuple[Outcome, Outcome | None, np.ndarray | None]:
    """Decisions, labels and scores."""
    series = {
        option: frame[columns[option]]
        for option in ("--prediction", "--label")
        if option in columns
    }
    if options.threshold is None:
        _check_decided(series["--prediction"])
        outcomes = read_outcomes(series, options.positive)
        return outcomes[0], outcomes[1] if len(outcomes) > 1 else None, None
    decided, score = _decide(series.pop("--prediction"), options.threshold)
    if options.positive is not None and not series:
        raise CommandError("--positive must not be given with --threshold and no --label.")
    labels = read_outcomes(series, options.positive) if series else [None]
    return decided, labels[0], score


def _check_decided(column: pd.Series) -> None:
    if is_score(column):
        low, high = column.min(), column.max()
        raise CommandError(
            f"--prediction {shown(column.name)} must hold decisions, got numbers from {low:.3g} to "
            f"{high:.3g}. Are they scores? Then say from which on it is decided, for instance "
            f"--threshold {0.5 if 0 <= low <= high <= 1 else 0}"
        )


def _decide(column: pd.Series, threshold: float) -> tuple[Outcome, np.ndarray]:
    if getattr(column.dtype, "kind", "O") not in "iuf":
        raise CommandError(f"--threshold needs numbers, but {shown(column.name)} holds none.")
    score = column.to_numpy(np.float64)
    codes = np.where(np.isnan(score), MISSING, score >= threshold)
    name = str(column.name)
    return Outcome(name, codes, f"{name} from {threshold:g} on", f"{name} below"), score


def _check_missing(
    table: TableFile, decided: Outcome, label: Outcome | None, options: AuditOptions
) -> None:
    """Rows without a decision may be the ones that matter: nobody leaves them out unasked."""
    if options.drop_missing:
        return
    lacking = [
        f"{shown(outcome.name)} in {outcome.missing:,}"
        for outcome in (decided, label)
        if outcome is not None and outcome.missing
    ]
    raise CommandError(
        f"{table.path} has no value of {' and of '.join(lacking)} of {len(decided.codes):,} rows; "
        "fill them in, or leave these rows out: --drop-missing"
    )


def _take(outcome: Outcome, rows: np.ndarray) -> Outcome:
    return replace(outcome, codes=outcome.codes[rows])


def _notes(people: pd.DataFrame) -> tuple[str, ...]:
    """Numbers with many levels are probably meant to be in bins."""
    numbers = people.select_dtypes("number")
    return tuple(
        f"{name} is a number with {column.nunique():,} levels; for ranges: {bins_for(column)}"
        for name, column in numbers.items()
        if column.nunique() > _MANY_NUMBERS
    )
