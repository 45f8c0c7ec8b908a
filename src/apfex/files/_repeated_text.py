"""Text that a file holds once and many rows have: what it takes is known before it is copied."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from apfex.memory import free_memory, in_bytes, is_too_much

if TYPE_CHECKING:
    import pyarrow as pa

_PART = 2**30
"""Bytes of text in a batch, at most: places in text are of 31 bits."""


def read_parquet_batches(
    source: Any, columns: Sequence[str], rows: int, *, use_threads: bool = True, **options: Any
) -> Iterator[pa.RecordBatch]:
    """Some columns of a Parquet file, with at most so many rows at a time.

    Text is read as the words that are there and where they stand, and copied to its rows when it is
    known that it fits: a file of a few bytes may repeat a long word in any number of rows.

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
    with pq.ParquetFile(source, metadata=about, read_dictionary=text, **options) as file:
        for batch in file.iter_batches(rows, columns=list(columns), use_threads=use_threads):
            yield from _with_plain_text(batch, plain, text)


def check_text(rows: pa.RecordBatch | pa.Table) -> int:
    """Bytes that text takes when each row has its own; an error where they are not free."""
    size = sum(_text_size(part) for column in rows.columns for part in _chunks(column))
    if is_too_much(size):
        raise ValueError(
            f"its text takes {in_bytes(size)} in {rows.num_rows:,} rows, and "
            f"{in_bytes(free_memory())} are free; read fewer columns, or fewer rows at a time"
        )
    return size


def _with_plain_text(
    batch: pa.RecordBatch, plain: pa.Schema, text: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    for column in batch.columns:
        if pa.types.is_dictionary(column.type):
            column.validate(full=True)  # a damaged file may say that words stand elsewhere
    size = check_text(batch)
    if not text:
        yield batch
        return
    step = max(1, batch.num_rows // max(1, -(-size // _PART)))
    for start in range(0, max(1, batch.num_rows), step):
        part = batch.slice(start, step)
        columns = [
            column.dictionary_decode().cast(plain.field(name).type) if name in text else column
            for name, column in zip(part.schema.names, part.columns, strict=True)
        ]
        types = [plain.field(one.name) if one.name in text else one for one in part.schema]
        yield pa.RecordBatch.from_arrays(columns, schema=pa.schema(types, part.schema.metadata))


def _chunks(column: pa.Array | pa.ChunkedArray) -> list[pa.Array]:
    return getattr(column, "chunks", [column])


def _is_text(type: pa.DataType) -> bool:
    import pyarrow as pa

    known = (pa.types.is_string, pa.types.is_large_string)
    return any(is_one(type) for is_one in (*known, pa.types.is_binary, pa.types.is_large_binary))


def _compute() -> Any:
    """Functions of Arrow, which are made when it is imported and so unknown to type checkers."""
    import pyarrow.compute

    return pyarrow.compute


def is_view(type: pa.DataType) -> bool:
    """Whether values are places in text, of which many may be the same."""
    import pyarrow as pa

    return pa.types.is_string_view(type) or pa.types.is_binary_view(type)


def _text_size(column: pa.Array) -> int:
    """Bytes of text of all rows of a column, if each has its own."""
    import pyarrow as pa

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
    if _is_text(column.type):
        found = _compute().fill_null(_compute().binary_length(column), 0)
        return found.to_numpy(zero_copy_only=False).astype(np.int64)
    if is_view(column.type) and len(column):
        # each is 16 bytes, of which the first four are its length
        views = np.frombuffer(column.buffers()[1], np.int32).reshape(-1, 4)
        views = views[column.offset : column.offset + len(column), 0].astype(np.int64)
        missing = column.is_null().to_numpy(zero_copy_only=False)
        return np.where(missing, 0, views)
    return None
