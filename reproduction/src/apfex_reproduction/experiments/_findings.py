"""What the study found, in sentences whose every number comes from the records."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from apfex_reproduction.experiments._compare import Comparison, compare_front
from apfex_reproduction.experiments._grid import Column, Grid, Line
from apfex_reproduction.experiments._labels import COLUMNS, data_name, label_of
from apfex_reproduction.experiments._paper import (
    CELLS,
    credible,
    defects_of_row,
    is_repeated_baseline,
    printed,
)
from apfex_reproduction.experiments._protocol import DATASETS
from apfex_reproduction.experiments._study import EVEN, Record, Study, own_volume, volume

_TWO_GROUPS = ("apfex-1", "apfex-2", "apfex-multi")
_INTER = ("apfex-inter-dp", "apfex-inter-tpr", "apfex-inter")


def findings(records: Sequence[Record]) -> dict[str, str]:
    """Sentences by the name of what they are about."""
    study = Study(records)
    tellers: dict[str, Callable[[Study], str]] = {
        "cells": _cells,
        "collapse": _collapse,
        "in print": _in_print,
        "losses": _losses,
        "baseline": _baseline,
        "better": _better,
        "scales": _scales,
        "front": _front,
        "courses": _courses,
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
        f"Of its {len(columns)} columns (a method on a data set), {len(kinds['constant'])} "
        "have zero gaps in every run at the accuracy of a constant decision, "
        f"{own['constant']} of them APFEx's own; {len(kinds['mixture'])} look like a mean of "
        f"constant runs and others ({own['mixture']} of APFEx); {len(kinds['copy'])} share "
        f"numbers with another column; {len(kinds['impossible'])} have a spread that no ten values "
        "can have."
    )


def _collapse(study: Study) -> str:
    total = {
        methods: sum(study.constants(d, m) for d in DATASETS for m in methods)
        for methods in (_TWO_GROUPS, _INTER)
    }
    parts = []
    for dataset in DATASETS:
        counts = [study.constants(dataset, m) for m in (*_TWO_GROUPS, *_INTER)]
        parts.append(f"{data_name(dataset)} {', '.join(map(str, counts[:3]))} and {_rest(counts)}")
    last = [
        sum(study.constants(d, m, rule="last") for d in DATASETS for m in methods)
        for methods in (_TWO_GROUPS, _INTER)
    ]
    mamo = [
        f"{sum(study.constants(d, m, 'mamo') for m in (*_TWO_GROUPS, *_INTER))} of 60 on "
        f"{data_name(d)}"
        for d in ("adult", "compas")
    ]
    return (
        f"Of our 150 runs of the columns Attr1, Attr2 and Multi, {total[_TWO_GROUPS]} end there, "
        "or so near that they decide no better than a constant (*constant*, in the legend, is "
        f"either); of the 150 runs of the columns of Inter, {total[_INTER]} (at the last epoch, "
        f"{last[0]} and {last[1]}). By column, of ten runs "
        f"each: {'; '.join(parts)}. On MAMO's split, of all six columns, it is {_and(mamo)}. "
        f"M-MAMO (Multi) ends there in {_of_fifty(study, 'mmamo-multi')} of 50 runs with L_DP and "
        f"L_TPR, in {_of_fifty(study, 'mmamo-multi-fair')} of 50 with L_fairDP and L_fairTPR."
    )


def _in_print(study: Study) -> str:
    """Where ours is mostly constant, beside where the paper's is."""
    sides: dict[tuple[bool, bool], list[tuple[str, str]]] = {}
    for place in ((d, m) for d in DATASETS for m in (*_TWO_GROUPS, *_INTER)):
        key = "constant" in _kinds_in_print(*place), study.mostly_constant(*place)
        sides.setdefault(key, []).append(place)
    both, only_there = sides.get((True, True), []), sides.get((True, False), [])
    only_here, neither = sides.get((False, True), []), sides.get((False, False), [])
    mixed = [place for place in only_here if "mixture" in _kinds_in_print(*place)]
    return (
        "Ours and the paper's do not collapse in the same places. Of the "
        f"{len(both) + len(only_there)} columns of APFEx that are constant in print, {len(both)} "
        f"are mostly constant here, too; not so {_by_data(only_there)}. Of the "
        f"{len(only_here) + len(neither)} others, {len(only_here)} are mostly constant here: "
        f"{_by_data(only_here)}; {len(mixed)} of these look in print like constant runs and others "
        f"in one mean: {_by_data(mixed)}. What decides this, the paper leaves open."
    )


