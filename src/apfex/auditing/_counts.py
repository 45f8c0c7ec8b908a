"""All that an audit needs to know of the rows: masses of the cells of the crossing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from apfex.groups import Groups

MOST_GROUPS = 100_000
"""Cells beyond which an audit refuses: names and tables would be all that it does."""
_THRESHOLDS = 101
_BLOCK = 2**22  # numbers in a table of masses by threshold


@final
@dataclass(frozen=True, eq=False)
class ScoreCounts:
    """Masses [t, k, 4] where scores from each threshold [t] up are decided favorably."""

    thresholds: np.ndarray
    rows: np.ndarray
    sums: np.ndarray
    squares: np.ndarray | None = None


@final
@dataclass(frozen=True, eq=False)
class Counts:
    """Masses of every cell; what :func:`audit_counts` turns into an audit.

    Masses are selected negatives and positives, then all negatives and positives, as in
    :func:`apfex.rates.group_masses`.

    Attributes
    ----------
    groups : Groups
        The cells of the crossing; no rows.
    classes : tuple
        More than two labels, or ().
    favorable : int
        Place of the favorable label among the classes; of two labels it is the 1.
    rows, sums : arrays of shape [c, k, 4]
        Unweighted and weighted masses, c being 1 for two labels.
    squares : array of shape [c, k, 4], or None
        Sums of squared weights.
    labelled, approximate : bool
        Whether there were labels, and unequal weights.
    outside : int
        Rows in no group, left out.
    scores : ScoreCounts, or None

    Examples
    --------
    >>> from apfex.groups import make_groups
    >>> groups = make_groups(["F", "F", "M"])
    >>> counts = count_rows(np.array([1, 0, 1]), np.array([1, 1, 0]), groups)
    >>> counts.rows[0].astype(int).tolist()
    [[1, 1, 1, 1], [0, 0, 0, 1]]
    """

    groups: Groups
    classes: tuple[Any, ...]
    favorable: int
    rows: np.ndarray
    sums: np.ndarray
    squares: np.ndarray | None
    labelled: bool
    approximate: bool
    outside: int
    scores: ScoreCounts | None = None

    @property
    def n_rows(self) -> int:
        """Rows that are in a group."""
        return round(self.rows[0, :, 2:].sum())

    @property
    def favored(self) -> np.ndarray:
        """Masses [k, 4] of the favorable label against the rest, weighted; labels aside."""
        return self._favored(self.sums)

    @property
    def favored_squares(self) -> np.ndarray | None:
        """The same of squared weights."""
        return None if self.squares is None else self._favored(self.squares)

    def _favored(self, masses: np.ndarray) -> np.ndarray:
        return masses[self.favorable if self.classes else 0]


def count_rows(
    y: np.ndarray | None,
    decided: np.ndarray,
    groups: Groups,
    sample_weight: np.ndarray | None = None,
    *,
    classes: tuple[Any, ...] = (),
    favorable: int = 1,
    score: np.ndarray | None = None,
) -> Counts:
    """Count rows once; time and memory are linear in them.

    Parameters
    ----------
    y, decided : integer arrays of shape [n]
        Labels (or None) and decisions: 1 for the favorable one of two labels and 0 for the other,
        or places among ``classes``.
    groups : Groups
        A row with code -1 is left out, and counted as outside.
    sample_weight, score : float arrays of shape [n], optional
    classes : tuple
        The labels, where there are more than two.
    favorable : int
        Place of the favorable label among ``classes``.

    Returns
    -------
    Counts

    Examples
    --------
    >>> from apfex.groups import make_groups
    >>> count_rows(None, np.array([1, 0]), make_groups(["F", "M"])).n_rows
    2
    """
    check_size(groups)
    if not classes and favorable != 1:
        raise ValueError(
            f"favorable must be 1 where there are two labels, got {favorable}; give the favorable "
            "label the code 1."
        )
    inside = groups.codes >= 0
    outside = int((~inside).sum())
    rows = inside if outside else slice(None)
    decided, codes = decided[rows], groups.codes[rows]
    weight = None if sample_weight is None else sample_weight[rows]
    labels = np.zeros_like(decided) if y is None else y[rows]
    keys = _Keys(labels, decided, codes, len(groups), max(2, len(classes)), bool(classes))
    masses = keys.masses(None)
    return Counts(
        groups=groups.take(np.arange(0)),
        classes=classes,
        favorable=favorable,
        rows=masses,
        sums=masses if weight is None else keys.masses(weight),
        squares=None if weight is None else keys.masses(weight**2),
        labelled=y is not None,
        approximate=weight is not None and bool((weight != weight[:1]).any()),
        outside=outside,
        scores=None
        if score is None
        else _count_scores(score[rows], labels, codes, len(groups), weight),
    )


def count_classes(
    y: np.ndarray,
    decided: np.ndarray,
    groups: Groups,
    classes: Sequence[Any],
    favorable: int,
    sample_weight: np.ndarray | None = None,
) -> Counts:
    """Count rows whose labels and decisions are places among the classes of a classifier.

    Of two classes the favorable one is counted, of several all are compared, whether they occur
    among these rows or not.

    Parameters
    ----------
    y, decided : integer arrays of shape [n]
    groups : Groups
    classes : sequence of labels
    favorable : int
        Place of the favorable label.
    sample_weight : float array of shape [n], optional

    Examples
    --------
    >>> from apfex.groups import make_groups
    >>> y, decided = np.array([0, 0, 1]), np.array([0, 1, 1])
    >>> count_classes(y, decided, make_groups(["F"] * 3), ["no", "yes"], favorable=0).rows[0]
    array([[0., 1., 1., 2.]])
    """
    if len(classes) > 2:
        return count_rows(
            y, decided, groups, sample_weight, classes=tuple(classes), favorable=favorable
        )
    is_favorable, gets_it = ((part == favorable).astype(np.int64) for part in (y, decided))
    return count_rows(is_favorable, gets_it, groups, sample_weight)


def check_size(groups: Groups) -> None:
    """Refuse more groups than anybody can look at."""
    if len(groups) > MOST_GROUPS:
        sizes = zip(groups.attributes, groups.levels, strict=True)
        name, levels = max(sizes, key=lambda pair: len(pair[1]))
        raise ValueError(
            f"sensitive_features must form at most {MOST_GROUPS:,} groups, got {len(groups):,}; "
            f"the attribute {name!r} alone has {len(levels):,} levels: is it an identifier or a "
            "number? Put it into bins, merge levels or leave it out."
        )


class _Keys:
    """Where each row is counted."""

    def __init__(
        self,
        y: np.ndarray,
        decided: np.ndarray,
        codes: np.ndarray,
        k: int,
        c: int,
        all_classes: bool,
    ) -> None:
        self._codes, self._k, self._c, self._all = codes, k, c, all_classes
        self._labelled, self._selected = codes * c + y, codes * c + decided
        self._right = y == decided

    def masses(self, weight: np.ndarray | None) -> np.ndarray:
        """Masses [c, k, 4] of each class against the rest, or [1, k, 4] of the label 1."""
        shape, size = (self._k, self._c), self._k * self._c
        positives = np.bincount(self._labelled, weight, size).reshape(shape)
        selected = np.bincount(self._selected, weight, size).reshape(shape)
        hits = np.bincount(self._labelled, _and(self._right, weight), size).reshape(shape)
        everyone = positives.sum(1, keepdims=True)
        false = np.maximum(selected - hits, 0)  # rounding
        parts = [false, hits, np.maximum(everyone - positives, 0), positives]
        masses = np.stack(parts, -1).astype(np.float64).swapaxes(0, 1)
        return masses if self._all else masses[1:2]


def _and(right: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
    return right if weight is None else right * weight


def _count_scores(
    score: np.ndarray, y: np.ndarray, codes: np.ndarray, k: int, weight: np.ndarray | None
) -> ScoreCounts:
    """Sort the scores once; a row is then a number in a table of group, label and place."""
    ordered = np.sort(score)
    thresholds = ordered[np.append(True, ordered[1:] != ordered[:-1])]
    most = max(5, min(_THRESHOLDS, _BLOCK // (4 * k)))
    if len(thresholds) > most:
        places = np.linspace(0, len(ordered) - 1, most).round().astype(np.int64)
        thresholds = np.unique(ordered[places])
    t = len(thresholds)
    reached = np.searchsorted(thresholds, score, side="right")  # thresholds at or below a score
    keys = (codes * 2 + y) * (t + 1) + reached

    def masses(w: np.ndarray | None) -> np.ndarray:
        table = np.bincount(keys, w, k * 2 * (t + 1)).reshape(k, 2, t + 1).astype(np.float64)
        from_here = table[..., ::-1].cumsum(-1)[..., ::-1]
        selected = from_here[..., 1:].transpose(2, 0, 1)  # [t, k, 2]
        everyone = np.broadcast_to(from_here[..., 0], selected.shape)
        return np.concatenate([selected, everyone], axis=-1)

    rows = masses(None)
    if weight is None:
        return ScoreCounts(thresholds, rows, rows)
    return ScoreCounts(thresholds, rows, masses(weight), masses(weight**2))
