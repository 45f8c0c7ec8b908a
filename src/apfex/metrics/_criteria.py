"""Criteria: the words of users for rates whose gap counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from apfex.arguments import as_names, meant
from apfex.rates import RATES, RateName

CRITERIA: Mapping[str, tuple[RateName, ...]] = MappingProxyType(
    {
        "demographic_parity": ("dp",),
        "equal_opportunity": ("tpr",),
        "equalized_odds": ("tpr", "fpr"),
        **{name: (name,) for name in RATES},
    }
)
"""Rates of each criterion; its gap is the largest of theirs. The first three are fairlearn's."""

TITLES: Mapping[str, str] = MappingProxyType(
    {
        "dp": "Selection rate",
        "tpr": "True positive rate",
        "fpr": "False positive rate",
        "tnr": "True negative rate",
        "fnr": "False negative rate",
        "ppv": "Precision",
        "npv": "Negative predictive value",
        "accuracy": "Accuracy",
        "equalized_odds": "Equalized odds",
    }
)
"""Criteria in words that a review board knows."""

_SHORT = {"demographic_parity": "dp", "equal_opportunity": "tpr"}


def read_criteria(criteria: str | Sequence[str]) -> tuple[str, ...]:
    """Our words for criteria, without repeats; an error for unknown ones.

    Examples
    --------
    >>> read_criteria(("demographic_parity", "dp", "equalized_odds"))
    ('dp', 'equalized_odds')
    """
    given = as_names("criteria", criteria)
    unknown = [name for name in given if name not in CRITERIA]
    if unknown or not given:
        near = meant(unknown[0], CRITERIA) if unknown else ""
        raise ValueError(f"criteria must be some of {sorted(CRITERIA)}, got {list(given)}.{near}")
    return tuple(dict.fromkeys(str(_SHORT.get(name, name)) for name in given))
