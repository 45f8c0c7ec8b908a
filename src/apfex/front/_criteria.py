"""Criteria: the words of users to rates, hard gaps of decisions, and what rows can measure."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import final

import numpy as np
import torch
from torch import Tensor

from apfex.front._rows import ValidationRows
from apfex.groups import Groups, grouping_name
from apfex.metrics import (
    CRITERIA,
    GroupRates,
    NotEstimableWarning,
    NotMeasurableError,
    largest_gap,
    read_criteria,
)
from apfex.rates import (
    OTHER_LABEL,
    ConfusionCounts,
    GroupIndex,
    RateName,
    count_rows,
    quotient,
    rate_sums,
    soft_counts,
)

MIN_COUNT = 10
"""Rows that a rate must rest on to take part in a gap, as in audits by default."""
_MOST_NAMED = 8
"""Groups that a message names."""


@final
@dataclass(frozen=True)
class Criteria:
    """Named criteria, each the largest of the gaps of one or two rates of the favorable label.

    Attributes
    ----------
    names : tuple of str
    of_other_label : bool
        Whether the favorable one of two labels is the first, whose code is 0. Models and counts
        know the label 1, so that other rates of that one take the place of those of the first.

    Examples
    --------
    >>> Criteria.of(("dp", "equalized_odds")).rates
    ('dp', 'tpr', 'fpr')
    >>> Criteria.of("equalized_odds").for_label(0, n_classes=2).rates
    ('tnr', 'fnr')
    """

    names: tuple[str, ...]
    of_other_label: bool = False

    @staticmethod
    def of(criteria: str | Sequence[str]) -> Criteria:
        """Read names; fairlearn's words are taken as well."""
        return Criteria(read_criteria(criteria))

    @staticmethod
    def short(name: str) -> str:
        """Our word for a criterion."""
        return read_criteria(name)[0] if name in CRITERIA else name

    def for_label(self, favorable: int, n_classes: int) -> Criteria:
        """The same of a favorable label, by its code; of several classes each counts anyway."""
        return replace(self, of_other_label=n_classes == 2 and favorable == 0)

    @property
    def rates(self) -> tuple[RateName, ...]:
        """All rates that are needed, once each."""
        return tuple(dict.fromkeys(rate for name in self.names for rate in self.rates_of(name)))

    def named(self, rate: RateName) -> RateName:
        """What a rate of label 1 is called for the favorable label."""
        return OTHER_LABEL[rate] if self.of_other_label else rate

    def gap_names(self, groupings: Sequence[Groups]) -> list[str]:
        """What the gaps that are searched are called: of each grouping the rates."""
        names = [grouping_name(groups.attributes) for groups in groupings]
        return [f"{self.named(rate)} gap by {name}" for name in names for rate in self.rates]

    def rates_of(self, name: str) -> tuple[RateName, ...]:
        """The rates of label 1 that have the gaps of one criterion."""
        return tuple(self.named(rate) for rate in CRITERIA[name])

    def gaps(
        self,
        decisions: Tensor,
        y: Tensor,
        indexes: Sequence[GroupIndex],
        sample_weight: Tensor | None,
        multiclass: bool,
    ) -> Tensor:
        """Hard gaps of members, shape [b, criteria]; NaN where one is not estimable.

        With several classes a gap is the largest over those that have two estimable groups. A
        group with fewer than ``MIN_COUNT`` rows that count is left out where two others remain.

        Parameters
        ----------
        decisions : Tensor of shape [b, n], or [b, c, n] with ``multiclass``
        """
        labels = y
        row = 1.0 if sample_weight is None else float(sample_weight.mean())
        if multiclass:
            labels = (y == torch.arange(decisions.shape[-2], device=y.device).unsqueeze(1)).long()
        counts = (soft_counts(decisions, labels, index, sample_weight) for index in indexes)
        counts = [found if multiclass else found.unsqueeze(-3) for found in counts]
        return self.gaps_of(counts, row) if self.names else decisions.new_zeros(len(decisions), 0)

    def gaps_of(self, counts: Sequence[Tensor], row: float) -> Tensor:
        """Gaps [b, criteria] of counts, the same as by decisions.

        Parameters
        ----------
        counts : sequence of Tensors of shape [b, 1, k, 4], or [b, c, k, 4] for several classes
            Of :func:`~apfex.rates.soft_counts`, for each grouping.
        row : float
            What one row counts.
        """
        tables: dict[RateName, list[Tensor]] = {rate: [] for rate in self.rates}
        for found in counts:
            for rate in self.rates:
                above, below = rate_sums(rate, found, multiclass=found.shape[-3] > 1)
                enough = below >= MIN_COUNT * row - 1e-9
                remain = (enough.sum(-1, keepdim=True) >= 2).any(-2, keepdim=True)
                kept = below.where(enough | ~remain, 0.0)
                tables[rate].append(quotient(above, kept))
        columns = [
            largest_gap(*(table for rate in self.rates_of(name) for table in tables[rate]))
            for name in self.names
        ]
        return torch.stack(columns, -1)

    def limits(self, bounds: Mapping[str, float]) -> list[float]:
        """The least bound on each of the rates; ``inf`` for one without."""
        return [
            min(bounds.get(n, np.inf) for n in self.names if rate in self.rates_of(n))
            for rate in self.rates
        ]


