"""How one column becomes inputs: values, made in ``fit``, that encode, name and store it.

Networks get numbers, levels and bins as inputs of their own. Trees that split on categories and
missing values themselves get one column for one: values and codes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any, ClassVar, TypeAlias, final, get_args

import numpy as np
from numpy.typing import NDArray

from apfex.strict_json import check_record
from apfex.tables._bins import encode_bins, n_bin_features
from apfex.tables._columns import Column
from apfex.tables._summary import ColumnSummary

LARGEST = float(np.finfo(np.float32).max)
FARTHEST = 1e6
"""Deviations from the mean at which a number is cut off.

With n rows no training value lies further than sqrt(n) out, so this bound never touches them; it
keeps a wild value met later from overflowing float32 inside a network.
"""

Fill: TypeAlias = Callable[[slice, NDArray[Any]], None]
"""Writes the inputs of some rows of a column into an array of zeros [rows, inputs].

In an array of float64, for models that count in it, inputs are rounded to float32 all the same.
"""

_MOST_CHARACTERS = 2**26
"""In the names of the inputs of a column, each of which has the name of the column in it."""


@final
@dataclass(frozen=True)
class DroppedPlan:
    """A column that is left out, and why."""

    kind: ClassVar[str] = "dropped"
    name: str
    reason: str

    def feature_names(self) -> list[str]:
        """Return no names."""
        return []

    def fill(self, column: Column) -> Fill:
        """Write nothing, whatever the column holds."""
        del column
        return lambda _rows, _out: None


@final
@dataclass(frozen=True)
class NumberPlan:
    """Standardised number (if it varies), flag for missing values (if there were any), bins."""

    kind: ClassVar[str] = "number"
    name: str
    mean: float
    scale: float
    varies: bool
    flag: bool
    edges: tuple[float, ...] = ()

    def feature_names(self) -> list[str]:
        """Return one name per input, in order."""
        n_bins = max(0, len(self.edges) - 1)
        return [
            *([self.name] if self.varies else []),
            *([f"{self.name}:missing"] if self.flag else []),
            *(f"{self.name}:ramp{j}" for j in range(n_bins)),
            *(f"{self.name}:step{j}" for j in range(1, n_bins)),
        ]

    def standardise(self, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return deviations from the mean in units of the spread; missing values stay NaN."""
        with np.errstate(over="ignore"):
            z = numbers - self.mean
            z /= self.scale
        return np.clip(z, -FARTHEST, FARTHEST, out=z)

    def fill(self, column: Column) -> Fill:
        """Return what writes the inputs of some of its rows."""
        column.require("number")
        return lambda rows, out: self._encode(column.numbers[rows], out)

    def _encode(self, numbers: NDArray[np.float64], out: NDArray[Any]) -> None:
        missing = np.isnan(numbers)
        z = self.standardise(numbers)
        if missing.any():
            z[missing] = 0.0  # the mean
        at = int(self.varies)
        if self.varies:
            out[:, 0] = z.astype(np.float32)
        if self.flag:
            out[:, at] = missing
        if self.edges:
            at += int(self.flag)
            encode_bins(z, self.edges, out[:, at : at + n_bin_features(self.edges)])


@final
@dataclass(frozen=True)
class LevelPlan:
    """An input per frequent level; one for rare levels and one for missing values if there are."""

    kind: ClassVar[str] = "level"
    name: str
    levels: tuple[str, ...]
    other: bool
    missing: bool

    def feature_names(self) -> list[str]:
        """Return one name per input, in order."""
        return [
            *(f"{self.name}={level}" for level in self.levels),
            *([f"{self.name}:other"] if self.other else []),
            *([f"{self.name}:missing"] if self.missing else []),
        ]

    def fill(self, column: Column) -> Fill:
        """Return what writes the inputs of some of its rows."""
        column.require("level")
        nowhere = -1
        other = len(self.levels) if self.other else nowhere
        missing = len(self.levels) + int(self.other) if self.missing else other
        places = column.places(self.levels, other, missing)

        def write(rows: slice, out: NDArray[Any]) -> None:
            place = places[column.codes[rows]]
            there = np.flatnonzero(place != nowhere)
            out[there, place[there]] = 1.0

        return write


@final
@dataclass(frozen=True)
class ValuePlan:
    """A number as it is; missing values stay NaN."""

    kind: ClassVar[str] = "value"
    name: str

    def feature_names(self) -> list[str]:
        """Return the name of the column."""
        return [self.name]

    def fill(self, column: Column) -> Fill:
        """Write its numbers; a wild value met after ``fit`` must not become infinite."""
        column.require("number")

        def write(rows: slice, out: NDArray[Any]) -> None:
            numbers = np.clip(column.numbers[rows], -LARGEST, LARGEST)
            out[:, 0] = numbers.astype(np.float32)

        return write


