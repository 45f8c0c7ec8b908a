"""How one column becomes inputs: values, made in ``fit``, that encode, name and store it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, TypeAlias, final, get_args

import numpy as np
from numpy.typing import NDArray

from apfex.tables._bins import encode_bins, n_bin_features
from apfex.tables._codes import CodePlan, ValuePlan, check_range
from apfex.tables._columns import Column
from apfex.tables._summary import ColumnSummary, LevelSummary, NumberSummary

FARTHEST = 1e6
"""Deviations from the mean at which a number is cut off.

With n rows no training value lies further than sqrt(n) out, so this bound never touches them; it
keeps a wild value met later from overflowing float32 inside a network.
"""


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

    def encode(self, column: Column, out: NDArray[np.float32]) -> None:
        """Write nothing."""


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
            z = (numbers - self.mean) / self.scale
        return np.clip(z, -FARTHEST, FARTHEST)

    def encode(self, column: Column, out: NDArray[np.float32]) -> None:
        """Fill ``out`` of shape [n, inputs], which holds zeros."""
        column.require("number")
        missing = np.isnan(column.numbers)
        z = self.standardise(column.numbers)
        z[missing] = 0.0  # the mean
        at = int(self.varies)
        if self.varies:
            out[:, 0] = z
        if self.flag:
            out[:, at] = missing
        if self.edges:
            at += int(self.flag)
            out[:, at : at + n_bin_features(self.edges)] = encode_bins(z, self.edges)


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

    def encode(self, column: Column, out: NDArray[np.float32]) -> None:
        """Fill ``out`` of shape [n, inputs], which holds zeros."""
        column.require("level")
        nowhere = -1
        other = len(self.levels) if self.other else nowhere
        missing = len(self.levels) + int(self.other) if self.missing else other
        place = column.recode(self.levels, other, missing)
        rows = np.flatnonzero(place != nowhere)
        out[rows, place[rows]] = 1.0


Plan: TypeAlias = DroppedPlan | NumberPlan | LevelPlan | ValuePlan | CodePlan


def make_plan(name: str, summary: ColumnSummary, min_count: int, as_codes: bool) -> Plan:
    """Decide how a column with this summary is encoded (bins are added later)."""
    if isinstance(summary, NumberSummary):
        return _number_plan(name, summary, as_codes)
    if isinstance(summary, LevelSummary):
        return _level_plan(name, summary, min_count, as_codes)
    return DroppedPlan(name, "all values are missing")


def _number_plan(name: str, summary: NumberSummary, as_codes: bool) -> Plan:
    varies, flag = summary.low < summary.high, summary.missing > 0
    if not varies and not flag:
        return DroppedPlan(name, f"constant: {summary.low!r}")
    if as_codes:
        check_range(name, summary)
        return ValuePlan(name)
    scale = math.sqrt(summary.m2 / summary.count) if varies else 1.0
    if varies and scale == 0.0:  # squares of tiny deviations underflow
        scale = summary.high - summary.low
    if not (math.isfinite(summary.mean) and math.isfinite(scale)):
        raise ValueError(
            f"Column {name!r} of X must have a mean and spread below 1e308, got values from "
            f"{summary.low!r} to {summary.high!r}; rescale it."
        )
    return NumberPlan(name, summary.mean, scale, varies, flag)


def _level_plan(name: str, summary: LevelSummary, min_count: int, as_codes: bool) -> Plan:
    frequent = tuple(level for level, count in summary.counts.items() if count >= min_count)
    other, missing = len(frequent) < len(summary.counts), summary.missing > 0
    if len(frequent) + other + missing > 1:
        if as_codes:
            return CodePlan(name, frequent, other)
        return LevelPlan(name, frequent, other, missing)
    if frequent:
        return DroppedPlan(name, f"constant: {frequent[0]!r}")
    return DroppedPlan(
        name, f"none of its {len(summary.counts)} levels occurs {min_count} times (min_count)"
    )


def plan_to_dict(plan: Plan) -> dict[str, Any]:
    """Return a plan as JSON-ready values."""
    return {"kind": plan.kind, **asdict(plan)}


def plan_from_dict(stored: Mapping[str, Any]) -> Plan:
    """Return the plan that ``plan_to_dict`` stored."""
    fields: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in stored.items()}
    kinds: dict[str, type[Plan]] = {plan.kind: plan for plan in get_args(Plan)}
    return kinds[fields.pop("kind")](**fields)
