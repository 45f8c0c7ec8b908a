"""A stream: a table that is read in chunks, as often as needed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, final

from apfex.files import whole_with_gaps, with_storage

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

_CHUNK_BYTES = 2**22
"""Of a chunk, about: of wide tables fewer rows are read at a time."""


@final
@dataclass(frozen=True, eq=False)
class Stream:
    """A table that is read in chunks, as often as needed; made by :func:`open_stream`.

    Attributes
    ----------
    name : str
        How messages call it.
    columns : tuple of str
    read : callable
        ``read(columns, rows)`` gives pandas frames of these columns, of about so many rows, from
        the first row on whenever it is called.
    has_names : bool
        Whether names of columns came with the data.
    label, weight : str or None
        Columns that hold labels and weights, where the source itself says so.
    sensitive : mapping from column to attribute
        Columns of sensitive attributes, where the source itself says so.
    """

    name: str
    columns: tuple[str, ...]
    read: Callable[[Sequence[str], int], Iterator[pd.DataFrame]]
    has_names: bool = True
    label: str | None = None
    weight: str | None = None
    sensitive: Mapping[str, str] = field(default_factory=dict)

    def frames(self, columns: Sequence[str], rows: int) -> Iterator[pd.DataFrame]:
        """Chunks of at most so many rows, fewer of wide tables; text comes as categories."""
        rows = min(rows, max(1_000, _CHUNK_BYTES // (8 * len(columns))))
        for frame in self.read(columns, rows):
            if len(frame) <= rows:
                yield frame
                continue
            for start in range(0, len(frame), rows):
                yield frame.iloc[start : start + rows].reset_index(drop=True)


def frame_of(batch: pa.RecordBatch, categories: Collection[str] = ()) -> pd.DataFrame:
    """A record batch as a pandas frame; text becomes categories, which is quick and small.

    So do the columns named, whatever they hold: categories of numbers are no quantities. Whole
    numbers of which some are missing stay whole: as floats those beyond 2^53 would become others.
    """
    import pyarrow as pa

    batch = with_storage(batch)
    columns = [  # pandas would make other numbers of whole ones of which some are missing
        column.dictionary_encode() if one.name in categories and _is_whole(one.type) else column
        for one, column in zip(batch.schema, batch.columns, strict=True)
    ]
    frame = pa.RecordBatch.from_arrays(columns, batch.schema.names).to_pandas(
        strings_to_categorical=True, split_blocks=True
    )
    own = {name: "category" for name in frame.columns if name in categories}
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if name not in categories and column.null_count and pa.types.is_integer(column.type):
            frame[name] = whole_with_gaps(column)
    return frame.astype(own) if own else frame


def _is_whole(type: pa.DataType) -> bool:
    import pyarrow as pa

    return pa.types.is_integer(type) or pa.types.is_boolean(type)


@contextmanager
def reading(path: str) -> Iterator[None]:
    """What Arrow says of a file that somebody damaged, or forged, in one sentence."""
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OSError, ValueError, LookupError, TypeError, MemoryError) as error:
        said = next(iter(str(error).splitlines()), type(error).__name__)
        raise ValueError(f"{path} cannot be read: {said[:200]}") from error
