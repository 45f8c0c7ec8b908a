"""The report of the paper's reproduction, from committed records.

``python benchmarks/reproduction.py pack FOLDER`` takes the records of ``apfex reproduce`` over into
``benchmarks/results/reproduction`` (without the traces that no figure shows);
``python benchmarks/reproduction.py write`` makes ``docs/reproduction/`` and the generated parts of
``docs/reproduction.md`` from them. A test checks that both are up to date.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from apfex.experiments import (
    DATASETS,
    EXPERIMENTS,
    MAMO_SIZES,
    VARIANTS,
    Column,
    Grid,
    Line,
    RecordFolder,
    Sweep,
    compare_front,
    comparison_grid,
    draw_figure,
    draw_workflow,
    key_of,
    make_table,
    runs_grid,
    to_html,
    to_latex,
    to_markdown,
    write_pack,
)
from apfex.front import hypervolume

HERE = Path(__file__).parent
RECORDS = HERE / "results" / "reproduction"
PAGE = HERE.parent / "docs" / "reproduction.md"
FOLDER = HERE.parent / "docs" / "reproduction"
RULES = ("nearest", "fairest", "last")
MAJORITY = {"adult": 0.7607, "compas": 0.5445, "german": 0.70, "heart": 0.539, "celeba": 0.5179}
"""Share of the larger class in the whole table."""
Record = dict[str, Any]


def pack(folder: Path) -> None:
    """Take over the records of a sweep, by experiment and data set."""
    RECORDS.mkdir(parents=True, exist_ok=True)
    records = list(RecordFolder(folder).read())
    for dataset in DATASETS:
        own = [_compact(record) for record in records if record["dataset"] == dataset]
        for name, wanted in (("tables", False), ("ablations", True)):
            some = [record for record in own if ("+" in record["method"]) == wanted]
            if some:
                write_pack(some, RECORDS / f"{name}-{dataset}.jsonl")


def _compact(record: Record) -> Record:
    """Without the course of training, but for the run that the figure shows."""
    shown = key_of(record)[1:] == ("70/15/15", "apfex-inter", 0)
    dropped = set() if shown else {"trace"}
    return {name: value for name, value in record.items() if name not in dropped}


def read() -> list[Record]:
    """All committed records."""
    return list(RecordFolder(RECORDS).read())


def methods_of(experiment: str) -> tuple[str, ...]:
    """All rows of an experiment, variants included."""
    return (*EXPERIMENTS[experiment], *VARIANTS.get(experiment, ()))


def files(records: Sequence[Record]) -> dict[str, str]:
    """Every generated text by its path under ``docs``."""
    made = {}
    for number in (1, 2):
        experiment = f"table{number}"
        for rule in RULES:
            tables = [
                make_table(records, number, dataset, rule=rule, methods=methods_of(experiment))
                for dataset in DATASETS
            ]
            head = f"# Table {number}, chosen by '{rule}'\n\n"
            parts = [part for table in tables for part in (table, runs_grid(table))]
            made[f"reproduction/{experiment}-{rule}.md"] = head + _joined(to_markdown, parts)
            if rule == "nearest":
                made[f"reproduction/{experiment}.tex"] = _joined(to_latex, tables)
                made[f"reproduction/{experiment}.html"] = _joined(to_html, tables)
    mamo = [
        make_table(records, number, dataset, split="mamo", methods=methods_of(f"table{number}"))
        for dataset in MAMO_SIZES
        for number in (1, 2)
    ]
    made["reproduction/mamo-split.md"] = "# MAMO's split\n\n" + _joined(to_markdown, mamo)
    made["reproduction/ablations.md"] = "# Ablations\n\n" + _joined(
        to_markdown, [ablation_grid(records, dataset) for dataset in DATASETS]
    )
    compared = [
        comparison_grid([c for c in compare_front(_even(records)) if c.dataset == dataset])
        for dataset in DATASETS
    ]
    made["reproduction/front.md"] = "# APFEx's front beside every row\n\n" + _joined(
        to_markdown, compared
    )
    return made


def blocks(records: Sequence[Record]) -> dict[str, str]:
    """Generated parts of the page, by name."""
    grids = {
        "plain": plain_grid(records),
        "mamo": mamo_grid(records),
        "constant": constant_grid(records),
        "shares": shares_grid(records),
        "volume": volume_grid(records),
        "reached": reached_grid(records),
        "credible": credible_grid(records),
        "ablations": ablation_summary(records),
        "cost": cost_grid(records),
    }
    return {name: to_markdown(grid) for name, grid in grids.items()}


def plain_grid(records: Sequence[Record]) -> Grid:
    """Accuracy of the plain network beside the paper's."""
    paper = {"adult": 0.8330, "compas": 0.6512, "german": 0.7724, "heart": 0.8219, "celeba": 0.8593}
    lines = []
    for dataset in DATASETS:
        runs = _runs(records, dataset, "plain")
        chosen, last = (
            [record["results"][rule]["accuracy"] for record in runs] for rule in ("chosen", "last")
        )
        lines.append((dataset, f"{paper[dataset]:.4f}", _spread(chosen), _spread(last)))
    return _grid(
        "Accuracy of the plain network", ("Data", "Paper", "Best epoch", "Last epoch"), lines
    )


