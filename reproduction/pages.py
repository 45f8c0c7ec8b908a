"""The pages of the study, from committed records.

``python reproduction/pages.py pack FOLDER`` takes the records of ``apfex reproduce`` over into
``reproduction/records``, with the course of training shortened to a few stretches where no figure
shows it; what is there and not in the folder stays. ``python reproduction/pages.py write`` makes
``docs/reproduction/`` and the generated parts of ``docs/reproduction.md``. A test checks that both
are up to date. ``python reproduction/pages.py seconds`` prints what a run takes by the records,
as ``experiments/_whole.py`` plans with it.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from apfex_reproduction.experiments import (
    DATASETS,
    EXPERIMENTS,
    MAMO_SIZES,
    VARIANTS,
    Column,
    Grid,
    Line,
    RecordFolder,
    compare_front,
    comparison_grid,
    data_name,
    draw_differences,
    draw_figure,
    draw_trade_offs,
    draw_workflow,
    key_of,
    kind_of,
    make_table,
    results_hold,
    runs_grid,
    shortened,
    summaries,
    to_html,
    to_latex,
    to_markdown,
    whole_study,
    write_pack,
)

HERE = Path(__file__).parent
RECORDS = HERE / "records"
PAGE = HERE.parent / "docs" / "reproduction.md"
FOLDER = HERE.parent / "docs" / "reproduction"
MEASURED = HERE.parent / "benchmarks" / "results" / "study" / "two-cores.json"
"""Of ``benchmarks/bench_study.py``."""
DRAWN = ("apfex-inter", "apfex-multi")
"""Whose first run the figures show, window by window."""
Record = dict[str, Any]


def pack(folder: Path) -> None:
    """Take over the records of a sweep, by experiment and data set.

    Earlier ones stay where the sweep has none, unless their results mean something else by now.
    """
    RECORDS.mkdir(parents=True, exist_ok=True)
    records = {key_of(r): r for r in RecordFolder(RECORDS).read() if results_hold(r)}
    records |= {key_of(record): _compact(record) for record in RecordFolder(folder).read()}
    for dataset in DATASETS:
        own = [record for record in records.values() if record["dataset"] == dataset]
        for name, wanted in (("tables", False), ("ablations", True)):
            some = [record for record in own if ("+" in record["method"]) == wanted]
            if some:
                write_pack(some, RECORDS / f"{name}-{dataset}.jsonl")


def _compact(record: Record) -> Record:
    """The course of training shortened, but for the runs that the figures show."""
    if "trace" not in record:
        return record
    kept = {name: value for name, value in record.items() if name != "trace"}
    ablation = "+" in record["method"]
    kept["course"] = (
        shortened(record["trace"], 6, objectives=False) if ablation else shortened(record["trace"])
    )
    shown = record["split"] == "70/15/15" and record["seed"] == 0
    if shown and record["method"] in DRAWN:
        kept["trace"] = record["trace"]
    return kept


def read() -> list[Record]:
    """All committed records."""
    return summaries.with_constants(list(RecordFolder(RECORDS).read()))


def methods_of(experiment: str) -> tuple[str, ...]:
    """All rows of an experiment, variants included."""
    return (*EXPERIMENTS[experiment], *VARIANTS.get(experiment, ()))


def expected_keys() -> Iterator[tuple[str, str, str, int]]:
    """What a whole reproduction holds."""
    for part in whole_study():
        yield from part.sweep.keys


def files(records: Sequence[Record]) -> dict[str, str]:
    """Every generated text by its path under ``docs``."""
    made = {}
    for number in (1, 2):
        experiment = f"table{number}"
        for rule in summaries.RULES:
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
    for number in (1, 2):
        grids = [summaries.side_by_side(records, number, dataset) for dataset in DATASETS]
        head = f"# Table {number} in the paper's own order, its cells and ours\n\n"
        made[f"reproduction/paper-table{number}.md"] = head + _joined(to_markdown, grids)
    mixtures = _joined(to_markdown, [summaries.mixture_grid()])
    made["reproduction/mixtures.md"] = f"# Two kinds of runs in one mean\n\n{mixtures}"
    networks = {key[2] for key in expected_keys() if key[1] == "mamo"}
    mamo = [
        make_table(
            records,
            number,
            dataset,
            split="mamo",
            methods=[m for m in methods_of(f"table{number}") if m in networks],
        )
        for dataset in MAMO_SIZES
        for number in (1, 2)
    ]
    made["reproduction/mamo-split.md"] = "# MAMO's split\n\n" + _joined(to_markdown, mamo)
    ablations = [
        summaries.ablation_grid(records, dataset, EXPERIMENTS[kind])
        for dataset in DATASETS
        for kind in ("ablations", "losses")
    ]
    made["reproduction/ablations.md"] = "# Ablations\n\n" + _joined(to_markdown, ablations)
    volumes = [
        grid(records, constants)
        for constants in (True, False)
        for grid in (summaries.volume_grid, summaries.paired_grid)
    ]
    head = "# Hypervolumes, with constant decisions and without\n\n"
    made["reproduction/hypervolumes.md"] = head + _joined(to_markdown, volumes)
    compared = compare_front(_tables_only(records))
    grids = [summaries.credible_grid(_tables_only(records))]
    grids += [comparison_grid([c for c in compared if c.dataset == name]) for name in DATASETS]
    head = "# The front beside every row\n\n"
    made["reproduction/front.md"] = head + _joined(to_markdown, grids)
    return made


def blocks(records: Sequence[Record]) -> dict[str, str]:
    """Generated parts of the page, by name."""
    tables = _tables_only(records)
    grids = {
        "claims": summaries.claims_grid(records),
        "standing": summaries.standing_grid(records, summaries.COMPARED),
        "plain": summaries.plain_grid(records),
        "mamo": summaries.mamo_grid(records),
        "constant": summaries.constant_grid(records),
        "constant on MAMO's split": summaries.constant_grid(records, "mamo"),
        "loss": summaries.loss_grid(records),
        "shares": summaries.shares_grid(records),
        "reached": summaries.reached_grid(tables),
        "credible": summaries.credible_summary(tables),
        "ablations": summaries.ablation_summary(records),
        "cost": cost_grid(records),
    }
    told = {f"finding: {name}": text for name, text in summaries.findings(records).items()}
    told["finding: time"] = time_told(records)
    return told | {name: to_markdown(grid) for name, grid in grids.items()}


def time_told(records: Sequence[Record]) -> str:
    """What the whole study has taken by the wall clock, and its parts by the processor's."""
    seconds = {key_of(record): record["cpu_seconds"] for record in records}
    seen: set[tuple[str, str, str, int]] = set()
    parts = []
    for part in whole_study():
        new = {key for key in part.sweep.keys if key not in seen}
        seen |= new
        minutes = sum(seconds[key] for key in new) / 60
        parts.append(f"{part.name} {minutes:.0f} ({len(new)} runs)")
    total = sum(seconds[key] for key in seen) / 60
    measured = json.loads(MEASURED.read_text(encoding="utf-8"))
    whole, heart = measured["whole"]["wall_seconds"], measured["heart"]["wall_seconds"]
    return (
        f"From nothing to the last of {measured['runs']} runs, `apfex reproduce all --jobs "
        f"{measured['processes']}` took {whole / 60:.0f} minutes by the wall clock, and `apfex "
        f"reproduce table2 --datasets heart --seeds 1` {heart:.0f} seconds "
        f"({measured['machine']}). By the records the {len(seen)} runs took {total:.0f} processor "
        f"minutes: {', '.join(parts)}."
    )


