"""The data of a run: what was taken for what, which rows are held back, and what was found."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, final

import numpy as np

from apfex.plain import printable
from apfex.runs._checks import Leak, find_identifiers, find_leaks
from apfex.runs._columns import GroupCounts, check_few
from apfex.runs._errors import Argument, RunError, RunWarning, listed
from apfex.runs._settings import ExploreSettings
from apfex.runs._source import Source, read_source


@final
@dataclass(frozen=True)
class RunData:
    """What was taken for what, and what was found in the data.

    Attributes
    ----------
    name, description : str
        Of the file, frame or data set, and its form.
    path : str or None
        Of the file.
    sha256 : str
    rows, fit_rows, test_rows : int
        Rows in all, to fit and choose by, and held back to measure on.
    dropped : mapping from a reason to rows that were left out for it
    label : str or None
        The column that is predicted; None for a data set by name.
    positive : str
        What the positive label means.
    share_positive : float
    favorable : str
        The outcome that a person would want, in the words of the file.
    groups : GroupCounts
    features : mapping from column to "number", "text" or "boolean"
    leaks : tuple of Leak
        Features that give the label away.
    identifiers : tuple of str
        Columns that only name rows.
    """

    name: str
    description: str
    path: str | None
    sha256: str
    rows: int
    fit_rows: int
    test_rows: int
    dropped: Mapping[str, int]
    label: str | None
    positive: str
    share_positive: float
    favorable: str
    groups: GroupCounts
    features: Mapping[str, str]
    leaks: tuple[Leak, ...]
    identifiers: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)

    @staticmethod
    def from_dict(stored: Mapping[str, Any]) -> RunData:
        """From JSON."""
        try:
            nested = {
                "groups": GroupCounts(**stored["groups"]),
                "leaks": tuple(Leak(**leak) for leak in stored["leaks"]),
                "identifiers": tuple(stored["identifiers"]),
            }
            return RunData(**{**stored, **nested})
        except (KeyError, TypeError) as error:
            raise RunError(f"The facts of the data are damaged: {error}.") from error


@final
@dataclass(frozen=True, eq=False)
class Task:
    """Rows to fit and rows held back, with what was found of them."""

    settings: ExploreSettings
    source: Source
    fit: np.ndarray
    test: np.ndarray
    data: RunData


def prepare(settings: ExploreSettings, frame: Any = None) -> Task:
    from apfex.groups import make_groups

    source = read_source(settings, frame)
    groups = make_groups(source.sensitive)
    check_few(groups)
    fit, test = hold_back(source.codes, groups.codes, settings.test_fraction, settings.seed)
    data = RunData(
        name=source.name,
        description=source.description,
        path=None if source.path is None else str(source.path.resolve()),
        sha256=source.sha256,
        rows=len(source.y),
        fit_rows=len(fit),
        test_rows=len(test),
        dropped=dict(source.dropped),
        label=source.label,
        positive=source.meaning,
        share_positive=float(source.codes.mean()),
        favorable=source.words[source.favorable],
        groups=GroupCounts.of(groups),
        features=dict(source.kinds),
        leaks=tuple(find_leaks(source.X.iloc[fit], source.codes[fit], settings.seed)),
        identifiers=tuple(find_identifiers(source.X, source.kinds)),
    )
    return Task(settings, source, fit, test, data)


def hold_back(
    y: np.ndarray, codes: np.ndarray, fraction: float, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Rows to fit, and rows to report on: every group and label has its share in both parts."""
    from apfex.tables import stratified_sample

    held = stratified_sample(2 * codes + y, fraction, seed, both=(y,))
    fit, test = np.flatnonzero(~held), np.flatnonzero(held)
    for part, name in ((fit, "left to fit"), (test, "held back")):
        if len(np.unique(y[part])) < 2:
            raise RunError(
                f"{len(y):,} rows are too few: the {len(part):,} {name} must have both labels.",
                found=len(y),
            )
    return fit, test


def warn_of_data(task: Task) -> None:
    source, data = task.source, task.data
    for leak in data.leaks:
        label = printable(source.words[source.classes[leak.label]], 40)
        warning = RunWarning(
            f"{leak.feature} gives the label away: by it alone {leak.rows:,} rows are taken for "
            f"{label}, and {leak.rows - leak.wrong:,} are, {100 * leak.covered:.0f}% of all "
            f"{label}. If it is not known in time, leave it out: ",
            Argument("drop", [leak.feature]),
            found=leak,
        )
        warnings.warn(warning, stacklevel=4)
    if data.identifiers:
        warning = RunWarning(
            f"Nearly every row has a value of its own in {listed(data.identifiers)}, as in an "
            "identifier: from that a model can but learn rows by heart. Leave it out: ",
            Argument("drop", list(data.identifiers[:12])),
            found=data.identifiers,
        )
        warnings.warn(warning, stacklevel=4)
