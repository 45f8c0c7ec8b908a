"""``apfex rerun``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from apfex.cli import _options as options
from apfex.cli._screen import Screen

EXAMPLES = options.examples(
    "apfex rerun apfex-adult/run.json",
    "apfex rerun apfex-people/run.json --data moved/people.csv --out again",
)


def rerun(
    run: Annotated[Path, typer.Argument(help="run.json of a run, or its folder.")],
    data: Annotated[
        Path | None, typer.Option(help="Where the file is now.", metavar="FILE")
    ] = None,
    out: options.Out = None,
    json: options.Json = False,
) -> None:
    """Repeat a run on the same data into a new folder, and say whether it comes out the same."""
    from apfex.cli._repeating import repeat

    screen = Screen(json)
    result = repeat(run, data, out, screen)
    screen.finish(result)
    if not result["same"]:
        raise typer.Exit(1)