@final
@dataclass(frozen=True)
class CodePlan:
    """A code per frequent level, in order, and one for rare levels if there are; missing is NaN."""

    kind: ClassVar[str] = "code"
    name: str
    levels: tuple[str, ...]
    other: bool

    def feature_names(self) -> list[str]:
        """Return the name of the column."""
        return [self.name]

    def fill(self, column: Column) -> Fill:
        """Return what writes the codes of some of its rows."""
        column.require("level")
        other = len(self.levels) if self.other else np.nan
        places = column.places(self.levels, other, missing=np.nan)

        def write(rows: slice, out: NDArray[Any]) -> None:
            out[:, 0] = places[column.codes[rows]]

        return write


Plan: TypeAlias = DroppedPlan | NumberPlan | LevelPlan | ValuePlan | CodePlan


def make_plan(column: ColumnSummary, min_count: int, as_codes: bool) -> Plan:
    """Decide how a column with these values is encoded (bins are added later)."""
    if not column.present:
        return DroppedPlan(column.name, "all values are missing")
    if column.kind == "number":
        return _number_plan(column, as_codes)
    return _level_plan(column, min_count, as_codes)


def _number_plan(column: ColumnSummary, as_codes: bool) -> Plan:
    name, low, high = column.name, column.low, column.high
    varies, flag = low < high, column.present < column.rows
    if not varies and not flag:
        return DroppedPlan(name, f"constant: {low!r}")
    if as_codes:
        if max(-low, high) > LARGEST:
            raise ValueError(
                f"Column {name!r} of X must lie within {LARGEST:.2g} (float32), got values from "
                f"{low!r} to {high!r}; rescale it."
            )
        return ValuePlan(name)
    mean = column.mean
    scale = math.sqrt(column.squares / column.present) if varies else 1.0
    if varies and scale == 0.0:  # squares of tiny deviations underflow
        scale = high - low
    if not (math.isfinite(mean) and math.isfinite(scale)):
        raise ValueError(
            f"Column {name!r} of X must have a mean and spread below 1e308, got values from "
            f"{low!r} to {high!r}; rescale it."
        )
    return NumberPlan(name, mean, scale, varies, flag)


def _level_plan(column: ColumnSummary, min_count: int, as_codes: bool) -> Plan:
    counts = sorted(column.levels.items())
    frequent = tuple(level for level, count in counts if count >= min_count)
    other, missing = len(frequent) < len(column.levels), column.present < column.rows
    if len(frequent) + other + missing > 1:
        if as_codes:
            return CodePlan(column.name, frequent, other)
        return LevelPlan(column.name, frequent, other, missing)
    if frequent:
        return DroppedPlan(column.name, f"constant: {frequent[0]!r}")
    return DroppedPlan(
        column.name, f"none of its {len(column.levels)} levels occurs {min_count} times (min_count)"
    )


def plan_to_dict(plan: Plan) -> dict[str, Any]:
    """Return a plan as JSON-ready values."""
    return {"kind": plan.kind, **asdict(plan)}


def plan_from_dict(stored: Mapping[str, Any]) -> Plan:
    """Return the plan that ``plan_to_dict`` stored; one that makes no inputs is refused."""
    given: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in stored.items()}
    kinds: dict[str, type[Plan]] = {plan.kind: plan for plan in get_args(Plan)}
    kind = kinds[given.pop("kind")]
    check_record(kind, given)
    plan = kind(**given)
    if isinstance(plan, NumberPlan):
        _check_numbers(plan)
    levels = getattr(plan, "levels", ())
    if len(plan.name) * (len(levels) + 2 * len(getattr(plan, "edges", ()))) > _MOST_CHARACTERS:
        raise ValueError(f"{plan.name[:40]!r} is too long a name for so many inputs")
    if len(set(levels)) < len(levels):
        raise ValueError(f"levels of {plan.name!r} must differ")
    return plan


def _check_numbers(plan: NumberPlan) -> None:
    numbers = (plan.mean, plan.scale, *plan.edges)
    is_finite = all(map(math.isfinite, numbers)) and plan.scale > 0
    if not is_finite or any(a >= b for a, b in pairwise(plan.edges)):
        raise ValueError(f"numbers of {plan.name!r} must be finite, a scale above 0, edges rising")
