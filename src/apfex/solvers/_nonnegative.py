"""Non-negative quadratic programmes: Lawson and Hanson's active set."""

from __future__ import annotations

import numpy as np
import torch
from scipy.linalg.lapack import dgesv  # pyright: ignore[reportAttributeAccessIssue]
from torch import Tensor

from apfex.arguments import require_kind

_SMALL_BATCH = 8
"""Up to this many problems on a CPU are solved one by one: less overhead than a tensor program."""


def nonnegative_qp(matrix: Tensor, linear: Tensor) -> Tensor:
    """Minimise ``u'Au / 2 - b'u`` over ``u >= 0``.

    Parameters
    ----------
    matrix : Tensor of shape [..., m, m]
        A: symmetric, positive semi-definite, with ``b`` in its range (otherwise the problem has
        no minimum; add a ridge, which amounts to slack).
    linear : Tensor of shape [..., m]
        b.

    Returns
    -------
    Tensor of shape [..., m], float64

    Notes
    -----
    Lawson and Hanson's active set, all problems of the batch in step, at most 3m rounds. A
    variable that would make the free block singular is refused, as it can bring nothing new.

    Examples
    --------
    >>> nonnegative_qp(torch.eye(2), torch.tensor([2.0, -1.0]))
    tensor([2., 0.], dtype=torch.float64)
    """
    check_shapes(matrix=matrix, linear=linear)
    a, b = matrix.detach().to(torch.float64), linear.detach().to(torch.float64)
    batch = b.shape
    if a.shape[:-1] != batch:
        batch = torch.broadcast_shapes(a.shape[:-1], batch)
        a, b = a.expand(*batch, batch[-1]), b.expand(batch)
    if not is_small_batch(a):
        return _solve_batch(a, b)
    matrices, vectors = a.reshape(-1, *a.shape[-2:]).numpy(), b.reshape(-1, a.shape[-1]).numpy()
    solutions = [solve_one(*problem) for problem in zip(matrices, vectors, strict=True)]
    return torch.from_numpy(np.stack(solutions)).view(batch)


def check_shapes(**arguments: Tensor) -> None:
    """Refuse a first argument that is not [..., m, m], and others that are not [..., m]."""
    for name, value in arguments.items():
        require_kind(name, value, Tensor, "a tensor")
    (name, matrix), *vectors = arguments.items()
    if matrix.ndim < 2 or matrix.shape[-1] != matrix.shape[-2]:
        raise ValueError(f"{name} must have shape [..., m, m], got {list(matrix.shape)}.")
    for other, vector in vectors:
        if vector.shape[-1:] != matrix.shape[-1:]:
            raise ValueError(
                f"{other} must have shape [..., m] with the m = {matrix.shape[-1]} of {name}, got "
                f"{list(vector.shape)}."
            )


def is_small_batch(a: Tensor) -> bool:
    """Whether problems [..., m, m] are so few, on a CPU, that solving one by one is faster."""
    return a.device.type == "cpu" and 0 < a.shape[:-2].numel() <= _SMALL_BATCH


def matvec(matrix: Tensor, vector: Tensor) -> Tensor:
    """Product of matrices [..., m, m] with vectors [..., m]."""
    return (matrix @ vector.unsqueeze(-1)).squeeze(-1)


def solve_one(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Solve one problem; the same rounds as ``_solve_batch``."""
    m = len(b)
    tolerance = 4 * m * np.finfo(np.float64).eps
    sizes, scale = np.abs(a), np.sqrt(np.maximum(np.diagonal(a), 0))
    u, free, refused, entered = np.zeros(m), np.zeros(m, bool), np.zeros(m, bool), -1
    for _ in range(3 * m):
        chosen = free.nonzero()[0]
        trial = np.zeros(m)
        if chosen.size:
            solution, info = dgesv(a[chosen][:, chosen], b[chosen])[2:]
            trial[chosen] = solution if info == 0 else 0.0
        if entered >= 0 and not trial[entered] > 0:
            refused[entered], free[entered] = True, False
        elif (leaving := chosen[trial[chosen] <= 0]).size:
            shares = u[leaving] / np.maximum(u[leaving] - trial[leaving], 1e-300)
            u = np.where(free, u + min(shares.min(), 1.0) * (trial - u), 0.0)
            fixed = leaving[shares <= shares.min()]
            u[fixed], free[fixed], entered = 0.0, False, -1
            continue
        else:
            u, refused = trial, np.zeros(m, bool)
        products = a @ u
        rounding = sizes @ u + np.abs(b) + scale * np.sqrt(max(u @ products, 0.0))
        wanted = np.where(free | refused, -np.inf, b - products - tolerance * rounding)
        entered = int(wanted.argmax())
        if not wanted[entered] > 0:
            break
        free[entered] = True
    return u


def _solve_batch(a: Tensor, b: Tensor) -> Tensor:
    """Solve all problems in step, without waiting for the device."""
    m = a.shape[-1]
    tolerance = 4 * m * torch.finfo(torch.float64).eps
    scale = a.diagonal(dim1=-2, dim2=-1).clamp(min=0).sqrt()
    u = torch.zeros_like(b)
    free = torch.zeros_like(b, dtype=torch.bool)
    refused = torch.zeros_like(free)
    entered = torch.zeros_like(free)  # the variable let in last, until its first solve is judged
    for _ in range(3 * m):
        trial = _solve_free(a, b, free)
        useless = (entered & ~(trial > 0)).any(-1, keepdim=True)
        infeasible = (free & (trial <= 0)).any(-1, keepdim=True) & ~useless
        stepped, still_free = _step_to_boundary(u, trial, free)
        feasible = ~infeasible & ~useless
        u = torch.where(feasible, trial, torch.where(infeasible, stepped, u))
        refused = (refused & ~feasible) | (entered & useless)
        free = torch.where(infeasible, still_free, free & ~(entered & useless))
        gain = b - matvec(a, u)
        length = (u * (b - gain)).sum(-1, keepdim=True).clamp(min=0).sqrt()
        rounding = matvec(a.abs(), u) + b.abs() + scale * length
        wanted = torch.where(free | refused, -torch.inf, gain - tolerance * rounding)
        best = wanted.argmax(-1, keepdim=True)
        enters = ~infeasible & (wanted.gather(-1, best) > 0)
        entered = torch.zeros_like(free).scatter(-1, best, enters)
        free = free | entered
        if u.device.type == "cpu" and not bool((enters | infeasible).any()):
            break
    return u


def _solve_free(a: Tensor, b: Tensor, free: Tensor) -> Tensor:
    """Solve the free block of each problem; the other variables stay 0."""
    block = free.unsqueeze(-1) & free.unsqueeze(-2)
    system = torch.where(block, a, torch.eye(a.shape[-1], dtype=a.dtype, device=a.device))
    solution, _ = torch.linalg.solve_ex(system, torch.where(free, b, 0.0).unsqueeze(-1))
    return torch.where(free, solution.squeeze(-1).nan_to_num(0.0, 0.0, 0.0), 0.0)


def _step_to_boundary(u: Tensor, trial: Tensor, free: Tensor) -> tuple[Tensor, Tensor]:
    """Go from ``u`` towards ``trial`` until a free variable becomes 0, and fix that one."""
    leaving = free & (trial <= 0)
    shares = torch.where(leaving, u / (u - trial).clamp(min=1e-300), torch.inf)
    share = shares.amin(-1, keepdim=True).clamp(0, 1)
    stepped = u + share * (trial - u)
    fixed = leaving & (shares <= share)
    return torch.where(fixed | ~free, 0.0, stepped), free & ~fixed
