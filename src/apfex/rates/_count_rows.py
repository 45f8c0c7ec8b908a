"""From rows to confusion counts, in one pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from apfex.arguments import require_kind
from apfex.groups import Groups
from apfex.rates._confusion import ConfusionCounts, ScoreCounts

_THRESHOLDS = 101
_BLOCK = 2**22  # numbers in a table of counts by threshold


@final
@dataclass(frozen=True, eq=False)
class Repeats:
    """How many rows each of m different rows stands for, where an engine has added them up.

    Attributes
    ----------
    rows : int64 array of shape [m]
    weights : float array of shape [4, m], or None
        Sums of weights, sums of squared weights, the smallest and the largest weight; None where
        there are no weights.
    """

    rows: np.ndarray
    weights: np.ndarray | None = None

    @property
    def n_rows(self) -> int:
        """All that they stand for."""
        return int(self.rows.sum())

    @property
    def sums(self) -> np.ndarray:
        """Sums of weights [m]; numbers of rows where there are none."""
        return self.rows if self.weights is None else self.weights[0]

    @property
    def squares(self) -> np.ndarray:
        """Sums of squared weights [m]; numbers of rows where there are none."""
        return self.rows if self.weights is None else self.weights[1]

    @property
    def weight(self) -> float | None:
        """The weight that all rows have; None where weights differ."""
        if self.weights is None or not len(self.rows):
            return 1.0
        lightest, heaviest = float(self.weights[2].min()), float(self.weights[3].max())
        return lightest if lightest == heaviest else None

    def take(self, rows: Any) -> Repeats:
        """Those of some of the different rows."""
        return Repeats(self.rows[rows], None if self.weights is None else self.weights[:, rows])


def count_rows(
    y: np.ndarray | None,
    decided: np.ndarray,
    groups: Groups,
    sample_weight: np.ndarray | None = None,
    *,
    classes: Sequence[Any] = (),
    favorable: int = 1,
    score: np.ndarray | None = None,
    repeats: Repeats | None = None,
) -> ConfusionCounts:
    """Count rows by group, label and decision; time and memory are linear in them.

    Parameters
    ----------
    y, decided : integer arrays of shape [n]
        Labels (or None) and decisions, as places among ``classes``.
    groups : Groups
        A row with code -1 is left out, and counted as outside.
    sample_weight : float array of shape [n], optional
    classes : sequence of labels
        Two by default, whose places are 0 and 1. Of two the favorable one is counted; of several
        all are, whether they occur among these rows or not, so that counts of batches add up.
    favorable : int
        Place of the favorable label.
    score : float array of shape [n], optional
        Scores of the favorable label, of two: the same counts had they been cut elsewhere, at
        every distinct score up to 101 of them, else at as many quantiles.
    repeats : Repeats, optional
        How many rows each row stands for, and their weights; instead of ``sample_weight``.

    Returns
    -------
    ConfusionCounts

    Examples
    --------
    >>> from apfex.groups import make_groups
    >>> groups = make_groups(["F", "F", "M"])
    >>> y, decided = np.array([0, 0, 1]), np.array([0, 1, 1])
    >>> count_rows(y, decided, groups, classes=["no", "yes"], favorable=0).rows[0].tolist()
    [[0, 1, 0, 2], [0, 0, 1, 0]]
    >>> first, rest = (count_rows(None, d, groups.take(r)) for d, r in (
    ...     (decided[:1], np.arange(1)), (decided[1:], np.arange(1, 3))
    ... ))
    >>> (first + rest).rows.tolist() == count_rows(None, decided, groups).rows.tolist()
    True
    """
    c = max(2, len(classes))
    _check(y, decided, groups, sample_weight, c, favorable, score)
    inside = groups.codes >= 0
    outside = ~inside
    rows = inside if outside.any() else slice(None)
    decided, codes = decided[rows], groups.codes[rows]
    weight = None if sample_weight is None else sample_weight[rows]
    own = None if repeats is None else repeats.take(rows)
    labels = np.zeros_like(decided) if y is None else y[rows]
    if c == 2 and favorable == 0:
        labels, decided = (labels if y is None else 1 - labels), 1 - decided
    keys = _Keys.of(labels, decided, codes, len(groups), c)
    counted, sums, squares = _sums(keys.counts, weight, own)
    return ConfusionCounts(
        groups=groups.take(np.arange(0)),
        rows=counted,
        sums=sums,
        squares=squares,
        classes=tuple(classes) if c > 2 else (),
        favorable=favorable if c > 2 else 1,
        labelled=y is not None,
        weight=_common(weight) if own is None else own.weight,
        outside=int(outside.sum() if repeats is None else repeats.rows[outside].sum()),
        scores=None if score is None else _count_scores(score[rows], labels, codes, groups, weight),
    )


def _sums(
    add_up: Callable[[np.ndarray | None], np.ndarray],
    weight: np.ndarray | None,
    repeats: Repeats | None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Numbers of rows, sums of weights and of their squares, by what adds up values of rows."""
    if repeats is None:
        rows = add_up(None)
        return (rows, rows, None) if weight is None else (rows, add_up(weight), add_up(weight**2))
    rows = add_up(repeats.rows).astype(np.int64)  # exact: fewer than 2**53
    if repeats.weights is None:
        return rows, rows, None
    return rows, add_up(repeats.sums), add_up(repeats.squares)