def mean_seconds(records: Sequence[Record]) -> dict[str, dict[str, float]]:
    """Mean processor seconds of a run, by what it depends on."""
    spent: dict[str, dict[str, list[float]]] = {}
    for record in records:
        kind = kind_of(record["method"], record["split"])
        if kind is not None:
            own = spent.setdefault(kind, {}).setdefault(record["dataset"], [])
            own.append(record["cpu_seconds"])
    return {
        kind: {name: sum(own[name]) / len(own[name]) for name in DATASETS if name in own}
        for kind, own in spent.items()
    }


def cost_grid(records: Sequence[Record]) -> Grid:
    """Processor time of the two tables."""
    usual = {*EXPERIMENTS["table1"], *EXPERIMENTS["table2"]}
    kinds = ("All columns", "SearchFair alone", "Variants of columns")
    lines, totals = [], dict.fromkeys(kinds, 0.0)
    for dataset in DATASETS:
        sums = dict.fromkeys(kinds, 0.0)
        for record in _tables_only(records):
            method, seconds = record["method"], record["cpu_seconds"]
            if record["dataset"] == dataset:
                sums["All columns" if method in usual else "Variants of columns"] += seconds
                sums["SearchFair alone"] += seconds * (
                    method in usual and method.startswith("searchfair")
                )
        totals = {kind: totals[kind] + sums[kind] for kind in kinds}
        lines.append(Line((data_name(dataset), *(f"{value / 60:.1f}" for value in sums.values()))))
    lines.append(Line(("all", *(f"{value / 60:.1f}" for value in totals.values()))))
    title = "Processor minutes of ten seeds of both tables, this library's front included"
    columns = (Column("Data"), *(Column(kind) for kind in kinds))
    return Grid(title, columns, (("", tuple(lines)),), ())


def write() -> None:
    """Write the generated files, and the generated parts of the page."""
    records = read()
    for name, text in files(records).items():
        path = PAGE.parent / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8"), blocks(records)), encoding="utf-8")
    for method in DRAWN:
        own = {r["dataset"]: r["trace"] for r in records if r["method"] == method and "trace" in r}
        draw_figure({name: own[name] for name in DATASETS}, FOLDER / f"figure-{method}.png")
    draw_trade_offs(records, FOLDER / "trade-offs.png")
    draw_differences(records, summaries.COMPARED[:9], FOLDER / "differences.png")
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


def _tables_only(records: Iterable[Record]) -> list[Record]:
    return [r for r in records if r["split"] == "70/15/15" and "+" not in r["method"]]


def _joined(render: Any, parts: Iterable[Any]) -> str:
    return "\n\n".join(render(part).strip() for part in parts) + "\n"


if __name__ == "__main__":
    if sys.argv[1:2] == ["pack"] and len(sys.argv) == 3:
        pack(Path(sys.argv[2]))
    elif sys.argv[1:] == ["write"]:
        write()
    elif sys.argv[1:] == ["seconds"]:
        for kind, means in mean_seconds(read()).items():
            print(f'"{kind}":', {name: float(f"{value:.2g}") for name, value in means.items()})
    else:
        sys.exit(__doc__)
