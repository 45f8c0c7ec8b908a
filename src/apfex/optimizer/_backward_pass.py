"""What ``backward`` is given, and its backward passes: as few as the strategy asks for."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, final

import torch
from torch import Tensor

from apfex.constraints import Constraint
from apfex.distributed import Workers
from apfex.gradients import Jacobian, batched_jacobian, jacobian
from apfex.history import History
from apfex.objectives import known_gradients
from apfex.optimizer._shards import backward_into_shards

if TYPE_CHECKING:
    from apfex.optimizer._pending_step import PendingStep

Direction = tuple[Tensor, ...]
"""A tensor for each parameter: what goes into ``.grad``."""


@final
@dataclass(frozen=True, eq=False)
class BackwardCall:
    """Losses and what they are differentiated by; nothing has changed yet.

    Attributes
    ----------
    values : Tensor of shape [m]
        The losses, with their graph.
    outputs : Tensor or None
        Where gradients are compared in prediction space.
    active : sequence of Constraint
    parameters : sequence of Tensors
        Those that the losses or the active constraints depend on.
    loss_scale : float or None
        What a scaler multiplies the losses by.
    history : History
        Of the steps before.
    earlier : PendingStep or None
        What earlier micro-batches of the same step have led to.
    active_places : sequence of int
        Which of the constraints given are active.
    is_sharded : bool
        Whether workers hold parts of the parameters (``fully_shard``).
    team : Workers or None
        Those that share the batch.
    whole_losses : Tensor of shape [m] or None
        Losses of the whole batch, where it is shared.
    whole_outputs : int or None
        Rows of the outputs of all of them.
    """

    values: Tensor
    outputs: Tensor | None
    active: Sequence[Constraint]
    parameters: Sequence[Tensor]
    loss_scale: float | None
    history: History
    earlier: PendingStep | None
    active_places: Sequence[int] = ()
    is_sharded: bool = False
    team: Workers | None = None
    whole_losses: Tensor | None = None
    whole_outputs: int | None = None

    @property
    def losses(self) -> Tensor:
        """The losses of the batch [m], float64 and detached."""
        if self.whole_losses is not None:
            return self.whole_losses
        return self.values.detach().double().cpu()

    def gradients(self, scales: Tensor, batched: bool | None) -> BackwardPass:
        """Gradients of this batch alone, over the scales of the losses [m]."""
        return self.differentiate((self.loss_scale or 1.0) / scales, batched)

    def differentiate(self, factor: Tensor | float, batched: bool | None) -> BackwardPass:
        """Gradients of the losses times a factor."""
        softs = [constraint.soft.reshape(()) for constraint in self.active]
        constrained = torch.stack(softs) if softs else None
        factors = torch.as_tensor(factor).to(self.values).expand(len(self.values))
        return BackwardPass(
            self.values,
            factors,
            self.parameters,
            self.outputs,
            constrained,
            batched,
            self.team,
            self.whole_outputs,
            self.is_sharded,
        )


@final
@dataclass(eq=False)
class BackwardPass:
    """Gradients of losses [m] times factors [m] by the parameters, or first by the outputs.

    Weights that need no Gramian cost one backward pass of the weighted sum. Where a Gramian is
    asked for, all gradients are taken: by the parameters, in one batch; or by the outputs, which
    leaves one pass through the model. Gradients by the parameters are means over the workers that
    share the batch; those by the outputs are of a worker's own rows.
    """

    values: Tensor
    factors: Tensor
    parameters: Sequence[Tensor]
    outputs: Tensor | None = None
    softs: Tensor | None = None
    batched: bool | None = None
    """Whether backward passes can be batched; None: not known yet."""
    team: Workers | None = None
    whole_outputs: int | None = None
    is_sharded: bool = False
    output_rows: Jacobian | None = field(default=None, init=False)
    parameter_rows: Jacobian | None = field(default=None, init=False)

    @property
    def compares_outputs(self) -> bool:
        """Whether gradients are compared in prediction space."""
        return self.outputs is not None

    def gramian(self) -> Tensor:
        """Inner products of the gradients, shape [m, m].

        At the outputs they are multiplied by the number of rows: the gradient of a mean loss by
        one of n outputs is of size 1 / n, and lengths must not depend on the size of the batch.
        """
        if self.outputs is None:
            return self.take_parameter_rows().gramian()
        return self.output_gramian() * self.n_outputs

    @property
    def n_outputs(self) -> int:
        """Rows of the outputs, of all workers."""
        if self.whole_outputs is not None:
            return self.whole_outputs
        return 0 if self.outputs is None else len(self.outputs)

    def output_gramian(self) -> Tensor:
        """Inner products of the gradients by the outputs of all workers, shape [m, m].

        With N workers each has N times its rows of them, as gradients are averaged.
        """
        own = self.take_output_rows().gramian()
        if self.team is None:
            return own
        return self.team.gather(own.double()).sum(0) / self.team.size**2

    def parameter_gramian(self) -> Tensor:
        """The Gramian in parameter space, of a pass that compares outputs."""
        return self.take_parameter_rows().gramian()

    def take_output_rows(self) -> Jacobian:
        """Gradients of the losses by the outputs."""
        assert self.outputs is not None
        known = known_gradients(self.values, self.outputs)
        if known is None:
            keep = self.softs is not None
            self.output_rows = self._jacobian(self.values, [self.outputs], self._scaled, keep)
        else:
            self.output_rows = Jacobian((known * self.factors.unsqueeze(1),))
        return self.output_rows

    def take_parameter_rows(self) -> Jacobian:
        """Gradients of the losses by the parameters, through the outputs where these are known."""
        keep = self.softs is not None
        if self.outputs is None:
            rows = self._jacobian(self.values, self.parameters, self._scaled, keep)
        else:
            assert self.output_rows is not None
            cotangents = self.output_rows.blocks[0]
            rows = self._jacobian(self.outputs, self.parameters, cotangents, keep)
        self.parameter_rows = self._averaged(rows)
        return self.parameter_rows

    def constraint_rows(self) -> Jacobian | None:
        """Gradients of the constraints [j] by the parameters; None where none is active."""
        if self.softs is None:
            return None
        return self._averaged(self._jacobian(self.softs, self.parameters, None, keep=True))

    def direction(self, weights: Tensor) -> Direction:
        """Weighted sum of the gradients; the last pass, after which the graph is gone."""
        weights = weights.to(self.values)
        if self.parameter_rows is not None:
            return self.parameter_rows.combine(weights)
        if self.output_rows is not None and self.outputs is not None:
            return self._pull_back(self.outputs, self.output_rows.combine(weights)[0])
        return self._pull_back(self.values, weights * self.factors)

    @property
    def _scaled(self) -> Tensor:
        """Cotangents [m, m] of the scaled losses."""
        return self.factors.diag()

    def _pull_back(self, values: Tensor, cotangent: Tensor) -> Direction:
        if self.is_sharded:
            found = backward_into_shards(values, cotangent, self.parameters, self.team)
            self.parameters = list(found)
            return tuple(found.values())
        found = torch.autograd.grad(values, self.parameters, cotangent, materialize_grads=True)
        return found if self.team is None else self._averaged(_dense(Jacobian(found))).blocks

    def _averaged(self, rows: Jacobian) -> Jacobian:
        return rows if self.team is None else Jacobian(tuple(self.team.mean_(rows.blocks)))

    def _jacobian(
        self, values: Tensor, inputs: Sequence[Tensor], cotangents: Tensor | None, keep: bool
    ) -> Jacobian:
        # A tensor that keeps its gradient would be left with one that only lives inside vmap.
        retains = any(tensor.retains_grad for tensor in (values, *inputs))
        if self.batched is None and not retains:
            try:
                rows = jacobian(values, inputs, cotangents, retain_graph=True)
            except RuntimeError as error:
                self.batched = False
                warnings.warn(
                    "A layer cannot be differentiated in one batch, so gradients are taken one "
                    f"by one from now on, which is slower: {str(error).splitlines()[0]}",
                    stacklevel=2,
                )
            else:
                self.batched = inputs is self.parameters or None
                return _dense(rows)
        if cotangents is None:
            cotangents = torch.eye(len(values), dtype=values.dtype, device=values.device)
        if self.batched is False or retains:
            return _dense(jacobian(values, inputs, cotangents, batched=False, retain_graph=keep))
        return _dense(batched_jacobian(values, inputs, cotangents, retain_graph=keep))


def _dense(rows: Jacobian) -> Jacobian:
    if any(block.layout != torch.strided for block in rows.blocks):
        raise ValueError(
            "Parameters must have dense gradients where the strategy needs a Gramian, there are "
            "constraints or several workers, or gradients are accumulated, got sparse gradients; "
            "use sparse=False in the embedding."
        )
    return rows
