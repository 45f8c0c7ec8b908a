"""CSV files of a run: what is wrong with one is told with the argument that would help."""

from __future__ import annotations

import codecs
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from apfex.files import NO_VALUE, Dialect, EncodingError, as_codes, csv_options, reading_csv
from apfex.files import check_quotes as refuse_quotes
from apfex.files import read_dialect as dialect_of
from apfex.files import stream_csv as cells_of
from apfex.sources._errors import RunError, hint

if TYPE_CHECKING:
    import pyarrow as pa


def read_dialect(path: Path, encoding: str | None) -> Dialect:
    """How a file is written; ``encoding`` is as a user gave it."""
    known = check_encoding(encoding)
    with told_as_run_errors():
        return dialect_of(path, known)


def check_quotes(path: Path, dialect: Dialect) -> None:
    """Refuse a quote that is never closed: all rows after it would be one cell."""
    with told_as_run_errors():
        refuse_quotes(path, dialect)


def read_csv(
    path: Path,
    dialect: Dialect,
    columns: Sequence[str],
    text: Collection[str] = (),
    codes: Collection[str] = (),
) -> pa.Table:
    """Some columns; those in ``text`` are text whatever they hold.

    Those in ``codes`` are text where a cell may be a code, as by ``typed_codes``. Other types are
    those that all values of a column have. A row with more or fewer cells than the header is
    an error: an unquoted separator would move values into the wrong column.
    """
    import pyarrow as pa

    check_quotes(path, dialect)
    types = {name: pa.string() for name in columns if name in text or name in codes}
    with told_as_run_errors():
        table = _parse_csv(path, dialect, columns, types)
        dates = {f.name: pa.string() for f in table.schema if pa.types.is_temporal(f.type)}
        if dates:  # as they stand, not as some calendar reads them
            table = _parse_csv(path, dialect, columns, types | dates)
        if any(pa.types.is_binary(field.type) for field in table.schema):
            raise EncodingError(path, dialect.encoding, "cp1252")
    for name in codes:
        place = columns.index(name)
        table = table.set_column(place, name, as_codes(table[name], dialect.decimal))
    return table


def stream_csv(path: Path, dialect: Dialect) -> Iterator[pa.RecordBatch]:
    """All cells as they stand, as text, some rows at a time: memory does not grow with the file."""
    with told_as_run_errors():
        yield from cells_of(path, dialect)


def _parse_csv(
    path: Path, dialect: Dialect, columns: Sequence[str], types: Mapping[str, pa.DataType]
) -> pa.Table:
    from pyarrow import csv

    with reading_csv(path, dialect):
        return csv.read_csv(str(path), *csv_options(dialect, columns, types, NO_VALUE))


@contextmanager
def told_as_run_errors() -> Iterator[None]:
    """What is wrong with a file, with the argument that would help."""
    try:
        yield
    except EncodingError as error:
        name = hint("encoding")
        said = f"{error.path} is not {error.encoding} text; name its encoding, for instance {name}"
        said += " (Windows) or latin-1, or save it as UTF-8."
        if error.likely == "utf-16-le":
            said = f"{error.path} is not plain text; if it is UTF-16 without a mark, say so: {name}"
        raise RunError(said, encoding=error.likely, found=error.encoding) from error
    except RunError:
        raise
    except ValueError as error:
        raise RunError(str(error)) from error


def check_encoding(encoding: str | None) -> str | None:
    """The name that Python has for an encoding; None where none is told."""
    if not encoding:
        return None
    try:
        "".encode(encoding)  # refuses codecs of bytes alone, as zlib
        return codecs.lookup(encoding).name
    except (LookupError, ValueError) as error:
        raise RunError(
            f"{hint('encoding')} must be one of text that Python knows, such as utf-8, cp1252, "
            f"latin-1 or utf-16, got '{encoding}'.",
            found=encoding,
        ) from error
