"""Criteria and rates in words that a review board knows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

_TITLES = {
    "dp": "Selection rate",
    "tpr": "True positive rate",
    "fpr": "False positive rate",
    "tnr": "True negative rate",
    "fnr": "False negative rate",
    "ppv": "Precision",
    "npv": "Negative predictive value",
    "accuracy": "Accuracy",
    "equalized_odds": "Equalized odds",
    "favored": "Favorable decisions",
}
_TEXTS = {
    "dp": "share of a group that is decided {label}",
    "tpr": "of those who are {label}, the share that is decided so",
    "fpr": "of those who are not {label}, the share that is decided {label}",
    "tnr": "of those who are not {label}, the share that is decided so",
    "fnr": "of those who are {label}, the share that is not decided so",
    "ppv": "of those decided {label}, the share that is so",
    "npv": "of those not decided {label}, the share that is not so",
    "accuracy": "share of a group that is decided rightly",
    "equalized_odds": "the larger of the gaps in true and in false positive rates",
    "favored": "share of a group that gets the favorable label, {label}",
}
_ALSO = {"dp": "demographic parity", "tpr": "equal opportunity"}


def in_words(classes: np.ndarray, words: Mapping[Any, str] | None) -> list[str]:
    """Labels as they are to be shown."""
    known, words = classes.tolist(), {} if words is None else words
    strange = [label for label in words if label not in known]
    if strange:
        raise ValueError(f"words must be of the labels {known}, got {strange}.")
    found = [str(words.get(label, label)) for label in known]
    if len(set(found)) < len(found):
        raise ValueError(f"words must tell the labels {known} apart, got {found}.")
    return found


def title_of(name: str) -> str:
    """A criterion or rate in a few words."""
    return _TITLES[name]


def words_of(name: str, label: str) -> dict[str, str]:
    """Title and explanation of a criterion or rate, of the label whose rates are shown."""
    return {"title": title_of(name), "text": _TEXTS[name].format(label=quoted(label))}


def describe_criteria(criteria: Sequence[str], label: str, n_classes: int) -> list[dict[str, Any]]:
    """Criteria of an audit, in words."""
    found = []
    for name in criteria:
        words = words_of(name, "a label" if n_classes > 2 else label)
        if n_classes > 2 and name != "accuracy":
            words["text"] += " (the label with the largest gap counts)"
        found.append({"key": name, "also": _ALSO.get(name, ""), **words})
    return found


def describe_rate(of: str, label: Any, place: int | None) -> dict[str, Any]:
    """A rate of two labels, or of one of several (``place``), in words."""
    words = words_of(of, str(label))
    if place is not None:
        words["title"] = f"{words['title']}: {label}"
    return {"key": rate_key(of, place), "of": of, **words}


def rate_key(of: str, place: int | None) -> str:
    """Name of a rate in the description."""
    return of if place is None else f"{of}:{place}"


def quoted(label: str) -> str:
    """A label from data, marked as such."""
    return label if label in ("a label",) else f"“{label}”"
