"""Streams: tables on disk, or made on the way, that are read in chunks and can be read again."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from apfex.arguments import check_path
from apfex.files import (
    CSV_ENDINGS,
    check_apart,
    check_single,
    check_text,
    empty_floats,
    kinds_in_words,
    of_no_type,
    read_parquet_batches,
)
from apfex.streams._csv_files import open_csv_files
from apfex.streams._stream import Stream, frame_of, reading

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    import pyarrow.dataset as ds

_FORMATS = {".parquet": "parquet", ".pq": "parquet", ".arrow": "ipc", ".feather": "ipc"}
_FORMATS[".ipc"] = "ipc"
_WHOLE = re.compile("0|-?[1-9][0-9]{0,8}")
_NOTHING = "__HIVE_DEFAULT_PARTITION__"
_BUFFER = 2**16
"""Bytes of a column that are read at a time, however long a row group is."""
_HIDDEN = (".", "_")
_INDEX = "__index_level_"  # how pandas calls an index without a name in a file


def without_dictionaries(schema: pa.Schema) -> pa.Schema:
    """A schema with categories of the type of their values: codes differ from file to file.

    Text is text, however long its offsets are: pandas and polars differ in that.
    """
    import pyarrow as pa

    types = [one.type.value_type if _is_category(one) else one.type for one in schema]
    types = [pa.large_string() if _is_text(one) else one for one in types]
    return pa.schema(list(zip(schema.names, types, strict=True)))


def in_order(batch: pa.RecordBatch, schema: pa.Schema | None) -> pa.RecordBatch:
    """A batch with its columns in the order of a schema, if it has those columns."""
    if schema is None or sorted(batch.schema.names) != sorted(schema.names):
        return batch
    return batch.select(schema.names)


def _categories(schema: pa.Schema) -> set[str]:
    """Columns that are categories: stored so, or so in the frame of pandas that was stored."""
    told = (schema.pandas_metadata or {}).get("columns", ())
    named = {one["name"] for one in told if one.get("pandas_type") == "categorical"}
    return named | {one.name for one in schema if _is_category(one)}


def _is_category(one: pa.Field) -> bool:
    import pyarrow as pa

    return pa.types.is_dictionary(one.type)


def _is_text(one: pa.DataType) -> bool:
    import pyarrow as pa

    return pa.types.is_string(one) or pa.types.is_string_view(one)


def is_path(source: Any) -> bool:
    """Whether a source is a path, a pattern, or a list of paths."""
    if isinstance(source, str | os.PathLike):
        return True
    is_list = isinstance(source, list | tuple) and len(source) > 0
    return is_list and all(isinstance(one, str | os.PathLike) for one in source)


def open_files(source: Any, encoding: str | None = None, codes: Collection[str] = ()) -> Stream:
    """Open Parquet, Arrow or CSV files: a path, a folder, a pattern, or a list of paths.

    ``encoding`` is that of CSV files; by default what their marks say, or UTF-8. ``codes`` are
    columns that are text where CSV spells one number in two ways, as 01 and 1.
    """
    import pyarrow as pa
    import pyarrow.dataset as ds

    paths = paths_of(source)
    check_apart(paths)
    form = _format_of(paths)
    name = str(source) if len(paths) != 1 else str(paths[0])
    if form == "csv":
        return open_csv_files(paths, name, encoding, codes)
    partitions = {}
    try:
        if isinstance(source, str | os.PathLike) and paths != [Path(source).expanduser()]:
            base = _base_of(Path(source).expanduser())
            told = _partitions(paths, base, ds.dataset(str(paths[0]), format=form).schema)
            partitions = {"partitioning": told, "partition_base_dir": str(base)}
        dataset = ds.dataset([str(path) for path in paths], format=form, **partitions)
    except (pa.ArrowException, OSError, ValueError, LookupError, MemoryError) as error:
        said = next(iter(str(error).splitlines()), "")
        raise ValueError(f"X must be files of {form}, got one that cannot be read: {said}") from (
            error
        )
    return open_dataset(dataset, name)


def open_dataset(
    dataset: ds.Dataset, name: str = "the dataset", known: Collection[str] = ()
) -> Stream:
    """Check that all files of a dataset have one schema, and read it in their order.

    Columns in ``known`` are categories, as are those that the files themselves call so.
    """
    import pyarrow as pa

    fragments = list(dataset.get_fragments())
    stored = [_schema(fragment) for fragment in fragments]
    with reading(name):
        schemas = [without_dictionaries(schema) for schema in stored]
        categories = set(known).union(*map(_categories, (dataset.schema, *stored)))
    paths = [str(getattr(fragment, "path", name)) for fragment in fragments]
    _check_columns(schemas, paths)
    told = without_dictionaries(dataset.schema)
    for place, column in list(
        empty_floats(schemas, lambda at, name: _is_empty(fragments[at], name), categories)
    ):
        schemas[place], told = of_no_type(schemas[place], column), of_no_type(told, column)
    _check_types(schemas, paths)
    schema = pa.unify_schemas([told, *schemas], promote_options="permissive").remove_metadata()
    schema = pa.schema([one for one in schema if not one.name.startswith(_INDEX)])
    repeated = sorted({one for one in schema.names if schema.names.count(one) > 1})
    if repeated:
        raise ValueError(f"{name} must have columns of different names, got {repeated} twice.")

    def read(columns: Sequence[str], rows: int) -> Iterator[pd.DataFrame]:
        check_single(schema, columns, name)
        wanted = pa.schema([schema.field(name) for name in columns])
        for fragment in fragments:
            with reading(str(getattr(fragment, "path", name))):
                for batch in _read_fragment(fragment, wanted, rows):
                    yield frame_of(batch, categories)

    return Stream(name, tuple(schema.names), read)


def _read_fragment(fragment: Any, schema: pa.Schema, rows: int) -> Iterator[pa.RecordBatch]:
    """Batches of one file; of Parquet not more than a batch is decoded at a time.

    A dataset's own scanner holds several row groups, however small the batches are.
    """
    import pyarrow.dataset as ds
    import pyarrow.parquet as pq

    names = list(schema.names)
    if not isinstance(getattr(fragment, "format", None), ds.ParquetFileFormat):
        for batch in fragment.to_batches(columns=names, batch_size=rows):
            batch.validate(full=True)  # places in an Arrow file lead Arrow blindly
            check_text(batch)
            yield _with_partition(batch, {}, schema)
        return
    known = ds.get_partition_keys(fragment.partition_expression)
    stored = [name for name in names if name not in known]
    options = {"filesystem": fragment.filesystem, "buffer_size": _BUFFER, "pre_buffer": False}
    with pq.ParquetFile(fragment.path, **options) as file:
        twice = [name for name in names if name in known and name in file.schema_arrow.names]
    source = read_parquet_batches(
        fragment.path, [*stored, *twice], rows, use_threads=False, **options
    )
    for batch in source:
        for name in twice:
            _check_partition(batch.column(name), name, known[name])
        yield _with_partition(batch, known, schema)


def _check_partition(column: pa.Array, name: str, told: Any) -> None:
    """Refuse a file that holds other values in a column than its folder's name tells."""
    for value in column.unique().to_pylist():
        if value != told and str(value) != str(told):
            raise ValueError(
                f"column {name!r} must be what the folder says, {told!r}, got {value!r} in the "
                "file; rename the folder or the column"
            )


