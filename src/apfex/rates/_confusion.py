"""Confusion counts: the one value that rates, gaps, intervals and verdicts are read from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, final

import numpy as np
import pandas as pd

from apfex.groups import Groups, check_levels, make_groups
from apfex.plain import jsonable

_NO_ROWS = np.empty(0, dtype=np.int64)
_MOST_ROWS = 2**53
"""Beyond which whole numbers are not all floats."""
_ROUNDING = 1e-6
_EVERYBODY = Groups(_NO_ROWS, (), (), np.zeros((1, 0), dtype=np.int64), ())


@final
@dataclass(frozen=True, eq=False)
class ScoreCounts:
    """Confusion counts at each threshold from which scores are decided favorably.

    ``counts`` has an entry for each of the ``thresholds`` [t] in the place of classes.
    """

    thresholds: np.ndarray
    counts: ConfusionCounts


@final
@dataclass(frozen=True, eq=False)
class ConfusionCounts:
    """Decisions of every group by their labels; made by :func:`count_rows`, added up by ``+``.

    A group has four counts, as in :func:`soft_counts`: selected negatives (false positives),
    selected positives (true positives), all negatives, all positives. Of two labels the favorable
    one is the positive; of several each is, against the rest.

    Attributes
    ----------
    groups : Groups
        The k groups; no rows.
    rows : int array of shape [c, k, 4]
        Numbers of rows, exact. The first axis is 1 for two labels.
    sums : array of shape [c, k, 4]
        Sums of weights; ``rows`` itself where there are none.
    squares : array of shape [c, k, 4], or None
        Sums of squared weights; None where there are none.
    classes : tuple
        The labels, where there are more than two.
    favorable : int
        Place of the favorable label among the classes.
    labelled : bool
        Whether there were labels; without, all rows count as negatives.
    weight : float or None
        The weight that all rows have; None where weights differ.
    outside : int
        Rows in no group, left out.
    scores : ScoreCounts, or None

    Notes
    -----
    A whole confusion matrix would take c^2 numbers for each group, which many classes and groups
    do not leave room for. One against the rest takes 4 c, and for two labels it is the matrix.

    Examples
    --------
    >>> from apfex.rates import count_rows
    >>> groups = make_groups({"sex": ["F", "F", "M"]})
    >>> counts = count_rows(np.array([1, 0, 1]), np.array([1, 1, 0]), groups)
    >>> counts.rows[0].tolist()
    [[1, 1, 1, 1], [0, 0, 0, 1]]
    >>> (counts + counts).n_rows, counts.by(()).rows[0].tolist()
    (6, [[1, 1, 1, 2]])
    """

    groups: Groups
    rows: np.ndarray
    sums: np.ndarray
    squares: np.ndarray | None = None
    classes: tuple[Any, ...] = ()
    favorable: int = 1
    labelled: bool = True
    weight: float | None = 1.0
    outside: int = 0
    scores: ScoreCounts | None = None

    @property
    def n_rows(self) -> int:
        """Rows that are in a group."""
        return int(self.sizes.sum())

    @property
    def sizes(self) -> np.ndarray:
        """Rows of each group, shape [k]."""
        return self.rows[0, :, 2:].sum(-1)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Readable names of the groups; that of everybody is "all rows"."""
        return self.groups.names if self.groups.attributes else ("all rows",)

    @property
    def is_constant(self) -> bool:
        """Whether all rows get the same label."""
        selected, rows = (self.rows[..., part].sum((1, 2)) for part in (slice(2), slice(2, 4)))
        return bool((selected == rows).any() or not selected.any())

    @property
    def share_favored(self) -> float:
        """Share of all rows, by weight, that get the favorable label."""
        favored = self.of_favorable().sums[0]
        return float(favored[:, :2].sum() / favored[:, 2:].sum())

    def of_favorable(self) -> ConfusionCounts:
        """The favorable label against the rest, as one of two labels."""
        if not self.classes:
            return self
        own = slice(self.favorable, self.favorable + 1)
        return replace(self._changed(lambda part: part[own]), classes=(), favorable=1)

    def by(self, attributes: str | Sequence[str]) -> ConfusionCounts:
        """Counts of the groups of some of the attributes; of everybody, where there are none."""
        wanted = (attributes,) if isinstance(attributes, str) else tuple(attributes)
        if wanted == self.groups.attributes:
            return self
        if not wanted:
            return self._grouped(_EVERYBODY, np.zeros(len(self.groups), dtype=np.int64))
        return self._grouped(self.groups.parent(wanted), self.groups.parent_codes(wanted))

    def __add__(self, other: ConfusionCounts) -> ConfusionCounts:
        """Counts of the rows of both; a group may occur in one of them alone."""
        if not isinstance(other, ConfusionCounts):
            return NotImplemented
        for name in ("classes", "favorable", "labelled"):
            ours, theirs = getattr(self, name), getattr(other, name)
            if ours != theirs:
                raise ValueError(f"Counts must have the same {name}, got {ours!r} and {theirs!r}.")
        groups, places = _joined(self.groups, other.groups)
        rows, sums, squares = (
            _added(parts, places, len(groups))
            for parts in (
                (self.rows, other.rows),
                (self.sums, other.sums),
                (self._squares, other._squares),
            )
        )
        weighted = self.squares is not None or other.squares is not None
        return replace(
            self,
            groups=groups,
            rows=rows,
            sums=sums if weighted else rows,
            squares=squares if weighted else None,
            weight=_common_weight(self, other),
            outside=self.outside + other.outside,
            scores=_added_scores(self.scores, other.scores),
        )

    @property
    def _squares(self) -> np.ndarray:
        return self.rows if self.squares is None else self.squares

    def _grouped(self, groups: Groups, codes: np.ndarray) -> ConfusionCounts:
        """Counts of coarser groups, by the one that each group belongs to."""
        order = np.argsort(codes, kind="stable")
        starts = np.searchsorted(codes[order], np.arange(len(groups)))
        grouped = self._changed(lambda part: np.add.reduceat(part[:, order], starts, axis=1))
        scores = self.scores
        if scores is not None:
            scores = ScoreCounts(scores.thresholds, scores.counts._grouped(groups, codes))
        return replace(grouped, groups=groups, scores=scores)

    def _changed(self, change: Any) -> ConfusionCounts:
        """Make the same of rows, sums and squares."""
        rows = change(self.rows)
        if self.squares is None:
            return replace(self, rows=rows, sums=rows)
        return replace(self, rows=rows, sums=change(self.sums), squares=change(self.squares))

    def to_dict(self) -> dict[str, Any]:
        """All but the scores, for JSON; levels that JSON has no word for become text."""
        groups = self.groups
        return {
            "attributes": list(groups.attributes),
            "levels": [[_plain(level) for level in levels] for levels in groups.levels],
            "cells": groups.cells,
            "classes": list(self.classes),
            "favorable": self.favorable,
            "labelled": self.labelled,
            "weight": self.weight,
            "outside": self.outside,
            "rows": self.rows,
            "sums": None if self.squares is None else self.sums,
            "squares": self.squares,
        }

    @staticmethod
    def from_dict(stored: Mapping[str, Any], groups: Groups | None = None) -> ConfusionCounts:
        """The counts of :meth:`to_dict`; an error where they are not whole.

        ``groups``: those that were read before, where many counts are of the same.
        """
        groups = _groups_of(stored) if groups is None else groups
        classes, rows = tuple(stored["classes"]), np.array(stored["rows"])
        shape = (len(classes) or 1, len(groups), 4)
        sums, squares = (
            None if stored[name] is None else np.array(stored[name], dtype=np.float64)
            for name in ("sums", "squares")
        )
        shapes = {part.shape for part in (rows, sums, squares) if part is not None}
        if shapes != {shape} or (sums is None) != (squares is None):
            raise ValueError(f"Counts must have shape {shape}, got {sorted(shapes)}.")
        if rows.dtype.kind != "i":
            raise ValueError("Counts must be whole numbers of rows, got others.")
        _check_whole(stored, rows, sums, squares)
        return ConfusionCounts(
            groups=groups,
            rows=rows,
            sums=rows if sums is None else sums,
            squares=squares,
            classes=classes,
            favorable=int(stored["favorable"]),
            labelled=bool(stored["labelled"]),
            weight=None if stored["weight"] is None else float(stored["weight"]),
            outside=int(stored["outside"]),
        )


