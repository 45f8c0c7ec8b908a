"""CSV files as a stream: a first pass finds what each column holds, in all files."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from apfex.files import (
    CellTypes,
    Dialect,
    check_quotes,
    kinds_in_words,
    read_dialects,
    stream_csv,
    to_values,
    typed_cells,
    typed_codes,
)
from apfex.streams._stream import Stream, frame_of

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

_BLOCK = 2**20
"""Bytes of a file that are parsed at a time."""
_MOST_WORDS = 1_000_000
"""Different cells of a column that are kept to compare their spellings; groups are fewer."""


def open_csv_files(
    paths: Sequence[Path], name: str, encoding: str | None = None, codes: Collection[str] = ()
) -> Stream:
    """Open CSV files that agree in their columns, and in what these hold.

    ``codes`` are columns that are text where a cell may be a code, as by ``typed_codes``.
    """
    import pyarrow as pa

    dialects = read_dialects(paths, encoding)
    schema = _find_schema(paths, dialects, codes)

    def read(columns: Sequence[str], rows: int) -> Iterator[pd.DataFrame]:
        del rows  # blocks are of so many bytes
        wanted = pa.schema([schema.field(name) for name in columns])
        for path, dialect in zip(paths, dialects, strict=True):
            for cells in _read_cells(path, dialect, columns):
                for batch in typed_cells(cells, wanted, dialect.decimal).to_batches():
                    yield frame_of(batch)

    return Stream(name, dialects[0].columns, read)


def _read_cells(path: Path, dialect: Dialect, columns: Sequence[str]) -> Iterator[pa.Table]:
    import pyarrow as pa

    found = stream_csv(path, dialect, columns, block_size=_BLOCK, use_threads=False)
    for batch in found:
        yield pa.Table.from_batches([batch])


def _find_schema(
    paths: Sequence[Path], dialects: Sequence[Dialect], codes: Collection[str]
) -> pa.Schema:
    """The type of each column in all files, which must agree in their columns and these types.

    Whole numbers in one file and others in another are numbers, as are whole numbers of which some
    are missing, but for codes, which stay whole; a column without any values in a file is of every
    type there.
    """
    import pyarrow as pa

    first = dialects[0].columns
    types: dict[str, tuple[pa.DataType, Path]] = {}
    with_gaps: set[str] = set()
    words: dict[str, dict[str, None]] = {name: {} for name in first if name in codes}
    for path, dialect in zip(paths, dialects, strict=True):
        if set(dialect.columns) != set(first):
            lacking = [name for name in first if name not in dialect.columns]
            more = [name for name in dialect.columns if name not in first]
            raise ValueError(
                f"All files of a stream must have the same columns, got {path} beside {paths[0]}: "
                f"missing {lacking or 'none'}, unknown {more or 'none'}; write it again, or leave "
                "it out."
            )
        check_quotes(path, dialect)
        own = CellTypes(dialect.columns, dialect.decimal)
        for cells in _read_cells(path, dialect, dialect.columns):
            own.see(cells)
            for name, seen in words.items():
                if len(seen) <= _MOST_WORDS:
                    known = to_values(cells[name], None).unique().drop_null()
                    seen.update(dict.fromkeys(known.to_pylist()))
        with_gaps |= own.with_gaps
        for field in own.schema():
            known, where = types.setdefault(field.name, (field.type, path))
            both = _common(known, field.type)
            if both is None:
                here, there = kinds_in_words(field.type, known)
                raise ValueError(
                    f"All files of a stream must hold the same in each column, got {here} in "
                    f"column {field.name!r} of {path} and {there} in {where}; write them alike, or "
                    "leave one out."
                )
            types[field.name] = (both, path if pa.types.is_null(known) else where)
    for name, seen in words.items():
        if pa.types.is_string(typed_codes(seen, dialects[0].decimal).type):
            types[name] = (pa.string(), paths[0])
    return pa.schema(
        [
            (
                name,
                pa.float64()
                if pa.types.is_integer(one) and name in with_gaps.difference(codes)
                else one,
            )
            for name, (one, _) in types.items()
        ]
    )


def _common(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    """The type that holds the values of both, if there is one; text is not what numbers are."""
    import pyarrow as pa

    if one == other or pa.types.is_null(other):
        return one
    if pa.types.is_null(one):
        return other
    return pa.float64() if {one, other} == {pa.int64(), pa.float64()} else None