def _with_partition(
    batch: pa.RecordBatch, known: Mapping[str, Any], schema: pa.Schema
) -> pa.RecordBatch:
    """The columns of a schema; values that the path of a file tells are those of all its rows."""
    import pyarrow as pa

    arrays = []
    for one in schema:
        if one.name in known:
            arrays.append(pa.array([known[one.name]] * batch.num_rows).cast(one.type))
        else:
            arrays.append(_as_type(batch.column(one.name), one))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _as_type(column: pa.Array, wanted: pa.Field) -> pa.Array:
    """A column as the type of all files; Arrow's own words of a failure show a value."""
    import pyarrow as pa

    try:
        return column.cast(wanted.type)
    except pa.ArrowInvalid:
        raise ValueError(
            f"column {wanted.name!r} has values that cannot be read as "
            f"{kinds_in_words(wanted.type)[0]} ({wanted.type}), which it is in other files, "
            "without a change; write all files with one type"
        ) from None


def _schema(fragment: Any) -> pa.Schema:
    with reading(str(getattr(fragment, "path", "The stream"))):
        return fragment.physical_schema


def _check_columns(schemas: Sequence[pa.Schema], paths: Sequence[str]) -> None:
    """Refuse a file whose columns are not those of the first."""
    first = schemas[0].names
    for schema, path in zip(schemas, paths, strict=True):
        lacking = [name for name in first if name not in schema.names]
        more = [name for name in schema.names if name not in first]
        lacking, more = ([n for n in part if not n.startswith(_INDEX)] for part in (lacking, more))
        if lacking or more:
            raise ValueError(
                f"All files of a stream must have the same columns, got {path} beside {paths[0]}: "
                f"missing {lacking or 'none'}, unknown {more or 'none'}; write it again, or leave "
                "it out."
            )


def _is_empty(fragment: Any, name: str) -> bool:
    """Whether a column of a file has no value; rows up to the first are read."""
    with reading(str(getattr(fragment, "path", "The stream"))):
        batches = fragment.to_batches(columns=[name], batch_readahead=1)
        return all(batch.column(0).null_count == len(batch) for batch in batches)


