"""From whatever can be read in chunks to a stream that can be read again."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from apfex.streams._once import keep_batches, keep_data_iter, keep_tuples
from apfex.streams._source import (
    Stream,
    frame_of,
    in_order,
    is_path,
    open_dataset,
    open_files,
    without_dictionaries,
)

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


def is_stream(source: Any) -> bool:
    """Whether a source is to be read in chunks: anything but a table or an array in memory.

    Examples
    --------
    >>> is_stream("data/*.parquet"), is_stream([[1.0], [2.0]]), is_stream(iter([]))
    (True, False, True)
    """
    if isinstance(source, Stream) or is_path(source):
        return True
    return any(check(source) for check, _ in _KINDS)


def open_stream(source: Any, folder: Path, codes: Collection[str] = ()) -> Stream:
    """Open a source as a stream; one that can be read only once is written to the folder first.

    Parameters
    ----------
    source : path, pattern, folder, list of paths, pyarrow Dataset or reader, function, ...
    folder : Path
        Of :func:`spool_folder`.
    codes : collection of str
        Columns that rows are grouped by: text where CSV has codes such as 01, and no numbers.

    Returns
    -------
    Stream

    Examples
    --------
    >>> import pyarrow as pa
    >>> batch = pa.RecordBatch.from_pydict({"age": [20, 30]})
    >>> from apfex.streams import spool_folder
    >>> with spool_folder() as folder:
    ...     stream = open_stream(iter([batch]), folder)
    ...     [len(frame) for frame in stream.frames(["age"], 100)], stream.columns
    ([2], ('age',))
    """
    if isinstance(source, Stream):
        return source
    if is_path(source):
        return open_files(source, codes=codes)
    for check, opened in _KINDS:
        if check(source):
            return opened(source, folder)
    raise TypeError(f"X must be a table, an array or a stream, got {type(source).__name__}.")


def _is_dataset(source: Any) -> bool:
    return _is_of("pyarrow.dataset", "Dataset", source)


def _is_reader(source: Any) -> bool:
    return _is_of("pyarrow", "RecordBatchReader", source)


def _is_arrow_stream(source: Any) -> bool:
    """What hands out Arrow batches, such as a relation of DuckDB; frames are arrays as well."""
    return hasattr(source, "__arrow_c_stream__") and not hasattr(source, "__array__")


def _is_loader(source: Any) -> bool:
    return _is_of("torch.utils.data", "DataLoader", source)


def _is_data_iter(source: Any) -> bool:
    return _is_of("xgboost", "DataIter", source)


def _is_of(module: str, name: str, source: Any) -> bool:
    """Whether a source is of a class whose module has been loaded: else nobody has made one."""
    loaded = sys.modules.get(module)
    return loaded is not None and isinstance(source, getattr(loaded, name))


def _is_function(source: Any) -> bool:
    return callable(source) and not hasattr(source, "columns") and not hasattr(source, "__array__")


def _is_iterator(source: Any) -> bool:
    return isinstance(source, Iterator)


def _open_function(source: Callable[[], Any], folder: Path) -> Stream:
    """A function that makes a new reader, or iterator of record batches, whenever it is called."""
    del folder
    first = next(_batches_of(source()), None)
    if first is None:
        raise ValueError("X must have rows, got a function whose stream has none.")
    schema = without_dictionaries(first.schema)

    def read(columns: Sequence[str], rows: int) -> Iterator[pd.DataFrame]:
        del rows
        for place, batch in enumerate(_batches_of(source())):
            batch = in_order(batch, schema)
            found = without_dictionaries(batch.schema)
            if not found.equals(schema):
                raise ValueError(
                    f"All batches of a stream must have one schema, got another in batch {place}: "
                    f"{found.to_string()} in place of {schema.to_string()}."
                )
            yield frame_of(batch.select(list(columns)))

    return Stream("the function's stream", tuple(first.schema.names), read)


def _batches_of(source: Any) -> Iterator[pa.RecordBatch]:
    """Record batches from a reader, or from an iterator of batches, Arrow tables or frames."""
    import pandas as pd
    import pyarrow as pa

    if _is_dataset(source):
        yield from source.to_batches()
        return
    if _is_arrow_stream(source):
        source = pa.RecordBatchReader.from_stream(source)
    if not isinstance(source, Iterable):
        raise TypeError(
            "A function given as X must return an Arrow reader or an iterator of record batches, "
            f"got {type(source).__name__}."
        )
    for one in source:
        if isinstance(one, pa.RecordBatch):
            yield one.replace_schema_metadata()
        elif isinstance(one, pa.Table):
            yield from one.replace_schema_metadata().to_batches()
        elif isinstance(one, pd.DataFrame):
            yield pa.RecordBatch.from_pandas(one, preserve_index=False).replace_schema_metadata()
        else:
            raise TypeError(
                "A stream must be of record batches, Arrow tables, pandas frames, or tuples (X, y, "
                f"sensitive), got {type(one).__name__}."
            )


def _open_iterator(source: Iterator[Any], folder: Path) -> Stream:
    first = next(source, None)
    if first is None:
        raise ValueError("X must have rows, got an iterator that yields nothing.")
    rest = chain([first], source)
    if isinstance(first, list | tuple):
        return keep_tuples(rest, folder, "the iterator")
    return keep_batches(_batches_of(rest), folder, "the iterator")


_QUERY = "the Arrow stream"
_KINDS: tuple[tuple[Callable[[Any], bool], Callable[[Any, Path], Stream]], ...] = (
    (_is_dataset, lambda source, _: open_dataset(source)),
    (_is_reader, lambda source, folder: keep_batches(_batches_of(source), folder, "the reader")),
    (_is_arrow_stream, lambda source, folder: keep_batches(_batches_of(source), folder, _QUERY)),
    (_is_loader, lambda source, folder: keep_tuples(source, folder, "the DataLoader")),
    (_is_data_iter, keep_data_iter),
    (_is_iterator, _open_iterator),
    (_is_function, _open_function),
)
"""What is read in chunks beside files, and how each is opened."""
