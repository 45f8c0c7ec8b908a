"""Checks of the data: features that give label or sensitive attributes away, and row names."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np

from apfex.runs._columns import is_numeric

if TYPE_CHECKING:
    import pandas as pd

    from apfex.groups import Groups

_MOST_ROWS = 20_000
_MANY_ROWS, _MOST_CELLS, _ENOUGH_ROWS = 8_000, 1_200_000, 2_000
"""Rows that are looked at for each sensitive attribute; fewer of a table with many columns."""
_LEAVES = 16
_PURE = 0.01
"""Share of the other label that values may have and still give one away."""
_LEAST_ROWS = 30
_COVERS = 0.3
"""Share of a label's rows that such values must hold."""
_BLURRED = 0.05
"""Share of other levels that values may have and still tell a sensitive attribute."""
_HALF = 0.5
"""Share of a level's rows that they must hold."""
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


@final
@dataclass(frozen=True)
class Proxy:
    """A feature that reproduces a sensitive attribute, as a gender code does.

    Attributes
    ----------
    feature, attribute : str
    level : str
        The level of the attribute that its values tell best.
    rows : int
        Rows that would be taken for that level by this feature alone.
    wrong : int
        Those of them that have another level.
    covered : float
        Share of the rows with that level that it finds.
    """

    feature: str
    attribute: str
    level: str
    rows: int
    wrong: int
    covered: float


def find_proxies(X: pd.DataFrame, groups: Groups, seed: int = 0) -> list[Proxy]:
    """Features whose values alone tell a level of a sensitive attribute, found as leaks are.

    Parameters
    ----------
    X : DataFrame with n rows
    groups : Groups of the n rows

    Notes
    -----
    As for :func:`find_leaks`, with every level against the others. Values must hold for half of
    the rows with the level, and at most 5% of their rows, or a quarter of what chance gives, may
    have another. That a value is missing is no level to be told: forms are left empty together. Of
    wide tables fewer rows are looked at.
    """
    found = []
    most = min(_MANY_ROWS, max(_ENOUGH_ROWS, _MOST_CELLS // max(1, X.shape[1])))
    rows = np.random.default_rng(seed).permutation(len(X))[:most]
    half = np.arange(len(rows)) % 2
    for attribute in groups.attributes:
        single = groups.parent(attribute)
        if len(single) < 2:
            continue  # what all rows have in common is told by nothing
        codes, names = single.codes[rows], [values[0] for values in single.values]
        for name in X.columns:
            cells = _cells(X[name].iloc[rows], codes, half, max(_LEAVES, 2 * len(names)))
            told = _proxy(cells, codes, half, names)
            if told is not None:
                found.append(Proxy(str(name), attribute, *told))
    return found


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
    claimed = _claims(cells, y, half, [2 * _PURE] * 2)
    for label in (1, 0):
        rows, wrong, covered = _check_claims(claimed, y, label)
        limit = _limit(rows, (y == label).mean())
        if rows >= _LEAST_ROWS and covered >= _COVERS and wrong <= limit:
            return Leak(name, label, rows, wrong, covered)
    return None


def _proxy(
    cells: list[np.ndarray], codes: np.ndarray, half: np.ndarray, names: Sequence[str | None]
) -> tuple[str, int, int, float] | None:
    """The level that is told best, with its figures; None where none is told."""
    bases = np.bincount(codes, minlength=len(names)) / len(codes)
    allowed = np.minimum(_BLURRED, (1 - bases) / 4)
    claimed, found = _claims(cells, codes, half, allowed), []
    for level, name in enumerate(names):
        rows, wrong, covered = _check_claims(claimed, codes, level)
        is_told = rows >= _LEAST_ROWS and covered >= _HALF and wrong <= allowed[level] * rows
        if name is not None and is_told:
            found.append((name, rows, wrong, covered))
    return max(found, key=lambda one: one[3] - one[2] / one[1], default=None)


def _claims(
    cells: list[np.ndarray], codes: np.ndarray, half: np.ndarray, allowed: Sequence[float] | Any
) -> np.ndarray:
    """What each row would be taken for [n], by the cells of the other half; -1: nothing.

    ``allowed`` is, for each code, the share of others that a cell may have.
    """
    claimed = np.full(len(codes), -1)
    for here in (0, 1):
        own, learn, look = cells[here], half != here, half == here
        n_cells = own.max() + 1
        size = np.bincount(own[learn], minlength=n_cells)
        for code, share in enumerate(allowed):
            hits = np.bincount(own[learn & (codes == code)], minlength=n_cells)
            sure = (size > 0) & (hits >= (1 - share) * size)
            claimed[look & sure[own]] = code
    return claimed


def _check_claims(claimed: np.ndarray, codes: np.ndarray, code: int) -> tuple[int, int, float]:
    """Rows that are taken for the code, those that are not of it, and the share that is found."""
    said, true = claimed == code, codes == code
    rows, wrong = int(said.sum()), int((said & ~true).sum())
    return rows, wrong, (rows - wrong) / max(1, int(true.sum()))


def _limit(rows: int, base: float) -> float:
    """Most rows of the other label: 1%, and a tenth of what chance would give."""
    return min(_PURE, (1 - base) / 10) * rows


def _cells(
    column: pd.Series, y: np.ndarray, half: np.ndarray, leaves: int = _LEAVES
) -> list[np.ndarray]:
    """The cell of each row, as either half is to be looked at: levels, or leaves of a tree."""
    import pandas as pd

    if not is_numeric(column):
        codes = pd.factorize(column)[0]
        return [np.where(codes < 0, codes.max() + 1, codes)] * 2
    numbers = _told_apart(column.to_numpy(np.float64, na_value=np.nan))[:, None]
    return [_leaves(numbers, y, half != here, leaves) for here in (0, 1)]


def _told_apart(numbers: np.ndarray) -> np.ndarray:
    """Numbers as trees of scikit-learn take them, in float32: large ones are not rounded together.

    From the least one on, codes such as 100000001 and 100000002 differ in float32, too.
    """
    least = np.min(numbers, where=~np.isnan(numbers), initial=np.inf)
    with np.errstate(over="ignore"):  # infinite is the largest
        shifted = numbers - least
    return np.minimum(shifted, np.finfo(np.float32).max).astype(np.float32)


def _leaves(numbers: np.ndarray, y: np.ndarray, learn: np.ndarray, leaves: int) -> Any:
    from sklearn.tree import DecisionTreeClassifier

    tree = DecisionTreeClassifier(max_leaf_nodes=leaves, min_samples_leaf=5, random_state=0)
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