@dataclass(frozen=True, eq=False)
class _Keys:
    """Where each row is counted: by group and label, by group and decision, and if it is right."""

    labelled: np.ndarray
    selected: np.ndarray
    right: np.ndarray
    k: int
    c: int

    @staticmethod
    def of(y: np.ndarray, decided: np.ndarray, codes: np.ndarray, k: int, c: int) -> _Keys:
        return _Keys(codes * c + y, codes * c + decided, y == decided, k, c)

    def counts(self, weight: np.ndarray | None) -> np.ndarray:
        """Counts [c, k, 4] of each class against the rest, or [1, k, 4] of the label 1."""
        shape, size = (self.k, self.c), self.k * self.c
        positives = np.bincount(self.labelled, weight, size).reshape(shape)
        if weight is None:
            selected = np.bincount(self.selected, None, size).reshape(shape)
            hits = np.bincount(self.labelled[self.right], None, size).reshape(shape)
            false = selected - hits
        else:  # never a difference of sums, which would lose the digits of a small one
            hits = np.bincount(self.labelled, self.right * weight, size).reshape(shape)
            false = np.bincount(self.selected, ~self.right * weight, size).reshape(shape)
        if self.c == 2:
            negatives = positives[:, ::-1]
        else:
            negatives = np.maximum(positives.sum(1, keepdims=True) - positives, 0)
        own = slice(None) if self.c > 2 else slice(1, 2)
        parts = [part[:, own] for part in (false, hits, negatives, positives)]
        return np.ascontiguousarray(np.stack(parts, -1).swapaxes(0, 1))


def _common(weight: np.ndarray | None) -> float | None:
    """The weight that all rows have, or None."""
    if weight is None or not len(weight):
        return 1.0
    return None if (weight != weight[0]).any() else float(weight[0])


def _count_scores(
    score: np.ndarray,
    y: np.ndarray,
    codes: np.ndarray,
    groups: Groups,
    weight: np.ndarray | None,
) -> ScoreCounts:
    """Sort the scores once; a row is then a number in a table of group, label and place."""
    ordered = np.sort(score)
    thresholds = ordered[np.append(True, ordered[1:] != ordered[:-1])]
    most = most_thresholds(len(groups))
    if len(thresholds) > most:
        thresholds = np.unique(ordered[threshold_places(len(ordered), most)])
    reached = np.searchsorted(thresholds, score, side="right")  # thresholds at or below a score
    return count_reached(reached, y, codes, groups, thresholds, weight=weight)


def most_thresholds(k: int) -> int:
    """Thresholds at which the scores of k groups are counted at most."""
    return max(5, min(_THRESHOLDS, _BLOCK // (4 * k)))


def threshold_places(n: int, most: int) -> np.ndarray:
    """Places among n sorted scores that are thresholds, where there are too many scores."""
    return np.linspace(0, n - 1, most).round().astype(np.int64)


def count_reached(
    reached: np.ndarray,
    y: np.ndarray,
    codes: np.ndarray,
    groups: Groups,
    thresholds: np.ndarray,
    *,
    weight: np.ndarray | None = None,
    repeats: Repeats | None = None,
) -> ScoreCounts:
    """Counts at every threshold, from how many of the thresholds each row reaches."""
    k, t = len(groups), len(thresholds)
    keys = (codes * 2 + y) * (t + 1) + reached

    def counts(w: np.ndarray | None) -> np.ndarray:
        table = np.bincount(keys, w, k * 2 * (t + 1)).reshape(k, 2, t + 1)
        from_here = table[..., ::-1].cumsum(-1)[..., ::-1]
        selected = from_here[..., 1:].transpose(2, 0, 1)  # [t, k, 2]
        everyone = np.broadcast_to(from_here[..., 0], selected.shape)
        return np.concatenate([selected, everyone], axis=-1)

    common = _common(weight) if repeats is None else repeats.weight
    own = groups.take(np.arange(0))
    return ScoreCounts(
        thresholds, ConfusionCounts(own, *_sums(counts, weight, repeats), weight=common)
    )


def _check(
    y: np.ndarray | None,
    decided: np.ndarray,
    groups: Groups,
    sample_weight: np.ndarray | None,
    c: int,
    favorable: int,
    score: np.ndarray | None,
) -> None:
    require_kind("groups", groups, Groups, "Groups, as from make_groups")
    n = len(decided)
    given = {"y": y, "groups": groups.codes, "sample_weight": sample_weight, "score": score}
    for name, column in given.items():
        if column is not None and column.shape != (n,):
            raise ValueError(
                f"{name} must have one entry per decision ({n}), got shape {list(column.shape)}."
            )
    for name, places in (("y", y), ("decided", decided)):
        if places is not None and n and not (places.min() >= 0 and places.max() < c):
            raise ValueError(
                f"{name} must hold places of {c} labels, from 0 to {c - 1}, got "
                f"{places.min()} to {places.max()}."
            )
    if not 0 <= favorable < c:
        raise ValueError(f"favorable must be the place of one of {c} labels, got {favorable}.")
    if sample_weight is not None and not ((sample_weight >= 0) & (sample_weight < np.inf)).all():
        raise ValueError("sample_weight must be finite and at least 0, got other values.")
    if score is not None and c > 2:
        raise ValueError(f"score must be None with more than two labels, got scores of {c} labels.")
