"""Gradient accumulation: several micro-batches, one step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final

from torch import Tensor

from apfex.gradients import Jacobian
from apfex.optimizer._backward_pass import BackwardCall, BackwardPass, Direction


@final
@dataclass(frozen=True, eq=False)
class GradientSums:
    """The losses of one step and the gradient of each, added up over its micro-batches.

    Sums of gradients are the gradients of the summed losses, so whatever is decided from them is
    what a single batch with these losses would decide.

    Attributes
    ----------
    losses : float64 Tensor of shape [m]
        Detached.
    rows : mapping from parameters to Tensors of shape [m, *parameter.shape]
        Gradients of the losses, times the loss scale.
    output_gramian : float64 Tensor of shape [m, m] or None
        Inner products of the gradients at the outputs, where these are compared.
    n_outputs : int
        Rows of the outputs.
    batched : bool or None
        Whether backward passes can be batched; None: not known yet.
    """

    losses: Tensor
    rows: Mapping[Tensor, Tensor]
    output_gramian: Tensor | None = None
    n_outputs: int = 0
    batched: bool | None = None

    @staticmethod
    def of(passes: BackwardPass, losses: Tensor) -> GradientSums:
        """Those of one micro-batch."""
        gramian, number = None, 0
        if passes.outputs is not None:
            gramian, number = passes.output_gramian(), passes.n_outputs
            gramian = gramian.double().cpu()
        blocks = passes.take_parameter_rows().blocks
        rows = dict(zip(passes.parameters, blocks, strict=True))
        return GradientSums(losses, rows, gramian, number, passes.batched)

    def plus(self, earlier: GradientSums) -> GradientSums:
        """With those of earlier micro-batches, which are left as they are."""
        rows = dict(earlier.rows)
        for parameter, own in self.rows.items():
            rows[parameter] = own + rows[parameter] if parameter in rows else own
        gramian = self.output_gramian
        if gramian is not None and earlier.output_gramian is not None:
            gramian = gramian + earlier.output_gramian
        number = self.n_outputs + earlier.n_outputs
        return GradientSums(self.losses + earlier.losses, rows, gramian, number, self.batched)


def add_up(call: BackwardCall, batched: bool | None) -> GradientSums:
    """Losses and gradients of this micro-batch and of the earlier ones of the same step."""
    own = GradientSums.of(call.differentiate(call.loss_scale or 1.0, batched), call.losses)
    earlier = None if call.earlier is None else call.earlier.sums
    return own if earlier is None else own.plus(earlier)


@final
@dataclass(frozen=True, eq=False)
class ScaledSums:
    """Sums of gradients over the scales of the losses [m]: what a strategy weighs."""

    sums: GradientSums
    scales: Tensor

    @property
    def batched(self) -> bool | None:
        """Whether backward passes can be batched; None: not known yet."""
        return self.sums.batched

    @property
    def is_sharded(self) -> bool:
        """Never: sums need the gradient of each loss."""
        return False

    @property
    def parameters(self) -> Sequence[Tensor]:
        """Those that a loss of any micro-batch depends on."""
        return list(self.sums.rows)

    @property
    def compares_outputs(self) -> bool:
        """Whether gradients are compared in prediction space."""
        return self.sums.output_gramian is not None

    def gramian(self) -> Tensor:
        """Inner products of the gradients, shape [m, m], float64; see :class:`BackwardPass`."""
        if self.sums.output_gramian is None:
            return self.parameter_gramian()
        return self._scaled(self.sums.output_gramian * self.sums.n_outputs)

    def parameter_gramian(self) -> Tensor:
        """The Gramian in parameter space."""
        return self._scaled(self._rows().gramian().double().cpu())

    def direction(self, weights: Tensor) -> Direction:
        """Weighted sum of the gradients."""
        rows = self._rows()
        return rows.combine((weights / self.scales).to(rows.blocks[0]))

    def _rows(self) -> Jacobian:
        return Jacobian(tuple(self.sums.rows.values()))

    def _scaled(self, gramian: Tensor) -> Tensor:
        return gramian / self.scales.unsqueeze(-1) / self.scales
