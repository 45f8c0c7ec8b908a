"""Rows to explore: from a data set that is known by name, from a file, or from a frame."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import numpy as np

from apfex.runs._columns import check_features, kinds_of, put_into_bins, read_weight
from apfex.runs._errors import Argument, RunError, listed, named, unknown
from apfex.runs._files import ENDINGS, Table, open_table
from apfex.runs._outcomes import MISSING, Outcome, read_outcomes
from apfex.runs._settings import ExploreSettings

if TYPE_CHECKING:
    import pandas as pd

_MOST_LEVELS = 50


@final
@dataclass(frozen=True, eq=False)
class Source:
    """A table, its labels and groups, and the words for them.

    Attributes
    ----------
    X, sensitive : DataFrame with n rows
    y : array of shape [n]
        Values of ``classes``.
    classes : tuple
        The negative and the positive label, in an order that sorting keeps.
    favorable : the label that a person would want
    words : mapping from label to what the file calls it
    label : str or None
        The column that is predicted; None for a data set by name.
    meaning : str
        What the positive label means, for people.
    weight : array of shape [n], or None
    kinds : mapping from feature to "number", "text" or "boolean"
    dropped : mapping from a reason to rows that were left out for it
    path : Path or None
        Of the file.
    sha256 : str
        Of the file, of the values of a frame, or of the files that the data set is made of.
    """

    name: str
    description: str
    X: pd.DataFrame
    y: np.ndarray
    sensitive: pd.DataFrame
    classes: tuple[Any, Any]
    favorable: Any
    words: Mapping[Any, str]
    label: str | None
    meaning: str
    weight: np.ndarray | None
    kinds: Mapping[str, str]
    dropped: Mapping[str, int]
    path: Path | None
    sha256: str

    @property
    def codes(self) -> np.ndarray:
        """Labels as 0 and 1."""
        return (self.y == self.classes[1]).astype(np.int64)

    def rows(self, places: np.ndarray) -> dict[str, Any]:
        """Some rows, as a classifier takes them."""
        return {
            "X": self.X.iloc[places],
            "y": self.y[places],
            "sensitive_features": self.sensitive.iloc[places],
            "sample_weight": None if self.weight is None else self.weight[places],
        }


def read_source(settings: ExploreSettings, frame: Any = None) -> Source:
    """Read a data set, a file or a frame; an error says which of them it might have been."""
    from apfex.datasets import list_datasets

    if settings.source is None:
        return _read_table(open_table(frame), settings)
    names = [info.name for info in list_datasets()]
    if settings.source in names:
        return _read_dataset(settings)
    path = Path(settings.source)
    if not path.exists() and path.suffix not in ENDINGS:
        raise unknown(
            settings.source,
            names,
            f"'{settings.source}' is no file, and no data set",
            there="data sets are",
        )
    return _read_table(open_table(path, settings.encoding), settings)


def _read_dataset(settings: ExploreSettings) -> Source:
    from apfex.datasets import list_datasets, load_dataset

    name = str(settings.source)
    for argument in ("label", "positive", "favorable", "bins", "weight", "encoding"):
        if getattr(settings, argument):
            raise RunError(
                Argument(argument), f" is for files: the data set {name} brings its own."
            )
    info = next(info for info in list_datasets() if info.name == name)
    data = load_dataset(name)
    sensitive = data.sensitive
    if settings.sensitive:
        columns = Table(name, tuple(sensitive.columns))
        sensitive = sensitive.filter(columns.names(settings.sensitive, "sensitive"))
    X = data.X.drop(columns=Table(name, tuple(data.X.columns)).names(settings.drop, "drop"))
    files = "".join(f"{file.name} {file.sha256}\n" for file in info.files)
    return Source(
        name=name,
        description=f"data set {name}, {info.licence}",
        X=X,
        y=data.y,
        sensitive=sensitive,
        classes=(0, 1),
        favorable=data.favorable_label,
        words={0: "0", 1: "1"},
        label=None,
        meaning=info.label,
        weight=None,
        kinds=kinds_of(X),
        dropped={},
        path=None,
        sha256=hashlib.sha256(files.encode()).hexdigest(),
    )


def _read_table(table: Table, settings: ExploreSettings) -> Source:
    _check_told(table, settings)
    label = table.column(str(settings.label), "label")
    sensitive = table.names(settings.sensitive, "sensitive")
    weight = None if settings.weight is None else table.column(settings.weight, "weight")
    drop = table.names(settings.drop, "drop")
    if label in (*sensitive, weight) or weight in sensitive:
        both = named("label", "sensitive", "weight")
        raise RunError(*both, " must name different columns.")
    features = [c for c in table.columns if c not in (label, weight, *sensitive, *drop)]
    if not features:
        raise RunError(f"{table.name} has no column left that could be a feature.")
    frame = table.read([*features, *sensitive, label, *([] if weight is None else [weight])])
    outcome = read_outcomes({"label": frame[label]}, settings.positive)[0]
    rows = np.flatnonzero(outcome.codes != MISSING)
    frame = frame.iloc[rows].reset_index(drop=True)
    classes = _classes(outcome)
    X = check_features(frame[features], table.name)
    return Source(
        name="frame" if table.path is None else table.path.name,
        description=table.describe(),
        X=X,
        y=np.array(classes)[outcome.codes[rows]],
        sensitive=put_into_bins(frame[sensitive], settings.bins, most=_MOST_LEVELS),
        classes=classes,
        favorable=_favorable(settings, outcome, classes),
        words=dict(zip(classes, (outcome.negative, outcome.positive), strict=True)),
        label=label,
        meaning=outcome.positive,
        weight=None if weight is None else read_weight(frame[weight]),
        kinds=kinds_of(X),
        dropped={"without a label": outcome.missing} if outcome.missing else {},
        path=table.path,
        sha256=table.sha256(),
    )


def _check_told(table: Table, settings: ExploreSettings) -> None:
    """Nothing is guessed: a user says what to predict, and for whom it must be fair."""
    needed = {"label": settings.label, "sensitive": settings.sensitive}
    lacking = [name for name, value in needed.items() if not value]
    if lacking:
        raise RunError(
            *named(*lacking),
            f" must name columns of {table.name}, which has {listed(table.columns)}.",
        )


def _classes(outcome: Outcome) -> tuple[Any, Any]:
    """Labels as they are written, where sorting puts the positive one last; else with a number."""
    pair = (outcome.negative, outcome.positive)
    if pair == ("0", "1"):
        return (0, 1)
    return pair if pair[0] < pair[1] else (f"0 = {pair[0]}", f"1 = {pair[1]}")


def _favorable(settings: ExploreSettings, outcome: Outcome, classes: tuple[Any, Any]) -> Any:
    if settings.favorable is None:
        return classes[1]
    pair = [outcome.negative, outcome.positive]
    if settings.favorable not in pair:
        raise RunError(
            Argument("favorable"),
            f" must be one of the two outcomes, {pair[0]} or {pair[1]}, got "
            f"'{settings.favorable}'.",
            found=settings.favorable,
        )
    return classes[pair.index(settings.favorable)]
