"""``apfex predict``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from apfex.cli import _options as options
from apfex.cli._errors import CommandError
from apfex.cli._screen import Screen

EXAMPLES = options.examples(
    "apfex predict apfex-adult new.csv",
    "apfex predict apfex-people new.parquet --point 3 --out decided.parquet",
    "apfex predict apfex-people new.csv --out - | head",
)


def predict(
    run: options.Run,
    file: Annotated[Path, typer.Argument(help="CSV, Parquet or Arrow file.")],
    point: Annotated[
        int | None, typer.Option(help="Point of the front; the chosen one by default.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="File to write (CSV, Parquet or Arrow), or - for stdout; FILE-predictions by "
            "default.",
            metavar="FILE",
        ),
    ] = None,
    prefix: Annotated[
        str, typer.Option(help="Before the names of the new columns.", metavar="WORD")
    ] = "",
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
    encoding: options.Encoding = None,
    json: options.Json = False,
) -> None:
    """Decide for new rows: adds the columns prediction and probability to a copy of the file."""
    from apfex.cli._predicting import predict_file

    if json and str(out) == "-":
        raise CommandError("--json and --out - both want stdout; leave one out.")
    screen = Screen(json)
    screen.finish(
        predict_file(
            run,
            file,
            point=point,
            out=out,
            prefix=prefix,
            force=force,
            encoding=encoding,
            screen=screen,
        )
    )
