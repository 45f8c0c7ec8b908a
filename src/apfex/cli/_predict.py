"""``apfex predict``."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from apfex.cli import _options as options
from apfex.cli._screen import Screen
from apfex.plain import printable

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
    from apfex.runs import load_run

    if json and str(out) == "-":
        raise ValueError("--json and --out - both want stdout; leave one out.")
    screen = Screen(json)
    found = load_run(run)
    target = sys.stdout if str(out) == "-" else out
    done = found.predict_file(
        file, target, point=point, prefix=prefix, force=force, encoding=encoding
    )
    say = screen.say if done.out is not None else screen.aside
    say(
        f"{done.rows:,} rows decided by point {done.point}: {100 * done.selection_rate:.1f}% "
        f"{printable(found.record['words'][1], 40)}; columns {' and '.join(done.columns)} added in "
        f"{done.out or 'stdout'}"
    )
    if done.cells_made_safe:
        screen.warn(
            f"{done.cells_made_safe:,} cells of text begin with =, +, -, @ or a control character; "
            "each was written with an apostrophe before it, so that no spreadsheet runs it."
        )
    screen.finish({"run": str(found.folder), **asdict(done)})
