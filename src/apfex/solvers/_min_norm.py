"""The shortest vector in the convex hull of m gradients, from their Gramian."""

from __future__ import annotations

from functools import cache
from itertools import product

import numpy as np
import torch
from torch import Tensor

from apfex.solvers._nonnegative import (
    check_shapes,
    is_small_batch,
    matvec,
    nonnegative_qp,
    solve_one,
)
from apfex.solvers._wolfe import residual_of, walk_to_shortest

_MOST_ENUMERATED = 5
"""Up to this many gradients all 2^m - 1 faces are tried at once, where there is a batch to fill
the machine; otherwise an active set is grown."""


def min_norm(gramian: Tensor) -> Tensor:
    """Weights of the shortest vector in the convex hull of m gradients.

    Parameters
    ----------
    gramian : Tensor of shape [..., m, m]
        Inner products of the gradients: symmetric, positive semi-definite, finite.

    Returns
    -------
    Tensor of shape [..., m]
        Non-negative, summing to one, of the Gramian's dtype and device; of torch's default dtype
        for a Gramian of integers.

    Notes
    -----
    The problem of Theorem 1 of the paper: the minimum is 0 exactly when the point is
    Pareto-stationary, and otherwise the combined gradient makes an acute angle with every
    gradient. Gradients are first scaled to unit length, which changes the variables but not the
    problem, so lengths may differ by many orders of magnitude. A large batch of two gradients has a
    closed form; of up to five, every face's KKT system is solved and the answer with the smallest
    residual kept; otherwise it is a non-negative least squares problem. Its answer is checked on a
    CPU: where long gradients oppose each other beside a far shorter one, squares lose digits, and
    Wolfe's walk from face to face, which adds no squares, goes on from there. A zero
    gradient takes all the weight: leaving it out is the caller's choice.

    Examples
    --------
    >>> min_norm(torch.tensor([[1.0, 0.0], [0.0, 3.0]]))
    tensor([0.7500, 0.2500])
    """
    check_shapes(gramian=gramian)
    gramian = _floating(gramian)
    exact = gramian.detach().to(torch.float64)
    m = exact.shape[-1]
    if m == 0:
        raise ValueError(f"gramian must hold at least one gradient, got {list(gramian.shape)}.")
    if is_small_batch(exact):
        rows = [_min_norm_one(matrix) for matrix in exact.reshape(-1, m, m).numpy()]
        return torch.from_numpy(np.stack(rows)).view(gramian.shape[:-1]).to(gramian.dtype)
    if m == 1:
        return torch.ones_like(gramian[..., 0])
    lengths = exact.diagonal(dim1=-2, dim2=-1).clamp(min=0).sqrt()
    if m == 2:
        weights = _two(*_on_unit_vectors(exact))
    elif m <= _MOST_ENUMERATED:
        weights = _best_face(exact)
    else:
        weights = _by_least_squares(exact)
    shortest = lengths.amin(-1, keepdim=True)
    first_zero = (lengths == 0) & ((lengths == 0).cumsum(-1) == 1)
    weights = torch.where(shortest > 0, weights, first_zero.to(torch.float64))
    return weights.to(gramian.dtype)


def _on_unit_vectors(gramian: Tensor) -> tuple[Tensor, Tensor]:
    """Cosines, and ratios in (0, 1] of lengths: u on unit vectors is ratios * u on gradients."""
    lengths = gramian.diagonal(dim1=-2, dim2=-1).clamp(min=0).sqrt()
    safe = torch.where(lengths > 0, lengths, 1.0)
    cosines = (gramian / safe.unsqueeze(-1) / safe.unsqueeze(-2)).clamp(-1, 1)
    cosines.diagonal(dim1=-2, dim2=-1).fill_(1.0)
    return cosines, lengths.amin(-1, keepdim=True) / safe


def _by_least_squares(gramian: Tensor) -> Tensor:
    cosines, ratios = _on_unit_vectors(gramian)
    outer = ratios.unsqueeze(-1) * ratios.unsqueeze(-2)
    weights = _to_simplex(ratios * nonnegative_qp(cosines + outer, ratios))
    if gramian.device.type == "cpu":
        is_zero = (gramian.diagonal(dim1=-2, dim2=-1) <= 0).any(-1)  # the caller knows better
        spoiled = (kkt_residual(gramian, weights) > 1) & ~is_zero
        if bool(spoiled.any()):
            pairs = zip(gramian[spoiled].numpy(), weights[spoiled].numpy(), strict=True)
            weights[spoiled] = torch.from_numpy(np.stack([walk_to_shortest(*one) for one in pairs]))
    return weights


