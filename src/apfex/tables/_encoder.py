"""The table encoder: mixed-type table in, float32 matrix out."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate, pairwise
from typing import Any, Literal, Self, final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from apfex.plain import jsonable
from apfex.strict_json import read_strict_json
from apfex.tables._bins import Bins, choose_edges
from apfex.tables._columns import Table, match_columns, read_table
from apfex.tables._plans import (
    CodePlan,
    DroppedPlan,
    Fill,
    NumberPlan,
    Plan,
    make_plan,
    plan_from_dict,
    plan_to_dict,
)
from apfex.tables._summary import TableSummary

_CHUNK = 2**12
"""Rows that are encoded at once, so that what is made on the way stays in the cache."""
_FORMAT, _VERSION = "apfex.tables.TableEncoder", 1


@final
class TableEncoder(TransformerMixin, BaseEstimator):
    """Turn a mixed-type table into a float32 matrix.

    Numbers are standardised; missing ones become the mean and set a flag. Text, booleans and
    categories become one input per level; rare levels share one input, missing values have their
    own. Columns that do not vary are left out and listed in ``dropped_``.

    Boosted trees that split on categories and missing values themselves want less: with
    ``categories="codes"`` each column stays one column, and what is missing is NaN.

    Parameters
    ----------
    categories : "one-hot" or "codes", default "one-hot"
        One input per level and standardised numbers, as above; or the place of a level among
        ``0, 1, ...`` ("other" comes last) and numbers as they are.
    min_count : int, default 10
        Rows that a level needs for an input, or code, of its own; rarer ones are pooled as "other".
    bins : "tree", "quantile" or None, default None
        Bins of each number as extra inputs, beside the number: chosen by a small decision tree on
        the label (``y`` is then needed in ``fit``) or by quantiles. None with ``"codes"``.
    max_bins : int, default 24
        Most bins per column.

    Attributes
    ----------
    dropped_ : dict of str to str
        Columns left out, and why.
    feature_types_ : list of "q" or "c"
        For each column of the matrix: a quantity, or codes of a category (XGBoost's letters).
    n_features_in_ : int
    n_features_out_ : int
    matched_by_ : "name" or "position"
        How ``transform`` finds the columns of a frame. An array is always read by position.

    Notes
    -----
    An input for "other" or "missing" exists only if training rows used it: one that was never on
    would reach the model untrained. A level, or a missing value, that is new in ``transform`` goes
    to "other" if there is such an input, and to all zeros otherwise; a missing number is the mean.

    Among codes a new level goes to "other" if there is one, and is NaN otherwise; what is missing
    is always NaN. Numbers are rounded to float32, which keeps seven digits.

    Examples
    --------
    >>> import pandas as pd
    >>> from apfex.tables import TableEncoder
    >>> X = pd.DataFrame({"age": [20.0, None, 40.0], "town": ["Bern", "Basel", "Bern"]})
    >>> encoder = TableEncoder(min_count=1).fit(X)
    >>> [str(name) for name in encoder.get_feature_names_out()]
    ['age', 'age:missing', 'town=Basel', 'town=Bern']
    >>> encoder.transform(X)
    array([[-1.,  0.,  0.,  1.],
           [ 0.,  1.,  1.,  0.],
           [ 1.,  0.,  0.,  1.]], dtype=float32)
    >>> TableEncoder.from_json(encoder.to_json()).to_json() == encoder.to_json()
    True
    >>> codes = TableEncoder(categories="codes", min_count=1).fit(X)
    >>> codes.transform(X)
    array([[20.,  1.],
           [nan,  0.],
           [40.,  1.]], dtype=float32)
    >>> codes.feature_types_
    ['q', 'c']
    """

    plans_: tuple[Plan, ...]
    dropped_: dict[str, str]
    n_features_in_: int
    feature_types_: list[str]
    n_features_out_: int

    def __init__(
        self,
        *,
        categories: Literal["one-hot", "codes"] = "one-hot",
        min_count: int = 10,
        bins: Literal["tree", "quantile"] | None = None,
        max_bins: int = 24,
    ) -> None:
        self.categories = categories
        self.min_count = min_count
        self.bins = bins
        self.max_bins = max_bins

    def fit(self, X: Any, y: ArrayLike | None = None) -> Self:
        """Learn levels, means and spreads (and bins) from a table.

        Parameters
        ----------
        X : data frame (pandas, polars, ...) or array of shape [n, columns]
        y : array of shape [n], optional
            Labels; used by ``bins="tree"`` only.

        Returns
        -------
        TableEncoder
            Itself, fitted.
        """
        table = read_table(X)
        self._check_arguments()
        if table.n_rows < 1:
            raise ValueError("X must have rows, got 0 sample(s) while a minimum of 1 is required.")
        if not table.columns:
            raise ValueError(
                f"X must have columns, got 0 feature(s) (shape=({table.n_rows}, 0)) while a "
                "minimum of 1 is required."
            )
        return self._fit(TableSummary.of(table), table, y)

    def fit_summary(
        self, summary: TableSummary, sample: Any = None, y: ArrayLike | None = None
    ) -> Self:
        """Learn the same as ``fit`` from the summary of a table that is not in memory.

        Parameters
        ----------
        summary : TableSummary
            Of all rows: the sum of those of its chunks.
        sample : data frame or array of shape [n, columns], optional
            Rows by which ``bins`` are chosen; needed for these alone.
        y : array of shape [n], optional
            Labels of the sample; used by ``bins="tree"`` only.

        Returns
        -------
        TableEncoder
            Itself, fitted: as by ``fit``, but for the rounding of means, and for bins where the
            sample is not the table.
        """
        self._check_arguments()
        if self.bins is not None and sample is None:
            raise ValueError(f"sample must be given with bins={self.bins!r}, got None.")
        table = None if sample is None else read_table(sample)
        return self._fit(summary, table, y)

    def _fit(self, summary: TableSummary, table: Table | None, y: ArrayLike | None) -> Self:
        as_codes = self.categories == "codes"
        plans = [make_plan(column, self.min_count, as_codes) for column in summary.columns]
        if self.bins is not None:
            assert table is not None
            plans = self._add_bins(plans, table, y)
        return self._set_plans(plans, summary.has_names)

    def _check_arguments(self) -> None:
        for argument, least in (("min_count", 1), ("max_bins", 2)):
            value = getattr(self, argument)
            if not isinstance(value, int | np.integer) or value < least:
                raise ValueError(
                    f"{argument} must be an integer of at least {least}, got {value!r}."
                )
        if self.bins not in ("tree", "quantile", None):
            raise ValueError(f"bins must be 'tree', 'quantile' or None, got {self.bins!r}.")
        if self.categories not in ("one-hot", "codes"):
            raise ValueError(f"categories must be 'one-hot' or 'codes', got {self.categories!r}.")
        if self.categories == "codes" and self.bins is not None:
            raise ValueError(
                f"bins must be None with categories='codes', got {self.bins!r}; leave bins out "
                "(trees find their own) or use categories='one-hot'."
            )

    def _add_bins(self, plans: Sequence[Plan], table: Table, y: ArrayLike | None) -> list[Plan]:
        bins: Bins = "tree" if self.bins == "tree" else "quantile"
        labels = self._labels(y, table.n_rows)
        binned: list[Plan] = []
        for plan, column in zip(plans, table.columns, strict=True):
            if isinstance(plan, NumberPlan) and plan.varies:
                present = ~np.isnan(column.numbers)
                z = plan.standardise(column.numbers[present])
                here = None if labels is None else labels[present]
                plan = replace(plan, edges=choose_edges(z, here, bins, self.max_bins))
            binned.append(plan)
        return binned

    def _labels(self, y: ArrayLike | None, n_rows: int) -> NDArray[Any] | None:
        if self.bins != "tree":
            return None
        if y is None:
            raise ValueError(
                "bins='tree' requires y to be passed, but the target y is None; pass labels, or "
                "use 'quantile'."
            )
        labels = np.asarray(y)
        if labels.shape != (n_rows,):
            raise ValueError(
                f"y must have one label per row of X, got shape {labels.shape} for {n_rows} rows."
            )
        return labels

    def _set_plans(self, plans: Sequence[Plan], by_name: bool) -> Self:
        self.plans_ = tuple(plans)
        self.matched_by_ = "name" if by_name else "position"
        self.dropped_ = {p.name: p.reason for p in plans if isinstance(p, DroppedPlan)}
        self.n_features_in_ = len(plans)
        widths = [len(plan.feature_names()) for plan in plans]
        self._ends = [0, *accumulate(widths)]
        self.feature_types_ = [
            "c" if isinstance(plan, CodePlan) else "q"
            for plan, width in zip(plans, widths, strict=True)
            for _ in range(width)
        ]
        self.n_features_out_ = len(self.feature_types_)
        return self

    def transform(self, X: Any) -> NDArray[np.float32]:
        """Encode a table with the columns seen in ``fit``.

        Parameters
        ----------
        X : data frame or array of shape [n, columns]
            Columns of a frame may come in any order.

        Returns
        -------
        array of shape [n, n_features_out_]
            Finite float32 numbers; among codes also NaN, for missing values.
        """
        check_is_fitted(self)
        table = read_table(X)
        fill = self.fill(table)
        out = np.zeros((table.n_rows, self.n_features_out_), np.float32)
        for start in range(0, table.n_rows, _CHUNK):
            rows = slice(start, start + _CHUNK)
            fill(rows, out[rows])
        return out

    def fill(self, table: Table) -> Fill:
        """Return what encodes some rows of a table that was read, as :meth:`transform` does all.

        Parameters
        ----------
        table : Table
            What ``read_table`` returns.

        Returns
        -------
        function of a slice and an array
            It writes the inputs of the rows of the slice into the array [rows, n_features_out_],
            which holds zeros.
        """
        names = [plan.name for plan in self.plans_]
        columns = match_columns(table, names, self.matched_by_ == "name")
        fills = [plan.fill(column) for plan, column in zip(self.plans_, columns, strict=True)]
        spans = [slice(start, end) for start, end in pairwise(self._ends)]

        def write(rows: slice, out: NDArray[Any]) -> None:
            for fill, inputs in zip(fills, spans, strict=True):
                fill(rows, out[:, inputs])

        return write

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray[Any]:
        """Return a name for each column of the matrix.

        Parameters
        ----------
        input_features : ignored
            Present for scikit-learn's sake.

        Returns
        -------
        array of shape [n_features_out_], of str
            ``age``, ``age:missing``, ``age:ramp0``, ``age:step1``, ``town=Bern``, ``town:other``;
            with ``categories="codes"`` the names of the columns themselves.
        """
        check_is_fitted(self)
        del input_features
        return np.array([name for p in self.plans_ for name in p.feature_names()], dtype=object)

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn what is taken, and that the matrix is always of float32."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.transformer_tags.preserves_dtype = []
        tags.target_tags.required = self.bins == "tree"
        return tags

    def to_json(self) -> str:
        """Return the fitted encoder as JSON text, exact to the last bit.

        Returns
        -------
        str
            What ``from_json`` reads.
        """
        check_is_fitted(self)
        stored = {
            "format": _FORMAT,
            "version": _VERSION,
            "arguments": jsonable(self.get_params(deep=False), strict=True, where="arguments"),
            "matched_by": self.matched_by_,
            "columns": [plan_to_dict(plan) for plan in self.plans_],
        }
        return json.dumps(stored, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the encoder that ``to_json`` stored.

        Parameters
        ----------
        text : str
            Output of ``to_json``.

        Returns
        -------
        TableEncoder
            Fitted; it encodes exactly as the stored one.
        """
        try:
            stored = read_strict_json(text)
            found = f"{stored['format']} version {stored['version']}"
            if found == f"{_FORMAT} version {_VERSION}":
                plans = [plan_from_dict(plan) for plan in stored["columns"]]
                encoder = cls(**stored["arguments"])
                encoder._check_arguments()
                return encoder._set_plans(plans, stored["matched_by"] == "name")
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
            raise ValueError(
                f"text must be the output of to_json, got {str(text)[:40]!r} ({error})."
            ) from error
        raise ValueError(
            f"text must be {_FORMAT} version {_VERSION}, got {found}; "
            "store the encoder again with this version of APFEx."
        )
