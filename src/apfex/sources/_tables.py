"""Tables: CSV, Excel, Parquet and Arrow files, and frames; only columns asked for are read."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, final

from apfex.clusters import is_dask_frame
from apfex.files import (
    CSV_ENDINGS,
    Dialect,
    check_places,
    check_single,
    check_text,
    first_line,
    frame_to_arrow,
    read_parquet_batches,
    whole_with_gaps,
    with_storage,
)
from apfex.memory import free_memory, in_bytes, is_too_much
from apfex.plain import nearest, printable
from apfex.sources._csv import read_csv, read_dialect
from apfex.sources._errors import RunError, hint, path_of, unknown
from apfex.sources._excel import read_sheet
from apfex.tables import inferred

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

FileFormat = Literal["csv", "excel", "parquet", "arrow"]
ENDINGS: dict[str, FileFormat] = {
    **dict.fromkeys(CSV_ENDINGS, "csv"),
    **dict.fromkeys((".xlsx", ".xlsm"), "excel"),
    **dict.fromkeys((".parquet", ".pq"), "parquet"),
    **dict.fromkeys((".arrow", ".feather", ".ipc"), "arrow"),
}
_EXCEL = [ending for ending, form in ENDINGS.items() if form == "excel"]
_BUFFER, _ROWS = 1 << 20, 1 << 16
_INDEX = "__index_level_"  # how pandas calls an index without a name in a file


@final
@dataclass(frozen=True, eq=False)
class Table:
    """A table that can be read; made by :func:`open_table`.

    Attributes
    ----------
    name : str
        How messages call it.
    columns : tuple of str
    path : Path or None
        Of a file; None for a frame.
    format : "csv", "excel", "parquet" or "arrow"
    sheet : str or None
        Of an Excel file.
    """

    name: str
    columns: tuple[str, ...]
    path: Path | None = None
    format: FileFormat = "arrow"
    dialect: Dialect | None = None
    rows: pa.Table | None = None
    sheet: str | None = None

    def describe(self) -> str:
        """Name and form."""
        if self.path is None:
            return self.name
        form = self.dialect.describe() if self.dialect else self.format.capitalize()
        if self.sheet is not None:
            form += f", sheet {printable(self.sheet, 40)}"
        return f"{printable(self.path.name)} ({form})"

    def column(self, name: str, argument: str) -> str:
        """The name, if there is such a column; an error that suggests the nearest otherwise."""
        if name in self.columns:
            return name
        said = f"{self.name} has no column '{name}' ({hint(argument)})"
        raise unknown(name, self.columns, said, there="it has")

    def names(self, given: str | Sequence[str], argument: str) -> list[str]:
        """Columns from values that are names, or names with commas between."""
        given = [given] if isinstance(given, str) else given
        parts: list[str] = []
        for value in given:
            whole = [value] if value in self.columns else str(value).split(",")
            named = [part if part in self.columns else part.strip() for part in whole]
            own = [part for part in named if part or part in self.columns]
            if not own and len(given) > 1:  # the others alone would form other groups
                raise RunError(
                    f"{hint(argument)} must name a column each time, got {value!r} among others.",
                    found=value,
                )
            parts += own
        found = [self.column(part, argument) for part in parts]
        if given and not found:
            raise RunError(f"{hint(argument)} must name columns, got nothing.")
        repeated = [name for name, n in Counter(found).items() if n > 1]
        if repeated:
            raise RunError(
                f"{hint(argument)} must name a column once, got '{repeated[0]}' twice.",
                found=repeated[0],
            )
        return found

    def read(
        self,
        columns: Sequence[str] | None = None,
        text: Collection[str] = (),
        codes: Collection[str] = (),
    ) -> Any:
        """A pandas frame of some columns, or of all; those in ``text`` as text whatever they hold.

        Those in ``codes`` are text where CSV spells one number in two ways, as 01 and 1, and keep
        whole numbers beside missing ones. Rows are numbered from 0.
        """
        import pyarrow as pa

        wanted = list(self.columns if columns is None else columns)
        if not self.dialect:
            try:
                check_single(stored_schema(self), wanted, self.name)
            except ValueError as error:
                raise RunError(str(error)) from error
        rows = self._read(wanted, text, codes)
        with _reading(self.path or self.name):
            frame = to_pandas(rows, text)
            for name in codes:
                if pa.types.is_integer(rows[name].type) and rows[name].null_count:
                    frame[name] = inferred(rows[name].to_pandas(integer_object_nulls=True))
            return frame

    def read_arrow(self, codes: Collection[str] = ()) -> pa.Table:
        """All columns with their types; ``codes`` as for :meth:`read`."""
        return self._read(self.columns, codes=codes)

    def identity(self) -> dict[str, str | None]:
        """What a record says of it: ``name``, ``path`` and ``sha256``."""
        return {
            "name": "frame" if self.path is None else self.path.name,
            "path": None if self.path is None else str(self.path.resolve()),
            "sha256": self.sha256(),
        }

    def sha256(self) -> str:
        """Of the bytes of the file, or of the values of a frame."""
        if self.path is None:
            return _hash(self.read_arrow())
        with self.path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()

    def _read(
        self, columns: Sequence[str], text: Collection[str] = (), codes: Collection[str] = ()
    ) -> pa.Table:
        if self.rows is not None:
            table = self.rows.select(list(columns))
        elif self.dialect:
            assert self.path is not None
            table = read_csv(self.path, self.dialect, columns, text, codes)
        else:
            assert self.path is not None
            table = _read_stored(self.path, self.format, columns)
        if not table.num_rows:
            raise RunError(f"{self.name} has column names, but no rows.")
        return table


def open_table(source: Any, encoding: str | None = None, sheet: str | None = None) -> Table:
    """Look at a file or a frame: what it is, and which columns it has.

    ``encoding`` is that of a CSV file, ``sheet`` the one of an Excel file that is meant.
    """
    is_file = isinstance(source, str | os.PathLike)
    is_excel = is_file and path_of("source", source).suffix.lower() in _EXCEL
    if sheet is not None and not is_excel:
        raise RunError(f"{hint('sheet')} is for Excel files, got '{sheet}'.", found=sheet)
    table = _open_file(Path(source), encoding, sheet) if is_file else _open_frame(source)
    check_names(table.columns, table.name)
    return table


def check_names(columns: Sequence[str], name: str) -> None:
    """Refuse a table in which a name stands for two columns."""
    repeated = sorted(column for column, count in Counter(columns).items() if count > 1)
    if repeated:
        raise RunError(
            f"{name} has two columns named '{repeated[0]}'; rename one.", found=repeated[0]
        )


def ending_of(path: Path) -> str:
    """The end of a name that says the form of a file."""
    return ("".join(path.suffixes[-2:]) if path.suffix == ".gz" else path.suffix).lower()


def format_of(path: Path) -> FileFormat:
    """The format of a file by the end of its name."""
    format = ENDINGS.get(ending_of(path))
    if format is None:
        raise RunError(
            f"{path} must end in {', '.join(ENDINGS)}, so that its form is known; save a "
            "spreadsheet of another form as .xlsx or CSV."
        )
    return format


def _open_file(path: Path, encoding: str | None, sheet: str | None) -> Table:
    _check_there(path)
    if not path.is_file():  # a pipe would be waited for, for ever
        raise RunError(
            f"{path} must be an ordinary file, got a pipe or a device; write what comes from it "
            "to a file first.",
            found=path,
        )
    format = format_of(path)
    try:
        if format == "excel":
            name, rows = read_sheet(path, sheet)
            return Table(str(path), tuple(rows.column_names), path, format, rows=rows, sheet=name)
        if format == "csv":
            dialect = read_dialect(path, encoding)
            return Table(str(path), dialect.columns, path, format, dialect)
        return Table(str(path), _stored_columns(path, format), path, format)
    except PermissionError as error:
        raise RunError(f"{path} may not be read: {error.strerror}.") from error


def _open_frame(frame: Any) -> Table:
    """Pandas or polars, through Arrow: it is then read just as its Parquet file would be."""
    if is_dask_frame(frame):
        raise RunError(
            "A file or a frame in memory is needed here, got a Dask DataFrame: explore (without "
            f"{hint('stream')}) and APFExClassifier.fit take it as it is, and its compute() brings "
            "it into memory.",
            found="a Dask DataFrame",
            stream=False,
        )
    if hasattr(frame, "to_arrow"):
        rows = frame.to_arrow()
    elif hasattr(frame, "iloc") and hasattr(frame, "columns"):
        try:
            rows = frame_to_arrow(frame)
        except ValueError as error:
            raise RunError(f"The frame {error}") from None
    else:
        raise TypeError(
            f"A table must be a file, or a frame of pandas or polars, got {type(frame).__name__}."
        )
    return Table("the frame", tuple(rows.column_names), rows=rows)


def _check_there(path: Path) -> None:
    if path.is_dir():
        raise RunError(f"{path} is a folder; name a CSV, Excel, Parquet or Arrow file.")
    if str(path) == "-" and not path.exists():
        raise RunError(
            "A table must be a file, got -, the standard input, which can be read only once; write "
            "what comes from it to a file first.",
            found="-",
        )
    if not path.exists():
        near = nearest_file(path)
        hint = f"; did you mean {near}?" if near else "."
        raise RunError(f"There is no file {path}{hint}", suggestion=near and near.name)


def nearest_file(path: Path) -> Path | None:
    """The file beside a missing one that was probably meant."""
    try:
        beside = [other.name for other in path.parent.iterdir() if other.is_file()]
    except OSError:
        return None
    near = nearest(path.name, beside)
    return path.with_name(near) if near else None


def _stored_columns(path: Path, format: FileFormat) -> tuple[str, ...]:
    """Column names of a Parquet or Arrow file, without the index that pandas may have added."""
    import pyarrow as pa

    try:
        names = _schema(path, format).names
    except PermissionError:
        raise
    except (pa.ArrowException, OSError, ValueError, KeyError, MemoryError) as error:
        raise RunError(f"{path} is no {format.capitalize()} file, or a damaged one.") from error
    return tuple(name for name in names if not name.startswith(_INDEX))


def _read_stored(path: Path, format: FileFormat, columns: Sequence[str]) -> pa.Table:
    """Some columns of a Parquet or Arrow file."""
    import pyarrow as pa

    with _reading(path):
        if format == "arrow":
            schema, source = _open_arrow(path).schema, arrow_batches(_open_arrow(path))
        else:
            import pyarrow.parquet as pq

            with pq.ParquetFile(path) as file:
                schema, about = file.schema_arrow, file.metadata
            groups = [about.row_group(place).num_rows for place in range(about.num_row_groups)]
            _check_room(path, max(about.num_rows, sum(groups)), len(columns))
            source = read_parquet_batches(path, columns, _ROWS)
        parts, rows = [], 0
        for batch in source:
            parts.append(batch.select(list(columns)))
            rows += batch.num_rows
            if format == "arrow":  # which takes no room yet: its rows lie in the file
                _check_room(path, rows, len(columns))
        fields = [schema.field(name) for name in columns]
        table = pa.Table.from_batches(parts, pa.schema(fields, schema.metadata))
        check_places(table)
        return table


@contextmanager
def _reading(path: Path | str) -> Iterator[None]:
    """What Arrow says of a file that somebody damaged, or forged, in one sentence."""
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OSError, ValueError, KeyError, TypeError, OverflowError) as error:
        if isinstance(error, RunError):
            raise
        raise RunError(f"{path} cannot be read: {first_line(error)}") from error
    except MemoryError as error:  # of Arrow, too
        raise RunError(
            f"{path} asks for more memory than there is ({first_line(error)}); if it is whole, "
            "read some of its columns."
        ) from error


def _check_room(path: Path, rows: int, columns: int) -> None:
    """Refuse a table that cannot fit: a file of a few bytes may say that it has any rows."""
    needed = 8 * rows * max(1, columns)
    if rows < 0 or is_too_much(needed):
        raise RunError(
            f"{path} says that it has {rows:,} rows, of which {columns:,} columns take at least "
            f"{in_bytes(needed)}, more than the {in_bytes(free_memory())} that are free; read "
            "fewer.",
            found=rows,
        )


def stored_schema(table: Table) -> pa.Schema:
    """Columns and types of a Parquet or Arrow file, or of a frame."""
    import pyarrow as pa

    if table.rows is not None:
        return table.rows.schema
    assert table.path is not None
    whole = _schema(table.path, table.format)
    return pa.schema([whole.field(name) for name in table.columns], whole.metadata)


def stream_stored(
    path: Path, format: FileFormat, columns: Sequence[str], rows: int
) -> Iterator[pa.RecordBatch]:
    """Some columns of a Parquet or Arrow file, some rows at a time."""
    with _reading(path):
        if format == "arrow":
            for batch in arrow_batches(_open_arrow(path)):
                for start in range(0, batch.num_rows, rows):
                    part = batch.select(list(columns)).slice(start, rows)
                    check_text(part)
                    yield part
            return
        # Without a buffer all bytes of a column in a row group, which may be the file, are held.
        options = {"buffer_size": _BUFFER, "pre_buffer": False}
        yield from read_parquet_batches(path, columns, rows, **options)


def arrow_batches(reader: Any) -> Iterator[pa.RecordBatch]:
    """Parts of an Arrow file; places in it lead Arrow blindly, so that they are checked first."""
    if not hasattr(reader, "num_record_batches"):
        parts = iter(reader)
    else:
        parts = (reader.get_batch(place) for place in range(reader.num_record_batches))
    for batch in parts:
        batch.validate(full=True)
        yield batch


def _schema(path: Path, format: FileFormat) -> Any:
    if format == "arrow":
        return _open_arrow(path).schema
    import pyarrow.parquet as pq

    return pq.read_schema(path)


def _open_arrow(path: Path) -> Any:
    import pyarrow as pa

    source = pa.memory_map(str(path))
    try:
        return pa.ipc.open_file(source)
    except pa.ArrowInvalid:
        source.seek(0)
        return pa.ipc.open_stream(source)


def to_pandas(table: pa.Table, text: Collection[str] = ()) -> pd.DataFrame:
    """A frame; text comes as categories, which takes little room however many rows there are.

    A value in a column of ``text`` becomes the same text whatever its neighbours are: pandas alone
    would write a whole number beside a missing one as 1.0, and midnights without their time.
    """
    import pyarrow as pa

    table = with_storage(table.replace_schema_metadata())  # what pandas wrote is not parsed
    for name in text:
        place, type = table.schema.get_field_index(name), table.schema.field(name).type
        if pa.types.is_integer(type) or pa.types.is_temporal(type):
            table = table.set_column(place, name, table[name].cast(pa.string()))

    words = [
        field.name
        for field in table.schema
        if pa.types.is_string(field.type) or pa.types.is_large_string(field.type)
    ]
    rounded = [name for name in table.column_names if _would_be_rounded(table[name])]
    whole = {name: whole_with_gaps(table[name]) for name in rounded}
    frame = table.to_pandas(categories=words, split_blocks=True, self_destruct=True).assign(**whole)
    for name in text:
        if name not in words:
            values = frame[name]
            frame[name] = values.astype("str").where(values.notna())
    return frame


def _would_be_rounded(column: pa.ChunkedArray) -> bool:
    """Whether pandas would make other numbers of whole ones, as some are missing."""
    import pyarrow as pa
    from pyarrow import compute

    pc: Any = compute
    if not (pa.types.is_integer(column.type) and column.null_count < len(column)):
        return False
    ends = pc.min_max(column).as_py()
    return column.null_count > 0 and max(-ends["min"], ends["max"]) > 2**53


def _hash(rows: pa.Table) -> str:
    import pyarrow as pa

    digest = hashlib.sha256()
    for batch in rows.combine_chunks().replace_schema_metadata().to_batches():
        digest.update(batch.schema.serialize())
        digest.update(batch.serialize(memory_pool=pa.default_memory_pool()))
    return digest.hexdigest()
