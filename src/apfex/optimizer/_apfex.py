"""``APFEx``: several losses, one optimizer."""

from __future__ import annotations

import copy
import warnings
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, Literal, final, get_args

import torch
from torch import Tensor

from apfex.arguments import require_flags, require_numbers
from apfex.constraints import Constraint
from apfex.distributed import workers
from apfex.history import History
from apfex.optimizer._accumulation import ScaledSums, add_up
from apfex.optimizer._backward_pass import BackwardCall
from apfex.optimizer._checks import (
    check_compiled,
    check_finite,
    check_reach,
    check_real,
    check_recomputed,
    check_settings,
    graph_nodes,
    needs_each_gradient,
    read_constraints,
    read_losses,
    used_parameters,
)
from apfex.optimizer._decision import decide_step, finite_gramian
from apfex.optimizer._grad_scaler import (
    check_scaler,
    forget_scaler,
    full_precision,
    read_loss_scale,
    told_by_scaler,
    unscale,
)
from apfex.optimizer._pending_step import PendingStep, write
from apfex.optimizer._scales import LossScales, Scales
from apfex.optimizer._shards import are_sharded, check_shards, is_sharded
from apfex.optimizer._workers import Standing, meet
from apfex.strategies import AdaptiveSwitch, Choice, StepView, Strategy

