"""What is measured of decisions: all that a table prints, and whether they decide at all."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, final

import numpy as np
import torch

from apfex.groups import make_groups
from apfex.metrics import class_recalls, is_trivial, largest_gap
from apfex.rates import GroupIndex, RateName, rates_of, soft_counts
from apfex_reproduction.experiments._protocol import Part

CRITERIA: tuple[RateName, ...] = ("dp", "tpr")
DIGITS = 6


@final
class Ruler:
    """Measures decisions 0 or 1 on some rows.

    Parameters
    ----------
    part : Part
    groupings : mapping from name to sensitive columns
        The last one is the crossing.

    Examples
    --------
    >>> from apfex.datasets import make_biased
    >>> from apfex_reproduction.experiments._protocol import split_dataset
    >>> trial = split_dataset(make_biased(200, random_state=0), "70/15/15", seed=0)
    >>> Ruler(trial.test, trial.groupings).measure(trial.test.y)["accuracy"]
    1.0
    """

    def __init__(self, part: Part, groupings: Mapping[str, Sequence[str]]) -> None:
        self._y = torch.from_numpy(part.y)
        self._indexes = {
            name: GroupIndex.of(make_groups(part.sensitive[list(columns)]))
            for name, columns in groupings.items()
        }
        self._crossing = list(self._indexes.values())[-1]

    def measure(self, decided: np.ndarray) -> dict[str, Any]:
        """Figures of decisions [n], ready for a record.

        ``accuracy``, ``balanced_accuracy`` (None where a class has no rows), ``positive_rate``,
        ``worst_group_accuracy`` (on the crossing), ``constant``, and ``gaps`` by grouping and
        criterion: None where fewer than two groups have rows that count. ``left_out``: groups
        without such rows, where there are any.
        """
        decisions = torch.from_numpy(decided).double()
        found = _overall(decisions, self._y)
        gaps, left_out = {}, {}
        for name, index in self._indexes.items():
            rates = {rate: self._rates(rate, decisions, index) for rate in CRITERIA}
            gaps[name] = {rate: _number(_gap(values)) for rate, values in rates.items()}
            missing = {rate: int(values.isnan().sum()) for rate, values in rates.items()}
            if any(missing.values()):
                left_out[name] = {rate: count for rate, count in missing.items() if count}
        accuracy = self._rates("accuracy", decisions, self._crossing)
        found["worst_group_accuracy"] = _number(accuracy[~accuracy.isnan()].min())
        found["gaps"] = gaps
        return found | ({"left_out": left_out} if left_out else {})

    def trade_offs(self, decided: np.ndarray) -> np.ndarray:
        """Error, dp and tpr gap on the crossing, of decisions [b, n]; NaN where unknown."""
        decisions = torch.from_numpy(decided).double()
        error = (decisions != self._y).double().mean(1)
        gaps = [_gap(self._rates(rate, decisions, self._crossing)) for rate in CRITERIA]
        return torch.stack([error, *gaps], 1).numpy()

    def _rates(self, rate: RateName, decisions: torch.Tensor, index: GroupIndex) -> torch.Tensor:
        return rates_of(rate, soft_counts(decisions, self._y, index))


def _gap(rates: torch.Tensor) -> torch.Tensor:
    """Over the groups, the last axis."""
    return largest_gap(rates.unsqueeze(-2))


def _overall(decisions: torch.Tensor, y: torch.Tensor) -> dict[str, Any]:
    balanced = class_recalls(decisions, y, 2).mean()
    is_constant = (decisions == decisions[0]).all()
    if not balanced.isnan():  # one class alone does not tell how good decisions are
        is_constant = is_trivial(decisions, y, 2)
    return {
        "accuracy": _number((decisions == y).double().mean()),
        "balanced_accuracy": _number(balanced),
        "positive_rate": _number(decisions.mean()),
        "constant": bool(is_constant),
    }


def _number(value: torch.Tensor) -> float | None:
    number = float(value)
    return None if math.isnan(number) else round(number, DIGITS)
