"""Dealing the rows of a stream into parts and folds, even within each group and label.

In memory rows are shuffled within each stratum (a label within a group). Of a stream only their
numbers are known, so rows of a stratum are dealt as they come, in shuffled rounds: what a row gets
is a function of the seed and of its place in its stratum, whatever chunks it is read in.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

import numpy as np

_ROUND = 1024
"""Rows of a stratum among which those chosen are drawn by lot."""


@final
class Deck:
    """Yes or no for the rows of one stratum as they come: so many of all, drawn by lot.

    Parameters
    ----------
    rows, wanted : int
        How many rows there are, and how many of them get a yes.
    seed : sequence of int

    Examples
    --------
    >>> deck = Deck(5, 2, [0])
    >>> int(deck.deal(3).sum() + deck.deal(2).sum())
    2
    """

    def __init__(self, rows: int, wanted: int, seed: Sequence[int]) -> None:
        self._rows, self._wanted, self._done = rows, wanted, 0
        self._generator = np.random.default_rng(list(seed))
        self._left = np.zeros(0, dtype=bool)

    def deal(self, n: int) -> np.ndarray:
        """What the next n rows get, bool [n]."""
        cards = [self._left]
        have = len(self._left)
        while have < n:
            cards.append(self._round())
            have += len(cards[-1])
        together = np.concatenate(cards)
        self._left = together[n:].copy()
        return together[:n]

    def _round(self) -> np.ndarray:
        """The next rows, among which the share of yes is that of all, up to one row."""
        size = min(_ROUND, max(1, self._rows - self._done))
        cards = np.zeros(size, dtype=bool)
        until = self._until(self._done + size) - self._until(self._done)
        cards[self._generator.permutation(size)[:until]] = True
        self._done += size
        return cards

    def _until(self, rows: int) -> int:
        return self._wanted * min(rows, self._rows) // max(1, self._rows)


@final
class FoldDeck:
    """Folds for the rows of one stratum as they come, even up to one row.

    Parameters
    ----------
    n_folds : int
    first : int
        Fold that a round starts with: small strata must not all begin with the same.
    seed : sequence of int

    Examples
    --------
    >>> sorted(FoldDeck(3, 1, [0]).deal(3).tolist())
    [0, 1, 2]
    """

    def __init__(self, n_folds: int, first: int, seed: Sequence[int]) -> None:
        self._n_folds, self._first = n_folds, first
        self._generator = np.random.default_rng(list(seed))
        self._left = np.zeros(0, dtype=np.uint8)

    def deal(self, n: int) -> np.ndarray:
        """Folds of the next n rows, uint8 [n]."""
        rounds = max(0, -(-(n - len(self._left)) // self._n_folds))
        fresh = self._generator.random((rounds, self._n_folds)).argsort(1)
        folds = ((fresh + self._first) % self._n_folds).astype(np.uint8).ravel()
        together = np.concatenate([self._left, folds])
        self._left = together[n:]
        return together[:n]


@final
class Dealer:
    """Parts and folds of the rows of a stream, stratum by stratum.

    Parameters
    ----------
    counts : int array of shape [k, c]
        Rows of each group and label.
    validation : float
        Share of the rows that measure.
    rule_rows : int
        Most training rows by which rules are fitted.
    n_folds, seed : int

    Attributes
    ----------
    validation, training, rules : int arrays of shape [k, c]
        Rows of each part; those of "rules" are among the training rows.

    Notes
    -----
    As in memory, a label within a group has rows in both parts if it has two, and so has every
    label; the only row of a label is for training. Of the training rows all strata that are small
    enough have all their rows among those of rules; the others share what is left alike.

    Examples
    --------
    >>> dealer = Dealer(np.array([[8, 2], [40, 10]]), 0.2, 1000, 2, 0)
    >>> dealer.validation.tolist(), dealer.training.sum() + dealer.validation.sum()
    ([[2, 1], [8, 2]], np.int64(60))
    """

    def __init__(
        self, counts: np.ndarray, validation: float, rule_rows: int, n_folds: int, seed: int
    ) -> None:
        flat = counts.ravel()
        chosen = _quota(counts, validation, seed)
        training = flat - chosen
        rules = np.minimum(training, _level(training, rule_rows))
        self.validation, self.training, self.rules = (
            part.reshape(counts.shape) for part in (chosen, training, rules)
        )
        starts = (np.cumsum(training) - training) % n_folds
        strata = range(len(flat))
        self._measure = [Deck(flat[s], chosen[s], [seed, 1, s]) for s in strata]
        self._judge = [Deck(training[s], rules[s], [seed, 2, s]) for s in strata]
        self._folds = [FoldDeck(n_folds, int(starts[s]), [seed, 3, s]) for s in strata]

    def deal(self, strata: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """For the next rows: whether each measures, whether rules are fitted by it, its fold."""
        measures, judges = (np.zeros(len(strata), dtype=bool) for _ in range(2))
        folds = np.zeros(len(strata), dtype=np.uint8)
        order = np.argsort(strata, kind="stable")
        found, starts = np.unique(strata[order], return_index=True)
        for stratum, rows in zip(found, np.split(order, starts[1:]), strict=True):
            chosen = self._measure[stratum].deal(len(rows))
            measures[rows] = chosen
            others = rows[~chosen]
            judges[others] = self._judge[stratum].deal(len(others))
            folds[others] = self._folds[stratum].deal(len(others))
        return measures, judges, folds


def _quota(counts: np.ndarray, fraction: float, seed: int) -> np.ndarray:
    """Rows of each stratum that measure, int [k * c]: evenly along all of them."""
    flat, c = counts.ravel(), counts.shape[1]
    ends = np.floor(np.cumsum(flat) * fraction + np.random.default_rng([seed, 0]).random())
    quota = np.diff(ends, prepend=0.0).astype(np.int64)
    quota = np.minimum(quota, flat)
    several = flat > 1
    quota[several] = np.clip(quota[several], 1, flat[several] - 1)
    labels = np.arange(len(flat)) % c
    for label in range(c):
        own = (labels == label) & (flat > 0)
        total = int(flat[own].sum())
        if total == 1:
            quota[own] = 0
        elif total and quota[own].sum() in (0, total):
            first = np.flatnonzero(own)[0]
            quota[first] = 1 if quota[first] == 0 else quota[first] - 1
    return quota


def _level(counts: np.ndarray, most: int) -> int:
    """The most rows of a stratum, so that there are at most so many in all."""
    if counts.sum() <= most:
        return int(counts.max(initial=0))
    ordered = np.sort(counts)
    before = np.concatenate([[0], np.cumsum(ordered)[:-1]])
    left = len(ordered) - np.arange(len(ordered))
    levels = (most - before) // left  # if this stratum and all larger ones were cut
    place = int(np.flatnonzero(levels < ordered)[0])
    return max(1, int(levels[place]))
