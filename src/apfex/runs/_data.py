"""From a data set, a file or a frame to rows to fit and test rows, and what was found in them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import numpy as np

from apfex.plain import nearest
from apfex.runs._columns import (
    FeatureType,
    GroupCounts,
    check_usable,
    find_columns,
    group_columns,
    make_features,
    read_groups,
    read_weight,
    without_bins,
)
from apfex.runs._data_checks import Leak, Proxy, find_identifiers, find_leaks, find_proxies
from apfex.runs._dates import is_unclear_date
from apfex.runs._labels import MISSING, read_outcomes
from apfex.runs._settings import ExploreSettings
from apfex.sources import ENDINGS, RunError, Table, hint, nearest_file, open_table, unknown

if TYPE_CHECKING:
    import pandas as pd

    from apfex.estimator import APFExClassifier
    from apfex.groups import Groups
    from apfex.report import MeasuredFront

MOST_LEVELS = 200
MOST_GROUPS = 200
"""Cells of the crossing beyond which a page is too long, and rates of cells say little."""


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
        Of the file, of the values of a frame, or of the files that the data set is made of.
    rows, fit_rows, test_rows : int
        Rows in all, to fit and choose by, and to measure on.
    dropped : mapping from a reason to rows that were left out for it
    label : str or None
        The column that is predicted; None for a data set by name.
    positive : str
        What the positive label means.
    base_rate : float
        Share of rows with the positive label.
    favorable : str
        The outcome that a person would want, in the words of the file.
    groups : GroupCounts
    features : mapping from column to "number", "text", "boolean" or "date"
    leaks : tuple of Leak
        Features that give the label away.
    identifiers : tuple of str
        Columns that only name rows.
    proxies : tuple of Proxy
        Features that reproduce a sensitive attribute.
    unclear_dates : tuple of str
        Text like 03/04/2024, of which nobody can say which number is the month.
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
    base_rate: float
    favorable: str
    groups: GroupCounts
    features: Mapping[str, str]
    leaks: tuple[Leak, ...]
    identifiers: tuple[str, ...]
    proxies: tuple[Proxy, ...] = ()
    unclear_dates: tuple[str, ...] = ()

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
                "proxies": tuple(Proxy(**proxy) for proxy in stored.get("proxies", ())),
                "unclear_dates": tuple(stored.get("unclear_dates", ())),
            }
            return RunData(**{**stored, **nested})
        except (KeyError, TypeError) as error:
            raise RunError(f"What the record says of the data is damaged: {error}.") from error


@final
@dataclass(frozen=True, eq=False)
class LabelledRows:
    """Features, labels and groups of n rows, and the words for them.

    Attributes
    ----------
    X : DataFrame with n rows
        Dates are numbers of days.
    types : mapping from column to what it held
    codes : int array of shape [n]
        Labels as 0 and 1, which is positive.
    groups : Groups
    weight : array of shape [n], or None
    classes : tuple
        The labels as the classifier has them: in an order that sorting keeps.
    words : tuple of str
        The same two as the file has them.
    favorable : int
        Code of the label that a person would want.
    """

    X: pd.DataFrame
    types: Mapping[str, FeatureType]
    codes: np.ndarray
    groups: Groups
    weight: np.ndarray | None = None
    classes: tuple[Any, Any] = (0, 1)
    words: tuple[str, str] = ("0", "1")
    favorable: int = 1

    def take(self, rows: np.ndarray, *, by_group: bool = False) -> dict[str, Any]:
        """Some rows, as a classifier takes them; ``by_group`` where it decides by the group."""
        groups = self.groups.take(rows, drop_empty=True)
        return {
            "X": self.X.iloc[rows],
            "y": np.array(self.classes)[self.codes[rows]],
            "sensitive_features": group_columns(groups) if by_group else groups,
            "sample_weight": None if self.weight is None else self.weight[rows],
        }


@final
@dataclass(frozen=True, eq=False)
class SplitData:
    """All rows, places of those to fit and of the test rows, and what was found in them."""

    rows: LabelledRows
    fit: np.ndarray
    test: np.ndarray
    about: RunData
    by_group: bool

    @property
    def classes(self) -> tuple[Any, Any]:
        """The labels as the classifier has them."""
        return self.rows.classes

    @property
    def words(self) -> tuple[str, str]:
        """The labels as the file has them."""
        return self.rows.words

    @property
    def favorable(self) -> int:
        """Code of the label that a person would want."""
        return self.rows.favorable

    def fit_arguments(self) -> dict[str, Any]:
        """The rows to fit, as a classifier takes them."""
        return self.rows.take(self.fit, by_group=self.by_group)

    def measure(self, clf: APFExClassifier, **limits: Any) -> MeasuredFront:
        """Measure all points of a classifier on the test rows."""
        from apfex.report import measure_front

        return measure_front(clf, **self.rows.take(self.test, by_group=self.by_group), **limits)


def check_group_count(found: int) -> None:
    """Refuse more groups than a report shows."""
    if found > MOST_GROUPS:
        raise RunError(
            f"{hint('sensitive')} makes {found:,} groups where its columns are combined; a report "
            f"shows at most {MOST_GROUPS}: name fewer columns, or put values together "
            "(APFExClassifier in Python takes thousands of groups).",
            found=found,
        )


def read_and_split(settings: ExploreSettings, frame: Any = None) -> SplitData:
    """Read the data of a run, deal its rows, and look for what a user should know."""
    rows, facts = _read_source(settings, frame)
    check_group_count(len(rows.groups))
    fit, test = _split(rows, settings.test_fraction, settings.seed)
    fitted = rows.X.iloc[fit]
    proxies = (
        []
        if settings.include_sensitive
        else find_proxies(fitted, rows.groups.take(fit), settings.seed)
    )
    texts = [name for name, kind in rows.types.items() if kind == "text"]
    about = RunData(
        **facts,
        rows=len(rows.codes),
        fit_rows=len(fit),
        test_rows=len(test),
        base_rate=float(rows.codes.mean()),
        favorable=rows.words[rows.favorable],
        groups=GroupCounts.of(rows.groups),
        features=rows.types,
        leaks=tuple(find_leaks(fitted, rows.codes[fit], settings.seed)),
        identifiers=tuple(find_identifiers(rows.X, rows.types)),
        proxies=tuple(proxies),
        unclear_dates=tuple(
            str(name) for name, column in rows.X[texts].items() if is_unclear_date(column)
        ),
    )
    return SplitData(rows, fit, test, about, settings.group_thresholds)


def _split(rows: LabelledRows, fraction: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows to fit, and test rows: every group and label has its share in both parts."""
    from apfex.tables import stratified_sample

    y = rows.codes
    is_test = stratified_sample(2 * rows.groups.codes + y, fraction, seed, both=(y,))
    fit, test = np.flatnonzero(~is_test), np.flatnonzero(is_test)
    for part, name in ((fit, "rows to train on"), (test, "test rows")):
        if len(np.unique(y[part])) < 2:
            raise RunError(
                f"{len(y):,} rows are too few: the {len(part):,} {name} must have both labels.",
                found=len(y),
            )
    return fit, test