def _kinds_in_print(dataset: str, method: str) -> set[str]:
    table = next(number for number, some in COLUMNS.items() if method in some)
    return {defect.kind for defect in defects_of_row(table, dataset, method)}


_SHORT = {"apfex-1": "Attr1", "apfex-2": "Attr2", "apfex-multi": "Multi"} | {
    "apfex-inter-dp": "Inter L_fairDP",
    "apfex-inter-tpr": "Inter L_fairTPR",
    "apfex-inter": "Inter both",
}


def _by_data(places: Sequence[tuple[str, str]]) -> str:
    parts = []
    for dataset in DATASETS:
        own = [_SHORT[method] for name, method in places if name == dataset]
        if own:
            parts.append(f"{data_name(dataset)} ({', '.join(own)})")
    return _and(parts) if parts else "none"


def _of_fifty(study: Study, method: str) -> int:
    return sum(study.constants(dataset, method) for dataset in DATASETS)


def _rest(counts: Sequence[int]) -> str:
    return ", ".join(map(str, counts[3:]))


def _losses(study: Study) -> str:
    parts = []
    for dataset in DATASETS:
        two = sum(study.constants(dataset, m) for m in _TWO_GROUPS)
        pairs = sum(study.constants(dataset, f"{m}+pairs") for m in _TWO_GROUPS)
        parts.append(f"{data_name(dataset)} {two} against {pairs}")
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
    parts, far = [], []
    for dataset in DATASETS:
        values = study.values(dataset, "plain", "accuracy")
        there = printed(1, dataset, "plain")["accuracy"]
        off = (float(np.mean(values)) - there.mean) / float(np.std(values))
        parts.append(f"{data_name(dataset)} {np.mean(values):.4f} ({there.mean:.4f}; {off:+.1f})")
        if abs(off) > 1.5:
            far.append(data_name(dataset))
    return (
        "Accuracy of our baseline at its best validation epoch, in brackets the printed one and "
        f"how many of our spreads ours lies above it: {', '.join(parts)}. More than one and a half "
        f"spreads off: {_and(far) if far else 'none'}. At the last epoch COMPAS has "
        f"{_at_last(study, 'compas'):.4f}, Adult {_at_last(study, 'adult'):.4f}."
    )


def _at_last(study: Study, dataset: str) -> float:
    runs = study.runs(dataset, "plain")
    return float(np.mean([run["results"]["last"]["accuracy"] for run in runs]))


_RIVALS = {
    "the baseline": "plain",
    "M-MAMO (Multi) with the same losses": "mmamo-multi-fair",
    "APFEx (Multi)": "apfex-multi",
    "APFEx (Multi) with the same losses": "apfex-multi+pairs",
    "min-norm weights alone (PCP)": "apfex-inter+pcp",
    "a switch that draws its strategy": "apfex-inter+random-switch",
}


def _better(study: Study) -> str:
    """APFEx on the intersection against six others, and APFEx (Multi) against M-MAMO."""
    lines = [
        f"- Against {words} it lies {_both_ways(study, 'apfex-inter', rival)}."
        for words, rival in _RIVALS.items()
    ]
    multi = _both_ways(study, "apfex-multi", "mmamo-multi")
    return (
        "APFEx (Inter) with both losses:\n\n"
        + "\n".join(lines)
        + f"\n\nAPFEx (Multi) against M-MAMO (Multi), both with L_DP and L_TPR, lies {multi}."
    )


def _both_ways(study: Study, first: str, second: str) -> str:
    """With the two constants added and without any; once where both say the same."""
    with_them, without = (_standing(study, first, second, v) for v in (volume, own_volume))
    if with_them == without:
        return f"{with_them}, with the constants and without"
    return f"{with_them} with the constants; without them, {without}"