def _check_types(schemas: Sequence[pa.Schema], paths: Sequence[str]) -> None:
    """Refuse a file that holds something else in a column; one without values is of any type."""
    import pyarrow as pa

    first: dict[str, tuple[pa.DataType, str]] = {}
    for schema, path in zip(schemas, paths, strict=True):
        for name, type in zip(schema.names, schema.types, strict=True):
            if name.startswith(_INDEX) or pa.types.is_null(type):
                continue
            known, where = first.setdefault(name, (type, path))
            if _are_numbers(known, type):  # read as what holds both; what it cannot is refused
                continue
            if not known.equals(type):
                here, there = kinds_in_words(type, known)
                raise ValueError(
                    f"All files of a stream must have one type in each column, got {here} in "
                    f"column {name!r} of {path} beside {where}, which has {there}; write it again "
                    "with that type."
                )


def _are_numbers(*types: pa.DataType) -> bool:
    import pyarrow as pa

    return all(pa.types.is_integer(one) or pa.types.is_floating(one) for one in types)


def paths_of(source: Any) -> list[Path]:
    """Files of a path, a folder (searched through), a pattern or a list of these; sorted.

    Names that begin with ``.`` or ``_`` are no data: what Spark, editors and systems leave behind.
    """
    if isinstance(source, list | tuple):
        return list(dict.fromkeys(path for one in source for path in paths_of(one)))
    check_path("X", source)
    text = os.fspath(source)
    path = Path(text).expanduser()
    if path.is_dir():
        every = [p for p in sorted(path.rglob("*")) if p.is_file()]
        every = [p for p in every if not _is_hidden(p.relative_to(path))]
        found = [p for p in every if _is_csv(p) or p.suffix.lower() in _FORMATS]
        if not found:
            raise FileNotFoundError(f"The folder {path} has no files that end in {_endings()}.")
        return found
    if path.exists():
        return [path]
    if not glob.has_magic(text):
        raise FileNotFoundError(f"There is no file {path}.")
    found = sorted(Path(one) for one in glob.glob(str(path), recursive=True))
    found = [one for one in found if not one.name.startswith(_HIDDEN)]
    if not found:
        raise FileNotFoundError(f"No file is named like {text}.")
    return found


def _base_of(path: Path) -> Path:
    """A folder, or the one that a pattern begins in: below it folders may be partitions."""
    while not path.is_dir() and path != path.parent:
        path = path.parent
    return path


def _partitions(paths: Sequence[Path], base: Path, stored: pa.Schema) -> Any:
    """How folders named ``name=value`` are read: as files store the column, or by their names.

    Those are whole numbers if all are written as Python writes them, and text otherwise: pyarrow
    alone would take 01 and 1 for one value. A type that differs from that of the files would be an
    error of pyarrow.
    """
    import pyarrow as pa
    import pyarrow.dataset as ds

    values: dict[str, set[str]] = {}
    for path in paths:
        for name, sign, value in (
            part.partition("=") for part in path.relative_to(base).parts[:-1]
        ):
            if sign:
                values.setdefault(unquote(name), set()).add(unquote(value))
    fields = []
    for name, found in values.items():
        found -= {_NOTHING}
        is_whole = bool(found) and all(map(_WHOLE.fullmatch, found))
        type_ = pa.int32() if is_whole else pa.string()
        if name in stored.names:
            type_ = without_dictionaries(pa.schema([stored.field(name)])).types[0]
        fields.append(pa.field(name, type_))
    return ds.partitioning(pa.schema(fields), flavor="hive")


def _is_hidden(path: Path) -> bool:
    return any(part.startswith(_HIDDEN) for part in path.parts)


def _is_csv(path: Path) -> bool:
    return path.name.lower().endswith(CSV_ENDINGS)


def _format_of(paths: Sequence[Path]) -> str:
    forms = {
        path: "csv" if _is_csv(path) else _FORMATS.get(path.suffix.lower(), "") for path in paths
    }
    first, form = next(iter(forms.items()))
    unknown = next((path for path, one in forms.items() if not one), None)
    if unknown is not None:
        raise ValueError(
            f"A stream must be of files that end in one of {_endings()}, got {unknown}; write it "
            "as Parquet first."
        )
    other = next((path for path, one in forms.items() if one != form), None)
    if other is not None:
        raise ValueError(
            f"Files that are read as one table must be of one form, got {first} and {other}; name "
            f"those that are meant, as in {first.parent / f'*{first.suffix}'}."
        )
    return form


def _endings() -> str:
    return ", ".join((*_FORMATS, *CSV_ENDINGS))
