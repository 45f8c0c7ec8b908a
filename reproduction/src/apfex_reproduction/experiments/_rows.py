"""What a table is made of: cells of runs, rows of methods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, final

import numpy as np

from apfex_reproduction.experiments._defects import Defect
from apfex_reproduction.experiments._labels import Place
from apfex_reproduction.experiments._printed import Metric, Printed

Part = Literal["constants", "paper", "front", "variants"]
Measure = tuple[str, str]
"""A figure and the grouping it is taken by: ("dp", "age x sex"); ("accuracy", "") for all rows."""

OVERALL = ("accuracy", "balanced_accuracy", "positive_rate", "worst_group_accuracy")
CRITERIA = ("dp", "tpr")


@final
@dataclass(frozen=True)
class Cell:
    """One figure over the runs.

    Parameters
    ----------
    values : tuple of float or None
        One per run, in the order of the row's seeds; None where it cannot be estimated.
    """

    values: tuple[float | None, ...]

    @property
    def known(self) -> tuple[float, ...]:
        """The values that could be estimated."""
        return tuple(value for value in self.values if value is not None)

    @property
    def mean(self) -> float | None:
        """Their mean."""
        return float(np.mean(self.known)) if self.known else None

    @property
    def spread(self) -> float | None:
        """Their standard deviation, ddof 0 as in the paper."""
        return float(np.std(self.known)) if self.known else None


@final
@dataclass(frozen=True)
class Row:
    """One method.

    Parameters
    ----------
    method, label : str
    part : "constants", "paper" (its columns), "front" (ours) or "variants"
    seeds : tuple of int
        Those with a record.
    rules : tuple of str
        How the model was chosen, per run; not always as asked: some methods have one model only.
    constant : tuple of bool
        Whether a run's model decides alike for all, or no better than one that does.
    cells : mapping from measure to Cell
    printed : mapping from "accuracy", "ddp" and "deo" to what the paper prints, where at hand
    defects : tuple of Defect
        What is wrong with the paper's column.
    """

    method: str
    label: str
    part: Part
    seeds: tuple[int, ...]
    rules: tuple[str, ...]
    constant: tuple[bool, ...]
    cells: Mapping[Measure, Cell]
    printed: Mapping[Metric, Printed]
    defects: tuple[Defect, ...]

    def cell(self, name: str, by: str = "") -> Cell:
        """One figure; without values where there are no runs."""
        return self.cells.get((name, by), Cell(()))

    @property
    def flag(self) -> str:
        """How many of the runs are constant."""
        if not self.seeds:
            return "not run"
        count = f"{sum(self.constant)}/{len(self.seeds)}"
        return f"CONST {count}" if any(self.constant) else count


@final
@dataclass(frozen=True)
class Table:
    """A table of the paper for one data set, from our own runs.

    Parameters
    ----------
    number : 1 or 2
    dataset, split, rule : str
    attributes : tuple of str
        The first is the paper's Attr1.
    seeds : tuple of int
        Those that a row should have.
    sizes : mapping from "training", "validation" and "test" to rows
    rows : tuple of Row
        Constant predictors, the paper's columns in its order, our front, variants.
    left_out : mapping from measure to number of seeds
        In how many test sets some group has no rows for a rate, and is left out of the gap.
    """

    number: int
    dataset: str
    split: str
    rule: str
    attributes: tuple[str, ...]
    seeds: tuple[int, ...]
    sizes: Mapping[str, int]
    rows: tuple[Row, ...]
    left_out: Mapping[Measure, int]

    @property
    def groupings(self) -> tuple[str, ...]:
        """Each attribute, then their crossing."""
        return groupings_of(self.attributes)

    def row(self, method: str) -> Row:
        """The row of a method."""
        for row in self.rows:
            if row.method == method:
                return row
        raise KeyError(f"no row {method!r}; there are {[row.method for row in self.rows]}")


WORST = "worse attribute"
"""The larger gap of the two attributes, run by run."""


def gap_in(result: Mapping[str, Any], name: str, by: str) -> float | None:
    """A gap of a result, None where it is not known; with :data:`WORST` that of the attributes."""
    gaps = result["gaps"]
    if by != WORST:
        return gaps[by][name]
    known = [gaps[one][name] for one in list(gaps)[:-1] or list(gaps)]
    return max((gap for gap in known if gap is not None), default=None)


def groupings_of(attributes: Sequence[str]) -> tuple[str, ...]:
    """Each attribute, then their crossing."""
    return tuple(dict.fromkeys((*attributes, " x ".join(attributes))))


def grouping_at(place: Place, attributes: Sequence[str]) -> str:
    """The grouping at a place; the crossing where there is no second attribute."""
    if place == "worst":
        return WORST
    groupings = groupings_of(attributes)
    at = {"first": 0, "second": 1, "crossing": -1}[place]
    return groupings[min(at, len(groupings) - 1)]
