"""Checks of the data: features that give the label away, and columns that only name rows."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np

from apfex.runs._columns import is_numeric

if TYPE_CHECKING:
    import pandas as pd

_MOST_ROWS = 20_000
_LEAVES = 16
_PURE = 0.01
"""Share of the other label that values may have and still give one away."""
_LEAST_ROWS = 30
_COVERS = 0.3
"""Share of a label's rows that such values must hold."""
_LEAST_VALUES = 50
_OWN = 0.95
"""Share of rows with a text of their own, in a column that names rows."""
_CALLED = re.compile(r"(?i:(^|[^a-z])(id|uuid|guid|index|key|row)$)|[a-z]ID$")
"""How columns that name rows are called."""


@final
@dataclass(frozen=True)
class Leak:
    """A feature that gives the label away: known only after the fact, as a reason for refusal is.

    Attributes
    ----------
    feature : str
    label : int
        The label that its values tell: 1 is the positive one.
    rows : int
        Rows that would be taken for that label by this feature alone.
    wrong : int
        Those of them that have the other label.
    covered : float
        Share of the rows with that label that it finds.
    """

    feature: str
    label: int
    rows: int
    wrong: int
    covered: float


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


def find_identifiers(X: pd.DataFrame, types: Mapping[str, str]) -> list[str]:
    """Columns that name rows, in the order of the file.

    Parameters
    ----------
    X : DataFrame with n rows
    types : mapping from column to "number", "text" or "boolean"

    Notes
    -----
    Text counts where 95% of its values occur once. Whole numbers count where all differ and
    they leave few gaps, rise from row to row, or their column is called such as ``id``: amounts
    differ from row to row, too.
    """
    checks = {"text": _is_text_of_rows, "number": _is_number_of_rows}
    found = []
    for name, column in X.items():
        values = column.dropna()
        check = checks.get(types[str(name)])
        if check is not None and len(values) >= _LEAST_VALUES and check(values):
            found.append(str(name))
    return found


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

    if not is_numeric(column):
        codes = pd.factorize(column)[0]
        return [np.where(codes < 0, codes.max() + 1, codes)] * 2
    numbers = column.to_numpy(np.float32, na_value=np.nan)[:, None]
    return [_leaves(numbers, y, half != here) for here in (0, 1)]


def _leaves(numbers: np.ndarray, y: np.ndarray, learn: np.ndarray) -> Any:
    from sklearn.tree import DecisionTreeClassifier

    tree = DecisionTreeClassifier(max_leaf_nodes=_LEAVES, min_samples_leaf=5, random_state=0)
    return tree.fit(numbers[learn], y[learn]).apply(numbers)


def _is_text_of_rows(values: pd.Series) -> bool:
    return values.nunique() > _OWN * len(values)


def _is_number_of_rows(values: pd.Series) -> bool:
    numbers = values.to_numpy(np.float64)
    if (numbers != np.floor(numbers)).any() or len(np.unique(numbers)) < len(numbers):
        return False
    is_dense = np.ptp(numbers) < 2 * len(numbers)
    is_rising = bool((np.diff(numbers) > 0).all())
    return is_dense or is_rising or _CALLED.search(str(values.name)) is not None
