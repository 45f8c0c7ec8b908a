"""The commands, put together."""

from __future__ import annotations

from typing import Annotated

import typer

from apfex.cli import _audit, _explore, _options, _predict, _report
from apfex.cli._datasets import datasets
from apfex.cli._plugins import Commands

app = typer.Typer(
    name="apfex",
    cls=Commands,
    help="Classifiers that are accurate and fair at every intersection of sensitive attributes.",
    epilog=_options.examples(
        "apfex explore adult",
        "apfex audit decisions.csv --prediction approved --sensitive sex,race",
        after="Exit codes: 0 fine; 1 a gate was hit, or a rerun differs; 2 usage or data error; "
        "130 Ctrl-C.",
    ),
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        import apfex

        typer.echo(f"apfex {apfex.__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _start(
    context: typer.Context,
    version: Annotated[  # noqa: ARG001 - its callback has answered
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


app.command(epilog=_explore.EXAMPLES)(_explore.explore)
app.command(epilog=_audit.EXAMPLES)(_audit.audit)
app.command(epilog=_predict.EXAMPLES)(_predict.predict)
app.command(epilog=_report.EXAMPLES)(_report.report)
app.command(epilog=_explore.RERUN_EXAMPLES)(_explore.rerun)
app.add_typer(datasets, name="datasets")