def mamo_grid(records: Sequence[Record]) -> Grid:
    """MAMO's printed results beside ours, on its split."""
    printed = {
        ("adult", "smamo-1-dp", "sex", "dp"): ("0.1821 ± 0.0053", "0.0885 ± 0.0198"),
        ("compas", "smamo-1-tpr", "race", "tpr"): ("0.3272 ± 0.0114", "0.0798 ± 0.0344"),
    }
    lines = []
    for (dataset, method, attribute, criterion), (error, gap) in printed.items():
        for key in (f"{method}-published", method):
            runs = [r["results"]["nearest"] for r in _runs(records, dataset, key, "mamo")]
            lines.append(
                (
                    f"{dataset}, {criterion} of {attribute}",
                    "as published" if key.endswith("published") else "converged, unmasked",
                    error,
                    _spread([1 - run["accuracy"] for run in runs]),
                    gap,
                    _spread([run["gaps"][attribute][criterion] for run in runs]),
                )
            )
    names = ("Run", "S-MAMO", "Error, printed", "Error, ours", "Gap, printed", "Gap, ours")
    return _grid("MAMO's own printed results (its split, its rule, 10 seeds)", names, lines)


def constant_grid(records: Sequence[Record]) -> Grid:
    """In how many of ten runs a method ends at a constant decision."""
    methods = [
        *("plain", "mmamo-1", "mmamo-2", "mmamo-multi", "mmamo-multi-fair", "apfex-1", "apfex-2"),
        *("apfex-multi", "apfex-inter-dp", "apfex-inter-tpr", "apfex-inter", "front"),
    ]
    lines = []
    for method in methods:
        cells = []
        for dataset in DATASETS:
            runs = _runs(records, dataset, method)
            counts = [
                sum(_result(record, rule)["constant"] for record in runs)
                for rule in RULES
                if rule in runs[0]["results"] or method == "plain"
            ]
            cells.append(" / ".join(map(str, counts)))
        lines.append((method, *cells))
    return _grid(
        "Constant decisions among 10 runs, chosen by nearest / fairest / last",
        ("Method", *DATASETS),
        lines,
    )


def shares_grid(records: Sequence[Record]) -> Grid:
    """Which strategy rules, as a share of all windows."""
    lines = []
    for method in ("apfex-1", "apfex-2", "apfex-multi", "apfex-inter"):
        for dataset in DATASETS:
            runs = _runs(records, dataset, method)
            means = [
                np.mean([record["shares"].get(name, 0.0) for record in runs])
                for name in ("PCP", "AW", "PSS")
            ]
            lines.append((method, dataset, *(f"{100 * mean:.0f}%" for mean in means)))
    return _grid(
        "Share of the windows in each strategy (means of 10 runs)",
        ("Method", "Data", "PCP", "AW", "PSS"),
        lines,
    )


