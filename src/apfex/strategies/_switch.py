"""The paper's switching rule: PCP, AW or PSS, one choice per window and member."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Literal, final

import torch
from torch import Tensor

from apfex.arguments import require_kind, require_numbers, require_whole
from apfex.strategies._base import Decision, StepView, Strategy
from apfex.strategies._cone import ConeProjection
from apfex.strategies._sampling import SetSampling
from apfex.strategies._weighting import AdaptiveWeighting, relative_improvement


class Choice(IntEnum):
    """Numbers of the three strategies in the history.

    Examples
    --------
    >>> Choice(1).name
    'AW'
    """

    PCP = 0
    AW = 1
    PSS = 2


@final
@dataclass(frozen=True)
class AdaptiveSwitch:
    """Chooses among cone projection, adaptive weighting and set sampling (Algorithm 1).

    Parameters
    ----------
    cone, weighting, sampling : Strategy
        The three.
    tolerance : float
        delta: windows whose mean losses move by less (root mean square) are stagnant.
    patience : int
        M: so many stagnant windows in a row start an exploration, and so many must pass before
        the next.
    small_gradient : float
        eps_g: all gradients shorter than this start one too.
    imbalance : float
        beta: largest over smallest relative improvement above which objectives are imbalanced.
    aligned : float
        eps_c: cosine above which a pair of gradients is aligned.
    order : {"weighting_first", "cone_first"}
        Whether imbalance or alignment is looked at first.

    Notes
    -----
    Decided at the first step of each window from the window means before it, in this order:

    a. stagnant, or all gradients small: PSS for one window, then not for ``patience`` windows;
    b. imbalanced: AW (with a loss that rises: if improvements differ by more than 0.01);
    c. more than half of the pairs aligned: PCP;
    d. otherwise as before (after PSS: as before that). The first window is AW.

    Examples
    --------
    >>> decision = AdaptiveSwitch().decide(StepView.of(torch.eye(2), torch.ones(2)))
    >>> Choice(int(decision.choice)).name, decision.weights
    ('AW', tensor([0.5000, 0.5000]))
    """

    cone: Strategy = ConeProjection()  # noqa: RUF009 - frozen values
    weighting: Strategy = AdaptiveWeighting()  # noqa: RUF009
    sampling: Strategy = SetSampling()  # noqa: RUF009
    tolerance: float = 1e-3
    patience: int = 5
    small_gradient: float = 1e-3
    imbalance: float = 2.0
    aligned: float = 0.0
    order: Literal["weighting_first", "cone_first"] = "weighting_first"

    def __post_init__(self) -> None:
        """Refuse settings out of range."""
        for name in ("cone", "weighting", "sampling"):
            strategy = getattr(self, name)
            require_kind(name, strategy, Strategy, "a strategy, with a decide method")
        names = ("tolerance", "small_gradient", "imbalance", "aligned")
        require_numbers(**{name: getattr(self, name) for name in names})
        require_whole(patience=self.patience)
        for name in ("tolerance", "small_gradient"):
            if not getattr(self, name) >= 0:
                raise ValueError(f"{name} must be at least 0, got {getattr(self, name)}.")
        if self.patience < 1:
            raise ValueError(f"patience must be at least 1, got {self.patience}.")
        if not self.imbalance >= 1:
            raise ValueError(f"imbalance must be at least 1, got {self.imbalance}.")
        if not -1 <= self.aligned <= 1:
            raise ValueError(f"aligned must be a cosine, got {self.aligned}.")
        if self.order not in ("weighting_first", "cone_first"):
            raise ValueError(
                f"order must be 'weighting_first' or 'cone_first', got {self.order!r}."
            )

    def decide(self, view: StepView) -> Decision:
        """Weigh the objectives of one step."""
        choice = self.choose(view)
        weights = torch.zeros_like(view.losses)
        blend = torch.ones_like(view.losses[..., 0])
        for number, strategy in zip(
            Choice, (self.cone, self.weighting, self.sampling), strict=True
        ):
            chosen = choice == number
            if bool(chosen.any()):
                decision = strategy.decide(view)
                weights = torch.where(chosen.unsqueeze(-1), decision.weights, weights)
                if decision.blend is not None:
                    blend = torch.where(chosen, decision.blend, blend)
        return Decision(weights, blend, choice)

    def choose(self, view: StepView) -> Tensor:
        """The strategy of each member, shape [...]."""
        history = view.history
        if history.n_windows == 0:
            return torch.full_like(view.losses[..., 0], Choice.AW, dtype=torch.int64)
        if not history.starts_window:
            return history.current_choice
        choice = self._before_exploration(view)
        aligned, imbalanced = self._is_aligned(view), self._is_imbalanced(view)
        rules = [(aligned, Choice.PCP), (imbalanced, Choice.AW)]
        for condition, number in rules if self.order == "weighting_first" else reversed(rules):
            choice = torch.where(condition, int(number), choice)
        return torch.where(self._should_explore(view), int(Choice.PSS), choice)

    def _before_exploration(self, view: StepView) -> Tensor:
        """The last choice that was no exploration."""
        last, *earlier = view.history.last_choices(2).flip(0)
        before = earlier[0] if earlier else torch.full_like(last, Choice.AW)
        return torch.where(last == Choice.PSS, before, last)

    def _should_explore(self, view: StepView) -> Tensor:
        history = view.history
        rested = (history.last_choices(self.patience) != Choice.PSS).all(0)
        small = (view.norms < self.small_gradient).all(-1)
        if history.n_windows <= self.patience:
            return small & rested
        moves = history.last_losses(self.patience + 1).diff(dim=0).square().mean(-1).sqrt()
        return (small | (moves < self.tolerance).all(0)) & rested

    def _is_imbalanced(self, view: StepView) -> Tensor:
        if view.history.n_windows < 2:
            return torch.zeros_like(view.losses[..., 0], dtype=torch.bool)
        rho = relative_improvement(view.history)
        least, most = rho.amin(-1), rho.amax(-1)
        mixed = (least <= 0) & (most > 0) & (most - least > 0.01)
        return mixed | ((least > 0) & (most > self.imbalance * least))

    def _is_aligned(self, view: StepView) -> Tensor:
        norms = view.norms
        lengths = norms.unsqueeze(-1) * norms.unsqueeze(-2)
        above = (view.gramian > self.aligned * lengths) & (lengths > 0)
        m = norms.shape[-1]
        pairs = torch.ones(m, m, dtype=torch.bool, device=norms.device).triu(1)
        return (above & pairs).sum((-2, -1)) * 2 > int(pairs.sum())
