"""Short tables over all data sets: what a report of the reproduction says in numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from apfex_reproduction.experiments._claims import judge_claims
from apfex_reproduction.experiments._compare import Comparison, compare_front
from apfex_reproduction.experiments._findings import findings as findings
from apfex_reproduction.experiments._findings import standing_grid as standing_grid
from apfex_reproduction.experiments._grid import Column, Grid, Line
from apfex_reproduction.experiments._labels import data_name, label_of
from apfex_reproduction.experiments._methods import EXPERIMENTS
from apfex_reproduction.experiments._paper import printed
from apfex_reproduction.experiments._printed import Printed
from apfex_reproduction.experiments._protocol import DATASETS
from apfex_reproduction.experiments._rivals import RIVALS
from apfex_reproduction.experiments._side_by_side import mixture_grid as mixture_grid
from apfex_reproduction.experiments._side_by_side import side_by_side as side_by_side
from apfex_reproduction.experiments._study import Study, own_volume, volume

Record = dict[str, Any]
APFEX = (
    *("apfex-1", "apfex-2", "apfex-multi"),
    *("apfex-inter-dp", "apfex-inter-tpr", "apfex-inter"),
)
"""The columns of the paper's method."""
PAIRS = ("apfex-1+pairs", "apfex-2+pairs", "apfex-multi+pairs")
"""Those with two-group losses, run with the all-pairs loss instead."""
RULES = ("nearest", "fairest", "last")


def plain_grid(records: Sequence[Record]) -> Grid:
    """Accuracy of the baseline beside the paper's."""
    lines = []
    for dataset in DATASETS:
        runs = runs_of(records, dataset, "plain")
        ours = [spread([r["results"][rule]["accuracy"] for r in runs]) for rule in _EPOCHS]
        lines.append(
            (data_name(dataset), f"{printed(1, dataset, 'plain')['accuracy'].mean:.4f}", *ours)
        )
    names = ("Data", "Paper", "Best validation epoch", "Last epoch")
    return _grid("Accuracy of the baseline", names, lines)


def mamo_grid(records: Sequence[Record]) -> Grid:
    """MAMO's own printed results beside ours, on its split."""
    lines = []
    theirs = [cell for cell in RIVALS if cell.source == "MAMO"]
    for error, gap in zip(theirs[::2], theirs[1::2], strict=True):
        criterion = {"ddp": "dp", "deo": "tpr"}[gap.metric]
        for key in (f"{error.method}-published", error.method):
            runs = runs_of(records, error.dataset, key, "mamo")
            results = [run["results"]["nearest"] for run in runs]
            attribute = runs[0]["attributes"][0]
            lines.append(
                (
                    f"{data_name(error.dataset)}, {criterion} of {attribute}",
                    "as published" if key != error.method else "converged, unmasked",
                    _of_print(error, complement=True),
                    spread([1 - result["accuracy"] for result in results]),
                    _of_print(gap),
                    spread([result["gaps"][attribute][criterion] for result in results]),
                )
            )
    names = ("Run", "S-MAMO", "Error, printed", "Error, ours", "Gap, printed", "Gap, ours")
    return _grid("MAMO's own printed results (its split, its rule, 10 seeds)", names, lines)


def constant_grid(records: Sequence[Record], split: str = "70/15/15") -> Grid:
    """In how many of ten runs a method ends at a constant decision."""
    datasets = [name for name in DATASETS if runs_of(records, name, "plain", split)]
    lines = []
    mamo = ("mmamo-1", "mmamo-2", "mmamo-multi", "mmamo-multi-fair")
    for method in (*mamo, *APFEX, *PAIRS):
        cells = []
        for dataset in datasets:
            runs = runs_of(records, dataset, method, split)
            counts = [sum(run["results"][rule]["constant"] for run in runs) for rule in RULES]
            cells.append(" / ".join(map(str, counts)))
        lines.append((label_of(method), *cells))
    title = f"Constant decisions among 10 runs, by nearest / fairest / last (split {split})"
    return _grid(title, ("Method", *map(data_name, datasets)), lines)


def loss_grid(records: Sequence[Record]) -> Grid:
    """Accuracy beside the plain network's, by MAMO's rule."""

    def cell(dataset: str, method: str) -> str:
        results = [result_of(run) for run in runs_of(records, dataset, method)]
        return f"{np.mean([result['accuracy'] for result in results]):.3f}"

    methods = ("plain", "mmamo-multi", "mmamo-multi-fair", *APFEX, "front")
    return _by_dataset("Accuracy, chosen by 'nearest'", methods, cell)


def shares_grid(records: Sequence[Record]) -> Grid:
    """Which strategy rules, as a share of all windows."""

    def cell(dataset: str, method: str) -> str:
        return _shares(runs_of(records, dataset, method))

    title = "Share of the windows in PCP / AW / PSS, per cent (means of 10 runs)"
    lines = [
        (label_of(method), *(cell(dataset, method) for dataset in DATASETS))
        for method in (*APFEX, *PAIRS)
    ]
    return _grid(title, ("Method", *map(data_name, DATASETS)), lines)


