"""Columns of new rows that say nothing to the model, as they hold none of the values it learned."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, final

from apfex.plain import printable
from apfex.sources import RunWarning

if TYPE_CHECKING:
    import pandas as pd

    from apfex.estimator import APFExClassifier

_LEAST_ROWS, _SHOWN = 50, 3
"""Fewer rows may lack the frequent values by chance."""


@final
@dataclass(frozen=True)
class UnlikeTraining:
    """What is found while parts of a table are decided; :meth:`warn` tells it after the last.

    Attributes
    ----------
    learned : mapping from feature to its values that the model knows; empty where any number does
    """

    learned: Mapping[str, tuple[str, ...]]
    _rows: list[int] = field(default_factory=list)
    _others: dict[str, list[str]] = field(default_factory=dict)
    _fine: set[str] = field(default_factory=set)

    @staticmethod
    def of(clf: APFExClassifier) -> UnlikeTraining:
        """For the features that a classifier decides by."""
        encoders = getattr(clf.fitted_.encoder, "encoders", {})  # a user's own model has none
        plans = [plan for encoder in encoders.values() for plan in encoder.plans_]
        return UnlikeTraining(
            {plan.name: getattr(plan, "levels", ()) for plan in plans if plan.feature_names()}
        )

    def see(self, X: pd.DataFrame) -> None:
        """Look at the features of some rows."""
        self._rows.append(len(X))
        for name in self.learned.keys() - self._fine:
            values, known = X[name].dropna().unique().tolist(), self.learned[name]
            is_new = known and all(isinstance(value, str) for value in values)
            if values and not (is_new and set(values).isdisjoint(known)):
                self._fine.add(name)
            elif values:
                self._others.setdefault(name, values[: _SHOWN + 1])

    def warn(self) -> None:
        """Name the columns that tell nothing in any row."""
        rows = sum(self._rows)
        if rows < _LEAST_ROWS:
            return
        for name in (name for name in self.learned if name not in self._fine):
            said, found = printable(name, 40), self._others.get(name)
            if found is None:
                said += f" is empty in all {rows:,} rows"
            else:
                said += (
                    f" has in none of {rows:,} rows a value that the run learned from (it has "
                    f"{_some(found)}; the run had {_some(self.learned[name])})"
                )
            told = f"{said}: its values count as unknown. Check that this is meant."
            warnings.warn(RunWarning(told, found=name), stacklevel=4)


def _some(values: Sequence[str]) -> str:
    shown = [f"'{printable(value, 30)}'" for value in values[:_SHOWN]]
    return ", ".join(shown) + (", ..." if len(values) > _SHOWN else "")
