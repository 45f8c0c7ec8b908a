"""Tables with three columns more, written some rows at a time, safe for spreadsheets."""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TextIO, final

import numpy as np

from apfex.files import typed_cells
from apfex.sources._csv import told_as_run_errors
from apfex.sources._tables import format_of

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from apfex.sources._streams import TableStream

_RUNS_IN_SPREADSHEET = r"[=+\-@\t\r\n" + "\uff1d\uff0b\uff0d\uff20]"  # also in their full width
_FIRST = "[ \ufeff]*"
"""What is not seen at the start of a cell, and dropped by some: spaces, and the mark of UTF-8."""
_NUMBER = r"[+-]?(?:\d+(?:[.,]\d*)?|[.,]\d+)(?:[eE][+-]?\d+)?"
_SEPARATORS = ";,\t|\r\n"
"""What parts cells on one computer or another: within a cell it may begin the next one there."""


class Writer(Protocol):
    """Takes rows in order."""

    def write(self, rows: pa.Table, added: Mapping[str, np.ndarray]) -> int:
        """Write rows with more columns; return how many cells were made safe."""
        ...


@contextmanager
def open_writer(
    target: Path | TextIO, stream: TableStream, names: Sequence[str], rows: int
) -> Iterator[Writer]:
    """What writes the rows of a stream; a file is there when it is whole, or not at all.

    Parameters
    ----------
    target : Path, or a stream that gets CSV
    stream : TableStream
        Cells of CSV are written as they stand; for Parquet and Arrow they get types.
    names : sequence of str
        Of the columns that are added.
    rows : int
        How many are read at a time.
    """
    from apfex.persistence import new_file

    if not isinstance(target, Path):
        yield CsvWriter(target, ",")
        return
    form = format_of(target)
    schema = None if form == "csv" else stream.find_types(rows)
    with new_file(target) as draft:
        if schema is not None:
            with StoredWriter(draft, form, schema, names, stream.decimal) as writer:
                yield writer
            return
        with _open_text(draft, target.suffix == ".gz") as text:
            yield CsvWriter(text, "\t" if ".tsv" in target.suffixes else ",")


@contextmanager
def _open_text(draft: Path, packed: bool) -> Iterator[TextIO]:
    with draft.open("wb") as file:
        if not packed:
            with io.TextIOWrapper(file, encoding="utf-8", newline="") as text:
                yield text
            return
        with (
            gzip.GzipFile(filename="", fileobj=file, mode="wb", mtime=0) as pack,
            io.TextIOWrapper(pack, encoding="utf-8", newline="") as text,  # pyright: ignore[reportArgumentType]
        ):
            yield text


@final
class StoredWriter:
    """Parquet or Arrow, with the types of the table.

    Parameters
    ----------
    path : Path
    form : "parquet" or "arrow"
    schema : pyarrow.Schema
        Of the table, without what is added.
    names : sequence of str
        Of what is added: text, and two numbers.
    decimal : str or None
        Of cells of CSV, which get the types of the schema; None where rows have them.
    """

    def __init__(
        self, path: Path, form: str, schema: pa.Schema, names: Sequence[str], decimal: str | None
    ) -> None:
        import pyarrow as pa

        self._own, self._decimal = schema, decimal
        types = (pa.string(), pa.float64(), pa.float64())
        for name, type in zip(names, types, strict=True):
            schema = schema.append(pa.field(name, type))
        if form == "parquet":
            import pyarrow.parquet as pq

            self._writer = pq.ParquetWriter(path, schema)
        else:
            schema = _without_dictionaries(schema)
            self._writer = pa.ipc.new_file(pa.OSFile(str(path), "wb"), schema)
        self._schema = schema

    def __enter__(self) -> StoredWriter:
        """Write to it until the end of the block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Write what a reader needs at the end of the file."""
        self._writer.close()

    def write(self, rows: pa.Table, added: Mapping[str, np.ndarray]) -> int:
        """Write rows; nothing needs to be made safe."""
        import pyarrow as pa

        if self._decimal is not None:
            with told_as_run_errors():
                rows = typed_cells(rows, self._own, self._decimal)
        columns = [*rows.columns, *(pa.array(column) for column in added.values())]
        parts = zip(columns, self._schema.types, strict=True)
        columns = [c if c.type == type else c.cast(type) for c, type in parts]
        self._writer.write_table(pa.Table.from_arrays(columns, schema=self._schema))
        return 0


def _without_dictionaries(schema: pa.Schema) -> pa.Schema:
    """A file of Arrow has one dictionary for all rows, which is not known before the last."""
    import pyarrow as pa

    plain = [
        field.with_type(field.type.value_type) if pa.types.is_dictionary(field.type) else field
        for field in schema
    ]
    return pa.schema(plain, schema.metadata)