def volume_grid(records: Sequence[Record], constants: bool = True) -> Grid:
    """What the points of a method dominate, with the two constants or alone."""

    def cell(dataset: str, method: str) -> str:
        runs = runs_of(records, dataset, method)
        return spread([volume(run, constants) for run in runs], 3) if runs else ""

    methods = ("plain", "mmamo-multi", "mmamo-multi-fair", *APFEX, "front")
    added = "and the two constants" if constants else "alone"
    title = f"Hypervolume of a method's points {added} (crossing, test rows)"
    return _by_dataset(title, (*(("always-0",) if constants else ()), *methods), cell)


COMPARED = (
    ("front", "plain"),
    ("front", "mmamo-multi-fair"),
    ("front", "apfex-inter"),
    ("front", "apfex-inter+scales-range"),
    ("apfex-inter", "plain"),
    ("apfex-inter", "mmamo-multi-fair"),
    ("apfex-inter", "apfex-multi"),
    ("apfex-inter", "apfex-inter+pcp"),
    ("apfex-inter", "apfex-inter+random-switch"),
    ("apfex-inter", "apfex-inter+scales-range"),
    ("apfex-inter", "apfex-multi+pairs"),
    ("apfex-multi", "mmamo-multi"),
    ("apfex-multi", "apfex-multi+pairs"),
    ("apfex-multi", "apfex-multi+pcp"),
    ("apfex-multi", "apfex-multi+scales-range"),
)
"""Whose hypervolumes the page compares."""


def paired_grid(records: Sequence[Record], constants: bool = True) -> Grid:
    """Differences of hypervolumes with intervals, for every comparison that the page quotes."""
    study = Study(records)

    def cell(dataset: str, first: str, second: str) -> str:
        value = volume if constants else own_volume
        found = study.paired(dataset, first, second, value)
        return "" if found is None else str(found)

    lines = [
        (
            f"{label_of(first)} minus {label_of(second)}",
            *(cell(dataset, first, second) for dataset in DATASETS),
        )
        for first, second in COMPARED
    ]
    added = "with the two constants" if constants else "without constants"
    title = f"Differences of hypervolumes, {added}: mean and 95% interval over ten splits"
    return _grid(title, ("First minus second", *map(data_name, DATASETS)), lines)


def claims_grid(records: Sequence[Record]) -> Grid:
    """The paper's claims with their verdicts."""
    lines = [
        (f"{claim.number}. {claim.text}", claim.verdict, claim.evidence)
        for claim in judge_claims(records)
    ]
    title = "The paper's claims, each with a verdict from the records"
    columns = tuple(Column(name, words=True) for name in ("Claim", "Verdict", "Records"))
    return Grid(title, columns, (("", tuple(Line(line) for line in lines)),), ())


def credible_grid(records: Sequence[Record]) -> Grid:
    """The paper's credible rows beside the front, at the row's own gap, with intervals."""
    lines = []
    for found in compare_front(records):
        if found.source.startswith("Table") and not found.doubts and found.blind and found.sure:
            lines.append(
                (
                    f"{found.source}, {data_name(found.dataset)}: {label_of(found.method)}",
                    f"{found.criterion} of {found.by}",
                    f"{found.accuracy:.4f}",
                    f"{found.gap:.4f}",
                    str(found.sure.accuracy),
                    str(found.sure.gap),
                    found.sure.verdict,
                )
            )
    names = ("Row", "Gap", "Accuracy, paper", "Gap, paper", "Accuracy, front minus paper")
    title = "The paper's credible rows, and the front with the row's gap as its bound"
    return _grid(title, (*names, "Gap, front minus paper", "Reached"), lines)


def credible_summary(records: Sequence[Record]) -> Grid:
    """How many of the paper's credible rows the front reaches, by data set."""
    found = [c for c in compare_front(records) if c.source.startswith("Table") and c.sure]
    lines = []
    for dataset in DATASETS:
        own = [c.sure.verdict for c in found if c.dataset == dataset and c.sure and not c.doubts]
        counts = [str(own.count(word)) for word in ("yes", "cannot be told", "no")]
        left = sum(c.dataset == dataset and bool(c.doubts) for c in found)
        lines.append((data_name(dataset), str(len(own)), *counts, str(left)))
    names = ("Data", "Credible rows and gaps", "Reached", "Cannot be told", "Not", "Not credible")
    return _grid("Rows of the paper that the front reaches (95% intervals)", names, lines)


