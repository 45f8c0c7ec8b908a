"""Groups that a rate cannot be estimated for: the warning, the error, and who is left out."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from apfex.metrics._group_rates import GroupRates

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

    left_out: tuple[tuple[str, tuple[str, ...]], ...]
    n_rows: int | None

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

    criterion: str
    n_rows: int

    def __init__(self, message: str, criterion: str, n_rows: int) -> None:
        super().__init__(message, criterion, n_rows)
        self.criterion, self.n_rows = criterion, n_rows

    def __str__(self) -> str:
        """The message alone."""
        return self.args[0]


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
