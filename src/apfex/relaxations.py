"""Smooth stand-ins for the step, the absolute value and the maximum.

Nothing here knows of fairness: tensors in, tensors out.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from numbers import Real

import torch
from torch import Tensor

from apfex.arguments import require_kind

__all__ = ["ccr_step", "identity_step", "smooth_abs", "smooth_max", "tanh_step"]

Step = Callable[[Tensor], Tensor]
"""A relaxed step: probabilities in, soft decisions in [0, 1] out."""


def tanh_step(x: Tensor, threshold: float = 0.5, steepness: float = 5.0) -> Tensor:
    """Soft step ``(1 + tanh(steepness * (x - threshold))) / 2``.

    Parameters
    ----------
    x : Tensor of any shape
        Usually probabilities.
    threshold : float
        Where the step is one half.
    steepness : float
        Positive; the slope at the threshold is half of it.

    Returns
    -------
    Tensor of the shape of ``x``
        Strictly between 0 and 1, rising. For probabilities and the defaults it runs from .0067
        at 0 to .9933 at 1, so no prediction is ever without a gradient.

    Notes
    -----
    The relaxation of Padh et al. (2021), with the paper's steepness of 5.

    Examples
    --------
    >>> tanh_step(torch.tensor([0.0, 0.5, 1.0]))
    tensor([0.0067, 0.5000, 0.9933])
    """
    _require_tensor(x)
    _require_positive(steepness=steepness)
    _require_finite(threshold=threshold)
    # (1 + tanh(a)) / 2 = sigmoid(2 a), which is one cheaper operation instead of four.
    return torch.sigmoid(2 * steepness * x - 2 * steepness * threshold)


def ccr_step(x: Tensor, threshold: float | Tensor = 0.5, width: float | Tensor = 0.25) -> Tensor:
    """Continuous conditional response: a linear ramp around the threshold.

    Parameters
    ----------
    x : Tensor of any shape
        Probabilities, or membership scores of shape [n, k].
    threshold, width : float or Tensor that broadcasts with ``x``
        The ramp runs from ``threshold - width`` to ``threshold + width``. A tensor of shape [k]
        gives each group its own.

    Returns
    -------
    Tensor of the shape of ``x``
        ``clip((x - threshold) / (2 width) + 1/2, 0, 1)``.

    Notes
    -----
    The CCR of the APFEx paper. At the threshold it is 1/2 for *every* width, so it does not
    converge pointwise to the indicator there. Its slope is ``1 / (2 width)`` inside the band and
    at both corners (the subgradient chosen there is the inner one, so a score that sits exactly
    on a corner can still come back), and 0 outside: rows out there do not learn from it.

    Examples
    --------
    >>> ccr_step(torch.tensor([0.2, 0.5, 0.625, 0.9]))
    tensor([0.0000, 0.5000, 0.7500, 1.0000])
    """
    _require_tensor(x)
    _require_positive(width=width)
    _require_finite(threshold=threshold)
    return torch.clamp((x - threshold) / (2 * width) + 0.5, 0.0, 1.0)


def identity_step(x: Tensor) -> Tensor:
    """The raw probability as its own soft decision (the linear relaxation).

    Examples
    --------
    >>> identity_step(torch.tensor([0.2, 0.9]))
    tensor([0.2000, 0.9000])
    """
    return x


def smooth_abs(x: Tensor, width: float = 1e-3) -> Tensor:
    """Absolute value with its kink rounded off: ``x^2 / (2 width)`` inside ``[-width, width]``.

    Parameters
    ----------
    x : Tensor of any shape
    width : float
        Positive half-width of the rounded part.

    Returns
    -------
    Tensor of the shape of ``x``
        Zero at 0, ``|x| - width / 2`` outside the band; never off ``|x|`` by more than
        ``width / 2``; continuously differentiable.

    Notes
    -----
    A Huber function instead of ``sqrt(x^2 + 1e-6)``: it differs from that form by at most
    1.5e-3, is exactly 0 at parity, and its sum over all pairs of k numbers can be had from prefix
    sums in O(k log k) (:mod:`apfex.objectives`), which the square root does not allow.

    Examples
    --------
    >>> smooth_abs(torch.tensor([-0.5, 0.0, 0.25]), width=0.5)
    tensor([0.2500, 0.0000, 0.0625])
    """
    _require_tensor(x)
    _require_positive(width=width)
    size = x.abs()
    return torch.where(size < width, x * x / (2 * width), size - width / 2)


def smooth_max(
    x: Tensor, temperature: float = 0.02, dim: int = -1, where: Tensor | None = None
) -> Tensor:
    """Smooth maximum: ``temperature * log(mean(exp(x / temperature)))`` along ``dim``.

    Parameters
    ----------
    x : Tensor of any shape
    temperature : float
        Positive; the maximum is approached as it falls to 0.
    dim : int
        The axis that is reduced.
    where : boolean Tensor that broadcasts with ``x``, optional
        Entries that count. An axis without any gives ``-inf``.

    Returns
    -------
    Tensor of the shape of ``x`` without ``dim``
        Between ``max(x) - temperature * log(k)`` and ``max(x)``; equal numbers give that number.

    Examples
    --------
    >>> smooth_max(torch.tensor([0.1, 0.1, 0.1]))
    tensor(0.1000)
    """
    _require_tensor(x)
    _require_positive(temperature=temperature)
    if where is None:
        log_count = math.log(x.shape[dim])
        return temperature * (torch.logsumexp(x / temperature, dim) - log_count)
    counts = where.expand_as(x).sum(dim).to(x.dtype)
    masked = torch.where(where, x, -torch.inf)
    total = torch.logsumexp(masked / temperature, dim)
    return temperature * (total - counts.clamp(min=1.0).log())


def _require_tensor(x: Tensor) -> None:
    require_kind("x", x, Tensor, "a tensor")


def _require_positive(**arguments: float | Tensor) -> None:
    for name, value in arguments.items():
        require_kind(name, value, (Real, Tensor), "a number or a tensor")
        positive = value > 0
        if not (bool(positive.all()) if isinstance(positive, Tensor) else positive):
            raise ValueError(f"{name} must be positive, got {value}.")


def _require_finite(**arguments: float | Tensor) -> None:
    for name, value in arguments.items():
        require_kind(name, value, (Real, Tensor), "a number or a tensor")
        if not bool(torch.isfinite(torch.as_tensor(value)).all()):
            raise ValueError(f"{name} must be finite, got {value}.")
