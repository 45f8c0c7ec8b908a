"""Labels, decisions, weights and sensitive columns in every accepted form, checked once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from numbers import Real
from typing import Any, final

import numpy as np
import pandas as pd

from apfex.groups import Groups, make_groups
from apfex.rates import ConfusionCounts, Repeats, count_rows
from apfex.tables import check_indexes, in_memory, unmasked

_SMALLEST = 1e-140
"""Of the largest weight, and one over it the most: sums of a billion squares stay numbers."""

MOST_CODES = 10
"""Numbers beyond which decisions look like whole scores, as percentages do."""


@final
@dataclass(frozen=True, eq=False)
class Inputs:
    """Checked rows of one length; labels and decisions are places among the classes.

    With ``repeats`` they are different rows, each of which stands for so many.
    """

    y: np.ndarray | None  # [n], int64
    decided: np.ndarray  # [n], int64
    classes: tuple[Any, ...]  # () for two labels, which are 0 and 1
    groups: Groups
    weight: np.ndarray | None  # [n], float64
    score: np.ndarray | None  # [n], float64
    repeats: Repeats | None = None

    def count(self, favorable: int = 1) -> ConfusionCounts:
        """Count the rows; ``favorable`` is the place of the favorable one of several labels."""
        return count_rows(
            self.y,
            self.decided,
            self.groups,
            self.weight,
            classes=self.classes,
            favorable=favorable,
            score=self.score,
            repeats=self.repeats,
        )


def read_inputs(
    y_true: Any,
    y_pred: Any,
    sensitive_features: Any,
    sample_weight: Any,
    pos_label: Any,
    *,
    y_score: Any = None,
    symmetric: bool = False,
    label_argument: str = "pos_label",
) -> Inputs:
    """Check everything that a gap is computed from.

    Parameters
    ----------
    y_true, y_pred, sensitive_features, sample_weight, pos_label
        As for :func:`dp_gap`; ``y_true`` may be None.
    y_score : column of n numbers, optional
    symmetric : bool
        Whether no label is the positive one, as for accuracy.
    label_argument : str
        What the caller calls ``pos_label``, for messages.

    Returns
    -------
    Inputs
        ``y`` and ``decided`` are 1 for the positive label and 0 for the other; with more than two
        labels they are places among ``classes``.

    Examples
    --------
    >>> read_inputs(None, ["no", "yes"], ["F", "M"], None, "yes").decided
    array([0, 1])
    """
    check_indexes(
        y_true=y_true,
        y_pred=y_pred,
        sensitive_features=sensitive_features,
        sample_weight=sample_weight,
        y_score=y_score,
    )
    truth = None if y_true is None else read_column("y_true", y_true)
    decided = read_column("y_pred", y_pred)
    if truth is not None:
        check_length("y_pred", len(decided), "y_true", len(truth))
    groups = make_groups(sensitive_features)
    check_length("sensitive_features", len(groups.codes), "y_pred", len(decided))
    weight = read_counted_weight(sample_weight, len(decided))
    score = _read_numbers("y_score", y_score, len(decided))
    if score is not None and not np.isfinite(score).all():
        bad = score[~np.isfinite(score)][0]
        raise ValueError(f"y_score must be finite, got {bad:g}; drop or fill these rows.")
    chosen, y, classes = encode(decided, truth)
    if len(classes) <= 2:
        if not symmetric:
            chosen, y = favorable_codes(chosen, y, classes, pos_label, label_argument)
        classes = ()
    return Inputs(y, chosen, classes, groups, weight, score)


def favorable_codes(
    decided: np.ndarray,
    y: np.ndarray | None,
    classes: tuple[Any, ...],
    favorable: Any,
    argument: str,
) -> tuple[np.ndarray, np.ndarray | None]:
    """Decisions and labels of two classes as 1 where they are the favorable one, else 0."""
    _check_pos_label(classes, favorable, argument)
    positive = np.array([int(value == favorable) for value in classes])
    return positive[decided], None if y is None else positive[y]


def read_column(name: str, values: Any, rows: np.ndarray | None = None) -> np.ndarray:
    """Check a column of labels: one value per row, none missing, no scores.

    ``rows`` tells how many rows each value stands for, where that is not one.
    """
    array = one_dimensional(name, values)
    check_values(name, array)
    missing = np.asarray(pd.isna(array))
    if missing.any():
        n = len(array) if rows is None else int(rows.sum())
        found = missing.sum() if rows is None else rows[missing].sum()
        raise ValueError(
            f"{name} must not have missing values, got {found} in {n} rows; "
            "drop these rows or give them a label of their own."
        )
    if array.dtype.kind == "f":
        odd = array[~np.isfinite(array) | (array != np.floor(array))]
        if odd.size:
            raise ValueError(
                f"{name} must hold labels, got the number {odd[0]:g}; turn scores into decisions "
                "first, for instance `scores > 0.5`."
            )
    return array


def check_values(name: str, array: np.ndarray) -> None:
    """Refuse what no label can be: complex numbers, and values that have no hash."""
    if array.dtype.kind == "c" or (array.dtype == object and complex in set(map(type, array))):
        raise ValueError(
            f"{name} must hold labels, got complex numbers (Complex data not supported); take "
            "their real part, or write them as text."
        )
    kinds = set(map(type, array)) if array.dtype == object else ()
    for kind in kinds:
        if kind.__hash__ is None:  # as of lists, arrays and dicts
            raise TypeError(
                f"{name} must hold one label per row, got a {kind.__name__} in a row; pass a "
                "column of single values."
            )


def read_weight(values: Any, n: int, rows_of: str = "y_pred") -> np.ndarray | None:
    """Check weights: finite, not negative, not all 0; ``rows_of`` is what has n rows."""
    array = _read_numbers("sample_weight", values, n, rows_of)
    if array is None:
        return None
    bad = array[~np.isfinite(array) | (array < 0)]
    if bad.size:
        raise ValueError(f"sample_weight must be finite and at least 0, got {bad[0]:g}.")
    if not array.any():
        raise ValueError("sample_weight must be positive somewhere, got only zeros.")
    return array


def read_counted_weight(values: Any, n: int) -> np.ndarray | None:
    """Check weights of which sums and sums of squares are made."""
    array = read_weight(values, n)
    if array is not None:
        check_scale("sample_weight", float(array.max()))
    return array


def check_scale(name: str, largest: float) -> None:
    """Refuse weights whose squares, which intervals are made of, no number can hold."""
    if not _SMALLEST <= largest <= 1 / _SMALLEST:
        raise ValueError(
            f"{name} must have its largest value between {_SMALLEST:g} and {1 / _SMALLEST:g}, got "
            f"{largest:g}; divide all weights by it, which changes no rate."
        )


def _read_numbers(name: str, values: Any, n: int, rows_of: str = "y_pred") -> np.ndarray | None:
    if values is None:
        return None
    array = one_dimensional(name, values, "numbers")
    check_length(name, len(array), rows_of, n)
    if array.dtype.kind == "O" and all(isinstance(v, Real | Decimal) for v in array.tolist()):
        array = array.astype(np.float64)
    if array.dtype.kind not in "fiub":
        raise TypeError(f"{name} must hold numbers, got {_kinds_of(array)}; convert them first.")
    return array.astype(np.float64)


def _kinds_of(array: np.ndarray) -> str:
    """What an array holds, in words."""
    if array.dtype != object:
        return f"values of type {array.dtype}"
    kinds = {type(v).__name__ for v in array.tolist() if not isinstance(v, Real)}
    return f"values of type {', '.join(sorted(kinds))}"


def check_length(name: str, found: int, other: str, wanted: int) -> None:
    """Refuse columns of two lengths."""
    if found != wanted:
        raise ValueError(f"{name} must have one entry per row of {other} ({wanted}), got {found}.")


def one_dimensional(name: str, values: Any, of: str = "labels") -> np.ndarray:
    """A column in any accepted form as an array [n], with a row at least."""
    values = in_memory(name, values)
    if isinstance(values, list | tuple):
        values = [None if value is np.ma.masked else value for value in values]
        nested = any(isinstance(value, list | tuple | np.ndarray) for value in values[:1])
        values = np.empty((len(values), 1)) if nested else pd.Series(list(values))
    if not hasattr(values, "shape") and hasattr(values, "__array__"):
        values = np.asarray(values)
    shape = getattr(values, "shape", None)
    if shape is None or isinstance(values, Mapping):
        raise TypeError(
            f"{name} must be a list, an array, a tensor or a series of {of}, got "
            f"{type(values).__name__}."
        )
    if len(shape) != 1:
        raise ValueError(
            f"{name} must have one dimension, got {len(shape)}; pass a single column, for "
            "instance `.ravel()` of it."
        )
    if shape[0] == 0:
        raise ValueError(f"{name} must have at least one row, got 0.")
    return unmasked(values.to_numpy() if hasattr(values, "to_numpy") else values)


def encode(
    decided: np.ndarray,
    truth: np.ndarray | None,
    names: tuple[str, str] = ("y_pred", "y_true"),
) -> tuple[np.ndarray, np.ndarray | None, tuple[Any, ...]]:
    """Codes of decisions and labels into the sorted values that occur in either.

    ``names`` are those of decisions and labels, for messages.
    """
    factors = [pd.factorize(column) for column in (decided, truth) if column is not None]
    values = [np.asarray(uniques).tolist() for _, uniques in factors]
    if truth is None:
        check_spelling(names[0], values[0])
    else:
        _check_shared_values(set(values[1]), set(values[0]), names)
    classes = _sorted({value for found in values for value in found})
    position = {value: code for code, value in enumerate(classes)}
    codes = [
        np.array([position[value] for value in found])[rows]
        for (rows, _), found in zip(factors, values, strict=True)
    ]
    return codes[0], None if truth is None else codes[1], classes


def _check_shared_values(labels: set[Any], decisions: set[Any], names: tuple[str, str]) -> None:
    """Refuse labels and decisions in different words: every decision would look wrong.

    That is text beside numbers; values that differ in case or blanks alone; two columns of two
    values each that hold more than two together; many numbers beside two labels, which are scores.
    A class that only one of the columns shows is fine: a model need not decide for every class.
    """
    together, alone = labels | decisions, labels ^ decisions
    if len(labels) <= 2 and len(decisions) > MOST_CODES and are_numbers(decisions):
        raise ValueError(
            f"{names[0]} must hold labels, got {len(decisions)} numbers from {min(decisions):g} to "
            f"{max(decisions):g} while the labels are {_listed(labels)}; turn scores into "
            "decisions first, for instance `scores > 50`."
        )
    twins = written_twice(together)
    if len({isinstance(value, str) for value in together}) > 1:
        why = "text is never equal to any other value"
    elif twins:
        why = f"{twins[0]!r} and {twins[1]!r} would count as two labels"
    elif len(together) > 2 and (max(len(labels), len(decisions)) <= 2 or together == alone):
        why = f"together these would be {len(together)} labels"
    else:
        return
    raise ValueError(
        f"{names[0]} must be written as {names[1]} is, got {_listed(decisions)} for decisions and "
        f"{_listed(labels)} for labels: {why}; map one of them to the values of the other."
    )


def are_numbers(values: Iterable[Any]) -> bool:
    """Whether all are numbers, so that many of them may be scores."""
    return all(isinstance(value, Real | Decimal) for value in values)


def check_spelling(name: str, values: Iterable[Any]) -> None:
    """Refuse labels that differ in case, blanks or the form of a number alone.

    Examples
    --------
    >>> check_spelling("y", ["no", "yes", "Yes "])  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ValueError: y must spell every label in one way, got 'Yes ' and 'yes', which would be ...
    """
    twins = written_twice(values)
    if twins:
        raise ValueError(
            f"{name} must spell every label in one way, got {twins[0]!r} and {twins[1]!r}, which "
            "would be two classes; write them alike."
        )


def written_twice(values: Iterable[Any]) -> tuple[Any, Any] | None:
    """Two values that differ in case, blanks or the form of a number alone, if there are any."""
    forms: dict[str | Decimal, Any] = {}
    for value in _sorted(set(values)):
        if forms.setdefault(_spelled(value), value) is not value:
            return forms[_spelled(value)], value
    return None


def _spelled(value: Any) -> str | Decimal:
    """A value as it might be meant: long numbers to their last digit."""
    text = str(value).strip().casefold()
    try:
        number = Decimal(text)
    except InvalidOperation:
        return text
    return number if number.is_finite() else text


def _listed(values: set[Any], most: int = 5) -> str:
    shown = ", ".join(repr(value) for value in _sorted(values)[:most])
    return f"[{shown}{', ...' if len(values) > most else ''}]"


def _check_pos_label(classes: tuple[Any, ...], pos_label: Any, argument: str) -> None:
    # A column of nothing but the other label is a constant predictor, not an error.
    alone = len(classes) == 1 and isinstance(classes[0], str) == isinstance(pos_label, str)
    if alone and isinstance(pos_label, str):  # "Yes" is no other label than "yes"
        alone = _spelled(classes[0]) != _spelled(pos_label)
    if pos_label not in classes and not alone:
        raise ValueError(
            f"{argument} must be one of the two labels, got {pos_label!r} while the labels found "
            f"are {list(classes)}; pass the favorable one as {argument}."
        )


def _sorted(values: set[Any]) -> tuple[Any, ...]:
    try:
        return tuple(sorted(values))
    except TypeError:  # labels of kinds that do not compare, as 1 and "a"
        return tuple(sorted(values, key=lambda value: (type(value).__name__, str(value))))
