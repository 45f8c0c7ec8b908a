"""What a gap returns, told to type checkers: it depends on the grouping."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, Protocol, cast, overload


class GapFunction(Protocol):
    """A gap: one number for the crossing, or one for each attribute."""

    @overload
    def __call__(
        self,
        y_true: Any,
        y_pred: Any,
        *,
        sensitive_features: Any,
        grouping: Literal["intersectional"] = "intersectional",
        sample_weight: Any = None,
        pos_label: Any = 1,
        min_count: float = 1,
    ) -> float: ...
    @overload
    def __call__(
        self,
        y_true: Any,
        y_pred: Any,
        *,
        sensitive_features: Any,
        grouping: Literal["attributes"],
        sample_weight: Any = None,
        pos_label: Any = 1,
        min_count: float = 1,
    ) -> dict[str, float]: ...


def by_grouping(function: Callable[..., float | dict[str, float]]) -> GapFunction:
    """Return the function itself, with a type that knows what each grouping gives."""
    return cast(GapFunction, function)
