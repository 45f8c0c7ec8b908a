"""``APFEx``: several losses, one optimizer."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, final, get_args

import torch
from torch import Tensor

from apfex.constraints import Constraint, constraint_step
from apfex.gradients import Jacobian
from apfex.history import History, StepRecord
from apfex.optimizer._losses import check_reach, read_losses
from apfex.optimizer._pass import BackwardPass, Direction
from apfex.solvers import min_norm
from apfex.strategies import AdaptiveSwitch, StepView, Strategy, active_min_norm, direction_length

Space = Literal["auto", "prediction", "parameter"]
Scales = Literal["first_window", "none"] | Sequence[float] | Tensor
_MOST_HARMFUL = 0.05
"""Share of harmful prediction-space steps above which ``space="auto"`` falls back."""


@final
class APFEx(torch.optim.Optimizer):
    """Several losses, one optimizer: ``backward`` weighs their gradients, ``step`` applies them.

    Parameters
    ----------
    optimizer : torch.optim.Optimizer
        Takes the steps; its parameters are what is trained.
    strategy : Strategy
        Weighs the objectives; the paper's switching rule by default.
    window : int
        Steps over which losses are averaged before the strategy looks at them: an epoch, say.
    scales : "first_window", "none" or sequence of m numbers
        What each loss and gradient is divided by. "first_window": the largest value of each loss
        so far, fixed at the end of the first window. :func:`~apfex.gradients.empirical_scales`
        measures others.
    space : {"auto", "prediction", "parameter"}
        Where gradients are compared if ``backward`` is given ``outputs``. "auto": in prediction
        space, until more than 5% of its measured steps turn out to raise a loss in parameter
        space; then in parameter space.
    seed : int
        Of the random draws of strategies.
    trace : bool
        Keep every step in ``history``, not only window means.
    floor : float
        Smallest scale of "first_window".

    Attributes
    ----------
    history : History or None
        What happened so far; None before the first step.
    inner : torch.optim.Optimizer
        The wrapped optimizer; ``param_groups`` and ``state`` are its own, so a learning-rate
        scheduler may take either of the two.

    Notes
    -----
    "Harms no objective to first order" holds for what :class:`~apfex.strategies.ConeProjection`
    puts into ``.grad`` in parameter space. In prediction space it holds for the model's outputs.
    Adam's preconditioning and momentum keep it only approximately in either.

    ``step`` clears the gradients, so a loop needs no ``zero_grad``; ``backward`` adds to what is
    there, so accumulation and clipping go between the two as everywhere. If anything is wrong
    with the losses, ``backward`` raises before it has changed anything.

    Examples
    --------
    >>> from apfex.objectives import CrossEntropy, FairnessLoss
    >>> _ = torch.manual_seed(0)
    >>> x, y, g = torch.randn(64, 3), torch.arange(64) % 2, torch.arange(64) // 2 % 4
    >>> model = torch.nn.Linear(3, 1)
    >>> task, dp = CrossEntropy(), FairnessLoss("dp")
    >>> optimizer = APFEx(torch.optim.Adam(model.parameters(), lr=1e-2), window=10)
    >>> for _ in range(30):
    ...     scores = model(x)
    ...     optimizer.backward([task(scores, y), dp(scores, y, g)])
    ...     optimizer.step()
    >>> optimizer.history.n_windows
    3
    """

    def __init__(
        self,
        optimizer: torch.optim.Optimizer,
        strategy: Strategy | None = None,
        *,
        window: int = 100,
        scales: Scales = "first_window",
        space: Space = "auto",
        seed: int = 0,
        trace: bool = False,
        floor: float = 0.05,
    ) -> None:
        if not isinstance(optimizer, torch.optim.Optimizer):
            raise TypeError(
                f"optimizer must be a torch.optim.Optimizer, got {type(optimizer).__name__}."
            )
        if window < 1:
            raise ValueError(f"window must be at least 1, got {window}.")
        if space not in get_args(Space):
            raise ValueError(f"space must be one of {list(get_args(Space))}, got {space!r}.")
        if not floor > 0:
            raise ValueError(f"floor must be positive, got {floor}.")
        super().__init__(optimizer.param_groups, optimizer.defaults)
        self.inner = optimizer
        self._share_inner()
        self.strategy = AdaptiveSwitch() if strategy is None else strategy
        self.window, self.space, self.seed = window, space, seed
        self.trace, self.floor = trace, floor
        self.history: History | None = None
        self._given_scales = _read_scales(scales)
        self._largest_losses: Tensor | None = None
        self._last_direction: tuple[Tensor, ...] | None = None
        self._batched: bool | None = None

    @property
    def scales(self) -> Tensor | None:
        """What each loss is divided by at present, shape [m]; None before the first step."""
        return self._largest_losses if self._given_scales is None else self._given_scales

    def backward(
        self,
        losses: Tensor | Sequence[Tensor],
        outputs: Tensor | None = None,
        constraints: Sequence[Constraint] = (),
        loss_scale: float = 1.0,
    ) -> None:
        """Weigh the losses' gradients, and add the combined direction to ``.grad``.

        Parameters
        ----------
        losses : sequence of m scalars, or Tensor of shape [m]
        outputs : Tensor, optional
            The model's outputs that all losses are computed from: gradients are compared there,
            in prediction space, which costs next to nothing.
        constraints : sequence of Constraint
            The active ones bend the direction.
        loss_scale : float
            ``scaler.get_scale()`` of a ``torch.amp.GradScaler``: ``.grad`` is multiplied by it,
            and an overflow is left to the scaler.
        """
        values = read_losses(losses)
        outputs = self._compared_outputs(outputs)
        parameters = [p for g in self.inner.param_groups for p in g["params"] if p.requires_grad]
        history = self._history_for(len(values))
        if outputs is not None or history.starts_window:
            check_reach(values, parameters, outputs)
        active = [constraint for constraint in constraints if constraint.is_active]
        softs = torch.stack([c.soft.reshape(()) for c in active]) if active else None
        detached = values.detach().double().cpu()
        scales = self._scales_for(detached, history)
        passes = BackwardPass(
            values * (loss_scale / scales).to(values), parameters, outputs, softs, self._batched
        )
        view = StepView(
            losses=detached / scales,
            history=history,
            step=history.step,
            seeds=torch.tensor(self.seed),
            compute_gramian=lambda: _finite_gramian(passes.gramian(), loss_scale),
        )
        try:
            taken = self._take(view, passes, active, loss_scale)
        except _OverflowError:
            if loss_scale == 1.0:
                raise ValueError(
                    "losses must have finite gradients, got some that are not; lower the "
                    "learning rate, or clip the gradients."
                ) from None
            for parameter in parameters:
                parameter.grad = torch.full_like(parameter, torch.inf)
            return
        if self._given_scales is None:
            self._largest_losses = scales
        self._batched, self.history = passes.batched, history
        self._commit(taken, parameters, loss_scale)

    def step(self, closure: None = None) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Take a step with the wrapped optimizer, then clear the gradients.

        Optimizers that evaluate the loss several times per step (L-BFGS) need a closure, which
        several losses do not have.
        """
        if closure is not None:
            raise TypeError("closure must be None: call backward, then step.")
        self.inner.step()
        for group in self.inner.param_groups:
            for parameter in group["params"]:
                parameter.grad = None

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters, as for any optimizer."""
        if "inner" not in self.__dict__:  # called by the constructor of the base class
            super().add_param_group(param_group)
            return
        self.inner.add_param_group(param_group)
        self._share_inner()
        self._last_direction = None

    def state_dict(self) -> dict[str, Any]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Everything that is needed to continue bit for bit."""
        return {
            "inner": self.inner.state_dict(),
            "history": None if self.history is None else self.history.state_dict(),
            "given_scales": self._given_scales,
            "largest_losses": self._largest_losses,
            "last_direction": self._last_direction,
            "seed": self.seed,
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue where :meth:`state_dict` was taken, with a strategy of the same settings."""
        missing = {"inner", "history", "given_scales", "largest_losses"} - set(state_dict)
        if missing:
            raise ValueError(
                f"state_dict must come from APFEx.state_dict, got one without {sorted(missing)}."
            )
        state = copy.deepcopy(state_dict)
        self.inner.load_state_dict(state["inner"])
        self._share_inner()
        self.history = (
            None if state["history"] is None else History.from_state_dict(state["history"])
        )
        self._given_scales = state["given_scales"]
        self._largest_losses = state["largest_losses"]
        self._last_direction = state["last_direction"]
        self.seed = state["seed"]

    def _take(
        self,
        view: StepView,
        passes: BackwardPass,
        active: Sequence[Constraint],
        loss_scale: float,
    ) -> _Taken:
        """Decide, and compute the direction; nothing of the optimizer changes."""
        decision = self.strategy.decide(view)
        harmful = _harm(passes, view, decision.weights) if view.history.starts_window else None
        rows = passes.constraint_rows() if active else None
        direction = passes.direction(decision.weights)
        if decision.blend is not None:
            direction = self._blended(direction, float(decision.blend), loss_scale)
        slack = None
        if rows is not None:
            required = torch.tensor([c.required_descent for c in active], dtype=torch.float64)
            direction, slack = _constrained(direction, rows, required, loss_scale)
        norm = torch.cat([part.flatten() for part in direction]).norm().double().cpu() / loss_scale
        if not bool(norm.isfinite()):
            raise _OverflowError
        logs_omega = view.has_gramian and view.history.starts_window
        record = StepRecord(
            losses=view.losses,
            weights=decision.weights,
            choice=torch.zeros((), dtype=torch.int64)
            if decision.choice is None
            else decision.choice,
            direction_norm=norm,
            norms=view.norms if view.has_gramian else None,
            omega=_length(view, min_norm(view.gramian)) if logs_omega else None,
            omega_active=_length(view, active_min_norm(view)) if logs_omega else None,
            harmful=harmful,
            slack=slack,
        )
        return _Taken(record, direction, remembered=decision.blend is not None)

    def _commit(self, taken: _Taken, parameters: Sequence[Tensor], loss_scale: float) -> None:
        if taken.remembered:
            self._last_direction = tuple(part / loss_scale for part in taken.direction)
        for parameter, gradient in zip(parameters, taken.direction, strict=True):
            parameter.grad = gradient if parameter.grad is None else parameter.grad + gradient
        assert self.history is not None
        self.history.record(taken.record)

    def _compared_outputs(self, outputs: Tensor | None) -> Tensor | None:
        """The outputs, if gradients are to be compared there."""
        if outputs is None:
            if self.space == "prediction":
                raise ValueError("outputs must be given where space is 'prediction', got None.")
            return None
        if self.space == "parameter":
            return None
        if self.space == "auto" and self.history is not None:
            return None if float(self.history.harmful_share) > _MOST_HARMFUL else outputs
        return outputs

    def _history_for(self, m: int) -> History:
        history = self.history or History(m, self.window, trace=self.trace)
        if m != history.n_objectives:
            raise ValueError(f"losses must be as many as before ({history.n_objectives}), got {m}.")
        if self._given_scales is not None and self._given_scales.numel() not in (1, m):
            raise ValueError(
                f"scales must have one entry for each of the {m} losses, got "
                f"{self._given_scales.numel()}."
            )
        return history

    def _scales_for(self, losses: Tensor, history: History) -> Tensor:
        if self._given_scales is not None:
            return self._given_scales.expand_as(losses)
        if self._largest_losses is None:
            return losses.abs().clamp(min=self.floor)
        if history.n_windows > 0:
            return self._largest_losses
        return torch.maximum(self._largest_losses, losses.abs())

    def _blended(self, direction: Direction, share: float, loss_scale: float) -> Direction:
        """Mix with the last direction (PSS); alone on the first step."""
        if share == 1.0 or self._last_direction is None:
            return direction
        rest = (1 - share) * loss_scale
        return tuple(
            share * new + rest * last
            for new, last in zip(direction, self._last_direction, strict=True)
        )

    def _share_inner(self) -> None:
        self.param_groups, self.state = self.inner.param_groups, self.inner.state


@dataclass(frozen=True, eq=False)
class _Taken:
    """A step that is decided but not yet committed."""

    record: StepRecord
    direction: Direction
    remembered: bool


class _OverflowError(ArithmeticError):
    """Gradients are not finite."""


def _read_scales(scales: Scales) -> Tensor | None:
    if isinstance(scales, str):
        if scales not in ("first_window", "none"):
            raise ValueError(f"scales must be 'first_window', 'none' or numbers, got {scales!r}.")
        return None if scales == "first_window" else torch.ones(1, dtype=torch.float64)
    given = torch.as_tensor(scales, dtype=torch.float64).detach().cpu()
    if given.ndim != 1 or not bool(((given > 0) & given.isfinite()).all()):
        raise ValueError(f"scales must be positive and finite, one per loss, got {scales}.")
    return given


def _finite_gramian(gramian: Tensor, loss_scale: float) -> Tensor:
    gramian = gramian.double().cpu() / loss_scale**2
    if not bool(gramian.isfinite().all()):
        raise _OverflowError
    return gramian


def _harm(passes: BackwardPass, view: StepView, weights: Tensor) -> Tensor | None:
    """Whether a direction that descends at the outputs raises a loss in parameter space."""
    if passes.output_rows is None:
        return None
    exact = passes.parameter_gramian().double().cpu()

    def raises_one(gramian: Tensor) -> bool:
        w = weights.double()
        lengths = gramian.diagonal().clamp(min=0).sqrt() * direction_length(gramian, w)
        return bool((gramian @ w < -1e-6 * lengths).any())

    return torch.tensor(raises_one(exact) and not raises_one(view.gramian.double()))


def _constrained(
    direction: Direction, rows: Jacobian, required: Tensor, loss_scale: float
) -> tuple[Direction, Tensor]:
    """Bend a direction so that it meets the active constraints."""
    stacked = Jacobian(
        tuple(
            torch.cat([part.unsqueeze(0) / loss_scale, block])
            for part, block in zip(direction, rows.blocks, strict=True)
        )
    )
    step = constraint_step(stacked.gramian().double().cpu(), required)
    added = rows.combine(step.multipliers.to(rows.blocks[0]) * loss_scale)
    return tuple(a + b for a, b in zip(direction, added, strict=True)), step.slack


def _length(view: StepView, weights: Tensor) -> Tensor:
    return direction_length(view.gramian, weights)
