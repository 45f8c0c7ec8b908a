"""Networks by their decisions on the validation rows, and the rules that choose one of them."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, final, get_args

import numpy as np
import torch
from torch import Tensor

from apfex.front import FrontPoint, ParetoFront
from apfex.metrics import is_trivial, largest_gap
from apfex.rates import GroupIndex, RateName, rates_of, soft_counts
from apfex_reproduction.baselines._inputs import Rows

Rule = Literal["nearest", "fairest", "accurate", "last"]


@final
@dataclass(frozen=True, eq=False)
class Snapshot:
    """What is kept of a candidate: when or where it was found, and how to rebuild it.

    Attributes
    ----------
    place : int or tuple
        The epoch of a network; threshold and margin of a reject option.
    state : list of arrays
        Parameters of a network.
    constant : bool
        Whether it is no better than deciding the same for everybody.
    """

    place: Any
    state: Any
    constant: bool


@final
@dataclass(frozen=True, eq=False)
class Seen:
    """What a judge says of b members: values [b, 1 + gaps], and flags [b]."""

    values: np.ndarray
    constant: np.ndarray
    finite: np.ndarray


@final
@dataclass(frozen=True, eq=False)
class Judge:
    """Error and hard gaps on validation rows.

    Attributes
    ----------
    rows : Rows
    axes : sequence of (rate, grouping)
        Gaps to measure; those that the rows cannot tell are left out, with a warning.
    """

    rows: Rows
    axes: Sequence[tuple[RateName, int]]
    _y: Tensor = field(init=False, repr=False)
    _weight: Tensor = field(init=False, repr=False)
    _groupings: list[str] = field(init=False, repr=False)
    _indexes: list[GroupIndex] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Read the rows once."""
        object.__setattr__(self, "_y", torch.from_numpy(self.rows.y))
        object.__setattr__(self, "_weight", torch.from_numpy(self.rows.weight))
        groupings = self.rows.groupings
        names = [" x ".join(groups.attributes) for groups in groupings]
        object.__setattr__(self, "_groupings", names)
        object.__setattr__(self, "_indexes", [GroupIndex.of(groups) for groups in groupings])
        _, *gaps = self.values(self._y[None] * 0)[0]
        told = [axis for axis, gap in zip(self.axes, gaps, strict=True) if not np.isnan(gap)]
        if len(told) < len(self.axes):
            names = [self._name(axis) for axis in self.axes if axis not in told]
            warnings.warn(
                f"Gaps {names} are left out of the choice: fewer than two groups have rows for "
                f"them among the {len(self.rows.y)} validation rows.",
                stacklevel=6,
            )
        object.__setattr__(self, "axes", told)

    @property
    def names(self) -> list[str]:
        """Of the values: ``error``, ``sex_dp_gap``, ..."""
        return ["error", *(self._name(axis) for axis in self.axes)]

    def evaluate(self, scores: Tensor) -> Seen:
        """Judge members by their scores [b, n]; where some are not finite, the rest is moot."""
        decisions = (scores > 0).long()
        finite = scores.isfinite().all(1).numpy()
        return Seen(self.values(decisions), self.constant(decisions), finite)

    def values(self, decisions: Tensor) -> np.ndarray:
        """Error and gaps [b, 1 + gaps] of decisions [b, n]."""
        error = (decisions != self._y).double() @ (self._weight / self._weight.sum())
        selected = decisions.double()
        counts = {
            place: soft_counts(selected, self._y, self._indexes[place], self._weight)
            for place in {place for _, place in self.axes}
        }
        gaps = [_gap(rate, counts[place]) for rate, place in self.axes]
        return np.stack([error.numpy(), *gaps], 1)

    def constant(self, decisions: Tensor) -> np.ndarray:
        """Which members [b] decide the same for all, or no better than that."""
        return is_trivial(decisions, self._y, 2, self._weight).numpy()

    def _name(self, axis: tuple[RateName, int]) -> str:
        return f"{self._groupings[axis[1]]}_{axis[0]}_gap"


def _gap(rate: RateName, counts: Tensor) -> np.ndarray:
    return largest_gap(rates_of(rate, counts).unsqueeze(-2)).numpy()


def check_rule(selection: str, min_accuracy: float | None) -> None:
    """Refuse a rule that does not exist, or that lacks its bound."""
    if selection not in get_args(Rule):
        raise ValueError(f"selection must be one of {list(get_args(Rule))}, got {selection!r}.")
    if selection == "fairest" and (min_accuracy is None or not 0 <= min_accuracy <= 1):
        raise ValueError(
            f"min_accuracy must lie between 0 and 1 for selection='fairest', got {min_accuracy!r};"
            " pass the plain network's validation accuracy minus 0.02, for instance."
        )


def choose(
    archive: ParetoFront,
    last: FrontPoint,
    selection: Rule,
    min_accuracy: float | None,
    n_gaps: int | None = None,
) -> FrontPoint:
    """One of the non-dominated candidates, or the last one.

    "nearest" (MAMO's rule): nearest to no error and no gaps. "fairest": the smallest largest gap
    among those of at least ``min_accuracy`` that are not constant; where there are none, a warning
    and the most accurate. "accurate": the least error. Values after the first ``n_gaps`` gaps (all
    by default) do not count for "fairest".
    """
    if selection == "last":
        return last
    if selection == "nearest":
        return archive.nearest(np.zeros(len(last.values)))
    if selection == "fairest":
        assert min_accuracy is not None
        usable = [
            point
            for point in archive
            if point.values[0] <= 1 - min_accuracy + 1e-9 and not point.payload.constant
        ]
        if usable:
            last_gap = None if n_gaps is None else 1 + n_gaps
            return min(usable, key=lambda p: (max(p.values[1:last_gap], default=0), p.values))
        warnings.warn(
            f"No candidate has validation accuracy {min_accuracy:.4f} without being constant; the "
            "most accurate one is used. Lower min_accuracy to choose a fairer one.",
            stacklevel=3,
        )
    return archive.best(0)
