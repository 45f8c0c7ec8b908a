"""Options that several commands share."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

CRITERIA = ["dp,tpr"]


def examples(*lines: str, after: str = "") -> str:
    """The end of a help page."""
    from rich.markup import escape

    shown = "\n".join(f"  {escape(line)}" for line in lines)
    return f"Examples:\n{shown}" + (f"\n\n{after}" if after else "")


class Model(StrEnum):
    """What is trained."""

    mlp = "mlp"
    linear = "linear"
    boosting = "boosting"
    both = "mlp+boosting"


class Search(StrEnum):
    """How points are found."""

    auto = "auto"
    rules = "rules"
    members = "members"


Json = Annotated[
    bool, typer.Option("--json", help="One JSON document on stdout, everything else on stderr.")
]
Label = Annotated[str | None, typer.Option(help="Column with the true outcome.", metavar="COLUMN")]
Positive = Annotated[
    str | None,
    typer.Option(help="Its positive value; not needed for columns of 0 and 1.", metavar="VALUE"),
]
Sensitive = Annotated[
    list[str] | None,
    typer.Option(help="Sensitive columns, with commas between.", metavar="COLUMNS"),
]
Bins = Annotated[
    list[str] | None,
    typer.Option(help="Where to cut a sensitive column of numbers.", metavar="age=25,45,65"),
]
Weight = Annotated[
    str | None, typer.Option(help="Column with weights of the rows.", metavar="COLUMN")
]
Criteria = Annotated[
    list[str],
    typer.Option(help="Gaps that count: dp, tpr, fpr, equalized_odds, ...", metavar="NAMES"),
]
Tolerance = Annotated[float, typer.Option(help="The gap that is still acceptable.", metavar="GAP")]
Confidence = Annotated[float, typer.Option(help="Of every interval.", metavar="SHARE")]
Encoding = Annotated[
    str | None,
    typer.Option(help="Of a CSV file that is not UTF-8, such as cp1252.", metavar="NAME"),
]
Run = Annotated[Path, typer.Argument(help="Folder of a run.")]
Out = Annotated[
    Path | None, typer.Option(help="Folder to write; it must not exist.", metavar="FOLDER")
]
