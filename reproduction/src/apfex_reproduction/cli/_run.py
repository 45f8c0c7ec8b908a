"""The work behind ``apfex reproduce``: run what is missing, then print and write what it comes to.

Tables are made from the records alone, so that the same command can be given again at any time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, final

from apfex.persistence import write_text_atomically

if TYPE_CHECKING:
    from apfex.cli import Screen
    from apfex_reproduction.experiments import Part, Sweep

Split = Literal["70/15/15", "mamo"]


@final
@dataclass(frozen=True)
class Wanted:
    """What was asked for."""

    experiment: str
    datasets: Sequence[str]
    methods: Sequence[str]
    n_seeds: int
    n_jobs: int
    split: Split
    rule: Literal["nearest", "fairest", "last"]
    variants: bool
    folder: Path
    earlier: Path | None = None
    only_plan: bool = False
    backend: Literal["loky", "dask", "ray"] | None = None
    scheduler: str | None = None


def reproduce_experiment(wanted: Wanted, screen: Screen) -> Mapping[str, Any]:
    """Run, print, write; return what ``--json`` shows."""
    parts = _parts_of(wanted)
    plan = _tell_plan(parts, wanted, screen)
    if wanted.only_plan:
        return {"experiment": wanted.experiment, "plan": plan}
    datasets = dict.fromkeys(name for part in parts for name in part.sweep.datasets)
    _fetch(list(datasets), screen)
    records = _run([part.sweep for part in parts], wanted, screen)
    files = (
        _draw(records, wanted)
        if wanted.experiment == "figure"
        else _tabulate_all(records, parts, wanted, screen)
        if wanted.experiment == "all"
        else _tabulate(records, parts[0].sweep, wanted, screen)
    )
    screen.say(f"Written: {', '.join(str(path) for path in files)}")
    return {
        "experiment": wanted.experiment,
        "split": wanted.split,
        "rule": wanted.rule,
        "records": [_shortened(record) for record in records],
        "files": [str(path) for path in files],
    }


def _parts_of(wanted: Wanted) -> list[Part]:
    """The whole study in its order, or the one sweep of an experiment."""
    from apfex_reproduction.experiments import Part, whole_study

    if wanted.experiment != "all":
        return [Part(wanted.experiment, _sweep_of(wanted))]
    if wanted.methods or wanted.variants or wanted.split != "70/15/15":
        raise ValueError(
            "--methods, --variants and --split are not for 'all', which runs every method on both "
            "splits; name an experiment, as table1, to run some of it."
        )
    _check_jobs(wanted)
    datasets = _read_datasets(wanted.datasets, "70/15/15")
    return whole_study(datasets, range(wanted.n_seeds))


def _tell_plan(parts: Sequence[Part], wanted: Wanted, screen: Screen) -> list[dict[str, Any]]:
    """What is left of each part, and how long it may take."""
    from joblib import cpu_count

    from apfex_reproduction.experiments import known_records, plan_of

    done = known_records(wanted.folder, wanted.earlier)
    plan = [
        {"part": name, "runs": runs, "processor_minutes": round(minutes, 1)}
        for name, runs, minutes in plan_of(parts, done)
    ]
    say = screen.say if wanted.only_plan else screen.aside
    for line in plan:
        say(f"{line['part']}: {line['runs']} runs left, {line['processor_minutes']} minutes")
    total = sum(line["processor_minutes"] for line in plan)
    jobs = cpu_count() if wanted.n_jobs == -1 else max(1, wanted.n_jobs)
    say(
        f"About {total:.0f} processor minutes; {total / jobs:.0f} minutes with {jobs} processes "
        "on as many cores."
    )
    return plan


def _sweep_of(wanted: Wanted) -> Sweep:
    from apfex_reproduction.experiments import EXPERIMENTS, VARIANTS, Sweep, read_methods

    _check_jobs(wanted)
    usual = EXPERIMENTS[wanted.experiment]
    known = (*usual, *VARIANTS.get(wanted.experiment, ()))
    if wanted.methods:
        try:
            methods = read_methods(wanted.methods, known)
        except ValueError as error:
            raise ValueError(f"--{error}") from None
    else:
        methods = known if wanted.variants else usual
    if wanted.experiment in ("ablations", "losses"):  # hypervolumes count what a constant reaches
        methods = tuple(dict.fromkeys(("always-0", *methods)))
    datasets = _read_datasets(wanted.datasets, wanted.split)
    n_seeds = 1 if wanted.experiment == "figure" else wanted.n_seeds  # it shows one run
    return Sweep(methods, datasets, range(n_seeds), wanted.split)


def _check_jobs(wanted: Wanted) -> None:
    if wanted.n_jobs == 0:
        raise ValueError("--jobs must be a number of processes, or -1 for one a core, got 0.")
    if wanted.scheduler is not None and wanted.backend not in ("dask", "ray"):
        raise ValueError(
            f"--scheduler must come with --backend dask or ray, got {wanted.scheduler!r} alone."
        )
    if wanted.scheduler is not None and wanted.n_jobs != -1:
        raise ValueError(
            f"--jobs must be left out with --scheduler, whose workers are all used, got "
            f"{wanted.n_jobs}."
        )


def _read_datasets(names: Sequence[str], split: str) -> tuple[str, ...]:
    from apfex_reproduction.experiments import DATASETS, MAMO_SIZES

    known = tuple(MAMO_SIZES) if split == "mamo" else DATASETS
    for name in names:
        if name not in known:
            near = get_close_matches(name, known, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else "."
            where = f" with --split {split}" if split == "mamo" else ""
            raise ValueError(
                f"--datasets must be among {', '.join(known)}{where}, got {name!r}{hint}"
            )
    return tuple(name for name in known if name in names) if names else known


def _fetch(datasets: Sequence[str], screen: Screen) -> None:
    """Get all data before anything runs: a missing file is known at once."""
    from apfex.datasets import load_dataset

    for name in datasets:
        screen.aside(f"Data: {name}")
        load_dataset(name)


def _run(sweeps: Sequence[Sweep], wanted: Wanted, screen: Screen) -> list[dict[str, Any]]:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from apfex_reproduction.experiments import run_sweep

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=screen.asides) as progress:
        task = progress.add_task("runs", total=len({key for sweep in sweeps for key in sweep.keys}))

        def show(record: Mapping[str, Any], done: int, total: int) -> None:
            what = f"{record['dataset']} {record['method']} seed {record['seed']}"
            progress.update(task, completed=done, total=total, description=what)

        try:
            records = run_sweep(
                sweeps,
                wanted.folder,
                earlier=wanted.earlier,
                n_jobs=wanted.n_jobs,
                backend=wanted.backend,
                scheduler=wanted.scheduler,
                on_done=show,
            )
        except KeyboardInterrupt:
            screen.aside(
                f"The finished runs are in {wanted.folder}; the same command goes on from there."
            )
            raise
        except RuntimeError as error:
            raise ValueError(str(error)) from error
        progress.update(task, completed=len(records), description="runs")
    return records


def _tabulate_all(
    records: Sequence[dict[str, Any]], parts: Sequence[Part], wanted: Wanted, screen: Screen
) -> list[Path]:
    """Both tables on both splits, and the ablations; the pages of the study say the rest."""
    from apfex_reproduction.experiments import EXPERIMENTS, Sweep

    files = []
    for experiment in ("table1", "table2", "ablations", "losses"):
        splits: list[Split] = list(dict.fromkeys(part.sweep.split for part in parts))
        for split in splits:
            own = [record for record in records if record["split"] == split]
            ran = {record["method"] for record in own}
            methods = [m for m in EXPERIMENTS[experiment] if m in ran]
            datasets = list(dict.fromkeys(record["dataset"] for record in own))
            if split == "70/15/15" or experiment.startswith("table"):
                some = replace(wanted, experiment=experiment, split=split)
                sweep = Sweep(methods, datasets, range(wanted.n_seeds), split)
                files += _tabulate(own, sweep, some, screen)
    return files


def _tabulate(
    records: Sequence[dict[str, Any]], sweep: Sweep, wanted: Wanted, screen: Screen
) -> list[Path]:
    """Print a table for each data set, and write all of them in three forms, with every run."""
    from apfex_reproduction.experiments import (
        make_table,
        runs_grid,
        summaries,
        to_html,
        to_latex,
        to_markdown,
        to_text,
    )

    shown: list[Any] = []
    for dataset in sweep.datasets:
        if wanted.experiment in ("ablations", "losses"):
            known = summaries.with_constants(records)
            table = summaries.ablation_grid(known, dataset, sweep.methods)
            shown.append(table)
        else:
            table = make_table(
                records,
                {"table1": 1, "table2": 2}[wanted.experiment],
                dataset,
                rule=wanted.rule,
                split=wanted.split,
                seeds=list(sweep.seeds),
                methods=sweep.methods,
            )
            shown += [table, runs_grid(table)]
        screen.say(to_text(table, width=max(100, min(screen.results.width, 140))))
        screen.say()
    stem = "-".join([wanted.experiment, wanted.rule] + (["mamo"] if wanted.split == "mamo" else []))
    files = []
    for suffix, render in ((".md", to_markdown), (".tex", to_latex), (".html", to_html)):
        path = wanted.folder / f"{stem}{suffix}"
        write_text_atomically(path, "\n\n".join(render(part) for part in shown) + "\n")
        files.append(path)
    return files


def _draw(records: Sequence[Mapping[str, Any]], wanted: Wanted) -> list[Path]:
    """The figure of the first seed of each data set, and the drawing of the method."""
    from apfex_reproduction.experiments import draw_figure, draw_workflow

    traces = {}
    for record in records:
        if record.get("trace"):
            traces.setdefault(record["dataset"], record["trace"])
    files = [wanted.folder / name for name in ("figure.png", "figure.svg", "workflow.svg")]
    for path in files[:2]:
        draw_figure(traces, path)
    draw_workflow(files[2])
    return files


def _shortened(record: Mapping[str, Any]) -> dict[str, Any]:
    """A record without what is long."""
    return {
        name: value for name, value in record.items() if name not in ("trace", "points", "front")
    }
