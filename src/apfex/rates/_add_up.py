"""Sums of rows by code: the same bits from the same rows, on every device."""

from __future__ import annotations

from functools import lru_cache

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
    On a CUDA device ``index_add`` adds in whatever order its threads arrive, so that two runs of
    one seed drift apart. There the sums are products with a one-hot matrix, whose order is fixed.

    Examples
    --------
    >>> add_up(torch.tensor([1.0, 2.0, 4.0]), torch.tensor([1, 0, 1]), 2)
    tensor([2., 5.])
    """
    values = values.expand(*values.shape[: values.ndim - codes.ndim], *codes.shape)
    if values.device.type == "cuda":
        return _by_products(values, codes, size)
    if codes.ndim == 1:
        return values.new_zeros((*values.shape[:-1], size)).index_add(-1, codes, values)
    classes = len(codes)
    apart = (codes + size * torch.arange(classes, device=codes.device).unsqueeze(1)).flatten()
    return add_up(values.flatten(-2), apart, classes * size).unflatten(-1, (classes, size))


def _by_products(values: Tensor, codes: Tensor, size: int) -> Tensor:
    """Sums by products with one-hot matrices, of as many rows at a time as memory allows."""
    if values.dtype == torch.float32 and torch.get_float32_matmul_precision() != "highest":
        return _by_products(values.double(), codes, size).float()  # products would be rounded
    n = codes.shape[-1]
    rows = max(1, _BLOCK // max(1, size * (codes.numel() // max(1, n))))
    if n <= rows:
        return _product(values, _one_hot(codes, size, values))
    parts = zip(values.split(rows, -1), codes.split(rows, -1), strict=True)
    return torch.stack([_product(v, _one_hot(own, size, v)) for v, own in parts]).sum(0)


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
