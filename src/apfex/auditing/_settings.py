"""What an audit is asked for: criteria, limits, and the groupings that follow from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, final

from apfex.arguments import require_numbers
from apfex.groups import Groups
from apfex.metrics import CRITERIA, read_criteria
from apfex.rates import RATES, RateName

MOST_GROUPS = 100_000
"""Cells beyond which an audit refuses: names and tables would be all that it does."""


@final
@dataclass(frozen=True)
class AuditSettings:
    """Criteria and limits of an audit; they check themselves.

    Examples
    --------
    >>> AuditSettings(criteria=("demographic_parity", "equalized_odds")).rates
    ('dp', 'tpr', 'fpr')
    """

    criteria: Sequence[str] | str = ("dp", "tpr")
    tolerance: float = 0.05
    confidence: float = 0.95
    min_count: float = 10
    favorable_label: Any = 1

    def __post_init__(self) -> None:
        """Check every value, and turn fairlearn's words into ours."""
        object.__setattr__(self, "criteria", read_criteria(self.criteria))
        check_bound("tolerance", self.tolerance)
        require_numbers(confidence=self.confidence, min_count=self.min_count)
        if not 0.5 <= self.confidence <= 0.999:
            raise ValueError(
                f"confidence must lie between 0.5 and 0.999, got {self.confidence}; 0.95 is usual."
            )
        if not self.min_count >= 1:
            raise ValueError(f"min_count must be at least 1, got {self.min_count}.")

    @property
    def rates(self) -> tuple[RateName, ...]:
        """The rates of all criteria, without repeats."""
        return tuple(dict.fromkeys(rate for name in self.criteria for rate in CRITERIA[name]))

    def without_labels(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Criteria that need no labels, and those that do."""
        blind = [c for c in self.criteria if not any(RATES[r].needs_labels for r in CRITERIA[c])]
        return tuple(blind), tuple(c for c in self.criteria if c not in blind)


def groupings_of(attributes: Sequence[str]) -> list[tuple[str, ...]]:
    """The attributes of every grouping of an audit; the full crossing is the last.

    Examples
    --------
    >>> groupings_of(("sex", "race"))
    [('sex',), ('race',), ('sex', 'race')]
    """
    q = len(attributes)
    sizes = sorted({1, min(2, q), q})
    return [subset for size in sizes for subset in combinations(attributes, size)]


def check_size(groups: Groups, argument: str = "sensitive_features") -> None:
    """Refuse more groups than anybody can look at."""
    if len(groups) > MOST_GROUPS:
        sizes = zip(groups.attributes, groups.levels, strict=True)
        name, levels = max(sizes, key=lambda pair: len(pair[1]))
        raise ValueError(
            f"{argument} must form at most {MOST_GROUPS:,} groups, got {len(groups):,}; "
            f"the attribute {name!r} alone has {len(levels):,} levels: is it an identifier or a "
            "number? Put it into bins, merge levels or leave it out."
        )


def check_bound(name: str, value: Any) -> None:
    """Refuse what is no bound of a gap."""
    require_numbers(**{name: value})
    if not 0 <= value < 1:
        raise ValueError(f"{name} must be at least 0 and below 1, got {value}; 0.05 is 5 points.")