def _groups_of(stored: Mapping[str, Any]) -> Groups:
    """Groups by their levels and cells."""
    attributes = tuple(stored["attributes"])
    levels = tuple(pd.Index(level, dtype=object) for level in stored["levels"])
    is_text = all(isinstance(name, str) for name in attributes)
    if not is_text or len(set(attributes)) < len(attributes) or len(levels) != len(attributes):
        raise ValueError(
            f"Counts must be of attributes with a name and levels each, got {attributes}."
        )
    for name, level in zip(attributes, levels, strict=True):
        if not all(value is None or isinstance(value, str | int | float) for value in level):
            raise ValueError(
                f"Counts must have levels of text and numbers in {name!r}, got others."
            )
        check_levels(name, level, "Counts")
    cells = np.array(stored["cells"]).reshape(-1, len(levels))
    if cells.dtype.kind != "i":
        raise ValueError("Counts must name cells by whole numbers, got others.")
    return Groups.of_cells(attributes, levels, cells)


def _check_whole(
    stored: Mapping[str, Any],
    rows: np.ndarray,
    sums: np.ndarray | None,
    squares: np.ndarray | None,
) -> None:
    """Refuse numbers that no rows have: selected ones are some of all."""
    for part in (rows, sums, squares):
        if part is not None and not (np.isfinite(part) & (part >= 0)).all():
            raise ValueError("Counts must be finite and at least 0, got others.")
    if rows[0].sum(dtype=np.float64) > _MOST_ROWS:
        raise ValueError(f"Counts must be of at most {_MOST_ROWS:,} rows, got more.")
    if (rows[..., :2] > rows[..., 2:]).any():
        raise ValueError("Counts must select some of all rows of a group, got more than there are.")
    n_classes = len(stored["classes"])
    favorable, outside, weight = (stored[name] for name in ("favorable", "outside", "weight"))
    is_place = type(favorable) is int and 0 <= favorable < max(2, n_classes)
    is_weight = weight is None or (type(weight) in (int, float) and 0 <= weight < np.inf)
    if not is_place or n_classes in (1, 2) or type(outside) is not int or outside < 0:
        raise ValueError("Counts must name their favorable class and rows outside, got others.")
    if not is_weight or type(stored["labelled"]) is not bool:
        raise ValueError("Counts must have a weight and say whether rows had labels, got others.")
    if len(set(map(str, stored["classes"]))) < n_classes:
        raise ValueError("Counts must have classes that differ, got one twice.")
    _check_agreement(rows, n_classes, stored["labelled"])
    _check_weights(rows, sums, squares, weight)