def volume_grid(records: Sequence[Record]) -> Grid:
    """Hypervolume of (error, dp gap, tpr gap); the constants are everybody's."""
    methods = (
        *("always-0", "plain", "mmamo-multi", "mmamo-multi-fair", "apfex-multi", "apfex-inter-dp"),
        *("apfex-inter-tpr", "apfex-inter", "front"),
    )
    lines = []
    for method in methods:
        cells = []
        for dataset in DATASETS:
            runs = _runs(records, dataset, method)
            cells.append(_spread([_volume(record) for record in runs], 3))
        lines.append((method, *cells))
    return _grid(
        "Hypervolume of a method's points and the two constants (crossing, test rows)",
        ("Method", *DATASETS),
        lines,
    )


def credible_grid(records: Sequence[Record]) -> Grid:
    """The paper's credible rows beside the front."""
    lines = []
    for found in compare_front(_even(records)):
        if found.source.startswith("Table") and not found.doubts and found.gap is not None:
            lines.append(
                (
                    f"{found.source}, {found.dataset}, {found.method}",
                    f"{found.criterion} of {found.by}",
                    f"{found.accuracy:.4f}",
                    f"{found.gap:.4f}",
                    f"{found.rung.accuracy:.4f}",
                    f"{found.rung.gap:.4f}",
                    "yes" if found.reached_blind else "bound fitted" if found.reached else "no",
                )
            )
    names = ("Row", "Gap", "Accuracy, paper", "Gap, paper", "Accuracy, front", "Gap, front", "")
    return _grid("The paper's credible rows and APFEx's front", (*names[:-1], "Reached"), lines)


def reached_grid(records: Sequence[Record]) -> Grid:
    """How many of our own rows the front reaches."""
    lines = []
    found = [c for c in compare_front(_even(records)) if c.source == "our run"]
    for dataset in DATASETS:
        own = [c for c in found if c.dataset == dataset]
        parts = [
            [c for c in own if not c.doubts],
            [c for c in own if c.doubts],
        ]
        cells = [
            f"{sum(c.reached_blind for c in part)} of {len(part)}"
            f" ({sum(c.reached for c in part)} with the bound fitted)"
            for part in parts
        ]
        lines.append((dataset, *cells))
    return _grid(
        "Rows of our own runs that a point of the front reaches (each row once for each gap)",
        ("Data", "Rows without a constant run", "Rows with constant runs"),
        lines,
    )


def ablation_grid(records: Sequence[Record], dataset: str) -> Grid:
    """Every ablation of APFEx on the crossing."""
    lines = []
    for method in EXPERIMENTS["ablations"]:
        runs = _runs(records, dataset, method)
        if not runs:
            continue
        results = [_result(record, "nearest") for record in runs]
        crossing = list(results[0]["gaps"])[-1]
        gaps = [
            _spread([r["gaps"][crossing][c] for r in results if r["gaps"][crossing][c] is not None])
            for c in ("dp", "tpr")
        ]
        shares = [r.get("shares", {}) for r in runs]
        rule = (
            " / ".join(
                f"{100 * np.mean([share.get(name, 0) for share in shares]):.0f}"
                for name in ("PCP", "AW", "PSS")
            )
            if any("AW" in share or "PCP" in share for share in shares)
            else ""
        )
        lines.append(
            (
                method,
                _spread([r["accuracy"] for r in results]),
                *gaps,
                f"{sum(r['constant'] for r in results)}/{len(results)}",
                _spread([_volume(record) for record in runs], 3),
                rule,
            )
        )
    names = ("Method", "Accuracy", "DDP", "DEO", "CONST", "Hypervolume", "PCP / AW / PSS %")
    return _grid(f"{dataset}: chosen by 'nearest', gaps of the crossing, test rows", names, lines)


def ablation_summary(records: Sequence[Record]) -> Grid:
    """Constant runs and hypervolume of every ablation."""
    lines = []
    for method in EXPERIMENTS["ablations"][2:]:
        cells = []
        for dataset in DATASETS:
            runs = _runs(records, dataset, method)
            count = sum(_result(record, "nearest")["constant"] for record in runs)
            volume = np.mean([_volume(record) for record in runs])
            cells.append(f"{volume:.3f} ({count})")
        lines.append((method.removeprefix("apfex-inter+"), *cells))
    return _grid(
        "Hypervolume (constant runs of 10, chosen by 'nearest') of each ablation",
        ("Changed", *DATASETS),
        lines,
    )


