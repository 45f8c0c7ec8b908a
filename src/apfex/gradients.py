"""Gradients of several losses at once: Jacobian, Gramian, and the scales that make them comparable.

The same function serves both spaces: the Jacobian by the parameters is exact; the Jacobian by the
model's outputs is nearly free, and promises descent for the outputs only.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, final, get_args

import torch
from torch import Tensor, nn

from apfex.arguments import as_names, require_kind, require_numbers
from apfex.distributed import measure_together, workers
from apfex.groups import Groups
from apfex.objectives import CrossEntropy, Objective, Objectives, SquaredError

__all__ = ["empirical_scales", "jacobian"]

ScaleKind = Literal["max", "per_example_max", "mean", "range"]
Grouping = Groups | Tensor | None
ScaleBatch = tuple[Tensor, Tensor, Grouping | Sequence[Grouping]]


_LEAST_SQUARE = 1e-30
"""Squared lengths below it have lost digits in float32, or all of them."""
_ROUGHLY, _ROUGHLY_HALF = 0.1, 0.3
"""Differences by rounding are smaller (the latter in half precision); wrong ones are about 1."""
_SMALL_PART, _SMALL_ROW = 1e-2, 1e-4
"""Shares of the whole and of the longest row, below which gradients may be rounding alone."""


@final
@dataclass(frozen=True, eq=False)
class Jacobian:
    """Gradients of m losses by a list of tensors; each block has shape [m, *tensor.shape]."""

    blocks: tuple[Tensor, ...]

    def gramian(self) -> Tensor:
        """Inner products of the m gradients, shape [m, m]."""
        flat = [block.flatten(1) for block in self.blocks]
        flat = [rows.float() if rows.dtype.itemsize < 4 else rows for rows in flat]
        found = _products(flat)
        squares = found.diagonal()
        lost = (squares < _LEAST_SQUARE) | ~squares.isfinite()
        if found.dtype == torch.float32 and bool(lost.any()) and _has_entries(flat, lost):
            return _products([rows.double() for rows in flat])
        return found

    def combine(self, weights: Tensor) -> tuple[Tensor, ...]:
        """Weighted sum of the gradients: one tensor for each block, without the m axis."""
        return tuple(
            torch.tensordot(weights.to(block.dtype), block, dims=1) for block in self.blocks
        )


def jacobian(
    values: Tensor,
    inputs: Sequence[Tensor],
    cotangents: Tensor | None = None,
    *,
    batched: bool = True,
    retain_graph: bool = False,
) -> Jacobian:
    """Gradients of several values by several tensors, in one batched backward pass.

    Parameters
    ----------
    values : Tensor of shape [m]
        The losses; with ``cotangents`` any tensor.
    inputs : sequence of Tensor
        Parameters, or the model's outputs.
    cotangents : Tensor of shape [m, *values.shape], optional
        Rows to pull back instead of the m unit vectors.
    batched : bool
        False: one backward pass per row, for layers that cannot be batched (some recurrent ones,
        custom functions), or that torch batches wrongly (``torch.cdist``). True: one more pass
        makes sure of the rows, and a ``RuntimeError`` says where they cannot be had in this way.
    retain_graph : bool
        Keep the graph for another pass.

    Returns
    -------
    Jacobian
        Zero where a value does not depend on an input.

    Examples
    --------
    >>> w = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> rows = jacobian(torch.stack([w.sum(), (w * w).sum()]), [w])
    >>> rows.blocks[0]
    tensor([[1., 1.],
            [2., 4.]])
    >>> rows.gramian()
    tensor([[ 2.,  6.],
            [ 6., 20.]])
    """
    require_kind("values", values, Tensor, "a tensor of shape [m]")
    inputs = as_names("inputs", inputs)
    if not inputs:
        raise ValueError("inputs must hold at least one tensor, got none.")
    if not values.requires_grad:
        raise ValueError(
            "values must depend on the inputs, but have no gradient; were they detached, or "
            "computed under no_grad?"
        )
    if cotangents is None:
        cotangents = torch.eye(len(values), dtype=values.dtype, device=values.device)

    def pull_back(row: Tensor, keep: bool = retain_graph) -> tuple[Tensor, ...]:
        return torch.autograd.grad(values, inputs, row, retain_graph=keep, materialize_grads=True)

    if batched:
        found = batched_jacobian(values, inputs, cotangents, retain_graph=True)
        shares = _shares(found)
        alone = pull_back(torch.tensordot(shares.to(cotangents), cotangents, dims=1))
        _check_batch(found, shares, alone)
        return found
    last = len(cotangents) - 1
    rows = [pull_back(row, retain_graph or i < last) for i, row in enumerate(cotangents)]
    return Jacobian(tuple(torch.stack(column) for column in zip(*rows, strict=True)))


def batched_jacobian(
    values: Tensor, inputs: Sequence[Tensor], cotangents: Tensor, *, retain_graph: bool
) -> Jacobian:
    """The same in one batched pass of layers that are known to be batched rightly."""

    def pull_back(row: Tensor) -> tuple[Tensor, ...]:
        return torch.autograd.grad(
            values, inputs, row, retain_graph=retain_graph, materialize_grads=True
        )

    return Jacobian(torch.vmap(pull_back)(cotangents))


def _shares(rows: Jacobian) -> Tensor:
    """One over the length of each row [m], so that short ones count, unless they are rounding."""
    dense = [block.to_dense() if block.is_sparse else block for block in rows.blocks]
    lengths = torch.stack([torch.linalg.vector_norm(b.flatten(1), dim=1).double() for b in dense])
    whole = torch.linalg.vector_norm(lengths, dim=0)
    whole = whole.clamp(min=_SMALL_ROW * float(whole.max()))
    return torch.where((whole > 0) & whole.isfinite(), 1 / whole, 1.0)


def _check_batch(rows: Jacobian, shares: Tensor, alone: Sequence[Tensor]) -> None:
    """Refuse rows whose sum, times shares [m], is not that of a pass by itself."""
    for block, single in zip(rows.blocks, alone, strict=True):
        if block.is_sparse:
            continue
        terms = block.double() * shares.view(-1, *[1] * (block.ndim - 1))
        difference = float((terms.sum(0) - single).norm())
        size = float(terms.flatten(1).norm(dim=1).sum())
        limit = size * (_ROUGHLY if block.dtype.itemsize >= 4 else _ROUGHLY_HALF)
        limit += _SMALL_PART * len(block)  # the rows have a length of about 1
        if not difference <= limit and bool(single.isfinite().all()):
            raise RuntimeError(
                "A layer or loss gives other gradients in one batched pass than in single ones, "
                "as torch.cdist does; they must be taken one by one (batched=False)."
            )


def _products(flat: Sequence[Tensor]) -> Tensor:
    if len(flat) == 1:
        return flat[0] @ flat[0].T
    return torch.stack([rows @ rows.T for rows in flat]).sum(0)


def _has_entries(flat: Sequence[Tensor], rows: Tensor) -> bool:
    """Whether any of the rows that are marked [m] is not 0 throughout."""
    return any(bool(part[rows].any()) for part in flat)


@torch.no_grad()
def empirical_scales(
    objectives: Iterable[Objective],
    model: nn.Module,
    batches: Iterable[ScaleBatch],
    kind: ScaleKind = "max",
    floor: float = 0.05,
) -> Tensor:
    """What each gradient is divided by, measured at the start of training.

    Parameters
    ----------
    objectives : iterable of m objectives
    model : nn.Module
        Its mode, its buffers and the random state are left as they were.
    batches : iterable of (x, y, groups)
        ``groups`` is one grouping for all objectives, or a list with one for each.
    kind : {"max", "per_example_max", "mean", "range"}
        "max": the largest loss of a batch, in evaluation mode. "per_example_max": the same, but
        for a task loss the largest loss of a single row. "mean": the mean over batches in
        training mode, dropout on, as in the code of Padh et al. "range": the value of an
        uninformed model for task losses, the largest possible gap for fairness losses; nothing
        is measured.
    floor : float
        Smallest scale; without it a gap that is nearly 0 at the start would be amplified at will.

    Returns
    -------
    Tensor of shape [m], float64

    Notes
    -----
    The paper's "empirical maximum" of a group-level loss has no meaning for a single row, hence
    the maximum over batches. With several workers each gives its rows of every batch, and all of
    them get the same scales.

    Examples
    --------
    >>> from apfex.objectives import CrossEntropy, FairnessLoss
    >>> batch = (torch.zeros(4, 2), torch.tensor([0, 1, 0, 1]), torch.tensor([0, 0, 1, 1]))
    >>> model = nn.Linear(2, 1)
    >>> empirical_scales([CrossEntropy(), FairnessLoss()], model, [batch], kind="range")
    tensor([0.6931, 1.0693], dtype=torch.float64)
    """
    objectives = as_names("objectives", objectives)
    require_numbers(floor=floor)
    require_kind("model", model, nn.Module, "an nn.Module")
    if kind not in get_args(ScaleKind):
        raise ValueError(f"kind must be one of {list(get_args(ScaleKind))}, got {kind!r}.")
    if not 0 <= floor < float("inf"):
        raise ValueError(f"floor must be at least 0 and finite, got {floor}; 0 means none.")
    modes = {module: module.training for module in model.modules()}
    buffers = {buffer: buffer.clone() for buffer in model.buffers()}
    with torch.random.fork_rng():
        model.train(kind == "mean")
        try:
            with measure_together():
                scales = _measure(objectives, model, batches, kind)
        finally:
            for module, training in modes.items():
                module.training = training
            for buffer, before in buffers.items():
                buffer.copy_(before)
    if not bool(scales.isfinite().all()):
        worst = int((~scales.isfinite()).nonzero()[0])
        raise ValueError(f"objectives[{worst}] must have finite losses, got {scales[worst]}.")
    return scales.clamp(min=floor)


def _measure(
    objectives: Sequence[Objective],
    model: nn.Module,
    batches: Iterable[ScaleBatch],
    kind: ScaleKind,
) -> Tensor:
    rows = []
    for x, y, groups in batches:
        scores = model(x)
        if kind == "range":
            n_classes = 2 if scores.ndim == 1 or scores.shape[1] == 1 else scores.shape[1]
            scales = [objective.typical_scale(n_classes) for objective in objectives]
            return torch.tensor(scales, dtype=torch.float64)
        if kind == "per_example_max":
            rows.append(
                [
                    _largest(loss.per_example(scores, y))
                    if isinstance(loss, (CrossEntropy, SquaredError))
                    else float(Objectives([loss])(scores, y, _groups_of(groups, k)))
                    for k, loss in enumerate(objectives)
                ]
            )
        else:
            rows.append(Objectives(objectives)(scores, y, groups).tolist())
    if not rows:
        raise ValueError("batches must hold at least one batch, got none.")
    losses = torch.tensor(rows, dtype=torch.float64)
    return losses.mean(0) if kind == "mean" else losses.amax(0)


def _largest(values: Tensor) -> float:
    """The largest number of any worker."""
    team = workers()
    if team is None:
        return float(values.max())
    own = (
        values.double().amax(0, keepdim=True) if len(values) else values.new_full((1,), -torch.inf)
    )
    return float(team.gather(own.double()).max())


def _groups_of(groups: Grouping | Sequence[Grouping], position: int) -> Grouping:
    if groups is None or isinstance(groups, (Groups, Tensor)):
        return groups
    return groups[position]