@final
class CsvWriter:
    """CSV with plain line ends, in which text that a spreadsheet would run gets an apostrophe.

    What is written of a row does not depend on the rows that are written with it.

    Parameters
    ----------
    stream : text stream
    separator : str

    Examples
    --------
    >>> import sys
    >>> import pyarrow as pa
    >>> out = CsvWriter(sys.stdout, ",")
    >>> out.write(pa.table({"a": ["=1+1", "b"]}), {"p": np.array([0.5, 1.0])})
    a,p
    '=1+1,0.5
    b,1.0
    1
    """

    def __init__(self, stream: TextIO, separator: str) -> None:
        self._stream, self._separator = stream, separator
        self._has_names = False

    def write(self, rows: pa.Table, added: Mapping[str, np.ndarray]) -> int:
        """Write rows, before the first of them the names; return how many cells were made safe."""
        frame = rows.replace_schema_metadata().to_pandas(integer_object_nulls=True).assign(**added)
        made_safe = 0 if self._has_names else self._write_names(frame)
        self._has_names = True
        frame, in_cells = _safe_cells(frame, self._separator)
        self._write_rows(_plain_times(frame))
        return made_safe + in_cells

    def _write_names(self, frame: pd.DataFrame) -> int:
        import pandas as pd

        names = pd.Series(frame.columns.astype("str"))
        safe = _safe_text(names, self._separator)
        quoted = bool(names.str.contains("\r").any())
        self._put(pd.DataFrame(columns=safe), quoted, header=True)
        return int((safe != names).sum())

    def _write_rows(self, frame: pd.DataFrame) -> None:
        """Text is quoted throughout in rows that have a bare carriage return.

        Readers take one for the end of a row, but writers do not quote it.
        """
        words = frame.select_dtypes(exclude=["number", "bool"])
        bare = np.zeros(len(frame), bool)
        for _, column in words.items():
            found = column.astype("str").str.contains("\r", regex=False)
            bare |= found.fillna(False).to_numpy(bool)
        start = 0
        for quoted, alike in groupby(bare.tolist()):
            end = start + sum(1 for _ in alike)
            self._put(frame.iloc[start:end], quoted)
            start = end

    def _put(self, frame: pd.DataFrame, quoted: bool, header: bool = False) -> None:
        frame.to_csv(
            self._stream,
            index=False,
            header=header,
            sep=self._separator,
            lineterminator="\n",
            quoting=csv.QUOTE_NONNUMERIC if quoted else csv.QUOTE_MINIMAL,
        )


def _plain_times(frame: pd.DataFrame) -> pd.DataFrame:
    """Times as text, each by itself: pandas leaves out the time of day where all are midnight."""
    times = {n: c for n, c in frame.items() if getattr(c.dtype, "kind", "O") in "mM"}
    return frame.assign(
        **{str(n): c.astype(object).map(str, na_action="ignore") for n, c in times.items()}
    )


def _safe_cells(frame: pd.DataFrame, separator: str) -> tuple[pd.DataFrame, int]:
    """Text that a spreadsheet would run gets an apostrophe before it."""
    frame, changed = frame.copy(deep=False), 0
    for place, name in enumerate(frame.columns):
        column = frame.iloc[:, place]
        if getattr(column.dtype, "kind", "O") in "biufmM":
            continue
        text = column.astype("str")
        may_run = _may_run(text, separator)
        if not may_run.any():
            continue
        safe = text.mask(may_run, _safe_text(text[may_run], separator))
        odd = column.notna() & (safe != text)
        if odd.any():
            frame[name] = column.astype(object).where(~odd, safe)
            changed += int(odd.sum())
    return frame, changed


def _may_run(text: pd.Series, separator: str) -> np.ndarray:
    """Cells in which :func:`_safe_text` may find a formula: a look that costs little."""
    import pyarrow as pa
    from pyarrow import compute

    pc: Any = compute
    cells = pa.array(text, from_pandas=True)
    others = _SEPARATORS.replace(separator, "")
    starts = pc.match_substring_regex(cells, rf"\A{_FIRST}{_RUNS_IN_SPREADSHEET}")
    starts = pc.and_not(starts, pc.match_substring_regex(cells, rf"\A *{_NUMBER}\z"))
    within = pc.match_substring_regex(cells, rf"[{others}][ \"]*{_RUNS_IN_SPREADSHEET}")
    return pc.or_(starts, within).fill_null(False).to_numpy(zero_copy_only=False)


def _safe_text(text: pd.Series, separator: str) -> pd.Series:
    """An apostrophe where a formula begins: at the start, or after what parts cells elsewhere.

    The writer's own separator is not among these: text with it is quoted.
    """
    others = _SEPARATORS.replace(separator, "")
    after = rf"([{others}][ \"]*)(?={_RUNS_IN_SPREADSHEET})(?!{_NUMBER}(?:[{others}\"]|$))"
    safe = text.str.replace(after, r"\1'", regex=True)
    runs = text.str.match(_FIRST + _RUNS_IN_SPREADSHEET) & ~text.str.fullmatch(f" *{_NUMBER}")
    return safe.where(~runs, "'" + safe)
