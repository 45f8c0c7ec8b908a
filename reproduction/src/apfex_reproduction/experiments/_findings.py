"""What the study found, in sentences whose every number comes from the records."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from apfex_reproduction.experiments._compare import compare_front
from apfex_reproduction.experiments._grid import Column, Grid, Line
from apfex_reproduction.experiments._labels import COLUMNS, label_of
from apfex_reproduction.experiments._paper import (
    CELLS,
    credible,
    defects_of_row,
    is_repeated_baseline,
    printed,
)
from apfex_reproduction.experiments._protocol import DATASETS
from apfex_reproduction.experiments._study import EVEN, Record, Study, own_volume, volume

_NAMES = {"adult": "Adult", "compas": "COMPAS", "german": "German", "heart": "Heart"} | {
    "celeba": "CelebA"
}
_TWO_GROUPS = ("apfex-1", "apfex-2", "apfex-multi")
_INTER = ("apfex-inter-dp", "apfex-inter-tpr", "apfex-inter")


def findings(records: Sequence[Record]) -> dict[str, str]:
    """Sentences by the name of what they are about."""
    study = Study(records)
    tellers: dict[str, Callable[[Study], str]] = {
        "cells": _cells,
        "collapse": _collapse,
        "losses": _losses,
        "baseline": _baseline,
        "scales": _scales,
    }
    told = {name: tell(study) for name, tell in tellers.items()}
    even = [r for r in records if r["split"] == EVEN and "+" not in r["method"]]
    return told | {"reached": _reached(even)}


def standing_grid(records: Sequence[Record], pairs: Sequence[tuple[str, str]]) -> Grid:
    """On which data sets the first of a pair is above, level with or below the second."""
    study = Study(records)
    lines = [
        Line(
            (
                f"{label_of(first)} against {label_of(second)}",
                *(_standing(study, first, second, value) for value in (volume, own_volume)),
            )
        )
        for first, second in pairs
    ]
    names = ("Hypervolume of", "with the two constants", "without any constant")
    title = "Above, level or below by 95% intervals of paired differences"
    columns = tuple(Column(name, words=True) for name in names)
    return Grid(title, columns, (("", tuple(lines)),), ())


def _cells(_: Study) -> str:
    distinct = [cell for cell in CELLS if not is_repeated_baseline(cell)]
    columns = [(n, d, m) for n, some in COLUMNS.items() for d in DATASETS for m in some]
    kinds = {
        kind: [c for c in columns if kind in {d.kind for d in defects_of_row(*c)}]
        for kind in ("constant", "mixture", "copy", "impossible")
    }
    own = {k: sum(c[2].startswith("apfex") for c in some) for k, some in kinds.items()}
    return (
        f"The paper prints {len(CELLS)} cells; {len(CELLS) - len(distinct)} of them repeat the "
        f"baseline in Table 2. Of the {len(distinct)} that are left, "
        f"{sum(map(credible, distinct))} have no defect that rules out a comparison. "
        f"{len(kinds['constant'])} of its {len(columns)} columns (a method on a data set) have "
        "zero gaps in every run at the accuracy of a constant decision, "
        f"{own['constant']} of them APFEx's own; {len(kinds['mixture'])} look like a mean of "
        f"constant runs and others ({own['mixture']} of APFEx); {len(kinds['copy'])} repeat "
        f"numbers of another column; {len(kinds['impossible'])} have a spread that no ten values "
        "can have."
    )


def _collapse(study: Study) -> str:
    parts = []
    for dataset in DATASETS:
        counts = [study.constants(dataset, m) for m in (*_TWO_GROUPS, *_INTER)]
        parts.append(f"{_NAMES[dataset]} {', '.join(map(str, counts[:3]))} and {_rest(counts)}")
    mamo = [
        f"{_NAMES[d]} {sum(study.constants(d, m, 'mamo') for m in (*_TWO_GROUPS, *_INTER))} of 60"
        for d in ("adult", "compas")
    ]
    return (
        "Of ten runs on 70/15/15 so many end at the same decision for everybody, in the columns "
        f"Attr1, Attr2, Multi and the three of Inter: {'; '.join(parts)}. On MAMO's split, of all "
        f"six columns: {', '.join(mamo)}."
    )


def _rest(counts: Sequence[int]) -> str:
    return ", ".join(map(str, counts[3:]))


def _losses(study: Study) -> str:
    parts = []
    for dataset in DATASETS:
        two = sum(study.constants(dataset, m) for m in _TWO_GROUPS)
        pairs = sum(study.constants(dataset, f"{m}+pairs") for m in _TWO_GROUPS)
        parts.append(f"{_NAMES[dataset]} {two} against {pairs}")
    shares = [
        _explored(study, dataset, f"apfex-multi{tail}")
        for tail in ("", "+pairs")
        for dataset in DATASETS
    ]
    return (
        "The columns Attr1, Attr2 and Multi are printed with L_DP and L_TPR. Constant runs of 30 "
        f"with these losses, against 30 with the all-pairs loss: {'; '.join(parts)}. Exploration "
        f"(PSS) takes {min(shares[:5]):.0f} to {max(shares[:5]):.0f} per cent of the windows of "
        f"APFEx (Multi) with the former, {min(shares[5:]):.0f} to {max(shares[5:]):.0f} with the "
        "latter."
    )


def _explored(study: Study, dataset: str, method: str) -> float:
    shares = [run.get("shares", {}).get("PSS", 0.0) for run in study.runs(dataset, method)]
    return 100 * float(np.mean(shares)) if shares else 0.0


def _baseline(study: Study) -> str:
    parts = []
    for dataset in DATASETS:
        values = study.values(dataset, "plain", "accuracy")
        there = printed(1, dataset, "plain")["accuracy"]
        off = (float(np.mean(values)) - there.mean) / float(np.std(values))
        parts.append(f"{_NAMES[dataset]} {np.mean(values):.4f} ({there.mean:.4f}; {off:+.1f})")
    return (
        "Accuracy of our baseline at its best validation epoch, in brackets the printed one and "
        f"how many of our spreads ours lies above it: {', '.join(parts)}."
    )


def _scales(study: Study) -> str:
    constant = {
        name: [study.constants(d, f"apfex-inter{name}") for d in DATASETS]
        for name in ("", "+scales-range")
    }
    return (
        "With losses divided by their range instead of their value at the start, APFEx on the "
        f"intersection has {sum(constant['+scales-range'])} constant runs instead of "
        f"{sum(constant[''])} of 50."
    )


def _standing(
    study: Study, first: str, second: str, value: Callable[[Record], float | None]
) -> str:
    places: dict[str, list[str]] = {"above": [], "level": [], "below": []}
    for dataset in DATASETS:
        found = study.paired(dataset, first, second, value)
        if found is not None:
            places[found.says].append(_NAMES[dataset])
    return "; ".join(f"{side} on {_and(names)}" for side, names in places.items() if names)


def _and(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _reached(records: Sequence[Record]) -> str:
    rows = [c for c in compare_front(records) if c.source.startswith("Table") and not c.doubts]
    verdicts = [c.sure.verdict for c in rows if c.sure is not None]
    return (
        f"Of {len(verdicts)} credible pairs of an accuracy and a gap in print, the front surely "
        f"reaches {verdicts.count('yes')} and surely misses {verdicts.count('no')}; of "
        f"{verdicts.count('cannot be told')} ten runs cannot tell."
    )
