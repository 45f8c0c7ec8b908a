"""Features that give the label away: known only after the fact, as a reason for refusal is."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np

from apfex.cli._screen import shown

if TYPE_CHECKING:
    import pandas as pd

_MOST_ROWS = 20_000
_LEAVES = 16
_PURE = 0.01
"""Share of the other label that values may have and still give one away."""
_LEAST_ROWS = 30
_COVERS = 0.3
"""Share of a label's rows that such values must hold."""


@final
@dataclass(frozen=True)
class Leak:
    """Values of a feature that nearly all rows of one label have, and nearly no others."""

    feature: str
    label: int
    rows: int
    wrong: int
    covered: float

    def describe(self, label: str) -> str:
        """In words."""
        return (
            f"{shown(self.feature)} gives the label away: by it alone {self.rows:,} rows are taken "
            f"for {label}, and {self.rows - self.wrong:,} are, {100 * self.covered:.0f}% of all "
            f"{label}"
        )

    @property
    def remedy(self) -> str:
        """The option that leaves it out."""
        return f"--drop {shlex.quote(shown(self.feature))}"


def find_leaks(X: pd.DataFrame, y: np.ndarray, seed: int = 0) -> list[Leak]:
    """Features whose values alone tell one label, in rows that were not looked at to find them.

    Parameters
    ----------
    X : DataFrame with n rows
    y : int array of shape [n]
        0 or 1.

    Notes
    -----
    Rows are dealt into halves. In each, values (levels, a missing value, or the leaves of a small
    tree of numbers) are found of which nearly all rows have one label; in the other half they must
    hold: at most 1% of rows with another label, a tenth of what chance gives, and 30% of all rows
    with that label. Strong features, such as the capital gain of Adult, stay below that.
    """
    rows = np.random.default_rng(seed).permutation(len(y))[:_MOST_ROWS]
    half = np.arange(len(rows)) % 2
    return [
        leak
        for name in X.columns
        if (leak := _leak(str(name), _cells(X[name].iloc[rows], y[rows], half), y[rows], half))
    ]


def _leak(name: str, cells: list[np.ndarray], y: np.ndarray, half: np.ndarray) -> Leak | None:
    """Look at either half with the eyes of the other."""
    claimed = np.full(len(y), -1)
    for here in (0, 1):
        codes, learn, look = cells[here], half != here, half == here
        size = np.bincount(codes[learn], minlength=codes.max() + 1)
        ones = np.bincount(codes[learn], y[learn], minlength=codes.max() + 1)
        for label, hits in ((0, size - ones), (1, ones)):
            sure = (size > 0) & (hits >= (1 - 2 * _PURE) * size)
            claimed[look & sure[codes]] = label
    for label in (1, 0):
        said, base = claimed == label, (y == label).mean()
        rows, wrong = int(said.sum()), int((said & (y != label)).sum())
        covered = (rows - wrong) / max(1, int((y == label).sum()))
        if rows >= _LEAST_ROWS and covered >= _COVERS and wrong <= _limit(rows, base):
            return Leak(name, label, rows, wrong, covered)
    return None


def _limit(rows: int, base: float) -> float:
    """Most rows of the other label: 1%, and a tenth of what chance would give."""
    return min(_PURE, (1 - base) / 10) * rows


def _cells(column: pd.Series, y: np.ndarray, half: np.ndarray) -> list[np.ndarray]:
    """The cell of each row, as either half is to be looked at: levels, or leaves of a tree."""
    import pandas as pd

    if getattr(column.dtype, "kind", "O") not in "iuf":
        codes = pd.factorize(column)[0]
        return [np.where(codes < 0, codes.max() + 1, codes)] * 2
    numbers = column.to_numpy(np.float32, na_value=np.nan)[:, None]
    return [_leaves(numbers, y, half != here) for here in (0, 1)]


def _leaves(numbers: np.ndarray, y: np.ndarray, learn: np.ndarray) -> Any:
    from sklearn.tree import DecisionTreeClassifier

    tree = DecisionTreeClassifier(max_leaf_nodes=_LEAVES, min_samples_leaf=5, random_state=0)
    return tree.fit(numbers[learn], y[learn]).apply(numbers)
