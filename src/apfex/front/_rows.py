"""Rows that a front is searched with: which learn, which choose, and as inputs of models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, final

import numpy as np
import torch
from sklearn.utils import _safe_indexing
from torch import Tensor

from apfex.chunks import (
    ChunkedColumnsLearner,
    ChunkedLearner,
    ChunkedNetworkLearner,
    ChunkedTreeLearner,
)
from apfex.front._cells import CellGroupings
from apfex.front._encoded_rows import EncodedRows
from apfex.groups import Groups, make_groups
from apfex.metrics import accuracy, balanced_accuracy
from apfex.models import (
    ColumnsLearner,
    JointLearner,
    JointRows,
    TrainingRows,
    TreeLearner,
    TreeSettings,
    beside,
    mixture_gain,
    network_learners,
    use_threads,
)
from apfex.rates import ConfusionCounts, count_rows
from apfex.tables import TableEncoder, TableSummary, read_table, stratified_sample

if TYPE_CHECKING:
    from apfex.front._scoring import Scoring
    from apfex.front._settings import SearchSettings

_SAMPLE, _LOOK_FOLDS = 2_000, 2
"""Rows of a large table by which ``model="auto"`` tells whether networks help, and their folds."""
_LEAST_GAIN = 0.01
"""Share of the log loss of trees that networks must save there."""


@final
@dataclass(frozen=True, eq=False)
class Rows:
    """Rows that a front is searched with; those of weight zero are not among them.

    Attributes
    ----------
    X : table or array of n rows
        The columns that are inputs.
    y : int array of shape [n]
        Codes into ``classes``.
    classes : array of shape [c]
    crossing : Groups or None
        Of all sensitive attributes.
    groupings : sequence of Groups
        Those whose gaps count: the crossing, or each attribute.
    sample_weight : array of shape [n] or None
    """

    X: Any
    y: np.ndarray
    classes: np.ndarray
    crossing: Groups | None
    groupings: Sequence[Groups]
    sample_weight: np.ndarray | None

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return len(self.y)

    @property
    def label_totals(self) -> np.ndarray:
        """Sum of weights of each label [c]."""
        return np.bincount(self.y, self.sample_weight, minlength=len(self.classes))

    def take(self, part: np.ndarray) -> Any:
        """Inputs of some of the rows."""
        return _safe_indexing(self.X, part)

    def part(self, part: np.ndarray) -> Rows:
        """Some of the rows."""
        return Rows(
            self.take(part),
            self.y[part],
            self.classes,
            None if self.crossing is None else self.crossing.take(part),
            [grouping.take(part) for grouping in self.groupings],
            None if self.sample_weight is None else self.sample_weight[part],
        )

    def training(self, part: np.ndarray, x: Tensor) -> TrainingRows:
        """Some of the rows with their inputs, to learn from."""
        codes = np.empty((len(self.groupings), len(part)), dtype=np.int64)
        for place, grouping in enumerate(self.groupings):
            codes[place] = grouping.codes[part]
        weight = self.sample_weight
        return TrainingRows(
            x=x,
            y=torch.from_numpy(self.y[part]).to(x.device),
            codes=torch.from_numpy(codes).to(x.device),
            n_groups=tuple(len(grouping) for grouping in self.groupings),
            sample_weight=None if weight is None else torch.from_numpy(weight[part]).to(x),
        )

    def cells(self, part: np.ndarray) -> CellGroupings | None:
        """What takes the place of the groups where there are many, by some of the rows."""
        shape = 1 if self.crossing is None else len(self.crossing), len(self.classes)
        counts = np.bincount(strata(self)[part], minlength=shape[0] * shape[1]).reshape(shape)
        return CellGroupings.of(self.crossing, counts)

    def joint(
        self, part: np.ndarray, x: Tensor, folds: Tensor, many: CellGroupings | None
    ) -> JointRows:
        """Some of the rows with their inputs and folds, to learn group and label together from."""
        weight = self.sample_weight
        k = 1 if self.crossing is None else len(self.crossing)
        learnt = CellGroupings.targets(many, (k, len(self.classes)))
        return JointRows(
            x,
            learnt.of(torch.from_numpy(strata(self)[part])).to(x.device),
            learnt.shape,
            folds,
            None if weight is None else torch.from_numpy(weight[part]).to(x),
            learnt.sizes,
        )

    def validation(self, part: np.ndarray) -> ValidationRows:
        """Labels and groups of some of the rows, to choose by."""
        everybody = make_groups(np.zeros(len(self.y), dtype=np.int64))
        crossing = everybody if self.crossing is None else self.crossing
        weight = self.sample_weight
        return ValidationRows(
            y=self.y[part],
            groupings=[grouping.take(part) for grouping in self.groupings],
            crossing=crossing.take(part),
            sample_weight=None if weight is None else weight[part],
            classes=self.classes.tolist(),
        )


@final
@dataclass(frozen=True, eq=False)
class ValidationRows:
    """Labels, groups and weights of the rows by which points are chosen."""

    y: np.ndarray
    groupings: Sequence[Groups]
    crossing: Groups
    sample_weight: np.ndarray | None
    classes: Sequence[Any]

    @property
    def n_rows(self) -> int:
        """How many there are."""
        return len(self.y)

    @property
    def n_classes(self) -> int:
        """How many labels there are."""
        return len(self.classes)

    @property
    def is_multiclass(self) -> bool:
        """Whether there are more than two classes."""
        return self.n_classes > 2

    @property
    def weight(self) -> np.ndarray:
        """Weights, or ones."""
        return np.ones(len(self.y)) if self.sample_weight is None else self.sample_weight

    def facts(self) -> list[Tensor]:
        """All that points are measured by, as a checkpoint compares it."""
        return [torch.from_numpy(part) for part in (self.y, self.crossing.codes, self.weight)]

    def count(self, decisions: np.ndarray, favorable: int) -> ConfusionCounts:
        """Confusion counts of decisions [n], of the groups of the crossing."""
        return count_rows(
            self.y,
            decisions,
            self.crossing,
            self.sample_weight,
            classes=self.classes,
            favorable=favorable,
        )

    def errors(self, decisions: np.ndarray) -> tuple[float, float]:
        """Error and balanced error of decisions [n]."""
        weight = self.sample_weight
        right = accuracy(self.y, decisions, sample_weight=weight)
        return 1 - right, 1 - balanced_accuracy(self.y, decisions, sample_weight=weight)

    def constant_losses(self, scoring: Scoring) -> Tensor:
        """Losses [c] of deciding for each class alone."""
        constants = torch.arange(self.n_classes).unsqueeze(1).expand(-1, self.n_rows)
        return scoring.losses(constants, self)


def strata(rows: Rows) -> np.ndarray:
    """Number of the label within the group of each row."""
    codes = np.zeros(len(rows.y), dtype=np.int64) if rows.crossing is None else rows.crossing.codes
    return codes * len(rows.classes) + rows.y


def split(rows: Rows, fraction: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Training and validation rows, even within each label and group.

    A label within a group has rows in both parts if it has two, and so has every label. The
    only row of a label is for training.
    """
    parts = strata(rows)
    chosen = stratified_sample(parts, fraction, seed, both=(parts, rows.y))
    chosen[np.bincount(rows.y)[rows.y] == 1] = False
    check_enough(rows)
    return np.flatnonzero(~chosen), np.flatnonzero(chosen)


