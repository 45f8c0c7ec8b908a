"""What ``apfex reproduce`` understands."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from apfex.cli import Screen

app = typer.Typer(add_completion=False, rich_markup_mode="rich")
_EXAMPLES = """Examples:
  apfex reproduce table2 --datasets heart --seeds 2
  apfex reproduce table1 --variants --out reproduction
  apfex reproduce figure --datasets adult,heart
  apfex reproduce all --plan
  apfex reproduce all --backend dask --scheduler tcp://10.0.0.5:8786

A sweep that was stopped goes on where it was: finished runs are kept in the folder."""


class Experiment(StrEnum):
    """What is reproduced."""

    table1 = "table1"
    table2 = "table2"
    figure = "figure"
    ablations = "ablations"
    losses = "losses"
    all = "all"


class Split(StrEnum):
    """Who learns, chooses and is tested."""

    even = "70/15/15"
    mamo = "mamo"


class Backend(StrEnum):
    """Where runs are made."""

    loky = "loky"
    dask = "dask"
    ray = "ray"


class Rule(StrEnum):
    """How a model is chosen on validation rows."""

    nearest = "nearest"
    fairest = "fairest"
    last = "last"


@app.command(epilog=_EXAMPLES)
def reproduce(
    experiment: Annotated[Experiment, typer.Argument(help="What to reproduce.")],
    datasets: Annotated[
        list[str] | None,
        typer.Option(help="Names, with commas between; all five by default.", metavar="NAMES"),
    ] = None,
    methods: Annotated[
        list[str] | None,
        typer.Option(help="Keys of methods, with commas between.", metavar="KEYS"),
    ] = None,
    seeds: Annotated[
        int, typer.Option(help="Runs of each method, seeds 0, 1, ...; the figure shows one.", min=1)
    ] = 10,
    jobs: Annotated[int, typer.Option(help="Processes; -1: one for each core.")] = -1,
    backend: Annotated[
        Backend | None,
        typer.Option(help="Processes of this machine (loky), a Dask cluster, or Ray."),
    ] = None,
    scheduler: Annotated[
        str | None,
        typer.Option(help="Of a Dask or Ray cluster, as tcp://HOST:8786.", metavar="ADDRESS"),
    ] = None,
    split: Annotated[
        Split, typer.Option(help="The paper's, or the sizes of Padh et al.")
    ] = Split.even,
    rule: Annotated[Rule, typer.Option(help="How a model is chosen.")] = Rule.nearest,
    variants: Annotated[
        bool, typer.Option("--variants", help="Also other forms of the methods.")
    ] = False,
    out: Annotated[
        Path, typer.Option(help="Folder of records and tables; may exist.", metavar="FOLDER")
    ] = Path("apfex-reproduction"),
    earlier: Annotated[
        Path | None,
        typer.Option(help="Folder of records that count as done; only read.", metavar="FOLDER"),
    ] = None,
    plan: Annotated[
        bool, typer.Option("--plan", help="Say what is left to run and how long; run nothing.")
    ] = False,
    json: Annotated[
        bool, typer.Option("--json", help="One JSON document on stdout, everything else on stderr.")
    ] = False,
) -> None:
    """Run the paper's experiments, and print its tables with its numbers beside ours."""
    from apfex_reproduction.cli._run import Wanted, reproduce_experiment

    screen = Screen(json)
    wanted = Wanted(
        experiment.value,
        _names(datasets),
        _names(methods),
        seeds,
        jobs,
        split.value,
        rule.value,
        variants,
        out,
        earlier,
        plan,
        None if backend is None else backend.value,
        scheduler,
    )
    screen.finish(reproduce_experiment(wanted, screen))


def _names(given: list[str] | None) -> list[str]:
    return [name.strip() for part in given or () for name in part.split(",") if name.strip()]
