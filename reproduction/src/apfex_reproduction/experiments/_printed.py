"""A number in print, and whether it can be true."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, final

from apfex_reproduction.experiments._defects import Defect

Metric = Literal["accuracy", "ddp", "deo"]
METRICS: tuple[Metric, ...] = ("accuracy", "ddp", "deo")

RUNS = 10
"""Runs behind each of the paper's means."""
HALF_A_DIGIT = 0.00005
"""Its numbers are rounded to four decimals."""


@final
@dataclass(frozen=True)
class Printed:
    """One number in print.

    Parameters
    ----------
    source : str
        Whose: "APFEx" (the paper), "MAMO", "SearchFair" or "ROC" (what these print themselves).
    table : int or None
        Of the paper; None for what the others print.
    dataset : str
    method : str
        A column's key, or words.
    metric : "accuracy", "ddp" or "deo"
    mean : float
    spread : float or None
        Standard deviation with ddof 0; None where not at hand.
    defects : tuple of Defect
        Of what others print; :func:`defects_of` has those of the paper.
    digits : int
        Decimals in print.

    Examples
    --------
    >>> from apfex_reproduction.experiments._paper import credible, defects_of, printed
    >>> cell = printed(2, "compas", "apfex-inter")["accuracy"]
    >>> cell.mean, cell.spread, [d.kind for d in defects_of(cell)], credible(cell)
    (0.5422, 0.013, ['constant'], False)
    """

    source: str
    table: int | None
    dataset: str
    method: str
    metric: Metric
    mean: float
    spread: float | None = None
    defects: tuple[Defect, ...] = ()
    digits: int = 4


def impossible_spread(mean: float, spread: float | None, n: int = RUNS) -> bool:
    """Whether ``n`` values of at least zero cannot have this mean and this spread (ddof 0).

    The spread is largest when one value holds the whole sum: then it is sqrt(n - 1) times the
    mean. Both numbers get the benefit of their rounding.
    """
    if spread is None:
        return False
    return spread - HALF_A_DIGIT > (n - 1) ** 0.5 * (mean + HALF_A_DIGIT)
