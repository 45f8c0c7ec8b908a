"""Means that hide two kinds of runs: some constant, the others nearly as accurate as plain ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from apfex_reproduction.experiments._printed import HALF_A_DIGIT, RUNS, Printed

_CONSTANTS = {
    "adult": (0.7607, 0.2393),
    "compas": (0.5445, 0.4555),
    "german": (0.6850, 0.7050, 0.3150, 0.2950),
    "celeba": (0.5179, 0.4821),
}
"""Accuracies of the two constant decisions; on German those of the two fixed splits in print.
Heart has so few test rows that any spread is natural."""
_OTHERS = {
    "adult": (0.78, 0.842),
    "compas": (0.60, 0.69),
    "german": (0.55, 0.80),
    "celeba": (0.82, 0.865),
}
"""Between which accuracies the runs that are not constant may lie."""
_TEST_ROWS = {"adult": 33_842, "compas": 1_167, "german": 200, "celeba": 30_390}
_NATURAL = 2.5
"""A spread this many times that of the draw of test rows needs another cause."""
_CLOSE = 0.0015


@final
@dataclass(frozen=True)
class TwoKinds:
    """So many constant runs at one accuracy and the rest at another give a printed cell.

    Parameters
    ----------
    constant_runs : int
    constant, other : float
        Accuracies of the two kinds.
    spread : float
        What these ten values have, ddof 0.
    """

    constant_runs: int
    constant: float
    other: float
    spread: float


def two_kinds(cell: Printed) -> TwoKinds | None:
    """The mixture of constant and other runs that a printed accuracy looks like, if any.

    The other runs' accuracy follows from the mean; what is left to agree is the spread, within
    0.0015. Only spreads that the draw of test rows cannot explain are looked at; on German, whose
    test rows are always the same 200, any, but the other runs must have whole numbers of rows.
    """
    known = _CONSTANTS.get(cell.dataset)
    if known is None or cell.method == "plain" or not cell.spread:
        return None
    rows = _TEST_ROWS[cell.dataset]
    fixed = cell.dataset == "german"
    natural = (cell.mean * (1 - cell.mean) / rows) ** 0.5
    if not fixed and cell.spread < _NATURAL * natural:
        return None
    found = [
        mixture
        for constant in known
        for runs in range(1, RUNS)
        if (mixture := _mixture(cell, runs, constant)) is not None
        and (not fixed or _whole_rows(mixture, rows))
    ]
    return min(found, key=lambda one: abs(one.spread - (cell.spread or 0)), default=None)


def _mixture(cell: Printed, runs: int, constant: float) -> TwoKinds | None:
    other = (RUNS * cell.mean - runs * constant) / (RUNS - runs)
    spread = abs(other - constant) * (runs * (RUNS - runs)) ** 0.5 / RUNS
    low, high = _OTHERS[cell.dataset]
    fits = low <= other <= high and abs(spread - (cell.spread or 0)) <= _CLOSE
    return TwoKinds(runs, constant, other, spread) if fits else None


def _whole_rows(mixture: TwoKinds, rows: int) -> bool:
    total = (RUNS - mixture.constant_runs) * rows
    return abs(mixture.other * total - round(mixture.other * total)) <= RUNS * rows * HALF_A_DIGIT
