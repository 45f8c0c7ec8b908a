"""Streams: tables on disk, or made on the way, that are read in chunks and can be read again."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    import pyarrow.dataset as ds

_FORMATS = {".parquet": "parquet", ".pq": "parquet", ".arrow": "ipc", ".feather": "ipc"}
_FORMATS[".ipc"] = "ipc"
_BUFFER = 2**16
"""Bytes of a column that are read at a time, however long a row group is."""
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
    schema : pyarrow.Schema
    read : callable
        ``read(columns, rows)`` gives record batches of these columns with at most so many rows.
    has_names : bool
        Whether names of columns came with the data.
    label, weight : str or None
        Columns that hold labels and weights, where the source itself says so.
    sensitive : tuple of str
        Columns of sensitive attributes, where the source itself says so.
    """

    name: str
    schema: pa.Schema
    read: Callable[[Sequence[str], int], Iterator[pa.RecordBatch]]
    has_names: bool = True
    label: str | None = None
    weight: str | None = None
    sensitive: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(self.schema.names)

    def frames(self, columns: Sequence[str], rows: int) -> Iterator[pd.DataFrame]:
        """Chunks of at most so many rows as pandas frames; text comes as categories."""
        rows = min(rows, max(1_000, _CHUNK_BYTES // (8 * len(columns))))
        for batch in self.read(columns, rows):
            for start in range(0, batch.num_rows, rows):
                yield frame_of(batch.slice(start, rows))


def frame_of(batch: pa.RecordBatch) -> pd.DataFrame:
    """A record batch as a pandas frame; text becomes categories, which is quick and small."""
    return batch.to_pandas(ignore_metadata=True, strings_to_categorical=True, split_blocks=True)


def is_path(source: Any) -> bool:
    """Whether a source is a path, a pattern, or a list of paths."""
    if isinstance(source, str | os.PathLike):
        return True
    is_list = isinstance(source, list | tuple) and len(source) > 0
    return is_list and all(isinstance(one, str | os.PathLike) for one in source)


def open_files(source: Any) -> Stream:
    """Open Parquet or Arrow files: a path, a folder, a pattern, or a list of paths."""
    import pyarrow.dataset as ds

    paths = _paths(source)
    form = _format_of(paths)
    partitions = {}
    if isinstance(source, str | os.PathLike) and Path(source).expanduser().is_dir():
        base = str(Path(source).expanduser())
        partitions = {"partitioning": "hive", "partition_base_dir": base}
    try:
        dataset = ds.dataset([str(path) for path in paths], format=form, **partitions)
    except (OSError, ValueError) as error:  # pyarrow's errors are of these kinds
        said = next(iter(str(error).splitlines()), "")
        raise ValueError(f"X must be files of {form}, got one that cannot be read: {said}") from (
            error
        )
    return open_dataset(dataset, str(source) if len(paths) != 1 else str(paths[0]))


def open_dataset(dataset: ds.Dataset, name: str = "the dataset") -> Stream:
    """Check that all files of a dataset have one schema, and read it in their order."""
    import pyarrow as pa

    fragments = list(dataset.get_fragments())
    schemas = [_schema(fragment) for fragment in fragments]
    for fragment, schema in zip(fragments, schemas, strict=True):
        _check_schema(schemas[0], schema, str(getattr(fragment, "path", name)), fragments[0])
    schema = pa.unify_schemas([dataset.schema, *(s for s in schemas)])
    repeated = sorted({one for one in schema.names if schema.names.count(one) > 1})
    if repeated:
        raise ValueError(f"{name} must have columns of different names, got {repeated} twice.")

    def read(columns: Sequence[str], rows: int) -> Iterator[pa.RecordBatch]:
        wanted = pa.schema([schema.field(name) for name in columns])
        for fragment in fragments:
            yield from _read_fragment(fragment, wanted, rows)

    return Stream(name, schema.remove_metadata(), read)


def _read_fragment(fragment: Any, schema: pa.Schema, rows: int) -> Iterator[pa.RecordBatch]:
    """Batches of one file; of Parquet not more than a batch is decoded at a time.

    A dataset's own scanner holds several row groups, however small the batches are.
    """
    import pyarrow.dataset as ds
    import pyarrow.parquet as pq

    names = list(schema.names)
    if not isinstance(getattr(fragment, "format", None), ds.ParquetFileFormat):
        yield from fragment.to_batches(schema=schema, columns=names, batch_size=rows)
        return
    known = ds.get_partition_keys(fragment.partition_expression)
    stored = [name for name in names if name not in known]
    with pq.ParquetFile(
        fragment.path, filesystem=fragment.filesystem, buffer_size=_BUFFER, pre_buffer=False
    ) as file:
        for batch in file.iter_batches(rows, columns=stored, use_threads=False):
            yield _with_partition(batch, known, schema)


def _with_partition(
    batch: pa.RecordBatch, known: Mapping[str, Any], schema: pa.Schema
) -> pa.RecordBatch:
    """The columns of a schema; values that the path of a file tells are those of all its rows."""
    import pyarrow as pa

    arrays = []
    for field in schema:
        if field.name in known:
            arrays.append(pa.array([known[field.name]] * batch.num_rows).cast(field.type))
        else:
            arrays.append(batch.column(field.name).cast(field.type))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _schema(fragment: Any) -> pa.Schema:
    try:
        return fragment.physical_schema
    except (OSError, ValueError) as error:
        said = next(iter(str(error).splitlines()), "")
        raise ValueError(
            f"{getattr(fragment, 'path', 'The stream')} cannot be read: {said}"
        ) from error


def _check_schema(first: pa.Schema, found: pa.Schema, path: str, start: Any) -> None:
    """Refuse a file whose columns are not those of the first; one without values is of any type."""
    import pyarrow as pa

    beside = f"beside {getattr(start, 'path', 'the first file')}"
    lacking = [name for name in first.names if name not in found.names]
    more = [name for name in found.names if name not in first.names]
    if lacking or more:
        raise ValueError(
            f"All files of a stream must have the same columns, got {path} {beside}: missing "
            f"{lacking or 'none'}, unknown {more or 'none'}; write it again, or leave it out."
        )
    for field in first:
        other = found.field(field.name).type
        if not field.type.equals(other) and pa.null() not in (field.type, other):
            raise ValueError(
                f"All files of a stream must have one type in each column, got {other} in column "
                f"{field.name!r} of {path} {beside}, which has {field.type}; write it again with "
                "that type."
            )


def _paths(source: Any) -> list[Path]:
    """Files of a path, a folder (searched through), a pattern or a list of these; sorted."""
    if isinstance(source, list | tuple):
        return [path for one in source for path in _paths(one)]
    text = os.fspath(source)
    path = Path(text).expanduser()
    if path.is_dir():
        found = sorted(p for p in path.rglob("*") if p.suffix.lower() in _FORMATS and p.is_file())
        if not found:
            raise FileNotFoundError(f"The folder {path} has no files that end in {_endings()}.")
        return found
    if path.exists():
        return [path]
    if not glob.has_magic(text):
        raise FileNotFoundError(f"There is no file {path}.")
    found = sorted(Path(one) for one in glob.glob(str(path), recursive=True))
    if not found:
        raise FileNotFoundError(f"No file is named like {text}.")
    return found


def _format_of(paths: Sequence[Path]) -> str:
    found = {_FORMATS.get(path.suffix.lower(), path.suffix) for path in paths}
    if len(found) > 1 or not found <= set(_FORMATS.values()):
        raise ValueError(
            f"A stream must be of files that all end in one of {_endings()}, got {sorted(found)}; "
            "write CSV files as Parquet first."
        )
    return found.pop()


def _endings() -> str:
    return ", ".join(_FORMATS)
