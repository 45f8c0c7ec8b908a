"""CSV files as a stream: a first pass finds what each column holds, in all files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from apfex.csv_header import NO_VALUE, Header, read_header
from apfex.streams._stream import Stream, frame_of, reading

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

_BLOCK = 2**20
"""Bytes of a file that are parsed at a time."""
_NOTHING = "no values"


def read_csv_batches(
    path: Path, header: Header, columns: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """Cells of some columns as text, a block of a file at a time; missing ones are null."""
    import pyarrow as pa
    from pyarrow import csv

    names = list(header.columns)
    try:
        reader = csv.open_csv(
            str(path),
            csv.ReadOptions(use_threads=False, block_size=_BLOCK, column_names=names, skip_rows=1),
            csv.ParseOptions(delimiter=header.separator, newlines_in_values=True),
            csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.large_string()),
                null_values=list(NO_VALUE),
                strings_can_be_null=True,
                include_columns=list(columns),
            ),
        )
    except pa.ArrowInvalid as error:
        if "Empty CSV file" in str(error):  # names of columns, and no rows
            return
        raise
    yield from reader


def find_kinds(paths: Sequence[Path]) -> tuple[list[Header], dict[str, str]]:
    """Headers of all files, and the kind of each column; files must agree in both.

    Whole numbers in one file and others in another are numbers, and a column without any values
    is of every kind.
    """
    headers = [read_header(str(path)) for path in paths]
    kinds: dict[str, tuple[str, Path]] = {}
    for path, header in zip(paths, headers, strict=True):
        if set(header.columns) != set(headers[0].columns):
            lacking = [name for name in headers[0].columns if name not in header.columns]
            more = [name for name in header.columns if name not in headers[0].columns]
            raise ValueError(
                f"All files of a stream must have the same columns, got {path} beside {paths[0]}: "
                f"missing {lacking or 'none'}, unknown {more or 'none'}; write it again, or leave "
                "it out."
            )
        for name, kind in _kinds_of(path, header).items():
            known, where = kinds.setdefault(name, (kind, path))
            both = _common(known, kind)
            if both is None:
                raise ValueError(
                    f"All files of a stream must hold the same in each column, got {kind} in "
                    f"column {name!r} of {path} and {known} in {where}; write them alike, or leave "
                    "one out."
                )
            kinds[name] = (both, path if known == _NOTHING else where)
    return headers, {name: kind for name, (kind, _) in kinds.items()}


def cast(batch: pa.RecordBatch, kinds: dict[str, str]) -> pa.RecordBatch:
    """Text of cells as what their columns hold."""
    import pyarrow as pa

    names = batch.schema.names
    columns = [
        _READ[kinds[name]](column) for name, column in zip(names, batch.columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, names=names)


def _kinds_of(path: Path, header: Header) -> dict[str, str]:
    """The narrowest kind that all cells of a column have in one file."""
    found = dict.fromkeys(header.columns, _NOTHING)
    with reading(str(path)):
        for batch in read_csv_batches(path, header, header.columns):
            for name, column in zip(header.columns, batch.columns, strict=True):
                if found[name] != _TEXT and column.null_count < len(column):
                    found[name] = _common(found[name], _kind_of(column, found[name])) or _TEXT
    return found


def _kind_of(column: Any, likely: str) -> str:
    """The first kind by which all cells can be read; that of the cells before is tried first."""
    import pyarrow as pa

    for kind in dict.fromkeys([likely, *_READ]):
        if kind == _NOTHING:
            continue
        try:
            _READ[kind](column)
        except pa.ArrowInvalid:
            continue
        return kind
    return _TEXT


def _common(one: str, other: str) -> str | None:
    """The kind of which both are, if there is one; text is not what numbers are."""
    if _NOTHING in (one, other) or one == other:
        return other if one == _NOTHING else one
    for wide, narrow in _WIDER.items():
        if {one, other} <= {wide, *narrow}:
            return wide
    return None


def _as(kind: str, column: Any) -> Any:
    import pyarrow as pa

    return column.cast({"whole": pa.int64(), "number": pa.float64(), "bool": pa.bool_()}[kind])


def _truth(column: Any) -> Any:
    """True and false as words; 1 and 0 are numbers."""
    return _as("bool", _functions().utf8_lower(column))


def _with_commas(column: Any) -> Any:
    import pyarrow as pa

    if _functions().any(_functions().match_substring(column, ".")).as_py():
        raise pa.ArrowInvalid("a point beside a comma")
    return _as("number", _functions().replace_substring(column, ",", "."))


def _functions() -> Any:
    """Arrow's functions, whose names are made when it is loaded."""
    import pyarrow.compute

    return pyarrow.compute


_WHOLE, _NUMBERS, _COMMAS = "whole numbers", "numbers", "numbers with a decimal comma"
_TRUTH, _TEXT = "true and false", "text"
_READ: dict[str, Callable[[Any], Any]] = {
    _NOTHING: lambda column: column,
    _WHOLE: partial(_as, "whole"),
    _NUMBERS: partial(_as, "number"),
    _COMMAS: _with_commas,
    _TRUTH: _truth,
    _TEXT: lambda column: column,
}
"""How cells of each kind are read; the first by which all can be read is that of a column."""
_WIDER = {_NUMBERS: (_WHOLE,), _COMMAS: (_WHOLE,)}


def open_csv_files(paths: Sequence[Path], name: str) -> Stream:
    """Open CSV files that agree in their columns, and in what these hold."""
    headers, kinds = find_kinds(paths)

    def read(columns: Sequence[str], rows: int) -> Iterator[pd.DataFrame]:
        del rows  # blocks are of so many bytes
        for path, header in zip(paths, headers, strict=True):
            with reading(str(path)):
                for batch in read_csv_batches(path, header, columns):
                    yield frame_of(cast(batch, kinds))

    return Stream(name, headers[0].columns, read)