def _read_source(settings: ExploreSettings, frame: Any) -> tuple[LabelledRows, dict[str, Any]]:
    """Rows of a data set, a file or a frame, and facts of them for :class:`RunData`."""
    from apfex.datasets import list_datasets

    if settings.source is None:
        return _read_table(open_table(frame), settings)
    names = [info.name for info in list_datasets()]
    if settings.source in names:
        return _read_dataset(settings.source, settings)
    path = Path(settings.source)
    if not path.exists() and path.suffix not in ENDINGS and settings.source != "-":
        said = f"'{settings.source}' is no file, and no data set"
        near = nearest_file(path) if path.suffix else None
        if near and not nearest(settings.source, names):
            text = f"There is no file {path}; did you mean {near}?"
            raise RunError(text, found=settings.source, suggestion=near.name)
        raise unknown(settings.source, names, said, there="data sets are")
    return _read_table(open_table(path, settings.encoding, settings.sheet), settings)


def _read_dataset(name: str, settings: ExploreSettings) -> tuple[LabelledRows, dict[str, Any]]:
    from apfex.datasets import list_datasets, load_dataset
    from apfex.groups import make_groups

    files_only = ("label", "positive", "favorable", "bins", "weight", "encoding", "sheet")
    for argument in files_only:
        if getattr(settings, argument):
            raise RunError(f"{hint(argument)} is for files: the data set {name} brings its own.")
    info = next(info for info in list_datasets() if info.name == name)
    data = load_dataset(name)
    people = data.sensitive
    if settings.sensitive:
        columns = Table(name, tuple(people.columns))
        people = people.filter(columns.names(settings.sensitive, "sensitive"))
    drop = Table(name, tuple(data.X.columns)).names(settings.drop, "drop")
    files = "".join(f"{file.name} {file.sha256}\n" for file in info.files)
    facts = {
        "name": name,
        "path": None,
        "sha256": hashlib.sha256(files.encode()).hexdigest(),
        "description": f"data set {name}, {info.licence}",
        "label": None,
        "positive": info.label,
        "dropped": {},
    }
    X = data.X.drop(columns=drop)
    if settings.include_sensitive:
        X = X.assign(**{str(name): column for name, column in people.items()})
    X, types = make_features(X, name)
    favorable = int(data.favorable_label)
    return LabelledRows(X, types, data.y, make_groups(people), favorable=favorable), facts