def _scales(study: Study) -> str:
    constant = {
        name: _of_fifty(study, f"apfex-{name}")
        for name in (
            *("inter", "inter+scales-range", "inter+scales-none"),
            *("multi", "multi+scales-range", "multi+pcp"),
        )
    }
    ranged = "apfex-inter+scales-range"
    return (
        "With losses divided by their range instead of their value at the start, APFEx (Inter) has "
        f"{constant['inter+scales-range']} constant runs instead of {constant['inter']} of 50, and "
        f"APFEx (Multi) {constant['multi+scales-range']} instead of {constant['multi']}; with "
        f"min-norm weights alone APFEx (Multi) has {constant['multi+pcp']}. With losses as they "
        f"are, divided by nothing, APFEx (Inter) has {constant['inter+scales-none']}. Division by "
        "the range was picked out of the ablations after they had been seen. The hypervolume of "
        f"APFEx (Inter) so rescaled, against the form of the tables, lies "
        f"{_both_ways(study, ranged, 'apfex-inter')}; against this library's front it lies "
        f"{_both_ways(study, ranged, 'front')} ({_figures(study, ranged, 'front')})."
    )


def _figures(study: Study, first: str, second: str) -> str:
    """COMPAS and German, without constants."""
    parts = [
        f"{data_name(d)} {study.paired(d, first, second, own_volume)}" for d in ("compas", "german")
    ]
    return f"without constants: {', '.join(parts)}"


def _front(study: Study) -> str:
    """The front of this library against the baseline, M-MAMO and APFEx."""
    rivals = ("plain", "mmamo-multi-fair", "apfex-inter")
    words = ("the baseline", "M-MAMO (Multi) with L_fairDP and L_fairTPR", "APFEx (Inter)")
    parts = [
        f"against {name} it lies {_both_ways(study, 'front', rival)}"
        for name, rival in zip(words, rivals, strict=True)
    ]
    return f"In hypervolume, {'; '.join(parts)}."


def _courses(study: Study) -> str:
    """How many records of APFEx and M-MAMO (Multi) have omega."""
    runs = [run for run in study if "shares" in run or "course" in run]
    bare = [run for run in runs if "course" not in run]
    where = [data_name(d) for d in DATASETS if any(run["dataset"] == d for run in bare)]
    if not bare:
        return f"All {len(runs)} records of these runs have them."
    return (
        f"{len(runs) - len(bare)} of {len(runs)} records of these runs have them; "
        f"{len(bare)} ablations on the intersection ({_and(where)}) were run before omega and "
        "norms were recorded, and have the shares of the strategies only."
    )


def _standing(
    study: Study, first: str, second: str, value: Callable[[Record], float | None]
) -> str:
    places: dict[str, list[str]] = {"above": [], "level": [], "below": []}
    for dataset in DATASETS:
        found = study.paired(dataset, first, second, value)
        if found is not None:
            places[found.says].append(data_name(dataset))
    if len({name for names in places.values() for name in names}) == max(map(len, places.values())):
        return f"{next(side for side, names in places.items() if names)} on all data sets"
    return ", ".join(f"{side} on {_and(names)}" for side, names in places.items() if names)


def _and(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _reached(records: Sequence[Record]) -> str:
    rows = [c for c in compare_front(records) if c.source.startswith("Table") and not c.doubts]
    by_verdict: dict[str, list[Comparison]] = {}
    for row in rows:
        if row.sure is not None:
            by_verdict.setdefault(row.sure.verdict, []).append(row)
    yes, no, open_ = (by_verdict.get(word, []) for word in ("yes", "no", "cannot be told"))
    return (
        f"Of {len(yes) + len(no) + len(open_)} credible pairs of an accuracy and a gap in print, "
        f"the front surely reaches {_named(yes)} and surely misses {_named(no)}; of {len(open_)} "
        "ten runs cannot tell: the intervals, which hold the paper's spreads and ours, are wide."
    )


def _named(rows: Sequence[Comparison]) -> str:
    """How many rows, and which: method, data and gap."""
    if not rows:
        return "none"
    names: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        gap = "DEO" if row.criterion == "tpr" else "DDP"
        names.setdefault((label_of(row.method), row.dataset), []).append(gap)
    parts = [f"{_and(gaps)} of {n} on {data_name(d)}" for (n, d), gaps in names.items()]
    return f"{len(rows)} ({_and(parts)})"