def rates_that_count(
    counts: ConfusionCounts, rate: RateName, min_count: float | None = None
) -> GroupRates:
    """Rates of the groups with ``min_count`` rows that count.

    None: with ``MIN_COUNT``, or with any where fewer than two groups have so many.
    """
    found = GroupRates.of(counts, rate, MIN_COUNT if min_count is None else min_count)
    if min_count is None and not found.usable.any():
        return GroupRates.of(counts, rate)
    return found


def check_measurable(rows: ValidationRows, criteria: Criteria) -> None:
    """Refuse criteria that the validation rows cannot measure; warn of groups that are left out."""
    favorable = 0 if criteria.of_other_label else 1
    counts = count_rows(
        rows.y, rows.y * 0, rows.crossing, classes=rows.classes, favorable=favorable
    )
    check_measurable_counts(counts, rows.groupings, criteria, rows.n_rows)


def check_measurable_counts(
    counts: ConfusionCounts, groupings: Sequence[Groups], criteria: Criteria, n_rows: int
) -> None:
    """The same by counts of the validation rows, whatever is decided for them."""
    left_out = []
    for name in criteria.names:
        for rate in CRITERIA[name]:
            if rate in ("ppv", "npv"):  # by decisions: models that decide all alike are left out
                continue
            for grouping in groupings:
                known = GroupRates.of(counts.by(grouping.attributes), rate).counted
                _check_two_groups(name, rate, grouping, int(known.sum(1).max()), n_rows)
                missing = tuple(np.array(grouping.names)[~known.any(0)].tolist())
                left_out += [(rate, missing)] if missing else []
    if left_out:
        named = "; ".join(f"{rate} of {_first(names)}" for rate, names in left_out)
        text = (
            f"Groups without rows that count among the {n_rows} validation rows are left out "
            f"of the gaps: {named}. Merge levels, or raise validation_fraction."
        )
        warnings.warn(NotEstimableWarning(text, tuple(left_out), n_rows), stacklevel=6)


def _first(names: Sequence[str]) -> str:
    """Names, or the first few of many."""
    rest = len(names) - _MOST_NAMED
    return f"{list(names[:_MOST_NAMED])}{f' and {rest} more' if rest > 0 else ''}"


def _check_two_groups(name: str, rate: str, grouping: Groups, found: int, n_rows: int) -> None:
    needed = {"tpr": "with the favorable", "fnr": "with the favorable"}
    needed |= {"fpr": "without the favorable", "tnr": "without the favorable"}
    if found < 2:
        raise NotMeasurableError(
            f"criteria must be measurable on the {n_rows} validation rows, got {name!r}: of "
            f"the groups {_first(grouping.names)} {found} have rows "
            f"{needed.get(rate, 'with any')} label there, and a gap needs two. "
            "Merge levels, add rows, raise validation_fraction, or choose "
            "another criterion.",
            name,
            n_rows,
        )
