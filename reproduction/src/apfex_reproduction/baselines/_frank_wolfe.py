"""One step of Frank and Wolfe's method: what the published code of MAMO comes to."""

from __future__ import annotations

import torch
from torch import Tensor

from apfex.solvers import min_norm


def one_step_min_norm(gramian: Tensor) -> Tensor:
    """Weights after one step from equal weights towards the min-norm point.

    Parameters
    ----------
    gramian : Tensor of shape [..., m, m]

    Returns
    -------
    Tensor of shape [..., m]
        For two gradients the exact min-norm weights, which the published code has in closed form.

    Notes
    -----
    The loop of the published Frank-Wolfe solver returns inside its first round, so its answer is
    the best point between the mean of all gradients and the gradient that has the smallest product
    with that mean. That is a min-norm problem of two vectors.
    """
    m = gramian.shape[-1]
    if m <= 2:
        return min_norm(gramian)
    equal = torch.full_like(gramian[..., 0], 1 / m)
    products = gramian.mean(-1)  # of each gradient with the mean
    corner = torch.nn.functional.one_hot(products.argmin(-1), m).to(gramian.dtype)
    ends = torch.stack([equal, corner], -2)  # [..., 2, m]
    between = min_norm(ends @ gramian @ ends.mT)
    return (between.unsqueeze(-2) @ ends).squeeze(-2)