def reached_grid(records: Sequence[Record]) -> Grid:
    """How many of our own rows the front reaches."""
    lines = []
    found = [one for one in compare_front(records) if one.source == "our run"]
    for dataset in DATASETS:
        own = [one for one in found if one.dataset == dataset]
        parts = [[one for one in own if not one.doubts], [one for one in own if one.doubts]]
        lines.append((data_name(dataset), *(_counts(part) for part in parts)))
    title = "Rows of our own runs that the front reaches at their own gap, each gap a row"
    return _grid(title, ("Data", "Rows without a constant run", "Rows with constant runs"), lines)


def ablation_grid(
    records: Sequence[Record], dataset: str, methods: Sequence[str] = EXPERIMENTS["ablations"]
) -> Grid:
    """Every ablation of APFEx, on one data set."""
    lines = []
    for method in methods:
        runs = runs_of(records, dataset, method)
        if not runs:
            continue
        results = [result_of(run) for run in runs]
        crossing = [list(result["gaps"].values())[-1] for result in results]
        gaps = [[gap[name] for gap in crossing if gap[name] is not None] for name in ("dp", "tpr")]
        lines.append(
            (
                method.removeprefix("apfex-inter+"),
                spread([result["accuracy"] for result in results]),
                *(spread(known) if known else "" for known in gaps),
                f"{sum(result['constant'] for result in results)}/{len(results)}",
                spread([volume(run) for run in runs], 3),
                _shares(runs),
            )
        )
    names = ("Changed", "Accuracy", "DDP", "DEO", "CONST", "Hypervolume", "PCP / AW / PSS %")
    title = (
        f"Ablations on {data_name(dataset)}: chosen by 'nearest', gaps of the crossing, test rows"
    )
    return _grid(title, names, lines)


def ablation_summary(records: Sequence[Record]) -> Grid:
    """Hypervolume and constant runs of every ablation."""

    def cell(dataset: str, method: str) -> str:
        runs = runs_of(records, dataset, method)
        count = sum(result_of(run)["constant"] for run in runs)
        return f"{np.mean([volume(run) for run in runs]):.3f} ({count})"

    title = "Hypervolume (constant runs of 10, chosen by 'nearest') of each ablation"
    grid = _by_dataset(title, EXPERIMENTS["ablations"][2:], cell)
    return Grid(title, (Column("Changed"), *grid.columns[1:]), grid.sections, grid.notes)


def with_constants(records: Sequence[Record]) -> list[Record]:
    """The records, each with the accuracy of always-0 on its test rows."""
    accuracy = {
        (run["dataset"], run["split"], run["seed"]): run["results"]["chosen"]["accuracy"]
        for run in records
        if run["method"] == "always-0"
    }
    return [
        run | {"always_0": accuracy[run["dataset"], run["split"], run["seed"]]} for run in records
    ]


def runs_of(
    records: Sequence[Record], dataset: str, method: str, split: str = "70/15/15"
) -> list[Record]:
    """Runs of a method, by seed."""
    key = (dataset, split, method)
    found = [run for run in records if (run["dataset"], run["split"], run["method"]) == key]
    return sorted(found, key=lambda run: run["seed"])


def result_of(run: Record, rule: str = "nearest") -> Record:
    """What a rule has chosen; methods without epochs have one model."""
    return run["results"].get(rule) or run["results"]["chosen"]


def spread(values: Sequence[float], digits: int = 4) -> str:
    """Mean and standard deviation (ddof 0)."""
    return f"{np.mean(values):.{digits}f} ± {np.std(values):.{digits}f}"


_EPOCHS = ("chosen", "last")


def _shares(runs: Sequence[Record]) -> str:
    shares = [run.get("shares", {}) for run in runs]
    if not any(name in share for share in shares for name in ("PCP", "AW", "PSS")):
        return ""
    means = [np.mean([share.get(name, 0.0) for share in shares]) for name in ("PCP", "AW", "PSS")]
    return " / ".join(f"{100 * mean:.0f}" for mean in means)


def _counts(part: Sequence[Comparison]) -> str:
    kinder = sum(bool(one.reached) for one in part)
    return f"{sum(bool(one.reached_blind) for one in part)} of {len(part)} ({kinder} by some bound)"


def _of_print(cell: Printed, complement: bool = False) -> str:
    mean = 1 - cell.mean if complement else cell.mean
    return f"{mean:.4f}" if cell.spread is None else f"{mean:.4f} ± {cell.spread:.4f}"


def _by_dataset(title: str, methods: Iterable[str], cell: Callable[[str, str], str]) -> Grid:
    lines = [
        (
            method.partition("+")[2] or label_of(method),
            *(cell(dataset, method) for dataset in DATASETS),
        )
        for method in methods
    ]
    return _grid(title, ("Method", *map(data_name, DATASETS)), lines)


def _grid(title: str, names: Sequence[str], lines: Iterable[Sequence[str]]) -> Grid:
    made = tuple(Line(tuple(cells)) for cells in lines)
    return Grid(title, tuple(Column(name) for name in names), (("", made),), ())