def deal(parts: np.ndarray, n_folds: int, seed: int) -> np.ndarray:
    """Fold of each row, from 0 on; even within each of the parts [n]."""
    generator = np.random.default_rng([seed, n_folds])
    order = np.lexsort((generator.random(len(parts)), parts))
    folds = np.empty(len(parts), dtype=np.int64)
    folds[order] = np.arange(len(parts)) % n_folds
    return folds


def check_enough(rows: Rows) -> None:
    """Refuse rows of which none could choose."""
    if np.bincount(rows.y).max() < 2:
        raise ValueError(
            "y must have two rows of a class, one to learn from and one to choose by, got "
            f"n_samples={len(rows.y)} of {len(rows.classes)} classes."
        )


class Encoder(Protocol):
    """Turns a table into the inputs of models."""

    @property
    def n_inputs(self) -> int:
        """Inputs of the models."""
        ...

    @property
    def n_columns(self) -> set[int]:
        """How many columns of a table it takes; parts that disagree are all there."""
        ...

    def transform(self, X: Any) -> np.ndarray:
        """Rows as float32 [n, d]."""
        ...


@final
@dataclass(frozen=True, eq=False)
class TableEncoders:
    """A table as the inputs of one family of models beside those of another.

    Attributes
    ----------
    encoders : mapping from family to fitted TableEncoder
        "networks", "trees", or both.

    Examples
    --------
    >>> encoders = TableEncoders({"trees": TableEncoder(categories="codes").fit([[1.0], [2.0]])})
    >>> encoders.n_inputs, encoders.feature_types
    (1, ['q'])
    """

    encoders: Mapping[str, TableEncoder]

    @staticmethod
    def fit(X: Any, y: np.ndarray, settings: SearchSettings, n: int) -> TableEncoders:
        """Fit an encoder for each family; trees take categories and missing values as they are."""
        encoders = {}
        if settings.has_networks:
            encoders["networks"] = TableEncoder(bins=settings.bins_for(n)).fit(X, y)
        if settings.has_trees:
            encoders["trees"] = TableEncoder(categories="codes").fit(X)
        return TableEncoders(encoders)

    @staticmethod
    def fit_summary(
        summary: TableSummary, sample: Rows, settings: SearchSettings, n: int
    ) -> TableEncoders:
        """Fit them to the summary of n rows; bins of numbers are chosen by a sample."""
        encoders = {}
        if settings.has_networks:
            encoder = TableEncoder(bins=settings.bins_for(n))
            encoders["networks"] = encoder.fit_summary(summary, sample.X, sample.y)
        if settings.has_trees:
            encoders["trees"] = TableEncoder(categories="codes").fit_summary(summary)
        return TableEncoders(encoders)

    def transform(self, X: Any) -> np.ndarray:
        """Rows as float32 [n, d]."""
        return self.open(X).transform()

    def open(self, X: Any) -> EncodedRows:
        """Rows that are encoded a chunk at a time, when models ask for them."""
        table = read_table(X)
        fills = [(one.fill(table), one.n_features_out_) for one in self.encoders.values()]
        return EncodedRows(table.n_rows, fills)

    @property
    def n_columns(self) -> set[int]:
        """How many columns each encoder takes."""
        return {encoder.n_features_in_ for encoder in self.encoders.values()}

    @property
    def names(self) -> list[str]:
        """Of the inputs of trees."""
        return [str(name) for name in self.encoders["trees"].get_feature_names_out()]

    @property
    def feature_types(self) -> list[str]:
        """Of the inputs of trees: "q" or "c"."""
        return self.encoders["trees"].feature_types_

    def trees(self, settings: SearchSettings, n: int, seed: int) -> TreeSettings:
        """How to grow trees on n rows of these inputs."""
        constant = {str(name) for name in self.encoders["trees"].dropped_}
        return settings.trees(n, seed, self.names, self.feature_types, constant)

    @property
    def n_inputs(self) -> int:
        """Columns of all families."""
        return sum(encoder.n_features_out_ for encoder in self.encoders.values())

    def learners(self, settings: SearchSettings, n: int, seed: int) -> list[JointLearner]:
        """Learners of joint models to train on n rows, each on its own inputs."""
        found: list[JointLearner] = []
        for family, place in self._places():
            made: list[JointLearner]
            if family == "networks":
                made = [*network_learners(settings.hidden_for(n), settings.training(n, seed))]
            else:
                trees = self.trees(settings, n, seed)
                made = [TreeLearner(trees, self.feature_types, settings.n_folds)]
            found += made if place is None else [ColumnsLearner(one, *place) for one in made]
        return found

    def chunked_learners(
        self, settings: SearchSettings, n: int, seed: int, folder: Path
    ) -> list[ChunkedLearner]:
        """The same for n rows in chunks; trees keep them in bins in a folder."""
        found: list[ChunkedLearner] = []
        for family, place in self._places():
            made: list[ChunkedLearner]
            if family == "networks":
                plain = network_learners(settings.hidden_for(n), settings.training(n, seed))
                made = [
                    ChunkedNetworkLearner(one.hidden, one.training, settings.device)
                    for one in plain
                ]
            else:
                trees = self.trees(settings, n, seed)
                made = [ChunkedTreeLearner(trees, self.feature_types, settings.n_folds, folder)]
            found += made if place is None else [ChunkedColumnsLearner(one, *place) for one in made]
        return found

    def _places(self) -> list[tuple[str, tuple[int, int] | None]]:
        """Which inputs each family has; None where it has all of them."""
        widths = [encoder.n_features_out_ for encoder in self.encoders.values()]
        places = pairwise(accumulate(widths, initial=0))
        alone = len(widths) == 1
        return [(f, None if alone else p) for f, p in zip(self.encoders, places, strict=True)]