def _check_agreement(rows: np.ndarray, n_classes: int, labelled: bool) -> None:
    """Refuse classes that are not of the same rows: each row has one label and one decision."""
    if not labelled and not n_classes and rows[..., [1, 3]].any():
        raise ValueError("Counts without labels must have no positives, got some.")
    sizes = rows[..., 2:].sum(-1)
    if (sizes != sizes[0]).any():
        raise ValueError("Counts must have the same rows for each class, got others.")
    if n_classes and (rows[..., :2].sum((0, 2)) != sizes[0]).any():
        raise ValueError("Counts must decide each row for one class, got others.")
    if n_classes and (rows[..., 3].sum(0) != sizes[0]).any():
        raise ValueError("Counts must have one label for each row, got others.")


def _check_weights(
    rows: np.ndarray, sums: np.ndarray | None, squares: np.ndarray | None, weight: float | None
) -> None:
    """Refuse sums that no weights of so many rows have, and a weight that is not theirs."""
    if sums is None or squares is None:
        if weight != 1:
            raise ValueError(f"Counts without sums of weights must have weight 1, got {weight}.")
        return
    spare = _ROUNDING * max(1.0, float(sums.max(initial=0)))  # sums are rounded
    few, many = squares <= (sums + spare) ** 2, sums**2 <= rows * squares + (sums + spare) * spare
    if not (few & many).all() or (sums[..., :2] > sums[..., 2:] + spare).any():
        raise ValueError("Counts must have sums that weights of so many rows have, got others.")
    if weight is not None and not np.allclose(sums, weight * rows, rtol=_ROUNDING, atol=spare):
        raise ValueError(f"Counts must have sums of their weight {weight}, got others.")


def _joined(ours: Groups, theirs: Groups) -> tuple[Groups, list[np.ndarray]]:
    """The groups of both, and the place of each one's own among them."""
    if ours.attributes != theirs.attributes:
        raise ValueError(
            f"Counts must be of the same attributes, got {list(ours.attributes)} and "
            f"{list(theirs.attributes)}."
        )
    same = all(a.equals(b) for a, b in zip(ours.levels, theirs.levels, strict=True))
    if same and np.array_equal(ours.cells, theirs.cells):
        return ours, [np.arange(len(ours))] * 2
    columns = {}
    for place, name in enumerate(ours.attributes):
        values = [
            level for own in (ours, theirs) for level in own.levels[place].take(own.cells[:, place])
        ]
        columns[name] = pd.Series(values, dtype=object).infer_objects()
    groups = make_groups(columns)
    return groups.take(_NO_ROWS), np.split(groups.codes, [len(ours)])


def _added(parts: Sequence[np.ndarray], places: Sequence[np.ndarray], k: int) -> np.ndarray:
    total = np.zeros((len(parts[0]), k, 4), dtype=np.result_type(*parts))
    for part, place in zip(parts, places, strict=True):
        total[:, place] += part
    return total


def _added_scores(ours: ScoreCounts | None, theirs: ScoreCounts | None) -> ScoreCounts | None:
    if ours is None and theirs is None:
        return None
    if ours is None or theirs is None or not np.array_equal(ours.thresholds, theirs.thresholds):
        raise ValueError("Counts must have scores at the same thresholds, got others.")
    return ScoreCounts(ours.thresholds, ours.counts + theirs.counts)


def _common_weight(ours: ConfusionCounts, theirs: ConfusionCounts) -> float | None:
    weights = {one.weight for one in (ours, theirs) if one.n_rows}
    return weights.pop() if len(weights) == 1 else None if weights else ours.weight


def _plain(level: Any) -> Any:
    """A level as JSON has it: missing values are null, what it has no word for is text."""
    plain = jsonable(level)
    is_lost = isinstance(plain, list) or (plain is None and not pd.isna(level))  # as infinity
    return str(level) if is_lost else plain
