"""Tables too large for memory: files, folders and Arrow streams, read some rows at a time."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

from apfex.files import CellTypes, empty_floats, of_no_type
from apfex.sources._csv import check_quotes, stream_csv
from apfex.sources._errors import RunError, path_of
from apfex.sources._files import base_of, find_files, folder_values, is_pattern
from apfex.sources._schemas import common_decimal, common_schema, to_schema
from apfex.sources._tables import Table, check_names, open_table, stored_schema, stream_stored

if TYPE_CHECKING:
    import pyarrow as pa

_MOST_ROWS, _FEWEST_ROWS, _MOST_CELLS = 2**16, 2**10, 2**23
"""Of a part: whole chunks of what models see at once, but not too much of a wide table."""


@final
@dataclass(frozen=True, eq=False)
class Part:
    """One of the files that make a table, with what its folders say (``region=north``)."""

    table: Table
    folders: Mapping[str, str | int | None] = field(default_factory=dict)
    reader: pa.RecordBatchReader | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """Those of the file, then those of its folders."""
        return (*self.table.columns, *self.folders)

    def schema(self) -> pa.Schema:
        """Types of the columns; cells of CSV are text."""
        import pyarrow as pa

        own = pa.schema([(name, pa.string()) for name in self.table.columns])
        if self.reader is not None:
            own = self.reader.schema
        elif not self.table.dialect:
            own = stored_schema(self.table)
        for name, value in self.folders.items():
            text = self.table.dialect is not None or not isinstance(value, int)
            own = own.append(pa.field(name, pa.string() if text else pa.int64()))
        return own

    def read(self, rows: int, columns: Sequence[str] | None) -> Iterator[pa.Table]:
        """Some rows after others, with what the folders say."""
        import pyarrow as pa

        for batch in self._batches(rows, columns):
            found = pa.Table.from_batches([batch])
            for name, value in self.folders.items():
                cells = "" if value is None and self.table.dialect else value
                found = found.append_column(name, pa.array([cells] * len(found)))
            yield found

    def is_empty(self, column: str) -> bool:
        """Whether a column has no value; rows up to the first are read."""
        parts = self.read(_MOST_ROWS, [column])
        return all(rows[column].null_count == len(rows) for rows in parts)

    def _batches(self, rows: int, columns: Sequence[str] | None) -> Iterator[pa.RecordBatch]:
        table = self.table
        if self.reader is not None:
            return iter(self.reader)
        if table.rows is not None:
            return iter(table.rows.to_batches(max_chunksize=rows))
        assert table.path is not None
        if table.dialect:
            return stream_csv(table.path, table.dialect)
        own = table.columns if columns is None else [n for n in columns if n in table.columns]
        return stream_stored(table.path, table.format, own, rows)


@final
@dataclass(frozen=True, eq=False)
class Batch:
    """Some rows of a table, and which files they are from.

    Attributes
    ----------
    rows : pyarrow.Table
        Cells of CSV as they stand.
    origins : tuple of (str, int)
        Names of files, and how many rows of each follow each other.
    """

    rows: pa.Table
    origins: tuple[tuple[str, int], ...]


@final
@dataclass(frozen=True, eq=False)
class TableStream:
    """Rows that are read in order, some at a time; made by :func:`open_stream`.

    Attributes
    ----------
    name : str
        How messages call it.
    parts : tuple of Part
    schema : pyarrow.Schema
        Columns of all parts; those of CSV are text.
    decimal : str or None
        Decimal mark of cells of CSV; None where values have types.
    place : Path or None
        The file, or the folder of several.
    pattern : Path or None
        Of several files: the folder, or the pattern that names them.
    """

    name: str
    parts: tuple[Part, ...]
    schema: pa.Schema
    decimal: str | None = None
    place: Path | None = None
    pattern: Path | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of all columns."""
        return tuple(self.schema.names)

    @property
    def table(self) -> Table:
        """The first file, or the only one."""
        return self.parts[0].table

    def part_rows(self, batch_size: int | None) -> int:
        """How many rows to read at a time: as told, or as many as are no burden."""
        if batch_size is not None:
            return batch_size
        fitting = _MOST_CELLS // max(1, len(self.columns))
        return min(_MOST_ROWS, max(_FEWEST_ROWS, fitting // _FEWEST_ROWS * _FEWEST_ROWS))

    def count(self) -> int | None:
        """Rows of all files, where these tell without being read."""
        counts = [_count(part) for part in self.parts]
        return None if None in counts else sum(n for n in counts if n is not None)

    def batches(self, rows: int, columns: Sequence[str] | None = None) -> Iterator[Batch]:
        """Parts of so many rows each; the last may have fewer. No row at all is an error.

        ``columns``: the only ones that are needed.
        """
        for part in self.parts:
            if part.table.dialect and part.table.path is not None:
                check_quotes(part.table.path, part.table.dialect)
        empty = True
        for batch in _regroup(self._pieces(rows, columns), rows):
            empty = False
            yield batch
        if empty:
            raise RunError(f"{self.name} has column names, but no rows.")

    def find_types(self, rows: int) -> pa.Schema:
        """Types of the columns; for CSV those that every cell has, for which all files are read."""
        if self.decimal is None:
            return self.schema
        types = CellTypes(self.columns, self.decimal)
        for batch in self.batches(rows):
            types.see(batch.rows)
        return types.schema()

    def reads(self, path: Path) -> bool:
        """Whether a file that is written there would be among those that are read."""
        target = path.resolve()
        own = [part.table.path for part in self.parts if part.table.path is not None]
        if target.exists() and any(target == one.resolve() for one in own):
            return True
        if self.pattern is None:
            return False
        if not is_pattern(self.pattern):
            return self.pattern.resolve() in target.parents
        base = base_of(self.pattern)
        pattern = f"{base.resolve()}{os.sep}{os.path.relpath(self.pattern, base)}"
        return any(fnmatch(str(target), one) for one in (pattern, pattern.replace("**/", "")))

    def _pieces(self, rows: int, columns: Sequence[str] | None) -> Iterator[tuple[str, pa.Table]]:
        import pyarrow as pa

        names = [name for name in self.columns if columns is None or name in columns]
        schema = pa.schema([self.schema.field(name) for name in names], self.schema.metadata)
        for part in self.parts:
            for piece in part.read(rows, columns):
                yield part.table.name, to_schema(piece, schema, part.table.name)


def open_stream(source: Any, encoding: str | None = None, sheet: str | None = None) -> TableStream:
    """Look at a table that need not fit into memory, and at all files that it is made of.

    Parameters
    ----------
    source : file, folder, pattern, several of these, frame or Arrow stream
        As ``new.csv``, ``new/``, ``new/*.parquet``, a frame of pandas or polars, or anything with
        ``__arrow_c_stream__``, such as a relation of DuckDB.
    encoding, sheet
        As for :func:`open_table`.
    """
    if isinstance(source, list | tuple) and len(source) == 1:
        (source,) = source
    if isinstance(source, list | tuple):
        return _open_files([path_of("source", one) for one in source], encoding, sheet)
    if isinstance(source, str | os.PathLike):
        path = path_of("source", source)
        if path.is_dir() or (is_pattern(path) and not path.exists()):
            return _open_files([path], encoding, sheet)
    elif _is_stream(source):
        return _open_reader(source)
    table = open_table(source, encoding, sheet)
    part, decimal = Part(table), table.dialect and table.dialect.decimal
    return TableStream(table.name, (part,), part.schema(), decimal, table.path)


def _open_files(sources: Sequence[Path], encoding: str | None, sheet: str | None) -> TableStream:
    """All files of folders and patterns, if they have the same columns."""
    files = find_files(sources)
    folders = folder_values(files)
    tables = common_decimal([open_table(file, encoding, sheet) for file in files])
    parts = tuple(Part(table, own) for table, own in zip(tables, folders, strict=True))
    for part in parts:
        check_names(part.columns, part.table.name)
    schemas = [part.schema() for part in parts]
    for place, column in list(empty_floats(schemas, lambda at, name: parts[at].is_empty(name))):
        schemas[place] = of_no_type(schemas[place], column)
    schema = common_schema([(p.table.name, s) for p, s in zip(parts, schemas, strict=True)])
    dialect, pattern = tables[0].dialect, sources[0] if len(sources) == 1 else None
    place = files[0].parent if pattern is None else base_of(pattern)
    name = str(pattern or place)
    return TableStream(
        name if len(files) == 1 else f"{name} ({len(files):,} files)",
        parts,
        schema,
        dialect and dialect.decimal,
        place,
        pattern,
    )


def _open_reader(source: Any) -> TableStream:
    import pyarrow as pa

    reader = pa.RecordBatchReader.from_stream(source)
    table = Table("the stream", tuple(reader.schema.names))
    check_names(table.columns, table.name)
    return TableStream(table.name, (Part(table, reader=reader),), reader.schema)


def _is_stream(source: Any) -> bool:
    is_frame = hasattr(source, "to_arrow") or hasattr(source, "iloc")
    return hasattr(source, "__arrow_c_stream__") and not is_frame


def _regroup(pieces: Iterator[tuple[str, pa.Table]], rows: int) -> Iterator[Batch]:
    """Parts of exactly so many rows, but for the last."""
    import pyarrow as pa

    held: list[pa.Table] = []
    origins: list[tuple[str, int]] = []
    count = 0
    for name, piece in pieces:
        while len(piece):
            taken = piece.slice(0, rows - count)
            piece = piece.slice(len(taken))
            held.append(taken)
            origins.append((name, len(taken)))
            count += len(taken)
            if count == rows:
                yield Batch(pa.concat_tables(held), tuple(origins))
                held, origins, count = [], [], 0
    if count:
        yield Batch(pa.concat_tables(held), tuple(origins))


def _count(part: Part) -> int | None:
    table = part.table
    if table.rows is not None:
        return len(table.rows)
    if table.format != "parquet" or table.path is None:
        return None
    import pyarrow.parquet as pq

    return pq.read_metadata(table.path).num_rows
