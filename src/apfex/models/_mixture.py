"""Learners of joint models, and their mixture with the least loss out of fold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import torch
from torch import Tensor, nn

from apfex.models._calibration import calibrate_out_of_fold
from apfex.models._checkpoint import NOWHERE, Checkpoint
from apfex.models._joint_model import TINY, JointModel
from apfex.models._rows import JointRows, labels_of

_MIXTURES = 11
"""Shares of a further learner that are tried, from 0 to 1."""


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
        float(-(part.clamp_min(TINY).log() @ weight.to(part))) for part in (own[0], mixed)
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
