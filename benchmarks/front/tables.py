"""The tables, how their rows are split, and the parts that methods see."""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from rivals.common import Part, deal

from apfex.datasets import Dataset, load_dataset
from apfex.groups import Groups, make_groups
from apfex.tables import TableEncoder
from front.intervals import overlap_of_pooled_folds
from front.made import MIXTURES, N_TEST, N_TRAIN, TEST_SEED

FOLDS, BIN_ROWS = 5, 5_000
SPLIT = [0] * 7 + [1] * 3
AGES = (30, 45)


@dataclass(frozen=True)
class Table:
    """A data set with its options, and how it is judged.

    Sensitive columns are no inputs, unless ``with_attributes``. ``for_slow``: slow methods run on
    it; ``few_seeds``: all methods run on seeds 0 to 2 only.
    """

    dataset: str
    options: dict[str, Any]
    folds: bool = False
    with_attributes: bool = False
    by_age: bool = False
    for_slow: bool = False
    few_seeds: bool = False

    @property
    def n_splits(self) -> int:
        return FOLDS if self.folds else 1

    @property
    def is_made(self) -> bool:
        return self.dataset in MIXTURES

    @property
    def overlap(self) -> float:
        """Test rows over training rows, for the intervals."""
        if self.is_made:
            return 0.0
        return overlap_of_pooled_folds(FOLDS) if self.folds else SPLIT.count(1) / SPLIT.count(0)


TABLES = {
    "adult": Table("adult", {}, for_slow=True),
    "adult-10": Table("adult", {"race": "all"}, few_seeds=True),
    "adult-sex-race-age": Table("adult", {}, by_age=True, few_seeds=True),
    "adult-with-attributes": Table("adult", {}, with_attributes=True, few_seeds=True),
    "celeba": Table("celeba", {}, few_seeds=True),
    "compas": Table("compas", {"race": "three"}, folds=True, for_slow=True),
    "compas-with-attributes": Table("compas", {"race": "three"}, folds=True, with_attributes=True),
    "german": Table("german", {}, folds=True, for_slow=True),
    "heart": Table("heart", {}, folds=True, for_slow=True),
    **{name: Table(name, {}) for name in MIXTURES},
}


@dataclass(frozen=True, eq=False)
class Split:
    """Row numbers of the two parts."""

    train: NDArray[np.intp]
    test: NDArray[np.intp]


@functools.lru_cache(maxsize=16)
def _read(name: str, seed: int | None) -> tuple[Dataset, Groups]:
    table = TABLES[name]
    if table.is_made:
        assert seed is not None
        parts = [MIXTURES[name].draw(N_TRAIN, seed), MIXTURES[name].draw(N_TEST, TEST_SEED)]
        x, sensitive = (
            pd.concat([getattr(part, field) for part in parts], ignore_index=True)
            for field in ("X", "sensitive")
        )
        y = np.concatenate([part.y for part in parts])
        data = replace(parts[0], X=x, y=y, sensitive=sensitive)
    else:
        data = load_dataset(table.dataset, **table.options)
    if table.by_age:
        data = _with_age(data)
    if table.with_attributes:
        data = replace(data, X=pd.concat([data.X, data.sensitive], axis=1))
    return data, make_groups(data.sensitive)


def read_table(name: str, seed: int) -> tuple[Dataset, Groups]:
    """Rows and groups; those of a synthetic table are others for each seed."""
    return _read(name, seed if TABLES[name].is_made else None)


def _with_age(data: Dataset) -> Dataset:
    """Age in three classes as a third sensitive attribute, and no input any more."""
    ages = np.array(["under 30", "30 to 44", "45 and over"])
    column = ages[np.searchsorted(AGES, data.X["age"].to_numpy(), side="right")]
    sensitive = data.sensitive.assign(age=column)
    return replace(data, X=data.X.drop(columns="age"), sensitive=sensitive)


def make_splits(name: str, seed: int) -> list[Split]:
    """One split, or one for each fold."""
    if TABLES[name].is_made:
        return [Split(np.arange(N_TRAIN), np.arange(N_TRAIN, N_TRAIN + N_TEST))]
    data, groups = read_table(name, seed)
    strata = 2 * groups.codes + data.y
    pattern = range(FOLDS) if TABLES[name].folds else SPLIT
    parts = deal(strata, pattern, np.random.default_rng([seed, 20]))
    tests = range(FOLDS) if TABLES[name].folds else [1]
    return [Split(np.flatnonzero(parts != t), np.flatnonzero(parts == t)) for t in tests]


def make_parts(name: str, seed: int, fold: int, encoding: str) -> tuple[Part, Part]:
    """Rows to learn from and test rows, encoded as "numbers" or as "codes"."""
    data, groups = read_table(name, seed)
    split = make_splits(name, seed)[fold]
    bins = "tree" if len(split.train) >= BIN_ROWS else None
    options: dict[str, Any] = {"categories": "codes"} if encoding == "codes" else {"bins": bins}
    encoder = TableEncoder(**options).fit(data.X.iloc[split.train], data.y[split.train])
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
            types,
        )

    return part(split.train), part(split.test)
