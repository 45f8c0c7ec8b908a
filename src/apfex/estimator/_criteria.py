"""Criteria: the words of users to rates, and hard gaps of decisions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from apfex.rates import RATES, GroupIndex, RateName, gap, rate_sums

_WORDS: dict[str, tuple[RateName, ...]] = {
    "demographic_parity": ("dp",),
    "equal_opportunity": ("tpr",),
    "equalized_odds": ("tpr", "fpr"),
    **{name: (name,) for name in RATES},
}
_SHORT = {"demographic_parity": "dp", "equal_opportunity": "tpr"}


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
        given = (criteria,) if isinstance(criteria, str) else tuple(criteria)
        unknown = [name for name in given if name not in _WORDS]
        if unknown or not given:
            raise ValueError(f"criteria must be some of {sorted(_WORDS)}, got {list(given)}.")
        names = tuple(dict.fromkeys(_SHORT.get(name, name) for name in given))
        return Criteria(names)

    @property
    def rates(self) -> tuple[RateName, ...]:
        """All rates that are needed, once each."""
        return tuple(dict.fromkeys(rate for name in self.names for rate in _WORDS[name]))

    def rates_of(self, name: str) -> tuple[RateName, ...]:
        """The rates of one criterion."""
        return _WORDS[name]

    def gaps(
        self,
        decisions: Tensor,
        y: Tensor,
        indexes: Sequence[GroupIndex],
        sample_weight: Tensor | None,
        multiclass: bool,
    ) -> Tensor:
        """Hard gaps of members, shape [b, criteria]; one that is not estimable counts as 1.

        Parameters
        ----------
        decisions : Tensor of shape [b, n], or [b, c, n] with ``multiclass``
        """
        by_rate = {}
        for rate in self.rates:
            found = []
            for index in indexes:
                sums = rate_sums(rate, decisions, y, index, sample_weight, multiclass=multiclass)
                gaps = gap(sums.rates()).nan_to_num(1.0)
                found.append(gaps.amax(-1) if multiclass else gaps)
            by_rate[rate] = torch.stack(found).amax(0)
        columns = [
            torch.stack([by_rate[rate] for rate in _WORDS[name]]).amax(0) for name in self.names
        ]
        return torch.stack(columns, -1)
