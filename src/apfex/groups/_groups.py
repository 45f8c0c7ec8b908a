"""Groups: the cells of the crossing that occur, and soft memberships in them."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np
import pandas as pd
from torch import Tensor

from apfex.arguments import as_names, require_kind
from apfex.groups._columns import (
    check_levels,
    check_truths,
    is_named,
    level_codes,
    levels_of,
    read_columns,
    show,
    text_of,
)
from apfex.relaxations import ccr_step

_MOST_CHARACTERS = 2**26
"""In the names of all groups that were stored."""


class UnseenGroupWarning(UserWarning):
    """Rows fall into a cell that did not occur when the groups were made; their code is -1.

    Attributes
    ----------
    rows : int
        How many.
    """

    rows: int = 0


@final
@dataclass(frozen=True, eq=False)
class Groups:
    """The groups that rows belong to; made by :func:`make_groups`.

    Attributes
    ----------
    codes : int64 array of shape [n]
        Group of each row, 0 to k - 1.
    attributes : tuple of str
        Names of the sensitive attributes.
    levels : tuple of pandas.Index
        The values of each attribute, sorted, a missing value last.
    cells : int64 array of shape [k, number of attributes]
        Level of each attribute in each group.

    Examples
    --------
    >>> groups = make_groups({"sex": ["F", "M", "F"], "race": ["Black", "White", "White"]})
    >>> groups.names
    ('sex=F, race=Black', 'sex=F, race=White', 'sex=M, race=White')
    >>> groups.codes, groups.counts
    (array([0, 2, 1]), array([1, 1, 1]))
    >>> groups.parent("sex").names
    ('sex=F', 'sex=M')
    """

    codes: np.ndarray
    attributes: tuple[str, ...]
    levels: tuple[pd.Index, ...]
    cells: np.ndarray
    _keys: tuple[pd.Index, ...] = field(repr=False)

    @staticmethod
    def of_cells(
        attributes: tuple[str, ...], levels: tuple[pd.Index, ...], cells: np.ndarray
    ) -> Groups:
        """Groups without rows, from their ``cells``: each once, in the order of the levels."""
        if cells.ndim != 2 or (cells < 0).any() or (cells >= [len(one) for one in levels]).any():
            raise ValueError("cells must name levels of the attributes, got others.")
        _check_names(attributes, levels, cells)
        groups = _cross(cells.T, attributes, levels)
        if not np.array_equal(groups.cells, cells):
            raise ValueError("cells must be different and sorted, got others.")
        return groups.take(np.arange(0))

    def __len__(self) -> int:
        """Return the number of groups k."""
        return len(self.cells)

    @property
    def names(self) -> tuple[str, ...]:
        """Readable names, as in ``sex=F, race=Black``."""
        labels = [
            [f"{attribute}={show(level)}" for level in levels]
            for attribute, levels in zip(self.attributes, self.levels, strict=True)
        ]
        return tuple(map(", ".join, self._of_cells(labels)))

    @property
    def values(self) -> tuple[tuple[str | None, ...], ...]:
        """The value of each attribute in each group, as text; None where it is missing."""
        return self._of_cells([[text_of(level) for level in levels] for levels in self.levels])

    @property
    def counts(self) -> np.ndarray:
        """Rows in each group, shape [k]."""
        return np.bincount(self.codes[self.codes >= 0], minlength=len(self))

    def encode(self, sensitive_features: Any) -> np.ndarray:
        """Codes of new rows; a cell that did not occur is -1, and a warning counts such rows.

        Parameters
        ----------
        sensitive_features
            As for :func:`make_groups`, with the same attributes.

        Returns
        -------
        int64 array of shape [n]
        """
        columns = read_columns(sensitive_features)
        if len(columns) != len(self.attributes) or (
            is_named(sensitive_features) and set(columns) != set(self.attributes)
        ):
            raise ValueError(
                f"sensitive_features must have the attributes {list(self.attributes)} that the "
                f"groups were made from, got {list(columns)}."
            )
        if is_named(sensitive_features):
            columns = {name: columns[name] for name in self.attributes}
        codes = np.zeros(len(next(iter(columns.values()))), dtype=np.int64)
        for column, levels, keys in zip(columns.values(), self.levels, self._keys, strict=True):
            level = level_codes(column, levels)
            keyed = np.where(level >= 0, codes * len(levels) + level, -1)
            codes = np.where((codes >= 0) & (level >= 0), keys.get_indexer(pd.Index(keyed)), -1)
        self._report_unseen(codes, columns)
        return codes

    def parent_codes(self, attributes: str | Sequence[str]) -> np.ndarray:
        """Group of each cell once only ``attributes`` count, shape [k]; see :meth:`parent`."""
        return self._parent(attributes)[1]

    def parent(self, attributes: str | Sequence[str]) -> Groups:
        """Return the groups of a subset of the attributes, for the same rows.

        Parameters
        ----------
        attributes : str or sequence of str

        Returns
        -------
        Groups
            Its group of a row is ``groups.parent_codes(attributes)[groups.codes]``, so whatever
            adds up over rows can be had by adding up over the cells.
        """
        parent, cell_codes = self._parent(attributes)
        codes = np.append(cell_codes, -1)[self.codes]
        return Groups(codes, parent.attributes, parent.levels, parent.cells, parent._keys)

    def take(self, rows: np.ndarray, *, drop_empty: bool = False) -> Groups:
        """The same groups for some of the rows; one that is then empty stays, unless dropped."""
        if drop_empty and len(np.unique(self.codes[rows])) < len(self):
            cells = zip(self.attributes, self.levels, self.cells[self.codes[rows]].T, strict=True)
            return make_groups({name: levels.take(column) for name, levels, column in cells})
        return Groups(self.codes[rows], self.attributes, self.levels, self.cells, self._keys)

    def _of_cells(self, labels: Sequence[Sequence[Any]]) -> tuple[tuple[Any, ...], ...]:
        """For each group the labels of its levels, from those of every attribute."""
        return tuple(
            tuple(column[level] for column, level in zip(labels, cell, strict=True))
            for cell in self.cells
        )

    def _parent(self, attributes: str | Sequence[str]) -> tuple[Groups, np.ndarray]:
        wanted = as_names("attributes", attributes)
        unknown = [name for name in wanted if name not in self.attributes]
        if unknown or not wanted or len(set(wanted)) < len(wanted):
            raise ValueError(
                f"attributes must be a non-empty selection of {list(self.attributes)} without "
                f"repeats, got {list(wanted)}."
            )
        positions = [self.attributes.index(name) for name in wanted]
        levels = tuple(self.levels[position] for position in positions)
        parent = _cross(self.cells[:, positions].T, wanted, levels)
        return parent, parent.codes

    def _report_unseen(self, codes: np.ndarray, columns: Mapping[str, pd.Series]) -> None:
        unseen = np.flatnonzero(codes < 0)
        if unseen.size:
            example = ", ".join(f"{name}={show(c.iloc[unseen[0]])}" for name, c in columns.items())
            told = UnseenGroupWarning(
                f"{unseen.size} of {codes.size} rows fall into a group that did not occur when "
                f"the groups were made, for example '{example}'; their code is -1."
            )
            told.rows = int(unseen.size)
            warnings.warn(told, stacklevel=3)


def _check_names(attributes: Sequence[str], levels: Sequence[pd.Index], cells: np.ndarray) -> None:
    """Refuse names that, once for each group, would take far more room than they take here."""
    room = 0
    for name, level, places in zip(attributes, levels, cells.T, strict=True):
        sizes = np.array([len(name) + len(str(value)) for value in level], dtype=np.int64)
        room += int(sizes[places].sum())
    if room > _MOST_CHARACTERS:
        raise ValueError(
            f"groups must have names of at most {_MOST_CHARACTERS:,} characters in all, got "
            f"{room:,}."
        )


def make_groups(sensitive_features: Any) -> Groups:
    """Cross sensitive attributes into the groups that occur.

    Parameters
    ----------
    sensitive_features : column, table, mapping or Groups
        One attribute (list, array, series), several (2-D array, pandas or polars frame, mapping
        from name to column), or groups, which are returned as they are. Values of any kind that
        differ as text; a missing value is a level of its own. Unnamed attributes are called
        ``attribute0``, ...

    Returns
    -------
    Groups
        Only cells of the crossing that occur; sorted by level, the first attribute slowest. The
        time is linear in the rows, however many cells the full crossing would have.

    Examples
    --------
    >>> make_groups(["a", None, "a"]).names
    ('attribute0=a', 'attribute0=<missing>')
    """
    return groups_of("sensitive_features", sensitive_features)


def groups_of(argument: str, features: Any) -> Groups:
    """Groups as :func:`make_groups` makes them, of what the caller knows as ``argument``."""
    if isinstance(features, Groups):
        return features
    columns = read_columns(features, argument)
    if len(next(iter(columns.values()))) == 0:
        raise ValueError(f"{argument} must have at least one row, got 0.")
    for name, column in columns.items():
        check_truths(name, column, argument)
    levels = tuple(levels_of(column) for column in columns.values())
    for name, level in zip(columns, levels, strict=True):
        check_levels(name, level, argument)
    codes = [
        level_codes(column, level) for column, level in zip(columns.values(), levels, strict=True)
    ]
    return _cross(codes, tuple(columns), levels)


def soft_memberships(
    scores: Tensor, threshold: float | Tensor = 0.5, width: float | Tensor = 0.25
) -> Tensor:
    """Soft memberships from (learned) membership scores, through the CCR step.

    Parameters
    ----------
    scores : Tensor of shape [n, k]
        How strongly row i belongs to group g; gradients flow back into it.
    threshold, width : float or Tensor of shape [k]
        Middle and half-width of the ramp, common or one per group.

    Returns
    -------
    Tensor of shape [n, k]
        h[i, g] in [0, 1]. A one-hot score is its own membership (for the defaults).

    Examples
    --------
    >>> import torch
    >>> soft_memberships(torch.tensor([[1.0, 0.0], [0.5, 0.5]]))
    tensor([[1.0000, 0.0000],
            [0.5000, 0.5000]])
    """
    require_kind("scores", scores, Tensor, "a tensor of shape [n, k]")
    if scores.ndim != 2:
        raise ValueError(f"scores must have shape [n, k], got {list(scores.shape)}.")
    for name, value in (("threshold", threshold), ("width", width)):
        if isinstance(value, Tensor) and value.shape not in ((), (scores.shape[1],)):
            raise ValueError(
                f"{name} must be a number or have one entry for each of the {scores.shape[1]} "
                f"groups, got shape {list(value.shape)}."
            )
    return ccr_step(scores, threshold, width)


def _cross(
    codes: Sequence[np.ndarray] | np.ndarray, attributes: tuple[str, ...], levels: tuple
) -> Groups:
    """Number the cells that occur, one attribute at a time so that numbers stay small."""
    crossed = np.zeros(len(codes[0]), dtype=np.int64)
    keys = []
    for column, level in zip(codes, levels, strict=True):
        crossed, key = pd.factorize(crossed * len(level) + column, sort=True)
        keys.append(pd.Index(key))
    first_row = np.empty(len(keys[-1]), dtype=np.int64)
    first_row[crossed[::-1]] = np.arange(len(crossed))[::-1]
    cells = np.stack([np.asarray(column)[first_row] for column in codes], axis=1)
    return Groups(crossed.astype(np.int64), attributes, levels, cells, tuple(keys))
