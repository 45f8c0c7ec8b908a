"""Rows with new columns, written whole or not at all, and so that no spreadsheet runs anything."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from apfex.cli._files import TableFile, kind_of

if TYPE_CHECKING:
    import pandas as pd

_RUNS = r"[=+\-@\t\r\n]"
_NUMBER = r"[+-]?(\d+([.,]\d*)?|[.,]\d+)([eE][+-]?\d+)?"


def write_rows(table: TableFile, added: Mapping[str, np.ndarray], target: Path | None) -> int:
    """Write the rows of a file with more columns.

    Parameters
    ----------
    table : TableFile
        Cells of CSV are written as they stand.
    added : mapping from name to column
    target : Path, or None for CSV on stdout

    Returns
    -------
    int
        Cells of text that were written with an apostrophe, as a spreadsheet would run them.
    """
    from apfex.persistence import write_bytes_atomically

    kind = "csv" if target is None else kind_of(target)
    if kind != "csv":
        assert target is not None
        write_bytes_atomically(target, _stored(table, added, kind))
        return 0
    frame, made_safe = safe_cells(table.read_verbatim().assign(**added))
    separator = "\t" if target is not None and ".tsv" in target.suffixes else ","
    text = as_csv(frame, separator)
    if target is None:
        sys.stdout.write(text)
    else:
        data = text.encode()
        write_bytes_atomically(target, _packed(data) if target.suffix == ".gz" else data)
    return made_safe


def as_csv(frame: pd.DataFrame, separator: str = ",") -> str:
    """CSV with plain line ends; text is quoted throughout where a cell has a bare one of its own.

    Readers take a bare carriage return for the end of a row, but writers do not quote it.
    """
    import pandas as pd

    words = frame.select_dtypes(exclude=["number", "bool"])
    names = pd.Series(frame.columns.astype("str"))
    bare = any(column.astype("str").str.contains("\r").any() for _, column in words.items())
    quoting = csv.QUOTE_NONNUMERIC if bare or names.str.contains("\r").any() else csv.QUOTE_MINIMAL
    return frame.to_csv(index=False, sep=separator, lineterminator="\n", quoting=quoting)


def safe_cells(frame: pd.DataFrame) -> tuple[pd.DataFrame, int]:
    """Text that a spreadsheet would run, names of columns too, gets an apostrophe before it."""
    import pandas as pd

    frame, changed = frame.copy(), 0
    for place, name in enumerate(frame.columns):
        column = frame.iloc[:, place]
        if getattr(column.dtype, "kind", "O") in "biufmM":
            continue
        text = column.astype("str")
        runs = column.notna() & text.str.match(_RUNS) & ~text.str.fullmatch(_NUMBER)
        if runs.any():
            frame[name] = column.astype(object).where(~runs, "'" + text)
            changed += int(runs.sum())
    names = pd.Series(frame.columns.astype("str"))
    odd = names.str.match(_RUNS)
    frame.columns = names.where(~odd, "'" + names)
    return frame, changed + int(odd.sum())


def _stored(table: TableFile, added: Mapping[str, np.ndarray], kind: str) -> bytes:
    import pyarrow as pa

    rows = table.read_arrow()
    for name, column in added.items():
        rows = rows.append_column(name, pa.array(column))
    sink = io.BytesIO()
    if kind == "parquet":
        import pyarrow.parquet as pq

        pq.write_table(rows, sink)
    else:
        with pa.ipc.new_file(sink, rows.schema) as writer:
            writer.write_table(rows)
    return sink.getvalue()


def _packed(data: bytes) -> bytes:
    import gzip

    return gzip.compress(data, mtime=0)
