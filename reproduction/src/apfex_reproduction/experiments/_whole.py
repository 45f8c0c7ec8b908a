"""The whole study as one list of sweeps, in the order of what matters, and what it takes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import final

from apfex_reproduction.experiments._labels import CONSTANTS
from apfex_reproduction.experiments._methods import (
    EXPERIMENTS,
    METHODS,
    VARIANTS,
    Convex,
    FrontSearch,
    Network,
    PostProcessing,
)
from apfex_reproduction.experiments._protocol import DATASETS, MAMO_SIZES
from apfex_reproduction.experiments._records import Key
from apfex_reproduction.experiments._sweep import Sweep

_SECONDS: Mapping[str, Mapping[str, float]] = {
    "network": {"adult": 1.8, "compas": 0.98, "german": 0.5, "heart": 0.24, "celeba": 2.1},
    "network, MAMO's split": {"adult": 0.66, "compas": 0.84},
    "reject option": {"adult": 0.37, "compas": 0.19, "german": 0.17, "heart": 0.17, "celeba": 0.89},
    "SearchFair": {"adult": 1.5, "compas": 2.0, "german": 0.1, "heart": 0.07, "celeba": 6.3},
    "SearchFair, RBF": {"adult": 1.2, "compas": 0.78, "german": 0.15, "heart": 0.06, "celeba": 3.1},
    "front": {"adult": 3.1, "compas": 1.8, "german": 1.0, "heart": 0.81, "celeba": 14},
}
"""Processor seconds of one run on one of two cores of an AMD EPYC, both at work: means of the
committed records, which ``reproduction/tests/test_pages.py`` compares."""


@final
@dataclass(frozen=True)
class Part:
    """A part of the study, and what it runs.

    Examples
    --------
    >>> part = Part("constants", Sweep(("always-0", "always-1"), ("heart",), range(3)))
    >>> len(part.sweep.keys)
    6
    """

    name: str
    sweep: Sweep


def whole_study(datasets: Sequence[str] = DATASETS, seeds: Sequence[int] = range(10)) -> list[Part]:
    """All sweeps of the study: first what the two tables need, then what explains them.

    Parameters
    ----------
    datasets : sequence of names
    seeds : sequence of int

    Examples
    --------
    >>> [part.name for part in whole_study(("heart",), [0])][:2]
    ['columns of the tables', 'front']
    """
    tables = tuple(dict.fromkeys((*EXPERIMENTS["table1"], *EXPERIMENTS["table2"])))
    variants = tuple(method for more in VARIANTS.values() for method in more)
    columns = (*tables, *EXPERIMENTS["losses"], *variants)
    on_mamo = dict.fromkeys(m for m in columns if _trains(m) and _is_column(m))
    known = [name for name in datasets if name in MAMO_SIZES]
    mamo = [Sweep((*CONSTANTS, *on_mamo), known, seeds, "mamo")] if known else []
    return [
        Part("columns of the tables", Sweep(_without_search(tables), datasets, seeds)),
        *(Part("columns on MAMO's split", sweep) for sweep in mamo),
        Part("front", Sweep(_of_kind(tables, FrontSearch), datasets, seeds)),
        Part("SearchFair", Sweep(_of_kind(tables, Convex), datasets, seeds)),
        Part("losses", Sweep(EXPERIMENTS["losses"], datasets, seeds)),
        Part("ablations", Sweep(EXPERIMENTS["ablations"], datasets, seeds)),
        Part("variants", Sweep(variants, datasets, seeds)),
    ]


def minutes_of(keys: Iterable[Key]) -> float:
    """Processor minutes that runs are expected to take.

    Examples
    --------
    >>> round(minutes_of([("heart", "70/15/15", "plain", seed) for seed in range(60)]), 2)
    0.24
    """
    return sum(_seconds(dataset, split, method) for dataset, split, method, _ in keys) / 60


def plan_of(parts: Sequence[Part], done: Iterable[Key]) -> Iterator[tuple[str, int, float]]:
    """Name, missing runs and their processor minutes of each part; a run counts once.

    Parameters
    ----------
    parts : sequence of Part
    done : iterable of keys
        Of the records that there are.

    Examples
    --------
    >>> name, runs, minutes = next(plan_of(whole_study(("heart",), [0]), []))
    >>> name, runs, round(minutes, 2)
    ('columns of the tables', 20, 0.07)
    """
    seen = set(done)
    for part in parts:
        missing = [key for key in part.sweep.keys if key not in seen]
        seen |= set(missing)
        yield part.name, len(missing), minutes_of(missing)


def _without_search(methods: Sequence[str]) -> tuple[str, ...]:
    return tuple(m for m in methods if not isinstance(METHODS[m], Convex | FrontSearch))


def _of_kind(methods: Sequence[str], kind: type) -> tuple[str, ...]:
    return tuple(m for m in methods if isinstance(METHODS[m], kind))


def _trains(method: str) -> bool:
    return isinstance(METHODS[method], Network)


def _is_column(method: str) -> bool:
    """Of the two tables, or one of these with the other family of losses."""
    return "+" not in method or method.endswith("+pairs")


def kind_of(method: str, split: str) -> str | None:
    """What the time of a run depends on, beside the data; none for what takes no time.

    Examples
    --------
    >>> kind_of("searchfair-1-rbf", "70/15/15"), kind_of("always-0", "70/15/15")
    ('SearchFair, RBF', None)
    """
    found = METHODS[method]
    if isinstance(found, Network):
        return "network" if split == "70/15/15" else "network, MAMO's split"
    if isinstance(found, PostProcessing):
        return "reject option"
    if isinstance(found, FrontSearch):
        return "front"
    if isinstance(found, Convex):
        return "SearchFair, RBF" if method.endswith("rbf") else "SearchFair"
    return None


def _seconds(dataset: str, split: str, method: str) -> float:
    kind = kind_of(method, split)
    return _SECONDS[kind][dataset] if kind else 0.0