def _read_table(table: Table, settings: ExploreSettings) -> tuple[LabelledRows, dict[str, Any]]:
    needed = ("label", "sensitive")
    columns, sensitive = find_columns(table, settings, ("label", "weight"), needed)
    drop = table.names(settings.drop, "drop")
    taken = (*columns.values(), *sensitive, *drop)
    features = [name for name in table.columns if name not in taken]
    if settings.include_sensitive:
        features += [name for name in sensitive if name not in drop]
    if not features:
        raise RunError(f"{table.name} has no column left for the model to decide by.")
    check_usable(table, features)
    wanted = list(dict.fromkeys([*features, *sensitive, *columns.values()]))
    frame = table.read(wanted, codes=without_bins(sensitive, settings.bins))
    outcome = read_outcomes({"label": frame[columns["label"]]}, settings.positive)[0]
    labelled = np.flatnonzero(outcome.codes != MISSING)
    frame = frame.iloc[labelled].reset_index(drop=True)
    words = (outcome.negative, outcome.positive)
    X, types = make_features(frame[features], table.name)
    rows = LabelledRows(
        X=X,
        types=types,
        codes=outcome.codes[labelled],
        groups=read_groups(frame[sensitive], settings.bins, most_levels=MOST_LEVELS),
        weight=read_weight(frame[columns["weight"]]) if "weight" in columns else None,
        classes=classes_of(*words),
        words=words,
        favorable=favorable_of(settings, words),
    )
    return rows, {
        **table.identity(),
        "description": table.describe(),
        "label": columns["label"],
        "positive": outcome.positive,
        "dropped": {"without a label": outcome.missing} if outcome.missing else {},
    }


def classes_of(negative: str, positive: str) -> tuple[Any, Any]:
    """Labels as they are written, where sorting puts the positive one last; else with a number."""
    if (negative, positive) == ("0", "1"):
        return (0, 1)
    in_order = negative < positive
    return (negative, positive) if in_order else (f"0 = {negative}", f"1 = {positive}")


def favorable_of(settings: ExploreSettings, words: tuple[str, str]) -> int:
    """Code of the outcome that a person would want."""
    if settings.favorable is None:
        return 1
    if settings.favorable not in words:
        raise RunError(
            f"{hint('favorable')} must be one of the two outcomes, {words[0]} or {words[1]}, got "
            f"'{settings.favorable}'.",
            found=settings.favorable,
        )
    return words.index(settings.favorable)
