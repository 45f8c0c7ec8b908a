"""Gaps: the largest minus the smallest rate over the groups."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, Protocol, cast, overload

from apfex.metrics._group_rates import GroupRates
from apfex.metrics._not_estimable import warn_left_out
from apfex.metrics._rate_table import Grouping, rate_tables
from apfex.rates import RateName


class GapFunction(Protocol):
    """A gap: one number for the crossing, or one for each attribute."""

    @overload
    def __call__(
        self,
        y_true: Any,
        y_pred: Any,
        *,
        sensitive_features: Any,
        grouping: Literal["intersectional"] = "intersectional",
        sample_weight: Any = None,
        pos_label: Any = 1,
        min_count: float = 1,
    ) -> float: ...
    @overload
    def __call__(
        self,
        y_true: Any,
        y_pred: Any,
        *,
        sensitive_features: Any,
        grouping: Literal["attributes"],
        sample_weight: Any = None,
        pos_label: Any = 1,
        min_count: float = 1,
    ) -> dict[str, float]: ...


def _gap_in(*rates: RateName) -> Callable[[Callable[[], None]], GapFunction]:
    """The largest gap in some rates, as a function with the name and the docstring of another.

    All gaps are called alike, so that the signature is written once. Type checkers see
    :class:`GapFunction`, which knows what each grouping returns.
    """

    def named(described: Callable[[], None]) -> GapFunction:
        def gap(
            y_true: Any,
            y_pred: Any,
            *,
            sensitive_features: Any,
            grouping: Grouping = "intersectional",
            sample_weight: Any = None,
            pos_label: Any = 1,
            min_count: float = 1,
        ) -> float | dict[str, float]:
            tables = rate_tables(
                rates,
                y_true,
                y_pred,
                sensitive_features,
                grouping,
                sample_weight,
                pos_label,
                min_count,
            )
            warn_left_out([table for found in tables.values() for table in found], min_count, 2)
            largest = {name: GroupRates.widest(found).gap for name, found in tables.items()}
            return largest[""] if grouping == "intersectional" else largest

        gap.__name__ = gap.__qualname__ = described.__name__
        gap.__doc__ = described.__doc__
        return cast(GapFunction, gap)

    return named


@_gap_in("dp")
def dp_gap() -> None:
    """Demographic parity gap: how far the shares of positive decisions lie apart.

    Parameters
    ----------
    y_true : column of n labels
        Lists, arrays, tensors, pandas or polars series. Not used by this gap: may be None.
    y_pred : column of n decisions
        Hard labels, not scores.
    sensitive_features : column, table, mapping or Groups
        As for :func:`apfex.groups.make_groups`.
    grouping : {"intersectional", "attributes"}
        The gap over the cells of the crossing, or one gap for each attribute by itself.
    sample_weight : column of n weights, optional
    pos_label : label
        The positive one of two labels. With more than two labels each class is taken against the
        rest, and the gap is the largest over the classes that have two estimable groups.
    min_count : float
        Fewest rows that a rate must rest on (rows, also where they are weighted). A group with
        fewer is left out of the gap, and a :class:`NotEstimableWarning` names it.

    Returns
    -------
    float, or dict from attribute to float
        NaN, with a warning, where fewer than two groups are estimable.

    Notes
    -----
    ``grouping="attributes"`` gives the paper's DPDiff (and, with :func:`tpr_gap`, TPRDiff).

    Examples
    --------
    >>> people = {"sex": ["F", "F", "M", "M"], "race": ["B", "W", "B", "W"]}
    >>> dp_gap(None, [0, 1, 1, 0], sensitive_features=people)
    1.0
    >>> dp_gap(None, [0, 1, 1, 0], sensitive_features=people, grouping="attributes")
    {'sex': 0.0, 'race': 0.0}
    """


@_gap_in("tpr")
def tpr_gap() -> None:
    """Equal opportunity gap: how far the true positive rates lie apart.

    Parameters and result are those of :func:`dp_gap`; ``y_true`` must be given.

    Examples
    --------
    >>> y, decided = [1, 1, 0, 0, 1, 1, 0, 0], [1, 1, 1, 0, 1, 0, 0, 0]
    >>> tpr_gap(y, decided, sensitive_features=["F"] * 4 + ["M"] * 4)
    0.5
    """


@_gap_in("fpr")
def fpr_gap() -> None:
    """False positive rate gap, over the rows whose label is negative.

    Parameters and result are those of :func:`dp_gap`; ``y_true`` must be given.

    Examples
    --------
    >>> y, decided = [1, 1, 0, 0, 1, 1, 0, 0], [1, 1, 1, 0, 1, 0, 0, 0]
    >>> fpr_gap(y, decided, sensitive_features=["F"] * 4 + ["M"] * 4)
    0.5
    """


@_gap_in("tnr")
def tnr_gap() -> None:
    """True negative rate gap, over the rows whose label is negative.

    Parameters and result are those of :func:`dp_gap`; ``y_true`` must be given.

    Examples
    --------
    >>> y, decided = [1, 1, 0, 0, 1, 1, 0, 0], [1, 1, 1, 0, 1, 0, 0, 0]
    >>> tnr_gap(y, decided, sensitive_features=["F"] * 4 + ["M"] * 4)
    0.5
    """


@_gap_in("fnr")
def fnr_gap() -> None:
    """False negative rate gap, over the rows whose label is positive.

    Parameters and result are those of :func:`dp_gap`; ``y_true`` must be given.

    Examples
    --------
    >>> y, decided = [1, 1, 0, 0, 1, 1, 0, 0], [1, 1, 1, 0, 1, 0, 0, 0]
    >>> fnr_gap(y, decided, sensitive_features=["F"] * 4 + ["M"] * 4)
    0.5
    """


@_gap_in("ppv")
def ppv_gap() -> None:
    """Predictive parity gap: precision, over the rows that are decided positive.

    Parameters and result are those of :func:`dp_gap`; ``y_true`` must be given.

    Examples
    --------
    >>> y, decided = [1, 1, 0, 0, 1, 1, 0, 0], [1, 1, 1, 0, 1, 0, 0, 0]
    >>> ppv_gap(y, decided, sensitive_features=["F"] * 4 + ["M"] * 4)
    0.33333333333333337
    """


@_gap_in("npv")
def npv_gap() -> None:
    """Gap of negative predictive values, over the rows that are decided negative.

    Parameters and result are those of :func:`dp_gap`; ``y_true`` must be given.

    Examples
    --------
    >>> y, decided = [1, 1, 0, 0, 1, 1, 0, 0], [1, 1, 1, 0, 1, 0, 0, 0]
    >>> npv_gap(y, decided, sensitive_features=["F"] * 4 + ["M"] * 4)
    0.33333333333333337
    """


@_gap_in("accuracy")
def accuracy_gap() -> None:
    """Accuracy gap: how far the shares of right decisions lie apart.

    Parameters and result are those of :func:`dp_gap`; ``y_true`` must be given. No label is the
    positive one: ``pos_label`` is there so that all gaps are called alike, and is not used.

    Examples
    --------
    >>> y, decided = [1, 1, 0, 0, 1, 1, 0, 0], [1, 1, 1, 0, 1, 0, 0, 0]
    >>> accuracy_gap(y, decided, sensitive_features=["F"] * 4 + ["M"] * 4)
    0.0
    """


@_gap_in("tpr", "fpr")
def equalized_odds_gap() -> None:
    """Equalized odds gap: the larger of the tpr gap and the fpr gap.

    Parameters and result are those of :func:`dp_gap`; ``y_true`` must be given.
    NaN where either of the two is: the larger one is then not known.

    Examples
    --------
    >>> y, decided = [1, 1, 0, 0, 1, 1, 0, 0], [1, 1, 1, 0, 1, 0, 0, 0]
    >>> equalized_odds_gap(y, decided, sensitive_features=["F"] * 4 + ["M"] * 4)
    0.5
    """
