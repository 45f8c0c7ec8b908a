"""The commands, put together, with those that other distributions add.

They do so by an entry point of the group ``apfex.commands``, whose name is that of the command; it
leads to a ``typer.Typer`` made with ``add_completion=False``. Such commands are looked for, and
imported, only where help lists them or a word is no command of apfex itself; their modules should
import what is heavy only when they run.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from apfex.cli import _audit, _diff, _explore, _options, _stored_runs
from apfex.cli._datasets import datasets

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "apfex.commands"
_ELSEWHERE = {
    "reproduce": "`apfex reproduce` comes with the distribution apfex-reproduction; run "
    "`pip install . ./reproduction` in a checkout of APFEx to install it."
}
"""Commands that people know of, and how to get them."""


class Commands(TyperGroup):
    """The commands of apfex, and after them those of other distributions."""

    _are_all_here = False

    def list_commands(self, ctx: Any) -> list[str]:
        """All names, as help shows them."""
        self._take_in()
        return super().list_commands(ctx)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of a name, or None."""
        if cmd_name not in self.commands:
            self._take_in()
        return super().get_command(ctx, cmd_name)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that was typed; for one that is known but not installed, how to get it."""
        missing = self.get_command(ctx, args[0]) is None and not ctx.resilient_parsing
        if missing and args[0] in _ELSEWHERE:
            raise ValueError(_ELSEWHERE[args[0]])
        return super().resolve_command(ctx, args)

    def _take_in(self) -> None:
        """Add what other distributions offer; what cannot be added is a warning of one line."""
        from importlib.metadata import entry_points

        if self._are_all_here:
            return
        self._are_all_here = True
        for point in sorted(entry_points(group=GROUP), key=lambda point: point.name):
            try:
                if point.name in self.commands:
                    raise ValueError("there is a command of that name already")
                self.add_command(_load(point), point.name)
            except Exception as error:  # whatever it is, the other commands work
                why = " ".join(f"{type(error).__name__}: {error}".split())
                home = point.dist.name if point.dist is not None else point.value
                warnings.warn(
                    f"The command {point.name!r} of {home} is left out: {why}", stacklevel=2
                )


def _load(point: EntryPoint) -> Any:
    app = point.load()
    if not isinstance(app, typer.Typer):
        raise TypeError(f"{point.value} must be a typer.Typer, got {type(app).__name__}")
    command = typer.main.get_command(app)
    command.name = point.name
    return command


app = typer.Typer(
    name="apfex",
    cls=Commands,
    help="Classifiers that are accurate and fair at every intersection of sensitive attributes.",
    epilog=_options.examples(
        "apfex explore adult",
        "apfex audit decisions.csv --prediction approved --sensitive sex,race",
        after="Exit codes: 0 fine; 1 no usable model was found, a gate was hit, or a rerun "
        "differs; 2 usage or data error; 130 Ctrl-C.",
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


app.command(cls=_options.Command, epilog=_explore.EXAMPLES)(_explore.explore)
app.command(cls=_options.Command, epilog=_audit.EXAMPLES)(_audit.audit)
app.command(cls=_options.Command, epilog=_diff.EXAMPLES)(_diff.diff)
app.command(cls=_options.Command, epilog=_stored_runs.PREDICT_EXAMPLES)(_stored_runs.predict)
app.command(cls=_options.Command, epilog=_stored_runs.REPORT_EXAMPLES)(_stored_runs.report)
app.command(cls=_options.Command, epilog=_stored_runs.CARD_EXAMPLES)(_stored_runs.card)
app.command(cls=_options.Command, epilog=_stored_runs.RERUN_EXAMPLES)(_stored_runs.rerun)
app.add_typer(datasets, name="datasets")
