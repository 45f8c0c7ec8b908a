"""Rates of every group, read from confusion counts: what gaps and their statistics are made of."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, final, get_args

import numpy as np
import pandas as pd
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from apfex.metrics._inputs import read_inputs
from apfex.rates import RATES, ConfusionCounts, RateName, quotient, rate_sums

Grouping = Literal["intersectional", "attributes"]

_NAMED = 3  # groups that a warning names before it counts


class NotEstimableWarning(UserWarning):
    """Groups are left out of a gap, because too few of their rows count for the rate.

    Attributes
    ----------
    left_out : tuple of (rate, names of groups)
        Who is left out of which rate, where that is known.
    n_rows : int or None
        The rows that were looked at.

    Examples
    --------
    >>> from apfex.metrics import dp_gap
    >>> with warnings.catch_warnings(record=True, action="always") as caught:
    ...     dp_gap(None, [0, 1, 0, 1, 1], sensitive_features=list("aabbc"), min_count=2)
    0.0
    >>> caught[0].category.__name__
    'NotEstimableWarning'
    """

    def __init__(
        self,
        message: str,
        left_out: tuple[tuple[str, tuple[str, ...]], ...] = (),
        n_rows: int | None = None,
    ) -> None:
        super().__init__(message)
        self.left_out, self.n_rows = left_out, n_rows


class NotMeasurableError(ValueError):
    """A criterion cannot be measured, because fewer than two groups have rows that count for it.

    Attributes
    ----------
    criterion : str
    n_rows : int
        The rows that were looked at.
    """

    def __init__(self, message: str, criterion: str, n_rows: int) -> None:
        super().__init__(message, criterion, n_rows)
        self.criterion, self.n_rows = criterion, n_rows

    def __str__(self) -> str:
        """The message alone."""
        return self.args[0]


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
        The same in rows: effective ones (:func:`effective_counts`) where there are weights.
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
            successes, totals = effective_counts(above, below, squares)
        enough = (totals if effective else rows) >= max(min_count, 1)
        return GroupRates(rate, counts, above, below, successes, totals, enough & (below > 0))

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


def widest(tables: Sequence[GroupRates]) -> GroupRates:
    """The rate and grouping with the largest gap; one that is not estimable comes first.

    Examples
    --------
    >>> from apfex.groups import make_groups
    >>> from apfex.rates import count_rows
    >>> y, decided = np.array([1, 0, 1, 0]), np.array([1, 0, 0, 0])
    >>> counts = count_rows(y, decided, make_groups(["F", "F", "M", "M"]))
    >>> widest([GroupRates.of(counts, "fpr"), GroupRates.of(counts, "tpr")]).rate
    'tpr'
    """
    return max(tables, key=lambda table: (table.gap != table.gap, table.gap))


def effective_counts(
    numerator: ArrayLike, denominator: ArrayLike, squares: ArrayLike
) -> tuple[np.ndarray, np.ndarray]:
    """Whole counts that carry as much information as weighted rows (Kish).

    Parameters
    ----------
    numerator, denominator : numbers of shape [k]
        Sums of weights above and below the line of each group's rate.
    squares : numbers of shape [k]
        Sums of the squared weights below the line.

    Returns
    -------
    successes, totals : int64 arrays of shape [k]
        ``denominator^2 / squares`` rows at the weighted rate, both rounded; (0, 0) for a group
        without weight. Equal weights give back the plain counts.

    Examples
    --------
    >>> effective_counts([2.0], [6.0], [14.0])  # weights 1, 2 and 3, the second a success
    (array([1]), array([3]))
    """
    above, below, squared = (
        np.asarray(values, dtype=np.float64) for values in (numerator, denominator, squares)
    )
    known = below > 0
    safe = np.where(known, below, 1.0)
    totals = np.where(known, safe * (safe / np.where(known, squared, 1.0)), 0.0).round()
    successes = (totals * np.where(known, above / safe, 0.0)).round()
    return successes.astype(np.int64), totals.astype(np.int64)


def rate_tables(
    y_true: Any,
    y_pred: Any,
    sensitive_features: Any,
    sample_weight: Any,
    pos_label: Any,
    *,
    rates: Sequence[RateName],
    grouping: Grouping,
    min_count: float,
) -> dict[str, list[GroupRates]]:
    """The rates of each attribute, or of the crossing under the name ``""``; rows count as such."""
    for rate in rates:
        check_choices(rate, grouping, min_count)
        if y_true is None and RATES[rate].needs_labels:
            raise ValueError(f"y_true must be given for the rate {rate!r}, got None.")
    symmetric = tuple(rates) == ("accuracy",)
    data = read_inputs(
        y_true, y_pred, sensitive_features, sample_weight, pos_label, symmetric=symmetric
    )
    counts = data.count()
    grouped = {"": counts}
    if grouping == "attributes":
        grouped = {name: counts.by(name) for name in counts.groups.attributes}
    return {
        name: [GroupRates.of(one, rate, min_count, effective=False) for rate in rates]
        for name, one in grouped.items()
    }


def group_rates(
    y_true: Any,
    y_pred: Any,
    *,
    rate: RateName,
    sensitive_features: Any,
    grouping: Grouping = "intersectional",
    sample_weight: Any = None,
    pos_label: Any = 1,
    min_count: float = 1,
) -> pd.DataFrame:
    """One rate of every group, with the sums it is made of.

    Parameters
    ----------
    y_true, y_pred, sensitive_features, grouping, sample_weight, pos_label, min_count
        As for :func:`dp_gap`.
    rate : {"dp", "tpr", "fpr", "tnr", "fnr", "ppv", "npv", "accuracy"}

    Returns
    -------
    pandas.DataFrame
        A row per group, and per class where there are more than two; columns ``attribute`` (only
        for ``grouping="attributes"``), ``group``, ``class`` (only for more than two), ``count``
        (rows of the group), ``numerator``, ``denominator`` (sums of weights) and ``rate``, which
        is NaN where it is not estimable.

    Examples
    --------
    >>> y, decided, sex = [1, 1, 0, 1], [1, 0, 1, 1], ["F", "F", "M", "M"]
    >>> print(group_rates(y, decided, rate="tpr", sensitive_features={"sex": sex}))
       group  count  numerator  denominator  rate
    0  sex=F      2        1.0          2.0   0.5
    1  sex=M      2        1.0          1.0   1.0
    """
    tables = rate_tables(
        y_true,
        y_pred,
        sensitive_features,
        sample_weight,
        pos_label,
        rates=(rate,),
        grouping=grouping,
        min_count=min_count,
    )
    frames = []
    for attribute, (table,) in tables.items():
        frame = _frame(table)
        if grouping == "attributes":
            frame.insert(0, "attribute", attribute)
        frames.append(frame)
    return pd.concat(frames, ignore_index=True)


def check_choices(rate: str, grouping: str, min_count: float) -> None:
    """Refuse unknown names and counts below 1."""
    for name, value, known in (
        ("rate", rate, tuple(RATES)),
        ("grouping", grouping, get_args(Grouping)),
    ):
        if value not in known:
            raise ValueError(f"{name} must be one of {list(known)}, got {value!r}.")
    if not min_count >= 1:
        raise ValueError(f"min_count must be at least 1, got {min_count}.")


def warn_left_out(
    tables: Sequence[GroupRates], min_count: float, stacklevel: int, needed: int = 2
) -> None:
    """Report, once, every group that is left out, and every result that is NaN for want of them."""
    notes = []
    for table in tables:
        names = list(table.left_out())
        if names:
            shown = ", ".join(names[:_NAMED])
            more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
            notes.append(
                f"{table.rate} is not estimable for {shown}{more}: fewer than {min_count:g} rows "
                "with weight count for it; left out."
            )
        most = int(table.counted.sum(1).max())
        if most < needed:
            notes.append(
                f"The result for {table.rate} is NaN: it needs {needed} estimable groups, got "
                f"{most} of {len(table.counts.names)}."
            )
    if notes:
        warnings.warn(" ".join(notes), NotEstimableWarning, stacklevel=stacklevel + 1)


def _frame(table: GroupRates) -> pd.DataFrame:
    names, c = table.counts.names, len(table.numerator)
    columns: dict[str, Any] = {"group": np.repeat(np.array(names, dtype=object), c)}
    if table.classes:
        columns["class"] = list(table.classes) * len(names)
    columns["count"] = np.repeat(table.counts.sizes, c)
    columns["numerator"] = table.numerator.T.ravel()
    columns["denominator"] = table.denominator.T.ravel()
    columns["rate"] = table.counted_rates.T.ravel()
    return pd.DataFrame(columns)
