"""Sums of rows by code: the same bits from the same rows, on every device."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

_FEW = 256
"""Codes up to which a matrix of all of them is kept."""
_BLOCK = 2**24
"""Numbers in a one-hot matrix."""


def add_up(values: Tensor, codes: Tensor, size: int) -> Tensor:
    """Sums of row values by the rows' codes.

    Parameters
    ----------
    values : Tensor of shape [..., n], or [..., c, n]
    codes : Tensor of shape [n], or [c, n]
        Whole numbers from 0 up, below ``size``.
    size : int

    Returns
    -------
    Tensor of shape [..., size], or [..., c, size]

    Notes
    -----
    On a CUDA device ``index_add`` adds numbers in whatever order its threads arrive, so that two
    runs of one seed drift apart. There the sums are products with a one-hot matrix, whose order is
    fixed; a value that is not finite then spoils the sums of all codes, not only its own.

    Examples
    --------
    >>> add_up(torch.tensor([1.0, 2.0, 4.0]), torch.tensor([1, 0, 1]), 2)
    tensor([2., 5.])
    """
    values = values.expand(*values.shape[: values.ndim - codes.ndim], *codes.shape)
    if values.device.type == "cuda" and values.is_floating_point():
        if not (values.requires_grad and torch.is_grad_enabled()):
            return _by_products(values, codes, size)
        sums: Tensor = _InFixedOrder.apply(values, codes, size)  # pyright: ignore
        return sums
    if codes.ndim == 1:
        return values.new_zeros((*values.shape[:-1], size)).index_add(-1, codes, values)
    classes = len(codes)
    apart = (codes + size * torch.arange(classes, device=codes.device).unsqueeze(1)).flatten()
    return add_up(values.flatten(-2), apart, classes * size).unflatten(-1, (classes, size))


class _InFixedOrder(torch.autograd.Function):
    """Sums by products; the gradient of a row is that of its sum, and needs no matrix."""

    generate_vmap_rule = True

    @staticmethod
    def forward(values: Tensor, codes: Tensor, size: int) -> Tensor:  # pyright: ignore
        return _by_products(values, codes, size)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:  # noqa: ARG004
        ctx.save_for_backward(inputs[1])

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:  # pyright: ignore
        (codes,) = ctx.saved_tensors
        if codes.ndim == 1:
            return gradient.index_select(-1, codes), None, None
        own = codes.expand(*gradient.shape[:-2], *codes.shape)
        return gradient.gather(-1, own), None, None


def _by_products(values: Tensor, codes: Tensor, size: int) -> Tensor:
    """Sums by products with one-hot matrices, of as many rows at a time as memory allows."""
    exact = torch.float64 if values.dtype == torch.float64 or _rounds_products() else torch.float32
    if torch.is_autocast_enabled(values.device.type):
        with torch.autocast(values.device.type, enabled=False):
            return _by_products(values, codes, size)
    n = codes.shape[-1]
    rows = max(1, _BLOCK // max(1, size * (codes.numel() // max(1, n))))
    parts = zip(values.to(exact).split(rows, -1), codes.split(rows, -1), strict=True)
    sums = [_product(some, _one_hot(own, size, some)) for some, own in parts]
    return (sums[0] if len(sums) == 1 else torch.stack(sums).sum(0)).to(values.dtype)


def _rounds_products() -> bool:
    """Whether float32 factors are rounded to fewer digits (TF32, bfloat16), as a user may ask."""
    precision = getattr(torch.backends.cuda.matmul, "fp32_precision", None)  # since torch 2.9
    if precision is None:
        return torch.get_float32_matmul_precision() != "highest"
    return precision not in ("ieee", "none")


def _one_hot(codes: Tensor, size: int, like: Tensor) -> Tensor:
    if size <= _FEW:  # one kernel instead of two
        return _unit_vectors(size, like.dtype, like.device)[codes]
    return (codes.unsqueeze(-1) == torch.arange(size, device=like.device)).to(like)


@lru_cache(maxsize=64)
def _unit_vectors(size: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    return torch.eye(size, dtype=dtype, device=device)


def _product(values: Tensor, one_hot: Tensor) -> Tensor:
    if one_hot.ndim == 2:
        return values @ one_hot
    return (values.unsqueeze(-2) @ one_hot).squeeze(-2)
