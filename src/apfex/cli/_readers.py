"""Reading columns of a file into pandas, whatever its form."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from apfex.cli._dialect import Dialect, check_quotes, unreadable
from apfex.cli._errors import CommandError

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

MISSING = ("", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "NULL", "null", "<NA>")
"""What stands for no value in CSV. "None" does not: it can be the name of a group."""
_INDEX = re.compile(r"__index_level_\d+__")  # how pandas stores an index in Parquet


def read_csv(
    path: Path,
    dialect: Dialect,
    columns: Sequence[str],
    text: Collection[str] = (),
    *,
    verbatim: bool = False,
) -> pa.Table:
    """Some columns; those in ``text`` are text whatever they hold; verbatim: nothing is missing.

    Types are those that all values of a column have. A row with more or fewer cells than the
    header is an error: an unquoted separator would move values into the wrong column.
    """
    import pyarrow as pa

    check_quotes(path, dialect)
    missing = () if verbatim else MISSING
    kinds = {name: pa.string() for name in columns if name in text}
    table = _parse_csv(path, dialect, columns, kinds, missing)
    dates = {f.name: pa.string() for f in table.schema if pa.types.is_temporal(f.type)}
    if dates:  # as they stand, not as some calendar reads them
        table = _parse_csv(path, dialect, columns, kinds | dates, missing)
    if any(pa.types.is_binary(field.type) for field in table.schema):
        raise unreadable(path, dialect.encoding, UnicodeError())
    return table


def _parse_csv(
    path: Path,
    dialect: Dialect,
    columns: Sequence[str],
    kinds: Mapping[str, pa.DataType],
    missing: Sequence[str],
) -> pa.Table:
    import pyarrow as pa
    from pyarrow import csv

    try:
        return csv.read_csv(
            str(path),
            csv.ReadOptions(
                column_names=list(dialect.columns),
                skip_rows_after_names=1,
                encoding="utf8" if dialect.encoding.startswith("utf-8") else dialect.encoding,
            ),
            csv.ParseOptions(delimiter=dialect.separator, newlines_in_values=True),
            csv.ConvertOptions(
                include_columns=list(columns),
                column_types=dict(kinds),
                null_values=list(missing),
                strings_can_be_null=bool(missing),
                decimal_point=dialect.decimal,
            ),
        )
    except UnicodeError as error:
        raise unreadable(path, dialect.encoding, error) from error
    except (pa.ArrowInvalid, OSError) as error:
        if "invalid UTF8" in str(error):
            raise unreadable(path, dialect.encoding, UnicodeError()) from error
        raise CommandError(f"{path} cannot be read as CSV: {_said(error)}") from error


def _said(error: Exception) -> str:
    said = str(error).splitlines()[0].removeprefix("CSV parse error: ")
    return said[:120] + ("..." if len(said) > 120 else "")


def stored_columns(path: Path, kind: str) -> tuple[str, ...]:
    """Column names of a Parquet or Arrow file, without the index that pandas may have added."""
    import pyarrow as pa

    try:
        names = _schema(path, kind).names
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise CommandError(f"{path} is no {kind.capitalize()} file, or a damaged one.") from error
    return tuple(name for name in names if not _INDEX.fullmatch(name))


def read_stored(path: Path, kind: str, columns: Sequence[str]) -> pa.Table:
    """Some columns of a Parquet or Arrow file."""
    import pyarrow as pa

    try:
        if kind == "arrow":
            return _open_arrow(path).read_all().select(list(columns))
        import pyarrow.parquet as pq

        return pq.ParquetFile(path).read(columns=list(columns))
    except (pa.ArrowInvalid, OSError) as error:
        raise CommandError(f"{path} cannot be read: {_said(error)}") from error


def to_pandas(table: pa.Table, text: Collection[str] = ()) -> pd.DataFrame:
    """A frame; text comes as categories, which takes little room however many rows there are."""
    import pyarrow as pa

    words = [
        field.name
        for field in table.schema
        if pa.types.is_string(field.type) or pa.types.is_large_string(field.type)
    ]
    frame = table.to_pandas(
        ignore_metadata=True, categories=words, split_blocks=True, self_destruct=True
    )
    for name in text:
        if name not in words:
            values = frame[name]
            frame[name] = values.astype("str").where(values.notna())
    return frame


def _schema(path: Path, kind: str) -> Any:
    if kind == "arrow":
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