Space = Literal["auto", "prediction", "parameter"]
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
        Steps over which losses are averaged before the strategy reads them: an epoch, say.
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
    accumulate : bool
        Let ``backward`` be called several times before ``step``, once for each micro-batch.

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

    **The loop.** ``backward`` decides a step and adds its direction to ``.grad``; ``step`` applies
    it, counts it and clears the gradients, so a loop needs no ``zero_grad``. What is cleared before
    ``step`` (a batch that is skipped) is not counted. Clipping goes between the two as everywhere.
    A parameter that no loss depends on keeps its ``.grad``. If anything is wrong with the losses,
    ``backward`` raises before it has changed anything.

    **Accumulation.** With ``accumulate=True`` the losses of all calls of ``backward`` before a
    ``step`` are added up, and so are their gradients: divide each loss by the number of
    micro-batches, as everywhere. The step is decided from the sums, so it is the one that a single
    batch with these losses would take, whatever the strategy; windows count steps. This takes the
    gradient of each loss in every call, and holds m gradients in memory until ``step``. The mean of
    a fairness loss over micro-batches is not that of the whole batch: it measures gaps among fewer
    rows at a time, which are larger by chance.

    **Half precision.** Give the losses as they are, and the ``torch.amp.GradScaler``::

        optimizer.backward(losses, scaler=scaler)
        scaler.unscale_(optimizer)  # only to clip
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()

    A step that the scaler skips is not counted. Under ``torch.autocast`` ``backward`` itself
    computes in full precision.

    **Compiled models.** By default a model of ``torch.compile`` allows one backward pass for each
    forward pass. Where the strategy compares gradients, set
    ``torch._functorch.config.donated_buffer = False`` before the model first runs; otherwise the
    first ``backward`` says so.

    **Several workers.** With ``torch.distributed`` every process gives its rows of a batch, in a
    plain loop or one of ``DistributedDataParallel`` or ``fully_shard``, and all take the step of
    one process with the whole batch. Losses of :mod:`apfex.objectives` are then those of all rows;
    gradients of others are averaged over workers, see :func:`apfex.distributed.all_sum`. What is
    wrong on one worker is an error on all.

    Gradients are taken with ``torch.autograd.grad``: hooks on tensors run, hooks that wait for
    ``.grad`` to be accumulated do not. Where a Gramian is needed the passes are batched, so a
    tensor hook sees the gradients of all losses at once, and an intermediate tensor must not be
    asked to ``retain_grad()``.

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

    window: int
    seed: int
    trace: bool
    floor: float
    accumulate: bool
    param_groups: list[dict[str, Any]]
    state: defaultdict[Tensor, Any]

    _step_supports_amp_scaling = True
    """So a ``GradScaler`` leaves it to ``step`` to unscale the gradients, or to drop them."""

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
        accumulate: bool = False,
    ) -> None:
        strategy = AdaptiveSwitch() if strategy is None else strategy
        check_settings(optimizer, strategy, window=window, seed=seed, accumulate=accumulate)
        if space not in get_args(Space):
            raise ValueError(f"space must be one of {list(get_args(Space))}, got {space!r}.")
        require_numbers(floor=floor)
        require_flags(trace=trace)
        if not 0 < floor < float("inf"):
            raise ValueError(f"floor must be positive and finite, got {floor}.")
        are_sharded(p for group in optimizer.param_groups for p in group["params"])
        super().__init__(optimizer.param_groups, optimizer.defaults)
        self.inner = optimizer
        self._share_inner()
        self._follow_inner()
        self.strategy = strategy
        self.window, self.space, self.seed = window, space, seed
        self.trace, self.floor, self.accumulate = trace, floor, accumulate
        self.history: History | None = None
        self._scales = LossScales(scales, floor)
        self._last_direction: dict[Tensor, Tensor] = {}
        self._batched: bool | None = None
        self._compared: bool | None = None
        self._pending: PendingStep | None = None

    @property
    def scales(self) -> Tensor | None:
        """What each loss is divided by at present, shape [m]; None before the first step."""
        return self._scales.current

    def backward(
        self,
        losses: Tensor | Sequence[Tensor],
        outputs: Tensor | None = None,
        constraints: Constraint | Sequence[Constraint] | None = None,
        scaler: torch.amp.GradScaler | None = None,
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
        scaler : torch.amp.GradScaler, optional
            ``.grad`` is multiplied by its scale, and an overflow is left to it: take the step with
            ``scaler.step(optimizer)``.
        """
        team, values, call, problem = workers(), None, None, None
        try:
            values = read_losses(losses)
            check_finite(values)
            with full_precision(values.device):
                call = self._read_call(values, outputs, constraints, scaler)
        except Exception as error:
            if team is None:
                raise
            problem = error
        if team is not None:
            call = meet(team, call, self._standing(call), problem, values)
        assert call is not None
        with full_precision(call.values.device):
            self._pending = self._decide(call)

    def step(self, closure: None = None) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Take a step with the wrapped optimizer, then clear the gradients.

        Optimizers that evaluate the loss several times per step (L-BFGS) need a closure, which
        several losses do not have.
        """
        if closure is not None:
            raise TypeError("closure must be None: call backward, then step.")
        try:
            if not self._is_skipped():
                self.inner.step()  # counted by its hook
        except Exception:
            forget_scaler(self)
            raise
        self._pending = None
        for parameter in self._parameters():
            parameter.grad = None

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Clear the gradients; what ``backward`` has decided since the last step is not counted."""
        super().zero_grad(set_to_none)
        self._pending = None

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters, as for any optimizer."""
        if "inner" not in self.__dict__:  # called by the constructor of the base class
            super().add_param_group(param_group)
            return
        self.inner.add_param_group(param_group)
        self._share_inner()

    def state_dict(self) -> dict[str, Any]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Everything that is needed to continue bit for bit from the last step.

        Gradients are in no checkpoint: what ``backward`` has done since the last step is to be done
        again, and loading such a state says so.
        """
        return {
            "inner": self.inner.state_dict(),
            "history": None if self.history is None else self.history.state_dict(),
            "given_scales": self._scales.given,
            "largest_losses": self._scales.largest,
            "last_direction": [self._last_direction.get(p) for p in self._parameters()],
            "compared": self._compared,
            "window": self.window,
            "seed": self.seed,
            "calls_since_step": 0 if self._pending is None else self._pending.calls,
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue where :meth:`state_dict` was taken, with a strategy of the same settings."""
        missing = set(self.state_dict()) - set(state_dict)
        if missing:
            raise ValueError(
                f"state_dict must come from APFEx.state_dict, got one without {sorted(missing)}."
            )
        if len(state_dict["last_direction"]) != len(self._parameters()):
            raise ValueError(
                f"state_dict must be of as many parameters ({len(self._parameters())}), got "
                f"{len(state_dict['last_direction'])}."
            )
        state = copy.deepcopy(state_dict)
        history = None if state["history"] is None else History.from_state_dict(state["history"])
        scales = [
            None if state[name] is None else state[name].cpu()
            for name in ("given_scales", "largest_losses")
        ]
        last_direction = {
            parameter: last.to(parameter).view_as(parameter)
            for parameter, last in zip(self._parameters(), state["last_direction"], strict=True)
            if last is not None
        }
        self.inner.load_state_dict(state["inner"])  # refuses before it changes anything
        self.history, self._last_direction = history, last_direction
        self._scales.given, self._scales.largest = scales
        self._compared, self.window, self.seed = (
            state[name] for name in ("compared", "window", "seed")
        )
        self._pending = None
        if state["calls_since_step"]:
            warnings.warn(
                f"The state was saved after {state['calls_since_step']} calls of backward since "
                "the last step, whose gradients no checkpoint holds: training continues from that "
                "step, so give these batches again.",
                stacklevel=2,
            )

    def __getstate__(self) -> dict[str, Any]:
        """All but the gradients, which copies and pickles of parameters do not have either."""
        state = {key: value for key, value in self.__dict__.items() if key != "step"}
        return state | {"_pending": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Continue as a copy."""
        super().__setstate__(state)
        self._follow_inner()

    def _read_call(
        self,
        values: Tensor,
        outputs: Tensor | None,
        constraints: Constraint | Sequence[Constraint] | None,
        scaler: torch.amp.GradScaler | None,
    ) -> BackwardCall:
        """Check what ``backward`` was given; nothing changes."""
        loss_scale = read_loss_scale(scaler, values)
        outputs, history = self._compared_outputs(outputs), self._history_for(len(values))
        trainable = self._trainable()
        sharded = are_sharded(trainable)
        if sharded:
            check_shards(
                outputs=outputs,
                compares=needs_each_gradient(self.strategy),
                constrained=bool(constraints),
                accumulates=self.accumulate,
                scales=loss_scale is not None,
            )
        check_real(trainable, "Parameters")
        check_reach(values, None if sharded else trainable, outputs)
        check_real([] if outputs is None else [outputs], "outputs")
        active = read_constraints(constraints, trainable)
        if self.accumulate and constraints:
            raise ValueError(
                "constraints must be None where accumulate is True, as a bound holds for a whole "
                "batch and not for a sum over micro-batches; leave one of the two out."
            )
        earlier = self._pending
        if earlier is not None and earlier.is_cleared:
            earlier = None
        if earlier is not None:
            earlier.check_next(len(values), outputs is not None, loss_scale)
        nodes = graph_nodes([values, *(constraint.soft for constraint in active.values())])
        if not sharded:
            check_recomputed(nodes)
        if self.accumulate or active or needs_each_gradient(self.strategy):
            check_compiled(nodes)
        whole = {id(parameter) for parameter in used_parameters(nodes, trainable)}
        return BackwardCall(
            values,
            outputs,
            list(active.values()),
            [p for p in trainable if id(p) in whole or is_sharded(p)],
            loss_scale,
            history,
            earlier,
            list(active),
            sharded,
        )

    def _standing(self, call: BackwardCall | None) -> Standing:
        """What other workers are to know of this one."""
        scales = (self._scales.given, self._scales.largest)
        compares = call is not None and call.history.starts_window
        settings = (self.strategy, self.seed, self.window, self.accumulate, self.floor, scales)
        return Standing(self._trainable(), settings, compares)

    def _decide(self, call: BackwardCall) -> PendingStep:
        """Take gradients, have the strategy weigh them, and write the direction into ``.grad``."""
        sums = add_up(call, self._batched) if self.accumulate else None
        losses = call.losses if sums is None else sums.losses
        scales = self._scales.of(losses, call.history)
        gradients = (
            call.gradients(scales, self._batched) if sums is None else ScaledSums(sums, scales)
        )
        view = StepView(
            losses=losses / scales,
            history=call.history,
            step=call.history.step,
            seeds=torch.tensor(self.seed),
            compute_gramian=lambda: finite_gramian(gradients.gramian(), call.loss_scale, call.team),
        )
        decided = decide_step(
            self.strategy,
            view,
            gradients,
            call.active,
            self._last_direction,
            call.loss_scale,
            call.team,
        )
        self._batched = gradients.batched
        return PendingStep(
            record=decided.record,
            remembered=decided.remembered,
            history=call.history,
            scales=scales,
            compares_outputs=call.outputs is not None,
            loss_scale=call.loss_scale,
            calls=1 if call.earlier is None else call.earlier.calls + 1,
            sums=sums,
            written=write(gradients.parameters, decided.direction, call.earlier),
        )

    def _is_skipped(self) -> bool:
        """Unscale the gradients if a scaler takes the step, and tell whether it skips it."""
        expected = None if self._pending is None else self._pending.loss_scale
        told = told_by_scaler(self)
        if self._pending is not None:
            check_scaler(told, expected)
        if told is None:
            return False
        if not told.overflow and told.scale is not None:
            unscale((p.grad for p in self._parameters() if p.grad is not None), told.scale)
        return told.overflow

    def _follow_inner(self) -> None:
        """Count every step of the wrapped optimizer, also those it is asked for directly."""
        self.inner.register_step_post_hook(lambda *_: self._count_step())
        self.inner.register_load_state_dict_post_hook(lambda _: self._share_inner())

    def _count_step(self) -> None:
        pending, self._pending = self._pending, None
        if pending is None or pending.record is None or not pending.has_gradients:
            return
        history = pending.history
        self._scales.settle(pending.scales, history)
        if self._compared and not pending.compares_outputs:
            history.forget_norms()  # lengths at the outputs are of another kind
        self._compared, self.history = pending.compares_outputs, history
        if pending.remembered is not None:
            self._last_direction = pending.remembered
        history.record(pending.record)

    def _parameters(self) -> list[Tensor]:
        return [p for group in self.inner.param_groups for p in group["params"]]

    def _trainable(self) -> list[Tensor]:
        return [p for p in self._parameters() if p.requires_grad]

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
        history = self.history or self._new_history(m)
        if m != history.n_objectives:
            raise ValueError(f"losses must be as many as before ({history.n_objectives}), got {m}.")
        self._scales.check(m)
        return history

    def _new_history(self, m: int) -> History:
        names = (
            [choice.name for choice in Choice]
            if isinstance(self.strategy, AdaptiveSwitch)
            else [type(self.strategy).__name__]
        )
        return History(m, self.window, trace=self.trace, choice_names=names)

    def _share_inner(self) -> None:
        self.param_groups, self.state = self.inner.param_groups, self.inner.state
