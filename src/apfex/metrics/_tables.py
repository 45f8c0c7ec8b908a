"""Rates of every group as a table: what all gaps and their statistics are read from."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from apfex.groups import Groups
from apfex.metrics._inputs import Inputs, read_inputs
from apfex.rates import RATES, GroupIndex, RateName, RateSums, gap, rate_sums

Grouping = Literal["intersectional", "attributes"]

_BLOCK = 2**22  # numbers in one block of one-vs-rest decisions
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


@dataclass(frozen=True, eq=False)
class RateTable:
    """Sums of one rate by class and group; ``rows`` counts the rows behind each denominator."""

    rate: RateName
    names: tuple[str, ...]  # k names
    counts: np.ndarray  # [k]
    classes: tuple[Any, ...]  # c names, or () where there is no class axis to show
    sums: RateSums  # [c, k], weighted
    rows: Tensor  # [c, k], unweighted denominators
    squares: Tensor | None  # [c, k], sums of squared weights

    def estimable(self, min_count: float) -> Tensor:
        """Which rates rest on at least ``min_count`` rows (and on any weight), shape [c, k]."""
        return (self.rows >= max(min_count, 1)) & self.sums.estimable(0)

    def rates(self, min_count: float) -> Tensor:
        """Rates of shape [c, k], NaN where not estimable."""
        return torch.where(self.estimable(min_count), self.sums.rates(0), torch.nan)

    def gap(self, min_count: float) -> float:
        """Largest gap over the classes that have two estimable groups; NaN where none has."""
        gaps = gap(self.rates(min_count))
        known = gaps[gaps.isfinite()]
        return float(known.max()) if len(known) else float("nan")

    def left_out(self, min_count: float) -> Iterator[str]:
        """Name the groups (and classes) that are not estimable."""
        for code, group in (~self.estimable(min_count)).nonzero().tolist():
            place = f" (class {self.classes[code]})" if self.classes else ""
            yield f"'{self.names[group]}'{place}"


def rate_tables(rate: RateName, data: Inputs, grouping: Grouping) -> dict[str, RateTable]:
    """One table per attribute, or one of the crossing under the name ``""``."""
    weight = data.weight
    sums = _sum_up(rate, data, weight)
    rows = sums.denominator if weight is None else _sum_up(rate, data, None).denominator
    squares = None if weight is None else _sum_up(rate, data, weight**2).denominator
    classes = data.labels.classes if rate != "accuracy" else ()
    groups = data.groups
    cells = RateTable(rate, groups.names, groups.counts, classes, sums, rows, squares)
    if grouping == "intersectional":
        return {"": cells}
    return {name: _parent_table(name, groups, cells) for name in groups.attributes}


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
    check_choices(rate, grouping, min_count)
    require_labels(rate, y_true)
    symmetric = rate == "accuracy"
    data = read_inputs(
        y_true, y_pred, sensitive_features, sample_weight, pos_label, symmetric=symmetric
    )
    tables = rate_tables(rate, data, grouping)
    frames = []
    for attribute, table in tables.items():
        frame = _frame(table, min_count)
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


def require_labels(rate: RateName, y_true: Any) -> None:
    """Refuse a rate of labels without labels."""
    if y_true is None and RATES[rate].needs_labels:
        raise ValueError(f"y_true must be given for the rate {rate!r}, got None.")


def warn_left_out(
    tables: list[RateTable], min_count: float, stacklevel: int, needed: int = 2
) -> None:
    """Report, once, every group that is left out, and every result that is NaN for want of them."""
    notes = []
    for table in tables:
        names = list(table.left_out(min_count))
        if names:
            shown = ", ".join(names[:_NAMED])
            more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
            notes.append(
                f"{table.rate} is not estimable for {shown}{more}: fewer than {min_count:g} rows "
                "with weight count for it; left out."
            )
        most = int(table.estimable(min_count).sum(-1).max())
        if most < needed:
            notes.append(
                f"The result for {table.rate} is NaN: it needs {needed} estimable groups, got "
                f"{most} of {len(table.names)}."
            )
    if notes:
        warnings.warn(" ".join(notes), NotEstimableWarning, stacklevel=stacklevel + 1)


def _sum_up(rate: RateName, data: Inputs, weight: Tensor | None) -> RateSums:
    """Add up a rate with a class axis, shape [c, k], in blocks of rows (they add up)."""
    labels, index = data.labels, GroupIndex.of(data.groups)
    assert index.codes is not None
    if not labels.classes:
        decisions = labels.decided.double()[None]
        return rate_sums(rate, decisions, labels.y, index, weight)
    classes = torch.arange(len(labels.classes))[:, None]
    total: RateSums | None = None
    for rows in torch.arange(len(labels)).split(max(1, _BLOCK // len(classes))):
        block = slice(int(rows[0]), int(rows[-1]) + 1)
        sums = rate_sums(
            rate,
            (labels.decided[block] == classes).double(),
            None if labels.y is None else labels.y[block],
            GroupIndex(index.codes[block], None, index.n_groups, index.has_outsiders),
            None if weight is None else weight[block],
            multiclass=True,
        )
        total = sums if total is None else total + sums
    assert total is not None
    if rate == "accuracy":  # the same for every class
        total = RateSums(total.numerator[:1], total.denominator[:1])
    return total


def _parent_table(attribute: str, groups: Groups, cells: RateTable) -> RateTable:
    parent = groups.parent(attribute)
    codes, k = torch.from_numpy(groups.parent_codes(attribute)), len(parent)
    index = GroupIndex(codes, None, k)
    return RateTable(
        cells.rate,
        parent.names,
        parent.counts,
        cells.classes,
        cells.sums.regroup(codes, k),
        index.sum(cells.rows),
        None if cells.squares is None else index.sum(cells.squares),
    )


def _frame(table: RateTable, min_count: float) -> pd.DataFrame:
    c = len(table.sums.numerator)
    columns: dict[str, Any] = {"group": np.repeat(np.array(table.names, dtype=object), c)}
    if table.classes:
        columns["class"] = list(table.classes) * len(table.names)
    columns["count"] = np.repeat(table.counts, c)
    columns["numerator"] = table.sums.numerator.T.ravel()
    columns["denominator"] = table.sums.denominator.T.ravel()
    columns["rate"] = table.rates(min_count).T.ravel()
    return pd.DataFrame(columns)