def cost_grid(records: Sequence[Record]) -> Grid:
    """Processor time of the two tables."""
    lines = []
    totals = {"columns": 0.0, "variants": 0.0}
    for dataset in DATASETS:
        usual = {*EXPERIMENTS["table1"], *EXPERIMENTS["table2"]}
        sums = {"columns": 0.0, "variants": 0.0}
        for record in records:
            method = record["method"]
            if record["dataset"] == dataset and record["split"] != "mamo" and "+" not in method:
                sums["columns" if method in usual else "variants"] += record["cpu_seconds"]
        totals = {name: totals[name] + sums[name] for name in totals}
        lines.append((dataset, *(f"{value / 60:.1f}" for value in sums.values())))
    lines.append(("all", *(f"{value / 60:.1f}" for value in totals.values())))
    return _grid(
        "Processor minutes of 10 seeds of both tables",
        ("Data", "The paper's columns, constants, front", "Variants beneath"),
        lines,
    )


def write() -> None:
    """Write the generated files, and the generated parts of the page."""
    records = read()
    for name, text in files(records).items():
        path = PAGE.parent / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8"), blocks(records)), encoding="utf-8")
    traces = {r["dataset"]: r["trace"] for r in records if r.get("trace")}
    draw_figure({name: traces[name] for name in DATASETS}, FOLDER / "figure.png")
    draw_workflow(FOLDER / "workflow.svg")


def filled(page: str, parts: dict[str, str]) -> str:
    """The page with its generated parts replaced."""
    for name, text in parts.items():
        start, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
        pattern = re.compile(f"{re.escape(start)}.*?{re.escape(end)}", re.DOTALL)
        if not pattern.search(page):
            raise ValueError(f"The page must have a part between {start} and {end}.")
        page = pattern.sub(lambda _, t=text, s=start, e=end: f"{s}\n{t.strip()}\n{e}", page)
    return page


def _runs(
    records: Sequence[Record], dataset: str, method: str, split: str = "70/15/15"
) -> list[Record]:
    found = [
        record
        for record in records
        if (record["dataset"], record["method"], record["split"]) == (dataset, method, split)
    ]
    return sorted(found, key=lambda record: record["seed"])


def _even(records: Iterable[Record]) -> list[Record]:
    return [r for r in records if r["split"] == "70/15/15" and "+" not in r["method"]]


def _result(record: Record, rule: str) -> Record:
    results = record["results"]
    return results.get(rule) or results["chosen"]


def _volume(record: Record) -> float:
    """What the points of a run dominate, together with deciding alike for everybody."""
    share = MAJORITY[record["dataset"]]
    constants = [[1 - share, 0.0, 0.0], [share, 0.0, 0.0]]
    return hypervolume([*record.get("front", ()), *constants], [1.0, 1.0, 1.0])


def _spread(values: Sequence[float], digits: int = 4) -> str:
    return f"{np.mean(values):.{digits}f} ± {np.std(values):.{digits}f}"


def _grid(title: str, names: Sequence[str], lines: Iterable[Sequence[str]]) -> Grid:
    made = tuple(Line(tuple(cells)) for cells in lines)
    return Grid(title, tuple(Column(name) for name in names), (("", made),), ())


def _joined(render: Any, parts: Iterable[Any]) -> str:
    return "\n\n".join(render(part).strip() for part in parts) + "\n"


def expected_keys() -> Iterator[tuple[str, str, str, int]]:
    """What a whole reproduction holds."""
    tables = tuple(dict.fromkeys((*methods_of("table1"), *methods_of("table2"))))
    yield from Sweep(tables, DATASETS, range(10)).keys
    yield from Sweep(EXPERIMENTS["ablations"], DATASETS, range(10)).keys


if __name__ == "__main__":
    if sys.argv[1:2] == ["pack"] and len(sys.argv) == 3:
        pack(Path(sys.argv[2]))
    elif sys.argv[1:] == ["write"]:
        write()
    else:
        sys.exit(__doc__)
