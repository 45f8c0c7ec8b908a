"""Options that several commands share, and reading them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from typer.core import TyperCommand

CRITERIA = ["dp,tpr"]
_WITH_COMMAS = ("positive", "max_gap", "cost", "class_weight")
"""Options that are given once, with several values between commas."""
Value = TypeVar("Value")


class Command(TyperCommand):
    """A command that refuses a second value for an option that has one; the first would be lost."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read what was typed."""
        if not ctx.resilient_parsing:  # while a shell completes a line, it may be anything
            _, _, given = self.make_parser(ctx).parse_args(args=list(args))
            _check_given_once(given)
        return super().parse_args(ctx, args)


def _check_given_once(given: Sequence[Any]) -> None:
    for option in given:
        times = sum(one is option for one in given)
        takes_more = option.param_type_name == "argument" or option.multiple or option.is_flag
        if times > 1 and not takes_more:
            several = ", or put several values into one, with commas between"
            raise ValueError(
                f"{option.opts[0]} must be given once, got it {times} times; keep the one that is "
                f"meant{several * (option.name in _WITH_COMMAS)}."
            )


def examples(*lines: str, after: str = "") -> str:
    """The end of a help page."""
    from rich.markup import escape

    shown = "\n".join(f"  {escape(line)}" for line in lines)
    return f"Examples:\n{shown}" + (f"\n\n{after}" if after else "")


class Model(StrEnum):
    """What is trained."""

    auto = "auto"
    mlp = "mlp"
    linear = "linear"
    boosting = "boosting"
    both = "mlp+boosting"


class Search(StrEnum):
    """How points are found."""

    auto = "auto"
    postprocess = "postprocess"
    inprocess = "inprocess"


Json = Annotated[
    bool, typer.Option("--json", help="One JSON document on stdout, everything else on stderr.")
]
Label = Annotated[str | None, typer.Option(help="Column with the true outcome.", metavar="COLUMN")]
Positive = Annotated[
    str | None,
    typer.Option(
        help="Its positive value, or several with commas between; not needed for columns of 0 and "
        "1.",
        metavar="VALUE",
    ),
]
Sensitive = Annotated[
    list[str] | None,
    typer.Option(help="Sensitive columns, with commas between.", metavar="COLUMNS"),
]
Bins = Annotated[
    list[str] | None,
    typer.Option(
        "--bins",
        "--bin",
        help="Ranges of a sensitive column of numbers: where to cut it.",
        metavar="age=25,45,65",
    ),
]
Weight = Annotated[
    str | None, typer.Option(help="Column with weights of the rows.", metavar="COLUMN")
]
Criteria = Annotated[
    list[str],
    typer.Option(help="Gaps between groups that count: dp, tpr, fpr, ...", metavar="NAMES"),
]
Tolerance = Annotated[
    float, typer.Option(help="Largest gap that the report calls acceptable.", metavar="GAP")
]
ToleranceOrLimit = Annotated[
    float | None,
    typer.Option(
        help="Largest gap that the report calls acceptable; --max-gap by default.", metavar="GAP"
    ),
]
Confidence = Annotated[
    float, typer.Option(help="How sure intervals and verdicts are.", metavar="SHARE")
]
Encoding = Annotated[
    str | None,
    typer.Option(help="Of a CSV file that is not UTF-8, such as cp1252.", metavar="NAME"),
]
Sheet = Annotated[str | None, typer.Option(help="Of an Excel file with several.", metavar="NAME")]
Run = Annotated[Path, typer.Argument(help="Folder of a run.")]
Out = Annotated[
    Path | None, typer.Option(help="Folder to write; it must not exist.", metavar="FOLDER")
]


def arguments(typed: Mapping[str, Any], *others: str) -> dict[str, Any]:
    """What was typed for a command, as the function of :mod:`apfex.runs` takes it.

    ``others`` are for the command itself, as ``out`` and ``json`` are.
    """
    read = {
        "bins": read_bins,
        "where": read_where,
        "max_gap": read_max_gap,
        "cost": read_cost,
        "class_weight": read_class_weight,
        "model": str,
        "search": str,
        "strategy": lambda names: names or "switch",
    }
    given = {name: value for name, value in typed.items() if name not in ("out", "json", *others)}
    return given | {name: read[name](value) for name, value in given.items() if name in read}


def read_bins(given: Sequence[str] | None) -> dict[str, list[float]]:
    """``age=25,45,65``: where a column of numbers is cut."""
    found = []
    for text in given or ():
        name, _, edges = text.rpartition("=")
        try:
            found.append((name, [float(edge) for edge in edges.split(",")]))
        except ValueError:
            name = ""
        if not name:
            raise ValueError(
                f"--bins must be a column and rising numbers, such as age=25,45,65, got {text!r}."
            )
    return _each_once("--bins", found)


def read_where(given: Sequence[str] | None) -> dict[str, list[str]] | None:
    """``month=5``, or ``month=5,6``: values that a column must have."""
    found = []
    for text in given or ():
        name, mark, values = text.partition("=")
        if not (name.strip() and mark):
            raise ValueError(
                f"--where must be a column and a value, such as month=5, got {text!r}."
            )
        found.append((name.strip(), [value.strip() for value in values.split(",")]))
    return _each_once("--where", found) or None


def read_max_gap(text: str | None) -> float | dict[str, float] | None:
    """``0.05`` for all criteria, or ``dp=0.05,tpr=0.1``."""
    try:
        if text is None or "=" not in text:
            return None if text is None else float(text)
        parts = (part.partition("=") for part in text.split(","))
        found = [(name.strip(), float(value)) for name, _, value in parts]
    except ValueError as error:
        raise ValueError(
            f"--max-gap must be a number from 0 to 1, or such as dp=0.05,tpr=0.1, got {text!r}."
        ) from error
    return _each_once("--max-gap", found)


def read_cost(text: str | None) -> dict[str, float] | None:
    """``false_positive=1,false_negative=5``: what errors cost."""
    if text is None:
        return None
    try:
        parts = (part.partition("=") for part in text.split(","))
        found = [(name.strip().replace("-", "_"), float(value)) for name, _, value in parts]
    except ValueError as error:
        raise ValueError(
            "--cost must be what errors cost, such as false_positive=1,false_negative=5, got "
            f"{text!r}."
        ) from error
    return _each_once("--cost", found)


def read_class_weight(text: str | None) -> str | dict[str, float] | None:
    """``balanced``, or ``positive=5``: how much errors on an outcome count."""
    if text is None or text.strip() == "balanced":
        return None if text is None else "balanced"
    try:
        parts = (part.partition("=") for part in text.split(","))
        found = [(name.strip(), float(value)) for name, _, value in parts]
    except ValueError as error:
        raise ValueError(
            f"--class-weight must be balanced, or such as positive=5, got {text!r}."
        ) from error
    return _each_once("--class-weight", found)


def _each_once(option: str, given: Iterable[tuple[str, Value]]) -> dict[str, Value]:
    """What was typed for each name; a name with two would keep the last of them."""
    found: dict[str, Value] = {}
    for name, value in given:
        if name in found:
            several = "; put all of its values into one, with commas between"
            rest = several if option in ("--where", "--bins") else ""
            raise ValueError(f"{option} must name {name!r} once, got it twice{rest}.")
        found[name] = value
    return found
