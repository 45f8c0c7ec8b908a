"""One column in, one out: for trees that split on categories and missing values themselves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
from numpy.typing import NDArray

from apfex.tables._columns import Column
from apfex.tables._summary import NumberSummary

LARGEST = float(np.finfo(np.float32).max)


@final
@dataclass(frozen=True)
class ValuePlan:
    """A number as it is; missing values stay NaN."""

    kind: ClassVar[str] = "value"
    name: str

    def feature_names(self) -> list[str]:
        """Return the name of the column."""
        return [self.name]

    def encode(self, column: Column, out: NDArray[np.float32]) -> None:
        """Fill ``out`` of shape [n, 1]; a wild value met after ``fit`` must not become infinite."""
        column.require("number")
        out[:, 0] = np.clip(column.numbers, -LARGEST, LARGEST)


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

    def encode(self, column: Column, out: NDArray[np.float32]) -> None:
        """Fill ``out`` of shape [n, 1]."""
        column.require("level")
        other = len(self.levels) if self.other else np.nan
        out[:, 0] = column.recode(self.levels, other, missing=np.nan)


def check_range(name: str, summary: NumberSummary) -> None:
    """Refuse numbers that float32 cannot hold."""
    if max(-summary.low, summary.high) > LARGEST:
        raise ValueError(
            f"Column {name!r} of X must lie within {LARGEST:.2g} (float32), got values from "
            f"{summary.low!r} to {summary.high!r}; rescale it."
        )
