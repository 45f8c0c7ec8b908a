"""Rates of every group, read from confusion counts: what gaps and their statistics are made of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from apfex.rates import ConfusionCounts, RateName, quotient, rate_sums


@final
@dataclass(frozen=True, eq=False)
class GroupRates:
    """One rate of k groups, and which of them count for its gap; arrays have shape [c, k].

    The first axis is 1 for two labels and for accuracy, else the classes of ``counts``.

    Attributes
    ----------
    rate : str
    counts : ConfusionCounts
    numerator, denominator : float arrays of shape [c, k]
        Sums of weights.
    successes, totals : int arrays of shape [c, k]
        The same in rows: effective ones (Kish) where there are weights.
    counted : bool array of shape [c, k]
        Whether the group counts for the gap.

    Examples
    --------
    >>> from apfex.groups import make_groups
    >>> from apfex.rates import count_rows
    >>> counts = count_rows(None, np.array([1, 0, 1, 1]), make_groups(["F", "F", "M", "M"]))
    >>> found = GroupRates.of(counts, "dp")
    >>> found.rates, found.gap
    (array([[0.5, 1. ]]), 0.5)
    """

    rate: RateName
    counts: ConfusionCounts
    numerator: np.ndarray
    denominator: np.ndarray
    successes: np.ndarray
    totals: np.ndarray
    counted: np.ndarray

    @staticmethod
    def of(
        counts: ConfusionCounts, rate: RateName, min_count: float = 1, *, effective: bool = True
    ) -> GroupRates:
        """Read a rate; fewer than ``min_count`` rows, effective ones or all, do not count."""
        several = bool(counts.classes)
        successes, totals = rate_sums(rate, counts.rows, multiclass=several)
        rows, above, below = totals, successes.astype(np.float64), totals.astype(np.float64)
        if counts.squares is not None:
            sums = rate_sums(rate, counts.sums, multiclass=several)
            squares = rate_sums(rate, counts.squares, multiclass=several)[1]
            # Differences of sums of weights are off by rounding; rows tell where nothing is left.
            above, below = (
                np.where(known > 0, np.maximum(part, 0.0), 0.0)
                for known, part in zip((successes, totals), sums, strict=True)
            )
            successes, totals = _effective_counts(above, below, squares)
        enough = (totals if effective else rows) >= max(min_count, 1)
        return GroupRates(rate, counts, above, below, successes, totals, enough & (below > 0))

    @staticmethod
    def widest(tables: Sequence[GroupRates]) -> GroupRates:
        """The rate and grouping with the largest gap; one that is not estimable comes first.

        Examples
        --------
        >>> from apfex.groups import make_groups
        >>> from apfex.rates import count_rows
        >>> y, decided = np.array([1, 0, 1, 0]), np.array([1, 0, 0, 0])
        >>> counts = count_rows(y, decided, make_groups(["F", "F", "M", "M"]))
        >>> GroupRates.widest([GroupRates.of(counts, rate) for rate in ("fpr", "tpr")]).rate
        'tpr'
        """
        return max(tables, key=lambda table: (table.gap != table.gap, table.gap))

    @property
    def rates(self) -> np.ndarray:
        """Numerator over denominator; NaN without rows."""
        return quotient(self.numerator, self.denominator)

    @property
    def counted_rates(self) -> np.ndarray:
        """Rates of the groups that count; NaN for the others."""
        return np.where(self.counted, self.rates, np.nan)

    @property
    def gap(self) -> float:
        """Largest gap over the classes; NaN where none has two groups that count."""
        return float(largest_gap(self.counted_rates))

    @property
    def usable(self) -> np.ndarray:
        """Which classes have two groups that count, shape [c]."""
        return self.counted.sum(1) >= 2

    @property
    def classes(self) -> tuple[Any, ...]:
        """Labels of the first axis; () where there is no class to show."""
        return self.counts.classes if self.rate != "accuracy" else ()

    def frame(self, **columns: np.ndarray) -> pd.DataFrame:
        """A row per group, and per class if there are several, with further columns [c, k]."""
        c, names = len(self.numerator), self.counts.names
        frame = pd.DataFrame({"group": np.repeat(np.array(names, dtype=object), c)})
        if self.classes:
            frame["class"] = list(self.classes) * len(names)
        frame["count"] = np.repeat(self.counts.sizes, c)
        sums = {"numerator": self.numerator, "denominator": self.denominator}
        return frame.assign(**{name: part.T.ravel() for name, part in (sums | columns).items()})

    def left_out(self) -> Iterator[str]:
        """Name the groups (and classes) that do not count."""
        for code, group in np.argwhere(~self.counted).tolist():
            place = f" (class {self.classes[code]})" if self.classes else ""
            yield f"'{self.counts.names[group]}'{place}"


def largest_gap(*rates: np.ndarray | Tensor) -> Tensor:
    """Largest minus smallest rate over groups: the largest over classes, rates and groupings.

    Parameters
    ----------
    *rates : arrays or Tensors of shape [..., c, k]
        One for each rate and grouping; k may differ. NaN for a group that does not count.

    Returns
    -------
    Tensor of shape [...]
        A class with fewer than two groups is left out. NaN where one of the tables has no other:
        the largest is then not known.

    Examples
    --------
    >>> largest_gap(np.array([[0.25, 0.75, np.nan], [0.5, np.nan, np.nan]]))
    tensor(0.5000, dtype=torch.float64)
    """
    found = []
    for table in map(torch.as_tensor, rates):
        known = table.isfinite()
        high = torch.where(known, table, -torch.inf).amax(-1)
        low = torch.where(known, table, torch.inf).amin(-1)
        gaps = torch.where(known.sum(-1) >= 2, high - low, -torch.inf).amax(-1)
        found.append(torch.where(gaps < 0, torch.nan, gaps))
    return torch.stack(found).amax(0)


def _effective_counts(
    above: np.ndarray, below: np.ndarray, squares: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Whole counts that carry as much information as weighted rows (Kish).

    ``below^2 / squares`` rows at the weighted rate, both rounded, from sums of weights and of
    squared weights; (0, 0) without weight. Equal weights give back the plain counts.
    """
    known = below > 0
    safe = np.where(known, below, 1.0)
    totals = np.where(known, safe * (safe / np.where(known, squares, 1.0)), 0.0).round()
    successes = (totals * np.where(known, above / safe, 0.0)).round()
    return successes.astype(np.int64), totals.astype(np.int64)
