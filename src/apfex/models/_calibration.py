"""Calibration: label probabilities that hold what they say on rows that no model has learnt from."""

from __future__ import annotations

import torch
from torch import Tensor

_STEPS = 25
_PRIOR_ROWS = 1.0
"""How many rows' worth of belief there is that probabilities are right as they are."""
_TINY = 1e-12


def fit_calibration(probabilities: Tensor, y: Tensor, shares: Tensor, folds: Tensor) -> Tensor:
    """Fit a slope and an offset for each class that mend out-of-fold label probabilities.

    Parameters
    ----------
    probabilities : Tensor of shape [n, c]
        Of the label, by models that did not learn from the row.
    y : int64 Tensor of shape [n]
    shares : Tensor of shape [n]
        Weights of the rows, summing to one.
    folds : int64 Tensor of shape [n]
        Parts of the rows; whether to mend anything is decided by the log loss of each part under
        the figures of the others.

    Returns
    -------
    Tensor of shape [1 + c]
        The slope, then the offsets. (1, 0, ..., 0) where the probabilities are as good unmended.

    Notes
    -----
    Platt's scaling [1]_, for several classes as a softmax with a common slope, and without his
    smoothed targets: instead the slope and offsets are pulled to 1 and 0 by the weight of one row.

    References
    ----------
    .. [1] J. Platt, "Probabilistic outputs for support vector machines and comparisons to
       regularized likelihood methods", 1999.

    Examples
    --------
    >>> y = torch.tensor([0, 1, 0, 1] * 50)
    >>> timid = torch.where(y.bool(), 0.52, 0.48)
    >>> p = torch.stack([1 - timid, timid], 1)
    >>> found = fit_calibration(p, y, torch.full((200,), 1 / 200), torch.arange(200) % 2)
    >>> calibrate(p, found)[:2].round(decimals=1)
    tensor([[1., 0.],
            [0., 1.]])
    """
    identity = probabilities.new_zeros(1 + probabilities.shape[1])
    identity[0] = 1
    logits = probabilities.clamp_min(_TINY).log()
    gained = probabilities.new_zeros(())
    for part in folds.unique():
        own = folds == part
        if own.all():
            return identity
        found = _newton(logits[~own], y[~own], shares[~own], identity)
        for figures, sign in ((found, -1), (identity, 1)):
            loss = _log_loss(logits[own], y[own], shares[own], figures)
            gained += sign * loss
    if not gained > 0:
        return identity
    return _newton(logits, y, shares, identity)


def calibrate(probabilities: Tensor, calibration: Tensor) -> Tensor:
    """Mend label probabilities [n, c] by a slope and offsets [1 + c]."""
    logits = probabilities.clamp_min(_TINY).log()
    return torch.softmax(calibration[0] * logits + calibration[1:], 1)


def _log_loss(logits: Tensor, y: Tensor, shares: Tensor, figures: Tensor) -> Tensor:
    scores = figures[0] * logits + figures[1:]
    return torch.nn.functional.cross_entropy(scores, y, reduction="none") @ shares


def _newton(logits: Tensor, y: Tensor, shares: Tensor, start: Tensor) -> Tensor:
    """The least regularised log loss; it is convex, and a step that does not help is halved."""
    prior = _PRIOR_ROWS / len(y)
    weight = shares / shares.sum().clamp_min(_TINY)

    def loss(figures: Tensor) -> Tensor:
        return _log_loss(logits, y, weight, figures) + prior * (figures - start).square().sum()

    figures, value = start.clone(), loss(start)
    for _ in range(_STEPS):
        gradient = torch.func.grad(loss)(figures)
        curvature = torch.func.hessian(loss)(figures)
        step = torch.linalg.solve(curvature, gradient)
        for _ in range(10):
            new = figures - step
            if (reached := loss(new)) <= value:
                break
            step = step / 2
        else:
            break
        done = value - reached < 1e-12
        figures, value = new, reached
        if done:
            break
    return figures
