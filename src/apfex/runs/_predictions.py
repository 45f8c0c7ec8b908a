"""Where decisions are written, and what is told of it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO, final

from apfex.sources import ENDINGS, RunError, TableStream, ending_of, hint, path_of


@final
@dataclass(frozen=True)
class PredictedFile:
    """What :meth:`Run.predict_file` wrote.

    Attributes
    ----------
    out : Path or None
        The file, as an absolute path; None where rows went to a stream.
    rows : int
    files : int
        How many files these are from; 1 for a frame.
    point : int
        The point of the front that decided.
    columns : tuple of str
        Names of the columns that were added: the decision in words, the probability of the positive
        label, and the margin of the decision.
    selection_rate : float
        Share of rows that were decided positively.
    cells_made_safe : int
        Cells of text that were written with an apostrophe, as a spreadsheet would run them.
    """

    out: Path | None
    rows: int
    files: int
    point: int
    columns: tuple[str, str, str]
    selection_rate: float
    cells_made_safe: int


def target_of(
    out: str | os.PathLike[str] | TextIO | None, stream: TableStream, force: bool
) -> Path | TextIO:
    """Where decisions are written. Nothing is replaced unless the user says so."""
    if not (out is None or isinstance(out, str | os.PathLike)):
        return out
    target = _name_for(stream) if out is None else path_of("out", out).absolute()
    if stream.reads(target):
        if stream.pattern is None:
            said = f"{hint('out')} must not be {target} itself, which is read; name another file."
        else:
            said = (
                f"{hint('out')} must not be among the files of {stream.name}, as the next run "
                f"would read it, got {target}; name a file elsewhere."
            )
        raise RunError(said, found=target)
    if target.is_dir():
        raise RunError(f"{hint('out')} {target} is a folder; name a file in it.", found=target)
    if (form := ENDINGS.get(ending_of(target))) in (None, "excel"):
        why = "so that its form is known."
        if form == "excel":
            why = "as Excel files are read, but not written. A spreadsheet opens CSV."
        raise RunError(
            f"{hint('out')} {target} must end in .csv, .parquet or .arrow, {why}", found=target
        )
    if target.exists() and not force:
        raise RunError(
            f"{target} exists already; name another file ({hint('out')}), or replace it "
            f"({hint('force')}).",
            force=True,
            found=target,
        )
    if not target.parent.is_dir():
        raise RunError(
            f"{hint('out')} {target} needs the folder {target.parent}, which is not there.",
            found=target,
        )
    return target


def check_new(stream: TableStream, names: Sequence[str]) -> None:
    """Refuse to add a column that is there already."""
    taken = [name for name in names if name in stream.columns]
    if taken:
        raise RunError(
            f"{stream.name} has a column '{taken[0]}' already; put another word before it "
            f"({hint('prefix')}).",
            found=taken[0],
        )


def _name_for(stream: TableStream) -> Path:
    """Beside the file that is decided on, or beside the folder of several."""
    place, table = stream.place, stream.table
    if place is None:
        return Path("predictions.csv").absolute()
    as_it_is = table.format in ("parquet", "arrow") and table.path is not None
    ending = table.path.suffix.removeprefix(".") if as_it_is and table.path else "csv"
    stem = place.name if place.is_dir() else place.name.partition(".")[0]
    return place.absolute().parent / f"{stem or 'rows'}-predictions.{ending}"
