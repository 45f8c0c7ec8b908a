"""The joint model: probabilities of group and label together, cross-fitted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Protocol, final

import torch
from torch import Tensor, nn

from apfex.models._calibration import calibrate_joint, calibrate_out_of_fold
from apfex.models._checkpoint import NOWHERE, Checkpoint
from apfex.models._rows import JointRows, labels_of

_MIXTURES = 11
"""Shares of a further learner that are tried, from 0 to 1."""
_TINY = 1e-30


@final
class JointModel(nn.Module):
    """Probabilities of each group and label given the inputs: a weighted mean of models.

    Parameters
    ----------
    models : sequence of modules with k * c logits as outputs
    weights : sequence of float
        Weights of the models' probabilities; they sum to one.
    shape : pair of int
        k and c.
    calibration : sequence of 1 + c floats, optional
        A slope and offsets that mend the probabilities of the label; those of the group given the
        label stay as they are. See :func:`fit_calibration`.
    cells : int64 Tensor of shape [cells, s], optional
        Where the k groups are those of s groupings of many cells: the groups of each cell.

    Examples
    --------
    >>> model = JointModel([nn.Linear(3, 4)], [1.0], (2, 2))
    >>> model(torch.zeros(5, 3)).shape
    torch.Size([5, 2, 2])
    """

    cells: Tensor | None

    def __init__(
        self,
        models: Sequence[nn.Module],
        weights: Sequence[float],
        shape: tuple[int, int],
        calibration: Sequence[float] | None = None,
        cells: Tensor | None = None,
    ) -> None:
        super().__init__()
        self.register_buffer("cells", cells)
        self.calibration = None if calibration is None else tuple(map(float, calibration))
        self.models = nn.ModuleList(models)
        self.weights = tuple(weights)
        self.shape = shape

    def mixture(self) -> dict[str, float]:
        """Return how much each kind of model counts, by the names of ``model=``.

        A user's own model goes by the name of its class.
        """
        shares: dict[str, float] = {}
        for weight, model in zip(self.weights, self.models, strict=True):
            kind = kind_of(model)
            shares[kind] = shares.get(kind, 0.0) + weight
        return {kind: round(share, 4) for kind, share in shares.items()}

    def forward(self, x: Tensor) -> Tensor:
        """Return probabilities [n, k, c]."""
        parts = zip(self.weights, _logits(self.models, x), strict=True)
        total = sum(weight * torch.softmax(logits, 1) for weight, logits in parts)
        joint = torch.as_tensor(total).unflatten(1, self.shape)
        return joint if self.calibration is None else calibrate_joint(joint, self.calibration)

    def of_cells(self, cells: Tensor) -> JointModel:
        """The same models, where the groups are those of several groupings of many cells."""
        return JointModel(
            list(self.models), self.weights, self.shape, self.calibration, cells.to(torch.int64)
        )

    def given(self, probabilities: Tensor, codes: Tensor) -> Tensor:
        """Condition probabilities [n, k, c] on known groups, or cells, [n]; -1: not known."""
        if self.cells is not None:
            own = self.cells[codes.clamp_min(0)]
            codes = torch.where((codes >= 0).unsqueeze(1), own, -1)
        return given_groups(probabilities, codes)


@final
class ColumnsModel(nn.Module):
    """A model that is given some of the inputs only.

    Parameters
    ----------
    model : module
    start, stop : int
        The model sees the inputs from ``start`` up to, but not including, ``stop``.

    Examples
    --------
    >>> ColumnsModel(nn.Linear(2, 4), 1, 3)(torch.zeros(5, 3)).shape
    torch.Size([5, 4])
    """

    def __init__(self, model: nn.Module, start: int, stop: int) -> None:
        super().__init__()
        self.model, self.start, self.stop = model, start, stop
        self.kind = kind_of(model)

    def forward(self, x: Tensor) -> Tensor:
        """Return the outputs of the model."""
        return self.model(x[:, self.start : self.stop])


def _logits(models: Iterable[nn.Module], x: Tensor) -> Iterator[Tensor]:
    """What each model says of the rows; neighbours that are linear take one product together."""
    for inputs, neighbours in groupby(models, _inputs_of_layer):
        some = list(neighbours)
        if inputs is None:
            yield from (model(x) for model in some)
            continue
        layers = [_layer(model) for model in some]
        weight = torch.cat([layer.weight for layer in layers])
        bias = torch.cat([layer.bias for layer in layers])
        outputs = nn.functional.linear(x[:, slice(*inputs)], weight, bias)
        yield from outputs.split([layer.out_features for layer in layers], 1)


def _inputs_of_layer(model: nn.Module) -> tuple[int, int | None] | None:
    """Where the inputs of a model begin and end that is one linear layer; None of any other."""
    if isinstance(model, ColumnsModel):
        return (model.start, model.stop) if _inputs_of_layer(model.model) else None
    is_layer = isinstance(model, nn.Linear) or (
        isinstance(model, nn.Sequential) and len(model) == 1 and isinstance(model[0], nn.Linear)
    )
    return (0, None) if is_layer else None


def _layer(model: nn.Module) -> nn.Linear:
    return next(part for part in model.modules() if isinstance(part, nn.Linear))


def kind_of(model: nn.Module) -> str:
    """What ``model=`` calls a module: what it says itself; of a network, by its layers.

    Examples
    --------
    >>> kind_of(nn.Linear(2, 4)), kind_of(nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 4)))
    ('linear', 'mlp')
    """
    kind = getattr(model, "kind", None)
    if isinstance(kind, str):
        return kind
    if not isinstance(model, nn.Linear | nn.Sequential):
        raise TypeError(
            "models must be linear layers, sequences of layers, or have a kind, got "
            f"{type(model).__name__} without one."
        )
    layers = [part for part in model.modules() if isinstance(part, nn.Linear)]
    return "linear" if len(layers) == 1 else "mlp"


class JointLearner(Protocol):
    """Something that learns group and label together, once for each fold."""

    @property
    def steps(self) -> int:
        """How often ``fit`` calls ``on_step``."""
        ...

    def fit(
        self, rows: JointRows, on_step: Callable[[], None], checkpoint: Checkpoint = NOWHERE
    ) -> tuple[list[nn.Module], Tensor]:
        """Train a model with k * c logits for each fold, without the rows of that fold.

        Returns the models, and out-of-fold probabilities [n, k * c]. ``on_step`` is called as the
        training advances. What is finished is kept in the checkpoint.
        """
        ...


def fit_joint_model(
    rows: JointRows,
    learners: Sequence[JointLearner],
    on_step: Callable[[], None] = lambda: None,
    checkpoint: Checkpoint = NOWHERE,
) -> tuple[JointModel, Tensor]:
    """Train a joint model, and predict every row by the models that did not learn from it.

    Parameters
    ----------
    rows : JointRows
    learners : sequence of JointLearner
        :func:`network_learners`, for instance.
    on_step : callable, optional
        Called as the training advances, as often as the steps of all learners say.
    checkpoint : Checkpoint, optional
        Where what is finished is kept.

    Returns
    -------
    model : JointModel
        All models together.
    out_of_fold : Tensor of shape [n, k, c]
        For each row the probabilities by models that were trained without its fold.

    Notes
    -----
    Learners are mixed in the proportion with the least log loss out of fold: small tables have no
    use for networks, and large ones none for linear models. The label probabilities of the mixture
    are calibrated by the same predictions, where that makes them better.

    Examples
    --------
    >>> from apfex.models import TrainingSettings, network_learners
    >>> rows = JointRows(torch.randn(40, 3), torch.arange(40) % 4, (2, 2), torch.arange(40) % 4)
    >>> learners = network_learners((8,), TrainingSettings(epochs=2))
    >>> model, out_of_fold = fit_joint_model(rows, learners)
    >>> out_of_fold.shape
    torch.Size([40, 2, 2])
    """
    fitted = [
        learner.fit(rows, on_step, checkpoint.part(f"learner{place}"))
        for place, learner in enumerate(learners)
    ]
    return mix_learners(fitted, rows.targets, rows.weight, rows.folds, rows.shape)


def mix_learners(
    fitted: Sequence[tuple[list[nn.Module], Tensor]],
    targets: Tensor,
    weight: Tensor,
    folds: Tensor,
    shape: tuple[int, int],
) -> tuple[JointModel, Tensor]:
    """Mix what learners have learnt, and calibrate it, by their out-of-fold probabilities.

    Parameters
    ----------
    fitted : sequence of models and Tensor of shape [n, k * c]
        The models of each learner, and what they predict of rows that they did not learn from.
    targets, weight, folds : Tensors of shape [n]
        Of these rows.
    shape : pair of int
        k and c.

    Returns
    -------
    As :func:`fit_joint_model`.
    """
    out_of_fold = [probabilities for _, probabilities in fitted]
    shares = _best_shares(out_of_fold, targets, weight)
    models, weights = [], []
    for (found, _), share in zip(fitted, shares, strict=True):
        if share > 0:
            models += found
            weights += [share / len(found)] * len(found)
    kept = [share * part for share, part in zip(shares, out_of_fold, strict=True) if share > 0]
    mixed = torch.stack(kept).sum(0)
    joint = mixed.unflatten(1, shape)
    labels = labels_of(targets, shape[1])
    calibration, joint = calibrate_out_of_fold(joint, labels, weight, folds)
    return JointModel(models, weights, shape, calibration), joint


def mixture_gain(rows: JointRows, out_of_fold: Sequence[Tensor]) -> float:
    """Share of the log loss of a learner that its mixture with others saves.

    Parameters
    ----------
    rows : JointRows
    out_of_fold : sequence of Tensor of shape [n, k * c]
        What the learner predicts of rows that it did not learn from, and what the others do.

    Returns
    -------
    float
        0: the others are of no use.

    Examples
    --------
    >>> from apfex.models import TrainingSettings, network_learners
    >>> rows = JointRows(torch.randn(40, 3), torch.arange(40) % 4, (2, 2), torch.arange(40) % 4)
    >>> (learner,) = network_learners((), TrainingSettings(epochs=2))
    >>> _, out_of_fold = learner.fit(rows, lambda: None)
    >>> mixture_gain(rows, [out_of_fold])
    0.0
    """
    shares = _best_shares(out_of_fold, rows.targets, rows.weight)
    own = _own_probabilities(out_of_fold, rows.targets)
    mixed = torch.stack([share * part for share, part in zip(shares, own, strict=True)]).sum(0)
    weight = _as_own(rows.weight, rows.targets)
    alone, together = (
        float(-(part.clamp_min(_TINY).log() @ weight.to(part))) for part in (own[0], mixed)
    )
    return 1 - together / alone if alone > 0 else 0.0


def _own_probabilities(out_of_fold: Sequence[Tensor], targets: Tensor) -> list[Tensor]:
    """Probabilities of what each row is, grouping by grouping; one that has diverged knows nothing.

    Of shape [n], or [n * s] where there are several groupings.
    """
    own = (part.gather(1, targets.view(len(part), -1)).flatten() for part in out_of_fold)
    return [part.nan_to_num(0.0) for part in own]


def _as_own(weight: Tensor, targets: Tensor) -> Tensor:
    """Weights [n] for the probabilities of what each row is."""
    return weight.repeat_interleave(targets.numel() // len(targets))


def _best_shares(out_of_fold: Sequence[Tensor], targets: Tensor, weight: Tensor) -> list[float]:
    """Shares of the learners with the least log loss, found one learner after the other."""
    own, weight = _own_probabilities(out_of_fold, targets), _as_own(weight, targets)
    grid = torch.linspace(0, 1, _MIXTURES).to(own[0])
    shares, so_far = [1.0], own[0]
    for part in own[1:]:
        mixed = torch.lerp(so_far, part, grid.unsqueeze(1))
        best = int((mixed.clamp_min(1e-12).log() @ weight.to(mixed)).argmax())
        share, so_far = float(grid[best]), mixed[best]
        shares = [*(other * (1 - share) for other in shares), share]
    return shares


@final
@dataclass(frozen=True, eq=False)
class OutOfFoldPredictions:
    """Rows as models see them that did not learn from them, beside what the rows are.

    Attributes
    ----------
    probabilities : Tensor of shape [n, k, c]
        Out-of-fold probabilities of each group and label.
    targets : int64 Tensor of shape [n], or [n, s]
        ``group * c + label`` of each row, as in :class:`JointRows`.
    sample_weight : Tensor of shape [n] or None
    stands_for : int or None
        Rows that these are a weighted sample of; None where they are all there are.

    Examples
    --------
    >>> q = torch.tensor([[[0.4, 0.1], [0.2, 0.3]]])
    >>> OutOfFoldPredictions(q, torch.tensor([3])).memberships(trusted_rows=1.0)
    tensor([[0.4000, 0.1000, 0.2000, 0.6500]])
    """

    probabilities: Tensor
    targets: Tensor
    sample_weight: Tensor | None = None
    stands_for: int | None = None

    def shares(self) -> Tensor:
        """Return the weight of each row, summing to one."""
        weight = self.sample_weight
        if weight is None:
            return torch.full_like(self.probabilities[:, 0, 0], 1 / len(self.targets))
        return (weight / weight.sum()).to(self.probabilities)

    def label_shares(self) -> Tensor:
        """Return the share of each label [c] among the rows."""
        c = self.probabilities.shape[2]
        own = torch.nn.functional.one_hot(labels_of(self.targets, c), c).to(self.probabilities)
        return self.shares() @ own

    @property
    def n_groupings(self) -> int:
        """Groupings in each of which a row is in one group."""
        return 1 if self.targets.ndim == 1 else self.targets.shape[1]

    def take(self, rows: Tensor) -> OutOfFoldPredictions:
        """Return the predictions of some of the rows."""
        weight = None if self.sample_weight is None else self.sample_weight[rows]
        return OutOfFoldPredictions(
            self.probabilities[rows], self.targets[rows], weight, self.stands_for
        )

    def given_groups(self) -> OutOfFoldPredictions:
        """Return the predictions given the true group of each row."""
        c = self.probabilities.shape[2]
        return replace(self, probabilities=given_groups(self.probabilities, self.targets // c))

    def memberships(self, trusted_rows: float) -> Tensor:
        """Return how much each row counts for each group and label, shape [n, k * c].

        This is a mean of what the row is and of what the models predict. For a group and label with
        as many rows as ``trusted_rows`` both count the same; for a smaller one the models count
        more.
        """
        flat, shares = self.probabilities.flatten(1), self.shares()
        parts = self.n_groupings
        own = torch.zeros_like(flat).scatter_(1, self.targets.view(len(flat), -1), 1 / parts)
        trust = trusted_rows / (trusted_rows + parts * self._effective_rows(shares, own))
        return torch.lerp(own, flat, trust)

    def _effective_rows(self, shares: Tensor, own: Tensor) -> Tensor:
        """Rows of each group and label [k c], by Kish's formula.

        Of a sample each is counted on its own: some are kept whole, and of others few are taken.
        """
        if self.stands_for is None:
            effective = 1 / (shares**2).sum()
            return effective * (shares @ own)
        return (shares @ own) ** 2 / (shares**2 @ own).clamp_min(_TINY)

    def row_share(self) -> float:
        """Return what one row counts: one over their effective number, or that of all rows."""
        if self.stands_for is not None:
            return 1 / self.stands_for
        return float((self.shares() ** 2).sum())


def given_groups(probabilities: Tensor, codes: Tensor) -> Tensor:
    """Condition probabilities [n, k, c] on known groups [n]; a code of -1 leaves a row as it is.

    With codes [n, s] on a known group of each of s groupings, which count the same.

    Examples
    --------
    >>> given_groups(torch.tensor([[[0.4, 0.1], [0.2, 0.3]]]), torch.tensor([1]))
    tensor([[[0.0000, 0.0000],
             [0.4000, 0.6000]]])
    """
    places = codes.clamp_min(0).view(len(codes), -1)
    own = torch.zeros_like(probabilities[:, :, 0]).scatter_(1, places, 1.0)
    kept = probabilities * own.unsqueeze(2)
    if codes.ndim == 2:
        known = kept / (codes.shape[1] * kept.sum(2, keepdim=True)).clamp_min(_TINY)
        return torch.where((codes >= 0).all(1)[:, None, None], known, probabilities)
    known = kept / kept.sum((1, 2), keepdim=True).clamp_min(_TINY)
    return torch.where((codes >= 0)[:, None, None], known, probabilities)