def fit_encoders(rows: Rows, part: np.ndarray, settings: SearchSettings) -> TableEncoders:
    """Fit the encoders to some of the rows."""
    if settings.looks_first(len(part)) and not networks_help(rows, part, settings):
        settings = replace(settings, models=("boosting",))
    encoders = TableEncoders.fit(rows.take(part), rows.y[part], settings, len(rows.y))
    return with_inputs(encoders)


def fit_encoders_to_summary(
    summary: TableSummary, sample: Rows, settings: SearchSettings
) -> TableEncoders:
    """The same for a table that is not in memory; a sample tells whether networks help."""
    n, everything = summary.rows, np.arange(len(sample.y))
    if settings.looks_first(n) and not networks_help(sample, everything, settings):
        settings = replace(settings, models=("boosting",))
    return with_inputs(TableEncoders.fit_summary(summary, sample, settings, n))


def with_inputs(encoders: TableEncoders) -> TableEncoders:
    """The encoders, if any column varies."""
    if not encoders.n_inputs:
        dropped = next(iter(encoders.encoders.values())).dropped_
        raise ValueError(f"X must have a column that varies, got none: {dropped}.")
    return encoders


def networks_help(rows: Rows, part: np.ndarray, settings: SearchSettings) -> bool:
    """Whether a sample of the rows is predicted clearly better by linear models beside trees.

    These are quick, and where they do not help networks hardly ever do.
    """
    chosen = stratified_sample(strata(rows)[part], min(1.0, _SAMPLE / len(part)), seed=0)
    sample = part[chosen]
    encoders = TableEncoders.fit(rows.take(sample), rows.y[sample], settings, _SAMPLE)
    if len(encoders.encoders) < 2 or not encoders.n_inputs:
        return False
    looking = replace(settings, validation_fraction=1 / _LOOK_FOLDS)
    folds = torch.from_numpy(deal(strata(rows)[sample], _LOOK_FOLDS, 0))
    x = torch.from_numpy(encoders.transform(rows.take(sample)))  # a GPU takes longer for so few
    joint = replace(rows.joint(sample, x, folds, rows.cells(part)), sample_weight=None)
    *networks, trees = encoders.learners(looking, _SAMPLE, 0)

    def out_of_fold(learner: JointLearner) -> Tensor:
        return learner.fit(joint, lambda: None)[1]

    of_trees = beside(lambda: out_of_fold(trees))
    with use_threads(1):  # products of so few rows gain nothing from more
        of_networks = [out_of_fold(network) for network in networks]
    return mixture_gain(joint, [of_trees(), *of_networks]) >= _LEAST_GAIN


def encode(encoder: Encoder, rows: Rows, part: np.ndarray, settings: SearchSettings) -> Tensor:
    """Inputs of some of the rows, on the device."""
    return torch.from_numpy(encoder.transform(rows.take(part))).to(settings.device)
