"""Rows to explore: from a data set that is known by name, or from a file."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import numpy as np

from apfex.cli._errors import CommandError, listed, nearest
from apfex.cli._features import kinds_of, usable
from apfex.cli._files import ENDINGS, TableFile, open_table
from apfex.cli._groups import put_into_bins
from apfex.cli._outcomes import MISSING, Outcome, read_outcomes
from apfex.cli._screen import shown
from apfex.cli._settings import ExploreSettings
from apfex.cli._weights import read_weight

if TYPE_CHECKING:
    import pandas as pd

_MOST_LEVELS = 50
_LABEL_ONE = re.compile(r"Label 1: ([^.]*)\.")


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
    label : str
        What is predicted, for people.
    weight : array of shape [n], or None
    kinds : mapping from feature to "number", "text" or "boolean"
    dropped : mapping from a reason to rows that were left out for it
    path : Path or None
        Of the file.
    sha256 : str
        Of the file, or of the files that the data set is made of.
    """

    name: str
    description: str
    X: pd.DataFrame
    y: np.ndarray
    sensitive: pd.DataFrame
    classes: tuple[Any, Any]
    favorable: Any
    words: Mapping[Any, str]
    label: str
    weight: np.ndarray | None
    kinds: Mapping[str, str]
    dropped: Mapping[str, int]
    path: Path | None
    sha256: str

    @property
    def codes(self) -> np.ndarray:
        """Labels as 0 and 1."""
        return (self.y == self.classes[1]).astype(np.int64)


def read_source(settings: ExploreSettings) -> Source:
    """Read a data set by its name, or a file; an error says which of the two it might have been."""
    from apfex.datasets import list_datasets

    names = [info.name for info in list_datasets()]
    if settings.source in names:
        return _read_dataset(settings)
    path = Path(settings.source)
    if not path.exists() and path.suffix not in ENDINGS:
        near = nearest(settings.source, names)
        hint = f"did you mean {near}?" if near else f"data sets are {', '.join(names)}."
        raise CommandError(f"'{shown(settings.source)}' is no file, and no data set; {hint}")
    return _read_file(open_table(path, settings.encoding), settings)


def _read_dataset(settings: ExploreSettings) -> Source:
    from apfex.datasets import list_datasets, load_dataset

    name = settings.source
    for option in ("label", "positive", "favorable", "bins", "weight", "encoding"):
        if getattr(settings, option):
            raise CommandError(f"--{option} is for files: the data set {name} brings its own.")
    info = next(info for info in list_datasets() if info.name == name)
    data = load_dataset(name)
    sensitive = data.sensitive
    if settings.sensitive:
        columns = TableFile(Path(name), "csv", tuple(sensitive.columns))
        sensitive = sensitive.filter(columns.names(settings.sensitive, "--sensitive"))
    drop = TableFile(Path(name), "csv", tuple(data.X.columns)).names(settings.drop, "--drop")
    X = data.X.drop(columns=drop)
    said = _LABEL_ONE.search(info.description)
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
        label=f"1: {said[1]}" if said else "1",
        weight=None,
        kinds=kinds_of(X),
        dropped={},
        path=None,
        sha256=hashlib.sha256(files.encode()).hexdigest(),
    )


def _read_file(table: TableFile, settings: ExploreSettings) -> Source:
    _check_told(table, settings)
    label = table.column(str(settings.label), "--label")
    sensitive = table.names(settings.sensitive, "--sensitive")
    weight = None if settings.weight is None else table.column(settings.weight, "--weight")
    drop = table.names(settings.drop, "--drop")
    if label in (*sensitive, weight) or weight in sensitive:
        raise CommandError("--label, --sensitive and --weight must name different columns.")
    features = [c for c in table.columns if c not in (label, weight, *sensitive, *drop)]
    if not features:
        raise CommandError(f"{table.path} has no column left that could be a feature.")
    frame = table.read([*features, *sensitive, label, *([] if weight is None else [weight])])
    outcome = read_outcomes({"--label": frame[label]}, settings.positive)[0]
    rows = np.flatnonzero(outcome.codes != MISSING)
    frame = frame.iloc[rows].reset_index(drop=True)
    classes = _classes(outcome)
    X = usable(frame[features], table.path)
    return Source(
        name=table.path.name,
        description=table.describe(),
        X=X,
        y=np.array(classes)[outcome.codes[rows]],
        sensitive=put_into_bins(frame[sensitive], settings.bins, most=_MOST_LEVELS),
        classes=classes,
        favorable=_favorable(settings, outcome, classes),
        words=dict(zip(classes, (outcome.negative, outcome.positive), strict=True)),
        label=f"{shown(label)}, positive: {shown(outcome.positive, 40)}",
        weight=None if weight is None else read_weight(frame[weight]),
        kinds=kinds_of(X),
        dropped={"without a label": outcome.missing} if outcome.missing else {},
        path=table.path,
        sha256=table.sha256(),
    )


def _check_told(table: TableFile, settings: ExploreSettings) -> None:
    """Nothing is guessed: a user says what to predict, and for whom it must be fair."""
    needed = {"--label": settings.label, "--sensitive": settings.sensitive}
    lacking = [option for option, value in needed.items() if not value]
    if lacking:
        raise CommandError(
            f"{' and '.join(lacking)} must name columns of {table.path}, which has "
            f"{listed(table.columns)}."
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
        raise CommandError(
            f"--favorable must be one of the two outcomes, {shown(pair[0])} or {shown(pair[1])}, "
            f"got '{shown(settings.favorable)}'."
        )
    return classes[pair.index(settings.favorable)]
