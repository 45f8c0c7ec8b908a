"""The paper's setting: its columns, its attributes, and who learns, chooses and is tested."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, final, get_args

import numpy as np
import pandas as pd

from apfex.datasets import Dataset, load_dataset
from apfex.groups import make_groups
from apfex.tables import systematic_sample

SplitName = Literal["70/15/15", "mamo"]
DATASETS = ("adult", "compas", "german", "heart", "celeba")
"""In the paper's order."""
COLUMNS: Mapping[str, Mapping[str, Any]] = {
    "adult": {"columns": "mamo"},
    "compas": {"charge_description": True},
    "german": {},
    "heart": {},
    "celeba": {},
}
"""Variants of the tables that the paper's accuracies point to; sensitive columns stay inputs."""
MAMO_SIZES = {"adult": (10_000, 5_000, 33_842), "compas": (3_000, 2_000, 1_167)}
"""Rows to learn from, to choose by and to test on in the experiments of Padh et al."""
_TEST_SHARE = 0.15
"""Share of the test rows, and again of the validation rows."""


@final
@dataclass(frozen=True, eq=False)
class Part:
    """Some rows of a table."""

    X: pd.DataFrame
    y: np.ndarray
    sensitive: pd.DataFrame

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.y)


@final
@dataclass(frozen=True, eq=False)
class Trial:
    """A table split in three: the same for every method.

    Examples
    --------
    >>> from apfex.datasets import make_biased
    >>> trial = split_dataset(make_biased(200, random_state=0), "70/15/15", seed=0)
    >>> len(trial.training), len(trial.validation), len(trial.test), trial.attributes
    (140, 30, 30, ('sex', 'origin'))
    """

    dataset: str
    split: SplitName
    seed: int
    training: Part
    validation: Part
    test: Part

    @property
    def attributes(self) -> tuple[str, ...]:
        """Names of the sensitive attributes; the first is the paper's Attr1."""
        return tuple(self.training.sensitive.columns)

    @property
    def groupings(self) -> dict[str, list[str]]:
        """Each attribute, and all of them together: what gaps are measured by."""
        return {name: [name] for name in self.attributes} | {
            " x ".join(self.attributes): list(self.attributes)
        }

    @property
    def sizes(self) -> dict[str, int]:
        """Number of rows of each part."""
        parts = ("training", "validation", "test")
        return {part: len(getattr(self, part)) for part in parts}


@lru_cache(maxsize=2)
def _load(dataset: str) -> Dataset:
    return load_dataset(dataset, include_sensitive=True, **COLUMNS[dataset])


def make_trial(dataset: str, split: SplitName, seed: int) -> Trial:
    """Load a data set of the paper and split it.

    Parameters
    ----------
    dataset : str
    split, seed
        As for :func:`split_dataset`.

    Examples
    --------
    >>> make_trial("heart", "mamo", 0)
    Traceback (most recent call last):
    ValueError: split 'mamo' is known for adult, compas only, got 'heart'; use '70/15/15'.
    """
    if split == "mamo":
        _mamo_sizes(dataset)
    return split_dataset(_load(dataset), split, seed)


def split_dataset(data: Dataset, split: SplitName, seed: int) -> Trial:
    """Split a data set; equal arguments give equal parts.

    Parameters
    ----------
    data : Dataset
    split : {"70/15/15", "mamo"}
        Even within each label and cell of the crossing; or the sizes of Padh et al., at random.
    seed : int

    Examples
    --------
    >>> from apfex.datasets import make_biased
    >>> split_dataset(make_biased(200, random_state=0), "70/15/15", seed=1).sizes
    {'training': 140, 'validation': 30, 'test': 30}
    """
    check_split(split)
    if split == "mamo":
        parts = _random_parts(len(data.y), _mamo_sizes(data.name), seed)
    else:
        parts = _even_parts(data.y, make_groups(data.sensitive).codes, seed)
    made = [
        Part(
            data.X.iloc[rows].reset_index(drop=True),
            data.y[rows],
            data.sensitive.iloc[rows].reset_index(drop=True),
        )
        for rows in parts
    ]
    return Trial(data.name, split, seed, *made)


def check_split(split: str) -> None:
    """Refuse a split that nobody has described."""
    if split not in get_args(SplitName):
        known = ", ".join(map(repr, get_args(SplitName)))
        raise ValueError(f"split must be one of {known}, got {split!r}.")


def _mamo_sizes(dataset: str) -> tuple[int, int, int]:
    if dataset not in MAMO_SIZES:
        raise ValueError(
            f"split 'mamo' is known for {', '.join(MAMO_SIZES)} only, got {dataset!r}; use "
            "'70/15/15'."
        )
    return MAMO_SIZES[dataset]


def _random_parts(n: int, sizes: tuple[int, int, int], seed: int) -> list[np.ndarray]:
    order = np.random.default_rng([seed, 1]).permutation(n)
    return [np.sort(part) for part in np.split(order, np.cumsum(sizes)[:2])]


def _even_parts(y: np.ndarray, groups: np.ndarray, seed: int) -> list[np.ndarray]:
    """A systematic sample of the rows sorted by label and group, then one of the rest."""
    generator = np.random.default_rng([seed, 0])
    order = np.lexsort((generator.random(len(y)), groups, y))
    test = systematic_sample(len(order), _TEST_SHARE, generator)
    rest = order[~test]
    chosen = systematic_sample(len(rest), _TEST_SHARE / (1 - _TEST_SHARE), generator)
    return [np.sort(part) for part in (rest[~chosen], rest[chosen], order[test])]
