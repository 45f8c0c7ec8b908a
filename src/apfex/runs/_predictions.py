"""Files of decisions: a copy of a table with three columns more, safe for spreadsheets."""

from __future__ import annotations

import csv
import gzip
import io
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TextIO, final

import numpy as np

from apfex.runs._errors import RunError, hint
from apfex.runs._tables import Table, format_of

if TYPE_CHECKING:
    import pandas as pd

_RUNS_IN_SPREADSHEET = r"[=+\-@\t\r\n]"
_NUMBER = r"[+-]?(\d+([.,]\d*)?|[.,]\d+)([eE][+-]?\d+)?"


@final
@dataclass(frozen=True)
class PredictedFile:
    """What :meth:`Run.predict_file` wrote.

    Attributes
    ----------
    out : Path or None
        The file, as an absolute path; None where rows went to a stream.
    rows : int
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
    point: int
    columns: tuple[str, str, str]
    selection_rate: float
    cells_made_safe: int


def target_of(
    out: str | os.PathLike[str] | TextIO | None, table: Table, force: bool
) -> Path | TextIO:
    """Where decisions are written. Nothing is replaced unless the user says so."""
    if not (out is None or isinstance(out, str | os.PathLike)):
        return out
    target = _name_for(table) if out is None else Path(out).absolute()
    if target.exists() and table.path is not None and target.resolve() == table.path.resolve():
        raise RunError(f"{hint('out')} must not be {table.path} itself.", found=table.path)
    if target.is_dir():
        raise RunError(f"{hint('out')} {target} is a folder; name a file in it.", found=target)
    if format_of(target) == "excel":
        raise RunError(
            f"{hint('out')} {target} must end in .csv, .parquet or .arrow: Excel files are "
            "read, but "
            "not written. A spreadsheet opens CSV.",
            found=target,
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


def check_new(table: Table, names: Sequence[str]) -> None:
    """Refuse to add a column that is there already."""
    taken = [name for name in names if name in table.columns]
    if taken:
        raise RunError(
            f"{table.name} has a column '{taken[0]}' already; put another word before it "
            f"({hint('prefix')}).",
            found=taken[0],
        )


def _name_for(table: Table) -> Path:
    """Beside the file that is decided on."""
    if table.path is None:
        return Path("predictions.csv").absolute()
    as_it_is = table.format in ("parquet", "arrow")
    ending = table.path.suffix.removeprefix(".") if as_it_is else "csv"
    name = f"{table.path.name.partition('.')[0]}-predictions.{ending}"
    return table.path.absolute().with_name(name)


def write_rows(table: Table, added: Mapping[str, np.ndarray], target: Path | TextIO) -> int:
    """Write the rows of a file with more columns.

    Parameters
    ----------
    table : Table
        Cells of CSV are written as they stand.
    added : mapping from name to column
    target : Path, or a stream that gets CSV

    Returns
    -------
    int
        Cells of text that were written with an apostrophe, as a spreadsheet would run them.
    """
    from apfex.persistence import write_bytes_atomically

    is_file = isinstance(target, Path)
    if is_file and format_of(target) != "csv":
        write_bytes_atomically(target, _stored(table, added, format_of(target)))
        return 0
    frame, made_safe = _safe_cells(table.read_verbatim().assign(**added))
    text = _as_csv(frame, "\t" if is_file and ".tsv" in target.suffixes else ",")
    if is_file:
        data = text.encode()
        write_bytes_atomically(
            target, gzip.compress(data, mtime=0) if target.suffix == ".gz" else data
        )
    else:
        target.write(text)
    return made_safe


def _as_csv(frame: pd.DataFrame, separator: str) -> str:
    """CSV with plain line ends; text is quoted throughout where a cell has a bare one of its own.

    Readers take a bare carriage return for the end of a row, but writers do not quote it.
    """
    import pandas as pd

    words = frame.select_dtypes(exclude=["number", "bool"])
    names = pd.Series(frame.columns.astype("str"))
    bare = any(column.astype("str").str.contains("\r").any() for _, column in words.items())
    quoting = csv.QUOTE_NONNUMERIC if bare or names.str.contains("\r").any() else csv.QUOTE_MINIMAL
    return frame.to_csv(index=False, sep=separator, lineterminator="\n", quoting=quoting)


def _safe_cells(frame: pd.DataFrame) -> tuple[pd.DataFrame, int]:
    """Text that a spreadsheet would run, names of columns too, gets an apostrophe before it."""
    import pandas as pd

    frame, changed = frame.copy(), 0
    for place, name in enumerate(frame.columns):
        column = frame.iloc[:, place]
        if getattr(column.dtype, "kind", "O") in "biufmM":
            continue
        text = column.astype("str")
        runs = column.notna() & text.str.match(_RUNS_IN_SPREADSHEET) & ~text.str.fullmatch(_NUMBER)
        if runs.any():
            frame[name] = column.astype(object).where(~runs, "'" + text)
            changed += int(runs.sum())
    names = pd.Series(frame.columns.astype("str"))
    odd = names.str.match(_RUNS_IN_SPREADSHEET)
    frame.columns = names.where(~odd, "'" + names)
    return frame, changed + int(odd.sum())


def _stored(table: Table, added: Mapping[str, np.ndarray], format: str) -> bytes:
    import pyarrow as pa

    rows = table.read_arrow()
    for name, column in added.items():
        rows = rows.append_column(name, pa.array(column))
    sink = io.BytesIO()
    if format == "parquet":
        import pyarrow.parquet as pq

        pq.write_table(rows, sink)
    else:
        with pa.ipc.new_file(sink, rows.schema) as writer:
            writer.write_table(rows)
    return sink.getvalue()
