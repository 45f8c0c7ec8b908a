"""Aims: where each member of a population is to go, by weights of the gaps or by bounds on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from apfex.rates import RateName

_SINGLE_SHARE = 0.6
"""Of the weighted members, how many weigh one gap alone, where there are several."""
_LARGEST = 8.0
"""The largest weight of a gap beside the error."""
_BELOW_LIMIT = (1.1, 0.2)
"""Shares of the asked bounds between which members sweep: what meets a bound on the training rows
exactly misses it on half of all others."""


@final
@dataclass(frozen=True, eq=False)
class Aims:
    """What each of b members weighs beside the error, and within which bounds it has to stay.

    Attributes
    ----------
    rates : tuple of r names
    weights : Tensor of shape [b, a * r]
        For each of a groupings the weights of the gaps in r rates. A row of zeros without bounds
        is a plain model.
    relative : Tensor of shape [2, b, a * r] or None
        Largest gaps as shares of what the first member has, when the search begins and when it
        ends; ``inf`` where there is no bound. Of a member with several bounds: as shares of the
        largest of these gaps.
    absolute : Tensor of shape [2, b, a * r] or None
        The same, as gaps.

    Examples
    --------
    >>> Aims(("dp",), torch.tensor([[0.0], [1.0]])).n_members
    2
    """

    rates: tuple[RateName, ...]
    weights: Tensor
    relative: Tensor | None = None
    absolute: Tensor | None = None

    def __post_init__(self) -> None:
        """Refuse weights of another shape, or negative ones, and bounds of other members."""
        r, shape = len(self.rates), list(self.weights.shape)
        if len(shape) != 2 or (shape[1] % r or not shape[1] if r else shape[1]):
            raise ValueError(f"weights must have shape [b, a * {r}], got {shape}.")
        if not bool(((self.weights >= 0) & self.weights.isfinite()).all()):
            raise ValueError("weights must be finite and non-negative.")
        for name in ("relative", "absolute"):
            bounds = getattr(self, name)
            if bounds is not None and list(bounds.shape) != [2, *shape]:
                raise ValueError(
                    f"{name} must have shape {[2, *shape]} (beginning and end, members, gaps), got "
                    f"{list(bounds.shape)}."
                )

    @property
    def n_members(self) -> int:
        """Number of members b."""
        return len(self.weights)

    @property
    def bounded(self) -> Tensor:
        """Numbers of the members that have a bound."""
        found = torch.zeros(self.n_members, dtype=torch.bool, device=self.weights.device)
        for bounds in (self.relative, self.absolute):
            if bounds is not None:
                found |= bounds.isfinite().any(0).any(1)
        return found.nonzero().squeeze(1)

    def bounds(self, plain: Tensor, done: float) -> Tensor:
        """Bounds [b, a * r] where the first member has the gaps ``plain``.

        These are of shape [a * r], or [b, a * r] if members have different first ones. ``done`` is
        how much of the search is done, from 0 to 1.
        """
        found = torch.full_like(self.weights, torch.inf)
        for given in (self.relative, self.absolute):
            if given is None:
                continue
            mine = given[0].isfinite()
            now = given[0] + done * (given[1] - given[0])
            if given is self.relative:  # what is bounded together has the largest as its unit
                now = now * torch.where(mine, plain.nan_to_num(0.0, 0.0), 0.0).amax(1, keepdim=True)
            found = torch.where(mine, torch.minimum(found, now), found)
        return found.nan_to_num(torch.inf, torch.inf)

    def of_members(self, members: Tensor) -> Aims:
        """Return the aims of some of the members, the first of all among them."""
        taken = (b if b is None else b[:, members] for b in (self.relative, self.absolute))
        return Aims(self.rates, self.weights[members], *taken)

    def to(self, device: torch.device | Tensor) -> Aims:
        """Return the aims on another device, or in the dtype of a tensor."""
        moved = (b if b is None else b.to(device) for b in (self.relative, self.absolute))
        return Aims(self.rates, self.weights.to(device), *moved)


def spread_aims(
    rates: Sequence[RateName],
    n_members: int = 26,
    n_groupings: int = 1,
    limits: Sequence[float] | None = None,
    criteria: Sequence[Sequence[RateName]] | None = None,
) -> Aims:
    """Spread members over the trade-offs between the error and the gaps.

    Parameters
    ----------
    rates : sequence of r names
    n_members : int
        At least two. The first is plain; about a third have bounds, from four members on.
    n_groupings : int
        Gaps of each grouping get the same aim.
    limits : sequence of r numbers, optional
        Bounds that are asked for; two of the members that have bounds (one of fewer than eight)
        sweep towards all of them at once. From 1 on there is no bound.
    criteria : sequence of sequences of rates, optional
        Rates whose gaps go together, as those of equalized odds; each by itself by default.

    Notes
    -----
    Weights are Dirichlet(1, ..., 1) draws of (error, criteria), as in the paper's set sampling,
    evenly spread over the faces of the simplex: the error alone, the error with each criterion, the
    error with all of them (a scrambled Sobol sequence). They are given beside an error of weight 1,
    and shared by the gaps of a criterion. Other members have bounds: for each criterion, and for
    all at once if there are several, they sweep together from none of the plain member's gap to
    all of it.

    Examples
    --------
    >>> aims = spread_aims(("dp",), n_members=6)
    >>> aims.weights.squeeze(1)
    tensor([0.0000, 0.2000, 1.0000, 5.0000, 0.0000, 0.0000])
    >>> aims.relative[:, 4:, 0]
    tensor([[0.0000, 0.5000],
            [0.5000, 1.0000]])
    """
    if n_members < 2:
        raise ValueError(f"n_members must be at least 2, got {n_members}.")
    criteria = [[rate] for rate in rates] if criteria is None else criteria
    # [criteria, rates]: which gaps a criterion is about
    about = torch.tensor([[float(rate in own) for rate in rates] for own in criteria])
    is_limited = limits is not None and min(limits, default=1.0) < 1  # no gap is above 1
    n_limited = min(2, n_members // 4) if is_limited else 0
    swept = about if len(about) == 1 else torch.cat([about, about.amax(0, keepdim=True)])
    n_swept = (n_members - n_limited) // 3 // len(swept)
    draws = _draws(n_members - n_limited - len(swept) * n_swept, len(about))
    weights = draws @ (about / about.sum(1, keepdim=True))
    plain = weights.new_zeros(n_members - len(weights), len(rates))
    relative = torch.full((2, n_members, len(rates)), torch.inf)
    absolute = relative.clone()
    for place, gaps in enumerate(swept.bool()):
        own = torch.arange(n_swept) + len(weights) + place * n_swept
        share = torch.arange(n_swept + 1).unsqueeze(1) / max(1, n_swept)
        relative[0, own] = torch.where(gaps, share[:-1], torch.inf)
        relative[1, own] = torch.where(gaps, share[1:], torch.inf)
    if n_limited:
        shares = torch.linspace(*_BELOW_LIMIT, n_limited + 1)
        shares = torch.stack([shares[:-1], shares[1:]]).unsqueeze(2)
        absolute[:, -n_limited:] = shares * torch.tensor(limits, dtype=torch.float32)
    every = torch.cat([weights, plain]).repeat(1, n_groupings)
    return Aims(
        tuple(rates),
        every,
        relative.repeat(1, 1, n_groupings),
        absolute.repeat(1, 1, n_groupings),
    )


def _draws(n: int, r: int) -> Tensor:
    """Weights [n, r] of the gaps beside the error: one plain, then draws by face."""
    alone = n - 1 if r == 1 else int(_SINGLE_SHARE * (n - 1) / r)
    rows = [torch.zeros(1, r)]
    for gap in range(r):
        share = (torch.arange(alone) + 0.5) / alone
        weights = torch.zeros(alone, r)
        weights[:, gap] = share / (1 - share)
        rows.append(weights)
    inside = n - 1 - r * alone
    if inside > 0:
        sobol = torch.quasirandom.SobolEngine(1 + r, scramble=True, seed=0)
        parts = -sobol.draw(inside).clamp(1e-4, 1 - 1e-4).log()
        rows.append(parts[:, 1:] / parts[:, :1])
    return torch.cat(rows).clamp_max(_LARGEST)
