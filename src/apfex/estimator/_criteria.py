"""Criteria: the words of users to rates, and hard gaps of decisions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from apfex.metrics import CRITERIA, read_criteria
from apfex.rates import GroupIndex, RateName, gap, rate_sums


@final
@dataclass(frozen=True)
class Criteria:
    """Named criteria, each the largest of the gaps of one or two rates.

    Examples
    --------
    >>> Criteria.of(("dp", "equalized_odds")).rates
    ('dp', 'tpr', 'fpr')
    """

    names: tuple[str, ...]

    @staticmethod
    def of(criteria: str | Sequence[str]) -> Criteria:
        """Read names; fairlearn's words are taken as well."""
        return Criteria(read_criteria(criteria))

    @staticmethod
    def short(name: str) -> str:
        """Our word for a criterion."""
        return read_criteria(name)[0] if name in CRITERIA else name

    @property
    def rates(self) -> tuple[RateName, ...]:
        """All rates that are needed, once each."""
        return tuple(dict.fromkeys(rate for name in self.names for rate in CRITERIA[name]))

    def rates_of(self, name: str) -> tuple[RateName, ...]:
        """The rates of one criterion."""
        return CRITERIA[name]

    def gaps(
        self,
        decisions: Tensor,
        y: Tensor,
        indexes: Sequence[GroupIndex],
        sample_weight: Tensor | None,
        multiclass: bool,
    ) -> Tensor:
        """Hard gaps of members, shape [b, criteria]; NaN where one is not estimable.

        With several classes a gap is the largest over those that have two estimable groups.

        Parameters
        ----------
        decisions : Tensor of shape [b, n], or [b, c, n] with ``multiclass``
        """
        by_rate = {}
        for rate in self.rates:
            found = []
            for index in indexes:
                sums = rate_sums(rate, decisions, y, index, sample_weight, multiclass=multiclass)
                gaps = gap(sums.rates(0))
                found.append(_largest_known(gaps) if multiclass else gaps)
            by_rate[rate] = torch.stack(found).amax(0)
        columns = [
            torch.stack([by_rate[rate] for rate in CRITERIA[name]]).amax(0) for name in self.names
        ]
        return torch.stack(columns, -1) if columns else decisions.new_zeros(len(decisions), 0)


def _largest_known(gaps: Tensor) -> Tensor:
    """Largest over the last axis without the NaN; NaN where all are."""
    largest = gaps.nan_to_num(-1.0).amax(-1)
    return torch.where(largest < 0, torch.nan, largest)