def kkt_residual(gramian: Tensor, weights: Tensor) -> Tensor:
    """How far weights are from solving ``min_norm``, in units of what rounding allows.

    Parameters
    ----------
    gramian : Tensor of shape [..., m, m]
    weights : Tensor of shape [..., m]

    Returns
    -------
    Tensor of shape [...]
        At most 1 for a correct answer; ``inf`` for weights that are off the simplex.

    Notes
    -----
    With ``v = w'Gw`` every k must satisfy ``v - (Gw)_k <= 0``. Rounding is allowed
    ``1e-8 v + 8 m eps [(|G| w)_k + w'|G|w]``, eps that of the weights' dtype: small *where the
    products are small*, unlike a tolerance relative to ``max |G|``, which any answer would pass
    once one gradient is long.

    Examples
    --------
    >>> gramian = torch.tensor([[1.0, 0.0], [0.0, 3.0]])
    >>> bool(kkt_residual(gramian, min_norm(gramian)) <= 1)
    True
    >>> bool(kkt_residual(gramian, torch.tensor([0.5, 0.5])) <= 1)
    False
    """
    check_shapes(gramian=gramian, weights=weights)
    weights = _floating(weights)
    epsilon = torch.finfo(weights.dtype).eps
    exact, w = gramian.to(torch.float64), weights.to(torch.float64)
    m = w.shape[-1]
    products = matvec(exact, w)
    sizes = matvec(exact.abs(), w)
    value = (w * products).sum(-1, keepdim=True)
    bulk = (w * sizes).sum(-1, keepdim=True)
    allowed = 1e-8 * value.abs() + 8 * m * epsilon * (sizes + bulk)
    excess = (value - products).clamp(min=0)
    residual = torch.where(excess > 0, excess / allowed.clamp(min=1e-300), 0.0).amax(-1)
    on_simplex = (w >= 0).all(-1) & ((w.sum(-1) - 1).abs() <= 8 * m * epsilon)
    off = ~on_simplex | ~value.squeeze(-1).isfinite()  # also for NaN
    return torch.where(off, torch.inf, residual)


def _min_norm_one(gramian: np.ndarray) -> np.ndarray:
    """One problem in numpy, whose calls cost a tenth of torch's on so few numbers."""
    lengths = np.sqrt(np.maximum(np.diagonal(gramian), 0))
    shortest = lengths.argmin()
    if lengths[shortest] == 0:
        return np.eye(len(lengths))[shortest]
    ratios = lengths[shortest] / lengths
    cosines = (gramian / lengths[:, None] / lengths).clip(-1, 1)
    np.fill_diagonal(cosines, 1.0)
    weights = ratios * solve_one(cosines + ratios[:, None] * ratios, ratios)
    weights /= weights.sum()
    if residual_of(gramian, weights) <= 1:
        return weights
    return walk_to_shortest(gramian, weights)


def _two(cosines: Tensor, ratios: Tensor) -> Tensor:
    """Closed form for two gradients, in units of the longer one."""
    shares = ratios.amin(-1, keepdim=True) / ratios  # lengths over that of the longer one
    inner = cosines[..., 0, 1] * shares.prod(-1)
    # Each weight from its own difference: 1 - w would lose the digits of a very small one.
    weights = (shares.flip(-1) ** 2 - inner.unsqueeze(-1)).clamp(min=0)
    total = weights.sum(-1, keepdim=True)
    return torch.where(total > 0, weights / total, 0.5)


def _best_face(gramian: Tensor) -> Tensor:
    """Solve the KKT system of every face, and keep the one with the smallest residual."""
    cosines, ratios = _on_unit_vectors(gramian)
    m = ratios.shape[-1]
    faces = _faces(m, ratios.device)  # [f, m]
    inside = faces.unsqueeze(-1) & faces.unsqueeze(-2)
    bordered = torch.zeros((*ratios.shape[:-1], len(faces), m + 1, m + 1), **_like(ratios))
    blocks = torch.where(inside, cosines.unsqueeze(-3), torch.eye(m, **_like(ratios)))
    border = torch.where(faces, ratios.unsqueeze(-2), 0.0)
    bordered[..., :m, :m] = blocks
    bordered[..., :m, m] = border
    bordered[..., m, :m] = border
    right = torch.zeros((*bordered.shape[:-1], 1), **_like(ratios))
    right[..., m, 0] = 1.0
    solution, _ = torch.linalg.solve_ex(bordered, right)
    candidates = ratios.unsqueeze(-2) * solution[..., :m, 0]
    valid = ((candidates >= 0) & candidates.isfinite()).all(-1, keepdim=True)
    candidates = _to_simplex(torch.where(valid, candidates, 1.0))
    residuals = kkt_residual(gramian.unsqueeze(-3), candidates)
    best = residuals.argmin(-1)[..., None, None].expand(*residuals.shape[:-1], 1, m)
    return candidates.gather(-2, best).squeeze(-2)


@cache
def _faces(m: int, device: torch.device) -> Tensor:
    """All non-empty subsets of m gradients, shape [2^m - 1, m]."""
    subsets = [subset for subset in product([False, True], repeat=m) if any(subset)]
    return torch.tensor(subsets, device=device)


def _to_simplex(weights: Tensor) -> Tensor:
    weights = weights.clamp(min=0)
    return weights / weights.sum(-1, keepdim=True)


def _floating(tensor: Tensor) -> Tensor:
    return tensor if tensor.is_floating_point() else tensor.to(torch.get_default_dtype())


def _like(tensor: Tensor) -> dict:
    return {"dtype": tensor.dtype, "device": tensor.device}
