"""What all methods share: the rows they see, what they hand out, and ladders of bounds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

SINGLE = ("dp", "tpr", "eo")
PROBLEMS = (*SINGLE, "both")
RATES = {"dp": ("dp",), "tpr": ("tpr",), "eo": ("tpr", "fpr"), "both": ("dp", "tpr")}
"""The rates whose gaps a problem is about."""
BOUNDS = (0.02, 0.05, 0.1)
"""What a user asks for."""
LADDER = (0.0, 0.005, 0.01, 0.02, 0.03, 0.04, 0.05, 0.065, 0.08, 0.1, 0.13, 0.16, 0.2, 0.25)
LADDER += (0.35, 1.0)
"""Bounds on the gap that a rival is asked for; the last one leaves the model as it is."""
SHORT_LADDER = (0.02, 0.05, 0.1, 0.2)
"""For methods that take a training, or fifty, for every bound."""
MOST_POINTS = 16

Decisions = NDArray[Any]
"""0 or 1 for each of the test rows."""


@dataclass(frozen=True, eq=False)
class Part:
    """Rows to learn from, or test rows.

    ``x`` are the encoded inputs (float32, [n, d]), the encoder fitted on the rows to learn from;
    ``table`` and ``sensitive`` are the same rows as loaded, for a method that encodes by itself.
    No column of ``x`` or ``table`` is sensitive, but in a table with attributes; ``group`` are
    codes of the crossing, from 0 to ``n_groups`` - 1. ``feature_types`` tell for each column of
    ``x`` whether it is a quantity, "q", or codes of categories, "c"; not given, all are quantities.
    """

    x: NDArray[np.float32]
    y: NDArray[np.int64]
    group: NDArray[np.int64]
    n_groups: int
    table: pd.DataFrame
    sensitive: pd.DataFrame
    feature_types: Sequence[str] = ()

    def __post_init__(self) -> None:
        types = tuple(self.feature_types) or ("q",) * self.x.shape[1]
        if len(types) != self.x.shape[1] or not {"q", "c"} >= set(types):
            raise ValueError(
                f"feature_types must hold 'q' or 'c' for each of the {self.x.shape[1]} columns of "
                f"x, got {list(self.feature_types)}."
            )
        object.__setattr__(self, "feature_types", types)

    def __len__(self) -> int:
        return len(self.y)

    @property
    def cells(self) -> NDArray[np.int64]:
        """Group and label as one code."""
        return 2 * self.group + self.y

    def take(self, rows: NDArray[Any]) -> Part:
        """Some of the rows."""
        return Part(
            self.x[rows],
            self.y[rows],
            self.group[rows],
            self.n_groups,
            self.table.iloc[rows],
            self.sensitive.iloc[rows],
            self.feature_types,
        )


@dataclass(frozen=True, eq=False)
class Handed:
    """What a method hands out for a problem: decisions on the test rows.

    Attributes
    ----------
    points
        At most 16, or twice as many for "both" by a method with one criterion at a time.
    within
        By bound on the gap, for those bounds that the method can be asked for.
    figures
        What the method shows of its points, [p, m], by which those of different folds are matched
        where they do not match by their order.
    """

    points: list[Decisions]
    within: dict[float, Decisions] = field(default_factory=dict)
    figures: NDArray[np.float64] | None = None


Method = Callable[[Part, Part, int], Iterator[tuple[str, Handed]]]
"""From rows to learn from, test rows and a seed to what it hands out, problem by problem."""


def mark(
    *, encoding: str = "codes", needs_attribute: bool = False, slow: bool = False
) -> Callable[[Method], Method]:
    """Tell of a method which inputs it wants, "codes" (for trees) or "numbers", and more.

    ``needs_attribute``: it reads the sensitive attributes of the rows it decides on. ``slow``: it
    runs on fewer tables and seeds.
    """

    def marked(method: Method) -> Method:
        marks = {"encoding": encoding, "needs_attribute": needs_attribute, "slow": slow}
        method.marks = marks  # type: ignore[attr-defined]
        return method

    return marked


def _mark_of(method: Method, name: str, default: Any) -> Any:
    return getattr(method, "marks", {}).get(name, default)


def encoding_of(method: Method) -> str:
    return _mark_of(method, "encoding", "codes")


def needs_attribute(method: Method) -> bool:
    return _mark_of(method, "needs_attribute", False)


def is_slow(method: Method) -> bool:
    return _mark_of(method, "slow", False)


def n_allowed(problem: str) -> int:
    """How many points may be handed out."""
    return MOST_POINTS * (2 if problem == "both" else 1)


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


def hold_out(rows: Part, seed: int) -> tuple[Part, Part]:
    """80% to learn from, and 20% to choose by."""
    held = deal(rows.cells, [0, 0, 0, 0, 1], np.random.default_rng([seed, 21])) == 1
    return rows.take(np.flatnonzero(~held)), rows.take(np.flatnonzero(held))


def by_bounds(
    decide: Callable[[str, float], Decisions],
    ladder: Sequence[float] = LADDER,
    problems: Sequence[str] = SINGLE,
) -> Iterator[tuple[str, Handed]]:
    """What a method hands out that is fitted for a problem and a bound on its gap."""
    found: dict[str, list[Decisions]] = {}
    for problem in problems:
        points = {bound: decide(problem, bound) for bound in ladder}
        found[problem] = list(points.values())
        yield problem, Handed(found[problem], {bound: points[bound] for bound in BOUNDS})
    yield from union(found)


def union(found: dict[str, list[Decisions]]) -> Iterator[tuple[str, Handed]]:
    """For both gaps at once, the points for the one and for the other."""
    if {"dp", "tpr"} <= found.keys():
        yield "both", Handed([*found["dp"], *found["tpr"]])


@dataclass(frozen=True, eq=False)
class Candidate:
    """Decisions of one model on rows that were held out, and on test rows."""

    held: Decisions
    test: Decisions


def by_candidates(
    fit: Callable[[str], list[Candidate]], held: Part, problems: Sequence[str] = SINGLE
) -> Iterator[tuple[str, Handed]]:
    """What a method hands out that has weights and no bounds; held rows choose for a bound."""
    found: dict[str, list[Decisions]] = {}
    for problem in problems:
        candidates = fit(problem)
        values = np.array([values_of(problem, one.held, held) for one in candidates])
        chosen = {bound: candidates[least_error_within(values, bound)].test for bound in BOUNDS}
        found[problem] = [one.test for one in candidates]
        yield problem, Handed(found[problem], chosen)
    yield from union(found)


def values_of(problem: str, decided: Decisions, rows: Part) -> tuple[float, float]:
    """Error and gap of decisions; groups without rows that count are left out."""
    decided, gaps = np.asarray(decided).astype(bool), []
    for rate in RATES[problem]:
        counts = {"dp": np.ones(len(rows), bool), "tpr": rows.y == 1, "fpr": rows.y == 0}[rate]
        totals = np.bincount(rows.group[counts], minlength=rows.n_groups)
        chosen = np.bincount(rows.group[counts & decided], minlength=rows.n_groups)
        gaps.append(float(np.ptp(chosen[totals > 0] / totals[totals > 0])))
    return float(np.mean(decided != rows.y)), max(gaps)


def least_error_within(values: NDArray[np.float64], bound: float) -> int:
    """Least error within the bound; least gap where none is within."""
    errors, gaps = values.T
    within = gaps <= bound
    if not within.any():
        return int(np.lexsort((errors, gaps))[0])
    return int(np.where(within, errors, np.inf).argmin())
