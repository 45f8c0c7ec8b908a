"""Calibration: label probabilities that are what they say, on rows new to the model."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

_STEPS, _HALVINGS = 25, 10
_PRIOR_ROWS = 0.01
"""Rows' worth of belief that probabilities are right as they are: enough for a minimum to exist."""
_TINY = 1e-12


def fit_calibration(
    probabilities: Tensor, y: Tensor, weight: Tensor, folds: Tensor
) -> tuple[float, ...] | None:
    """Fit a slope and an offset for each class that mend out-of-fold label probabilities.

    Parameters
    ----------
    probabilities : Tensor of shape [n, c]
        Of the label, by models that did not learn from the row.
    y : int64 Tensor of shape [n]
    weight : Tensor of shape [n]
    folds : int64 Tensor of shape [n]
        Parts of the rows; whether to mend anything is decided by the log loss of each part under
        the figures of the others.

    Returns
    -------
    tuple of 1 + c floats, or None
        The slope, then the offsets; None where the probabilities are as good as they are.

    Notes
    -----
    Platt's scaling [1]_, for several classes as a softmax with a common slope, and without his
    smoothed targets: the slope and offsets are pulled to 1 and 0 by little more than nothing.

    References
    ----------
    .. [1] J. Platt, "Probabilistic outputs for support vector machines and comparisons to
       regularized likelihood methods", 1999.

    Examples
    --------
    >>> y = torch.tensor([0, 1, 0, 1] * 50)
    >>> timid = torch.where(y.bool(), 0.6, 0.4)
    >>> p = torch.stack([1 - timid, timid], 1)
    >>> found = fit_calibration(p, y, torch.ones(200), torch.arange(200) // 2 % 2)
    >>> calibrate(p, found)[:2].round(decimals=1)
    tensor([[1., 0.],
            [0., 1.]])
    """
    return _fit(probabilities, y, weight, folds)[0]


def calibrate_out_of_fold(
    joint: Tensor, y: Tensor, weight: Tensor, folds: Tensor
) -> tuple[tuple[float, ...] | None, Tensor]:
    """Fit the calibration of a joint model by its out-of-fold probabilities, and mend these.

    Parameters
    ----------
    joint : Tensor of shape [n, k, c]
    y, weight, folds
        As for :func:`fit_calibration`.

    Returns
    -------
    calibration : tuple of 1 + c floats, or None
    mended : Tensor of shape [n, k, c]
        Each row by the figures of the other folds, so that it has no part in its own prediction.
    """
    calibration, of_others = _fit(joint.sum(1), y, weight, folds)
    if calibration is None:
        return None, joint
    mended = torch.empty_like(joint)
    for part, figures in of_others.items():
        mended[folds == part] = calibrate_joint(joint[folds == part], figures)
    return calibration, mended


def _fit(
    probabilities: Tensor, y: Tensor, weight: Tensor, folds: Tensor
) -> tuple[tuple[float, ...] | None, dict[int, list[float]]]:
    """Figures by all rows, or None, and for each fold those by the others."""
    if not probabilities.isfinite().all():  # training has diverged
        return None, {}
    logits, shares = probabilities.double().clamp_min(_TINY).log(), (weight / weight.sum()).double()
    as_is = logits.new_tensor([1.0, *[0.0] * logits.shape[1]])
    whole, gained, of_others = _newton(logits, y, shares, as_is, as_is), 0.0, {}
    for part in folds.unique().tolist():
        own = folds == part
        if own.all():
            return None, {}
        found = _newton(logits[~own], y[~own], shares[~own], as_is, whole)
        before, after = (_log_loss(logits[own], y[own], shares[own], f) for f in (as_is, found))
        gained += float(before - after)
        of_others[part] = found.tolist()
    if not gained > 0:
        return None, of_others
    return tuple(whole.tolist()), of_others


def calibrate(probabilities: Tensor, calibration: Sequence[float]) -> Tensor:
    """Mend label probabilities [n, c] by a slope and offsets."""
    logits = probabilities.clamp_min(_TINY).log()
    slope, *offsets = calibration
    return torch.softmax(slope * logits + logits.new_tensor(offsets), 1)


def calibrate_joint(joint: Tensor, calibration: Sequence[float]) -> Tensor:
    """Mend the label in joint probabilities [n, k, c]; the group given the label stays."""
    labels = joint.sum(1)
    ratio = calibrate(labels, calibration) / labels.clamp_min(_TINY)
    return joint * ratio.unsqueeze(1)


def _log_loss(logits: Tensor, y: Tensor, shares: Tensor, figures: Tensor) -> Tensor:
    scores = figures[0] * logits + figures[1:]
    return torch.nn.functional.cross_entropy(scores, y, reduction="none") @ shares


def _newton(logits: Tensor, y: Tensor, shares: Tensor, as_is: Tensor, start: Tensor) -> Tensor:
    """The least regularised log loss; it is convex, and a step that does not help is halved."""
    prior = _PRIOR_ROWS / len(y)
    weight = shares / shares.sum().clamp_min(_TINY)

    def loss(figures: Tensor) -> Tensor:
        return _log_loss(logits, y, weight, figures) + prior * (figures - as_is).square().sum()

    figures, value = start, loss(start)
    for _ in range(_STEPS):
        step = torch.linalg.solve(*_slopes(logits, y, weight, figures, as_is, prior))
        for _ in range(_HALVINGS):
            reached = loss(figures - step)
            if reached <= value:
                break
            step = step / 2
        else:
            return figures
        figures, gained, value = figures - step, value - reached, reached
        if gained < _TINY:
            break
    return figures


def _slopes(
    logits: Tensor, y: Tensor, weight: Tensor, figures: Tensor, as_is: Tensor, prior: float
) -> tuple[Tensor, Tensor]:
    """Curvature [1 + c, 1 + c] and gradient [1 + c] of the regularised log loss."""
    p = torch.softmax(figures[0] * logits + figures[1:], 1)
    away = weight.unsqueeze(1) * (p - torch.nn.functional.one_hot(y, p.shape[1]))
    gradient = torch.cat([(away * logits).sum().unsqueeze(0), away.sum(0)])
    # directions in which a row's scores move, centred by its probabilities
    moves = torch.cat([logits.unsqueeze(2), torch.eye(p.shape[1]).to(p).expand(len(p), -1, -1)], 2)
    centred = moves - (p.unsqueeze(2) * moves).sum(1, keepdim=True)
    curvature = torch.einsum("nc,nci,ncj->ij", weight.unsqueeze(1) * p, centred, centred)
    regular = 2 * prior * torch.eye(len(figures)).to(p)
    return curvature + regular, gradient + 2 * prior * (figures - as_is)
