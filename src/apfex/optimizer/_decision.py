"""One step, decided and computed, but not yet taken: nothing of the optimizer changes here."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import final

import numpy as np
import torch
from torch import Tensor

from apfex.constraints import Constraint, constraint_step
from apfex.distributed import Workers
from apfex.gradients import Jacobian
from apfex.history import StepRecord
from apfex.optimizer._accumulation import ScaledSums
from apfex.optimizer._backward_pass import BackwardPass, Direction
from apfex.optimizer._shards import is_sharded
from apfex.solvers import min_norm
from apfex.strategies import StepView, Strategy, active_min_norm, direction_length

_ONLY_CHOICE = torch.zeros((), dtype=torch.int64)
"""Of a strategy that is the only one."""


class OverflowInGradients(ArithmeticError):
    """Gradients are not finite."""


@final
@dataclass(frozen=True, eq=False)
class DecidedStep:
    """What goes into ``.grad``, and what is to be kept once the step is taken.

    Attributes
    ----------
    direction : tuple of Tensors
        One for each parameter, times the loss scale.
    record : StepRecord or None
        None: gradients have overflowed under a scaler, which will skip the step.
    remembered : dict from parameters to Tensors, or None
        The direction, where the strategy may blend the next one with it.
    """

    direction: Direction
    record: StepRecord | None = None
    remembered: dict[Tensor, Tensor] | None = None


def decide_step(
    strategy: Strategy,
    view: StepView,
    gradients: BackwardPass | ScaledSums,
    active: Sequence[Constraint],
    last: Mapping[Tensor, Tensor],
    loss_scale: float | None,
    team: Workers | None = None,
) -> DecidedStep:
    """Ask the strategy, then compute, blend and bend the direction.

    Parameters
    ----------
    strategy : Strategy
    view : StepView
        What the strategy is told.
    gradients : BackwardPass or ScaledSums
        Of this batch, or added up over micro-batches.
    active : sequence of Constraint
    last : mapping from parameters to Tensors
        The last direction, where it was remembered.
    loss_scale : float or None
        What a scaler has the gradients multiplied by. The direction keeps it, as the scaler itself
        divides ``.grad``; dividing here and multiplying again would take two passes over all
        parameters, and round unless the scale is a power of two. All that is kept is without it.
    team : Workers, optional
        Those that have to decide the same, whatever their processors make of the last digit.
    """
    try:
        return _computed_step(strategy, view, gradients, active, last, loss_scale or 1.0, team)
    except OverflowInGradients:
        if loss_scale is None:
            raise ValueError(
                "losses must have finite gradients, got some that are not; look at the loss "
                "that produces them, lower the learning rate, or clip."
            ) from None
        # What a scaler will find, whatever else is in .grad.
        return DecidedStep(tuple(torch.full_like(p, torch.inf) for p in gradients.parameters))


def _computed_step(
    strategy: Strategy,
    view: StepView,
    gradients: BackwardPass | ScaledSums,
    active: Sequence[Constraint],
    last: Mapping[Tensor, Tensor],
    loss_scale: float,
    team: Workers | None,
) -> DecidedStep:
    decision = strategy.decide(view)
    weights = decision.weights
    if weights.shape != view.losses.shape or not all(map(math.isfinite, weights.tolist())):
        raise ValueError(
            f"strategy must answer with {view.losses.shape[-1]} finite weights, got "
            f"{weights.tolist()} from {type(strategy).__name__}."
        )
    starts_window = view.history.starts_window
    harmful = _harm(gradients, view, weights, team) if starts_window else None
    rows = gradients.constraint_rows() if isinstance(gradients, BackwardPass) else None
    direction = gradients.direction(weights)
    parameters = gradients.parameters
    if decision.blend is not None:
        share = float(decision.blend)
        direction = _blended(direction, [last.get(p) for p in parameters], share, loss_scale)
    slack = None
    if rows is not None:
        required = torch.tensor([c.required_descent for c in active], dtype=torch.float64)
        direction, slack = _constrained(direction, rows, required, loss_scale, team)
    norm = _length(direction) / loss_scale
    if not math.isfinite(norm):
        raise OverflowInGradients
    seen = view.has_gramian
    logs_omega = seen and starts_window
    record = StepRecord(
        losses=view.losses,
        weights=weights,
        choice=_ONLY_CHOICE if decision.choice is None else decision.choice,
        direction_norm=torch.tensor(norm, dtype=torch.float64),
        norms=view.norms if seen else None,
        alignment=_alignment(view) if seen else None,
        omega=direction_length(view.gramian, min_norm(view.gramian)) if logs_omega else None,
        omega_active=direction_length(view.gramian, active_min_norm(view)) if logs_omega else None,
        harmful=harmful,
        slack=slack,
    )
    remembered = None
    if decision.blend is not None:
        parts = zip(parameters, direction, strict=True)
        remembered = {parameter: part / loss_scale for parameter, part in parts}
    return DecidedStep(direction, record, remembered)


def _blended(
    direction: Direction, last: Sequence[Tensor | None], share: float, loss_scale: float
) -> Direction:
    """Mix with the last direction (PSS); a parameter that has none takes the new one."""
    if share == 1.0:
        return direction
    rest = (1 - share) * loss_scale
    return tuple(
        new if old is None else share * new + rest * old
        for new, old in zip(direction, last, strict=True)
    )


def finite_gramian(
    gramian: Tensor, loss_scale: float | None, team: Workers | None = None
) -> Tensor:
    """The Gramian of the unscaled losses, in float64 on the CPU, the same for all workers."""
    gramian = _agreed(gramian, team)
    if loss_scale is not None:
        gramian = gramian / loss_scale**2
    if not np.isfinite(gramian.numpy()).all():
        raise OverflowInGradients
    return gramian


def _agreed(gramian: Tensor, team: Workers | None) -> Tensor:
    gramian = gramian.double().cpu()
    return gramian if team is None else team.first(gramian)


def _length(direction: Direction) -> float:
    dense = [part.coalesce().values() if part.is_sparse else part for part in direction]
    lengths = [torch.linalg.vector_norm(part, dtype=torch.float64) for part in dense]
    lengths = [one.full_tensor() if is_sharded(one) else one for one in lengths]
    return math.hypot(*torch.stack(lengths).tolist())


def _alignment(view: StepView) -> Tensor:
    """Mean cosine over pairs of gradients; a gradient of length 0 has none."""
    norms, products = view.norms.tolist(), view.gramian.tolist()
    cosines = [
        products[i][j] / (norms[i] * norms[j])
        for i, j in combinations(range(len(norms)), 2)
        if norms[i] * norms[j] > 0
    ]
    mean = sum(cosines) / len(cosines) if cosines else math.nan
    return torch.tensor(mean, dtype=torch.float64)


def _harm(
    gradients: BackwardPass | ScaledSums,
    view: StepView,
    weights: Tensor,
    team: Workers | None,
) -> Tensor | None:
    """Whether a direction that descends at the outputs raises a loss in parameter space."""
    if not (gradients.compares_outputs and view.has_gramian) or gradients.is_sharded:
        return None
    exact = _agreed(gradients.parameter_gramian(), team)

    def raises_one(gramian: Tensor) -> bool:
        w = weights.double()
        lengths = gramian.diagonal().clamp(min=0).sqrt() * direction_length(gramian, w)
        return bool((gramian @ w < -1e-6 * lengths).any())

    return torch.tensor(raises_one(exact) and not raises_one(view.gramian.double()))


def _constrained(
    direction: Direction,
    rows: Jacobian,
    required: Tensor,
    loss_scale: float,
    team: Workers | None,
) -> tuple[Direction, Tensor]:
    """Bend a direction so that it meets the active constraints."""
    stacked = Jacobian(
        tuple(
            torch.cat([part.unsqueeze(0) / loss_scale, block])
            for part, block in zip(direction, rows.blocks, strict=True)
        )
    )
    step = constraint_step(_agreed(stacked.gramian(), team), required)
    added = rows.combine(step.multipliers.to(rows.blocks[0]) * loss_scale)
    return tuple(a + b for a, b in zip(direction, added, strict=True)), step.slack
