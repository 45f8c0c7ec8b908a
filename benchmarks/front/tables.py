"""The tables, how their rows are split, and the encoded parts that methods see."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from rivals.common import Part

from apfex.datasets import Dataset, load_dataset
from apfex.groups import Groups, make_groups
from apfex.tables import TableEncoder

FOLDS = 5
ENCODINGS: dict[str, dict[str, Any]] = {
    "plain": {},
    "tree": {"bins": "tree"},
    "codes": {"categories": "codes"},
}


@dataclass(frozen=True)
class Table:
    """A data set with its options, and whether it is judged on folds.

    Sensitive columns are no inputs, unless ``with_attributes``.
    """

    dataset: str
    options: dict[str, Any]
    folds: bool
    with_attributes: bool = False

    @property
    def n_splits(self) -> int:
        return FOLDS if self.folds else 1


TABLES = {
    "adult": Table("adult", {}, folds=False),
    "adult-10": Table("adult", {"race": "all"}, folds=False),
    "adult-with-attributes": Table("adult", {}, folds=False, with_attributes=True),
    "celeba": Table("celeba", {}, folds=False),
    "compas": Table("compas", {"race": "three"}, folds=True),
    "german": Table("german", {}, folds=True),
    "heart": Table("heart", {}, folds=True),
}


@dataclass(frozen=True, eq=False)
class Split:
    """Row numbers of the three parts."""

    train: NDArray[np.intp]
    validation: NDArray[np.intp]
    test: NDArray[np.intp]


@functools.cache
def read_table(name: str) -> tuple[Dataset, Groups]:
    table = TABLES[name]
    data = load_dataset(table.dataset, **table.options)
    if table.with_attributes:
        data = replace(data, X=pd.concat([data.X, data.sensitive], axis=1))
    return data, make_groups(data.sensitive)


def deal(
    strata: NDArray[np.int64], pattern: Sequence[int], rng: np.random.Generator
) -> NDArray[np.int64]:
    """Give every row a part, each stratum in the proportions of the pattern."""
    order = np.lexsort((rng.random(len(strata)), strata))
    blocks = -(-len(strata) // len(pattern))
    parts = rng.permuted(np.tile(pattern, (blocks, 1)), axis=1).ravel()[: len(strata)]
    dealt = np.empty(len(strata), np.int64)
    dealt[order] = parts
    return dealt


def make_splits(name: str, seed: int) -> list[Split]:
    """One split, or one for each fold."""
    data, groups = read_table(name)
    strata = 2 * groups.codes + data.y
    rng = np.random.default_rng([seed, 20])
    if not TABLES[name].folds:
        parts = deal(strata, [0] * 14 + [1] * 3 + [2] * 3, rng)
        return [Split(*(np.flatnonzero(parts == part) for part in range(3)))]
    folds, splits = deal(strata, range(FOLDS), rng), []
    for fold in range(FOLDS):
        rest = np.flatnonzero(folds != fold)
        held = deal(strata[rest], [0, 0, 0, 0, 1], rng)
        splits.append(Split(rest[held == 0], rest[held == 1], np.flatnonzero(folds == fold)))
    return splits


@functools.lru_cache(maxsize=2 * FOLDS)
def make_parts(name: str, seed: int, fold: int, encoding: str) -> tuple[Part, Part, Part]:
    """Training, validation and test rows, encoded."""
    data, groups = read_table(name)
    split = make_splits(name, seed)[fold]
    encoder = TableEncoder(**ENCODINGS[encoding])
    encoder.fit(data.X.iloc[split.train], data.y[split.train])
    types = encoder.feature_types_ if encoding == "codes" else ()

    def part(rows: NDArray[np.intp]) -> Part:
        table = data.X.iloc[rows]
        return Part(
            np.ascontiguousarray(encoder.transform(table), np.float32),
            data.y[rows],
            groups.codes[rows],
            len(groups),
            table,
            data.sensitive.iloc[rows],
            encoding,
            types,
        )

    return part(split.train), part(split.validation), part(split.test)
