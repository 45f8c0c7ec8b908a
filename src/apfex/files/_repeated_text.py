"""Text that a file holds once and many rows have: what it takes is known before it is copied."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from apfex.files._extension_types import storage_type
from apfex.memory import free_memory, in_bytes, is_too_much

if TYPE_CHECKING:
    import pyarrow as pa

_PART = 2**30
"""Bytes of text in a batch, at most: places in text are of 31 bits."""
_SHARED = (
    "{} is in DELTA_BYTE_ARRAY, whose size nobody knows before it is read; write it with a "
    "dictionary, or plain"
)


def read_parquet_batches(
    source: Any, columns: Sequence[str], rows: int, *, use_threads: bool = True, **options: Any
) -> Iterator[pa.RecordBatch]:
    """Some columns of a Parquet file, with at most so many rows at a time.

    Text is read as the words that are there and where they stand, and copied to its rows when it is
    known that it fits: a file of a few bytes may repeat a long word in any number of rows. Bytes
    that cannot be read so have one width, and more rows than there is room for are not asked for.
    Words that are stored by what they share with the word before (``DELTA_BYTE_ARRAY``) are
    refused: what they take is not known before they are built.

    Parameters
    ----------
    source, **options
        Of ``pyarrow.parquet.ParquetFile``.
    columns : sequence of str
    rows : int
    use_threads : bool
    """
    import pyarrow.parquet as pq

    with pq.ParquetFile(source, **options) as file:
        about, plain = file.metadata, file.schema_arrow
    asked = [one for one in plain if one.name in columns]
    text = [one.name for one in asked if _is_text(one.type) or is_view(one.type)]
    _check_stored(about, asked)
    _check_widths(asked, min(rows, _rows_of(about)))
    # types that others have added are read as what holds them, for which there are words
    options |= {"metadata": about, "read_dictionary": text, "arrow_extensions_enabled": False}
    with pq.ParquetFile(source, **options) as file:
        parts = file.iter_batches(rows, columns=list(columns), use_threads=use_threads)
        while (batch := _next(parts)) is not None:
            yield from _with_plain_text(batch, plain)


def check_text(rows: pa.RecordBatch | pa.Table) -> int:
    """Bytes that text takes when each row has its own; an error where they are not free."""
    size = sum(_text_size(part) for column in rows.columns for part in _chunks(column))
    _check_size(size, rows.num_rows)
    return size


def check_places(rows: pa.Table) -> None:
    """An error where text that a table holds as places in it takes more than is free.

    Text of rows that are places in a list of words is counted as that list, which is all that is
    copied of it.
    """
    size = 0
    for column in rows.columns:
        for part in column.chunks:
            words = _words(part)
            size += _text_size(words) if is_view(words.type) else 0
    _check_size(size, rows.num_rows)


def _check_size(size: int, rows: int) -> None:
    if is_too_much(size):
        raise ValueError(
            f"its text takes {in_bytes(size)} in {rows:,} rows, and {in_bytes(free_memory())} are "
            "free; read fewer columns, or fewer rows at a time"
        )


def _rows_of(about: Any) -> int:
    groups = (about.row_group(place).num_rows for place in range(about.num_row_groups))
    return max(about.num_rows, sum(groups))


def _check_stored(about: Any, asked: Sequence[pa.Field]) -> None:
    """Refuse columns of bytes of any length that cannot be read as words and their places."""
    types = {one.name: one.type for one in asked}
    for place in range(len(about.schema)):
        column = about.schema.column(place)
        if column.physical_type != "BYTE_ARRAY" or column.path not in types:
            continue
        if not _has_words(types[column.path]):
            raise ValueError(
                f"column {column.path!r} holds numbers in bytes of any length; write it again "
                "with numbers of one width"
            )
        groups = (about.row_group(group) for group in range(about.num_row_groups))
        if any("DELTA_BYTE_ARRAY" in group.column(place).encodings for group in groups):
            raise ValueError(_SHARED.format(f"column {column.path!r}"))


def _check_widths(asked: Sequence[pa.Field], rows: int) -> None:
    """Refuse rows whose values of one width do not fit: a file may repeat a wide one."""
    _check_size(rows * sum(_width(one.type) for one in asked), rows)


def _width(type: pa.DataType) -> int:
    """Bytes of each value, if all have as many; 0 for others."""
    import pyarrow as pa

    type = storage_type(type)
    type = type.value_type if pa.types.is_dictionary(type) else type
    return type.byte_width if pa.types.is_fixed_size_binary(type) else 0


def _next(parts: Iterator[pa.RecordBatch]) -> pa.RecordBatch | None:
    """The next part of a file; an error in words where the file says other than it holds."""
    try:
        return next(parts, None)
    except (NotImplementedError, OSError) as error:
        if "DeltaByteArray" in str(error):
            raise ValueError(_SHARED.format("a column")) from error
        raise


def _with_plain_text(batch: pa.RecordBatch, plain: pa.Schema) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    for column in batch.columns:
        if pa.types.is_dictionary(column.type):
            column.validate(full=True)  # a damaged file may say that words stand elsewhere
    size = check_text(batch)
    fields = [plain.field(name) for name in batch.schema.names]
    step = max(1, batch.num_rows // max(1, -(-size // _PART)))
    for start in range(0, max(1, batch.num_rows), step):
        part = batch.slice(start, step)
        columns = [
            column if column.type == one.type else _as_type(column, one.type)
            for column, one in zip(part.columns, fields, strict=True)
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields, part.schema.metadata))


def _as_type(column: pa.Array, type: pa.DataType) -> pa.Array:
    """Words and their places, or what holds the values of a type, as values of that type."""
    import pyarrow as pa

    if pa.types.is_dictionary(column.type) and not pa.types.is_dictionary(type):
        column = column.dictionary_decode()
    found = column.cast(storage_type(type))
    return found if found.type == type else pa.ExtensionArray.from_storage(type, found)


def _chunks(column: pa.Array | pa.ChunkedArray) -> list[pa.Array]:
    return getattr(column, "chunks", [column])


def _stored(column: pa.Array) -> pa.Array:
    import pyarrow as pa

    return column.storage if isinstance(column, pa.ExtensionArray) else column


def _words(column: pa.Array) -> pa.Array:
    """Those that rows are places in; the rows themselves of other columns."""
    import pyarrow as pa

    column = _stored(column)
    return column.dictionary if pa.types.is_dictionary(column.type) else column


def _has_words(type: pa.DataType) -> bool:
    import pyarrow as pa

    return _is_text(type) or is_view(type) or pa.types.is_dictionary(storage_type(type))


def _is_text(type: pa.DataType) -> bool:
    import pyarrow as pa

    known = (pa.types.is_string, pa.types.is_large_string)
    known += (pa.types.is_binary, pa.types.is_large_binary)
    return any(is_one(storage_type(type)) for is_one in known)


def _compute() -> Any:
    """Functions of Arrow, which are made when it is imported and so unknown to type checkers."""
    import pyarrow.compute

    return pyarrow.compute


def is_view(type: pa.DataType) -> bool:
    """Whether values are places in text, of which many may be the same."""
    import pyarrow as pa

    type = storage_type(type)
    return pa.types.is_string_view(type) or pa.types.is_binary_view(type)


def _text_size(column: pa.Array) -> int:
    """Bytes of text of all rows of a column, if each has its own."""
    import pyarrow as pa

    column = _stored(column)
    if pa.types.is_dictionary(column.type):
        lengths = _lengths(column.dictionary)
        if lengths is None:
            return 0
        places = column.indices.drop_null().to_numpy(zero_copy_only=False)
        return int(lengths[places].sum()) if len(lengths) else 0
    if _is_text(column.type):
        return int(_compute().sum(_compute().binary_length(column)).as_py() or 0)
    lengths = _lengths(column)
    return 0 if lengths is None else int(lengths.sum())


def _lengths(column: pa.Array) -> np.ndarray | None:
    """Bytes of each text; None where there is none."""
    column = _stored(column)
    if _is_text(column.type):
        found = _compute().fill_null(_compute().binary_length(column), 0)
        return found.to_numpy(zero_copy_only=False).astype(np.int64)
    if _width(column.type):
        return np.full(len(column), _width(column.type))
    if is_view(column.type) and len(column):
        # each is 16 bytes, of which the first four are its length
        views = np.frombuffer(column.buffers()[1], np.int32).reshape(-1, 4)
        views = views[column.offset : column.offset + len(column), 0].astype(np.int64)
        missing = column.is_null().to_numpy(zero_copy_only=False)
        return np.where(missing, 0, views)
    return None
