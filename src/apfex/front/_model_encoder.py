"""A table as inputs of the joint model: ours, then the label probabilities of a user's models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np
import torch
from sklearn.utils import _safe_indexing
from torch import Tensor

from apfex.front._cross_fit import Inputs, cross_fit, fit_inputs
from apfex.front._early_trees import begins_early, prepare_early
from apfex.front._init_model import as_frame
from apfex.front._label_models import LabelModel, read_init
from apfex.front._rows import Rows, TableEncoders, deal, encode, fit_encoders, strata
from apfex.models import (
    NOWHERE,
    Checkpoint,
    InitModel,
    JointLearner,
    JointModel,
    LabelColumnsLearner,
    TreeLearner,
)

if TYPE_CHECKING:
    from apfex.front._settings import SearchSettings


@final
@dataclass(frozen=True, eq=False)
class ModelEncoder:
    """A table as codes and numbers, beside what a user's models say of the label.

    Attributes
    ----------
    table : TableEncoders
        Of what the group is told from.
    models : tuple of LabelModel
        One for each fold, or the one in production.
    n_classes : int
    inputs : TableEncoder, TextAsCategories or None
        How the models get the table; None: as it is.
    names : tuple of str or None
        Columns of a frame in the order in which the models want them.

    Examples
    --------
    >>> from apfex.front._label_models import FunctionModel
    >>> from apfex.tables import TableEncoder
    >>> table = TableEncoders({"trees": TableEncoder(categories="codes").fit([[1.0], [2.0]])})
    >>> half = FunctionModel(lambda X: np.full(len(X), 0.5), "probabilities", 2)
    >>> ModelEncoder(table, (half,), 2).transform([[3.0]])
    array([[3. , 0.5, 0.5]])
    """

    table: TableEncoders
    models: tuple[LabelModel, ...]
    n_classes: int
    inputs: Inputs = None
    names: tuple[str, ...] | None = None

    @property
    def decides(self) -> bool:
        """Whether the last input is the decision of the model itself."""
        return bool(getattr(self.models[0], "decides", False))

    @property
    def n_inputs(self) -> int:
        """Ours, c for each model, and the decision where it is needed."""
        return self.table.n_inputs + self.n_classes * len(self.models) + self.decides

    @property
    def n_columns(self) -> set[int]:
        """Those of our part."""
        return self.table.n_columns

    def transform(self, X: Any) -> np.ndarray:
        """Rows as float64 [n, d]: a rounded probability could turn a decision."""
        ours, given = self._parts(X)
        found = [ours, *(model.probabilities(given) for model in self.models)]
        if self.decides:
            decided = self.models[0].decisions(given)
            assert decided is not None
            found.append(decided[:, None].astype(np.float64))
        return np.hstack(found)

    def transform_out_of_fold(self, X: Any, folds: np.ndarray) -> np.ndarray:
        """Rows of the fit, each with the probabilities of its own fold's model; others are NaN."""
        ours, given = self._parts(X)
        n, d, c = len(ours), ours.shape[1], self.n_classes
        found = np.full((n, self.n_inputs), np.nan)
        found[:, :d] = ours
        for fold, model in enumerate(self.models):
            own, start = np.flatnonzero(folds == fold), d + c * fold
            found[own, start : start + c] = model.probabilities(_safe_indexing(given, own))
        return found

    def _parts(self, X: Any) -> tuple[np.ndarray, Any]:
        frame = None if self.names is None else as_frame(X)
        if self.names is not None and frame is not None:
            X = frame.select(self.names).to_native()
        given = X if self.inputs is None else self.inputs.transform(X)
        return self.table.transform(X).astype(np.float64), given

    def learners(self, settings: SearchSettings, n: int, seed: int) -> list[JointLearner]:
        """The label by the models, the group by trees."""
        types = self.table.feature_types
        trees = TreeLearner(self.table.trees(settings, n, seed), types, settings.n_folds)
        kind = self.models[0].name
        return [LabelColumnsLearner(trees, self.table.n_inputs, len(self.models), kind)]

    def init_model(self, joint: JointModel) -> InitModel:
        """The model in production, as it decides."""
        decided = self.n_inputs - 1 if self.decides else None
        return InitModel(joint, self.table.n_inputs, decided)


@final
@dataclass(frozen=True, eq=False)
class PreparedRows:
    """What joint models are learnt from.

    Attributes
    ----------
    encoder : TableEncoders or ModelEncoder
    learners : sequence of JointLearner
    x : Tensor of shape [n, d]
    folds : int array of shape [n]
    """

    encoder: TableEncoders | ModelEncoder
    learners: Sequence[JointLearner]
    x: Tensor
    folds: np.ndarray

    @property
    def steps(self) -> int:
        """Those of all learners."""
        return sum(learner.steps for learner in self.learners)


def prepare_rows(
    rows: Rows,
    part: np.ndarray,
    settings: SearchSettings,
    seed: int,
    checkpoint: Checkpoint = NOWHERE,
) -> PreparedRows:
    """Fit encoders, and a user's classifier if there is one, to some of the rows."""
    folds = deal(strata(rows)[part], settings.n_folds, seed)
    n, no_model = len(part), settings.init is None and settings.estimator is None
    if no_model and begins_early(settings, n, checkpoint):
        encoders, learners, x = prepare_early(rows, part, settings, seed, folds)
        return PreparedRows(encoders, learners, x, folds)
    ours = fit_encoders(rows, part, settings)
    if no_model:
        x = encode(ours, rows, part, settings)
        return PreparedRows(ours, ours.learners(settings, n, seed), x, folds)
    names, c = _names(rows.X), len(rows.classes)
    if settings.init is not None:
        encoder = ModelEncoder(ours, (read_init(settings.init, rows),), c, names=names)
        x = encode(encoder, rows, part, settings)
    else:
        inputs = fit_inputs(settings.estimator, rows.take(part))
        models = cross_fit(settings.estimator, rows, part, folds, inputs, seed, checkpoint)
        encoder = ModelEncoder(ours, tuple(models), c, inputs, names)
        found = encoder.transform_out_of_fold(rows.take(part), folds)
        x = torch.from_numpy(found).to(settings.device)
    return PreparedRows(encoder, encoder.learners(settings, n, seed), x, folds)


def _names(X: Any) -> tuple[str, ...] | None:
    """Columns of a frame by their names, where those are text."""
    frame = as_frame(X) if all(isinstance(n, str) for n in getattr(X, "columns", [0])) else None
    return None if frame is None else tuple(frame.columns)
