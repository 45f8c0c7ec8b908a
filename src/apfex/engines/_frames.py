"""Frames of other libraries as tables of Ibis."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

from apfex.engines._names import alike_names
from apfex.files import frame_to_arrow

_TAKEN = (
    "a path, a glob, a folder or a URL of Parquet or CSV, a file of DuckDB or SQLite, a table of "
    "Ibis, a relation of DuckDB, a data frame of Spark, a frame of pandas, polars or Arrow, or "
    "anything with __arrow_c_stream__"
)
_GIVEN, _KEPT = "apfex_given", "apfex_kept"


@final
@dataclass(frozen=True, eq=False)
class FrameTable:
    """A frame in an engine; made by :func:`frame_table`.

    Attributes
    ----------
    name : str
    table : Ibis table
    backend : Ibis backend
    close : callable
    columns : tuple of str
        All names; those that the engine cannot tell apart are not in ``table``.
    half : frozenset of str
        Columns of floats of 16 bits, which the engine has with 32.
    """

    name: str
    table: Any
    backend: Any
    close: Callable[[], None]
    columns: tuple[str, ...]
    half: frozenset[str] = frozenset()


def frame_table(frame: Any) -> FrameTable:
    """A frame as a table of Ibis; those of Spark and lazy ones of polars keep their rows."""
    import ibis
    import pyarrow as pa

    if is_spark(frame):
        return FrameTable("the data frame", *_of_spark(frame), tuple(frame.columns))
    if type(frame).__name__ == "LazyFrame" and type(frame).__module__.startswith("polars"):
        return _of_lazy(frame)
    from apfex.engines._duckdb import connect_duckdb

    if is_stream(frame) and not isinstance(frame, pa.Table):
        return _of_stream(frame)
    rows = _arrow(frame)
    names = tuple(rows.column_names)
    hidden = {"", *(name for alike in alike_names(names) for name in alike)}
    known = rows.select([name for name in names if name not in hidden])
    schema, half = _without_half(known.schema)
    table = ibis.memtable(known.cast(schema) if half else known)
    return FrameTable("the frame", table, *connect_duckdb(), names, half)


def _without_half(schema: Any) -> tuple[Any, frozenset[str]]:
    """Floats of 16 bits with 32, which hold them exactly: DuckDB reads none from Arrow."""
    import pyarrow as pa

    half = {field.name for field in schema if pa.types.is_float16(field.type)}
    wide = [field.with_type(pa.float32()) if field.name in half else field for field in schema]
    return pa.schema(wide, schema.metadata), frozenset(half)


def _of_lazy(frame: Any) -> FrameTable:
    """Without columns whose names polars reads as patterns."""
    import ibis
    import polars as pl
    from polars import selectors

    schema = frame.collect_schema()
    names = tuple(schema.names())
    hidden = {name for alike in alike_names(names, "polars") for name in alike}
    known = [name for name in names if name not in hidden]
    half = frozenset(name for name in known if schema[name] == pl.Float16)
    zoned = [name for name in known if getattr(schema[name], "time_zone", None) is not None]
    given = frame.select(selectors.by_name(known)).with_columns(
        selectors.by_name(sorted(half)).cast(pl.Float32),
        selectors.by_name(zoned).dt.convert_time_zone("UTC"),
    )
    backend = ibis.polars.connect({"frame": given})
    table = backend.table("frame")
    return FrameTable("the frame", table, backend, backend.disconnect, names, half)


def is_stream(source: Any) -> bool:
    """Whether rows come from it in batches: a relation of DuckDB, or a dataset of Arrow."""
    is_frame = hasattr(source, "to_arrow") or hasattr(source, "iloc")
    return not is_frame and (hasattr(source, "__arrow_c_stream__") or _is_dataset(source))


def _is_dataset(source: Any) -> bool:
    return any(kind.__module__ == "pyarrow._dataset" for kind in type(source).__mro__)


def _of_stream(source: Any) -> FrameTable:
    """A dataset is read as often as it takes; what may give its rows but once is kept by DuckDB.

    That is on disk where memory does not hold it; also a dataset with floats of 16 bits, which
    have to be made others first.
    """
    import pyarrow as pa

    from apfex.engines._duckdb import connect_duckdb

    backend, close = connect_duckdb()
    try:
        if _is_dataset(source) and not _without_half(source.schema)[1]:
            backend.con.register(_GIVEN, source)
            found = backend.table(_GIVEN)
            return FrameTable("the table", found, backend, close, tuple(source.schema.names))
        stream = source.scanner().to_reader() if _is_dataset(source) else source
        reader = pa.RecordBatchReader.from_stream(stream)
        schema, half = _without_half(reader.schema)
        backend.con.register(_GIVEN, reader.cast(schema) if half else reader)
        backend.con.execute(f"CREATE TEMP TABLE {_KEPT} AS FROM {_GIVEN}")
        backend.con.unregister(_GIVEN)
        found = backend.table(_KEPT)
        return FrameTable("the table", found, backend, close, tuple(schema.names), half)
    except BaseException as error:
        close()
        if isinstance(error, Exception):
            said = str(error).strip().splitlines()[0]
            raise ValueError(f"table cannot be read from its {_kind(source)}: {said}") from error
        raise


def _kind(source: Any) -> str:
    return type(source).__name__


def is_spark(frame: Any) -> bool:
    """Whether it is a data frame of Spark, also of Spark Connect."""
    return type(frame).__module__.startswith("pyspark.sql") and hasattr(frame, "sparkSession")


def _of_spark(frame: Any) -> tuple[Any, Any, Callable[[], None]]:
    import ibis

    name = f"apfex_{secrets.token_hex(8)}"
    frame.createOrReplaceTempView(name)
    backend = ibis.pyspark.connect(frame.sparkSession)
    session = frame.sparkSession
    return backend.table(name), backend, lambda: session.catalog.dropTempView(name)


def _arrow(frame: Any) -> Any:
    import pyarrow as pa

    if isinstance(frame, pa.Table):
        return frame
    if type(frame).__module__.startswith("dask."):
        raise TypeError(
            f"table must be in memory, in files or in an engine, got a Dask {_kind(frame)}; its "
            "to_parquet writes files that are audited where they are, and its compute() brings it "
            "into memory."
        )
    if hasattr(frame, "to_arrow"):
        return frame.to_arrow()
    if hasattr(frame, "iloc") and hasattr(frame, "columns"):
        try:
            return frame_to_arrow(frame)
        except ValueError as error:
            raise ValueError(f"table {error}") from None
    raise TypeError(f"table must be {_TAKEN}, got {_kind(frame)}.")
