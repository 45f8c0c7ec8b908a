"""Frames of other libraries as tables of Ibis."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Any

from apfex.engines._names import alike_names
from apfex.files import frame_to_arrow

_TAKEN = (
    "a path, a glob, a folder or a URL of Parquet or CSV, a file of DuckDB or SQLite, a table of "
    "Ibis, a relation of DuckDB, a data frame of Spark, a frame of pandas, polars or Arrow, or "
    "anything with __arrow_c_stream__"
)
_GIVEN, _KEPT = "apfex_given", "apfex_kept"


def frame_table(frame: Any) -> tuple[str, Any, Any, Callable[[], None], tuple[str, ...]]:
    """Name, table, backend, what closes it and columns; Spark and lazy polars keep their rows.

    Columns of frames in memory whose names the engine cannot tell apart are not given to it.
    """
    import ibis
    import pyarrow as pa

    if is_spark(frame):
        return "the data frame", *_of_spark(frame), tuple(frame.columns)
    if type(frame).__name__ == "LazyFrame" and type(frame).__module__.startswith("polars"):
        backend = ibis.polars.connect({"frame": frame})
        table = backend.table("frame")
        return "the frame", table, backend, backend.disconnect, tuple(table.columns)
    from apfex.engines._duckdb import connect_duckdb

    if is_stream(frame) and not isinstance(frame, pa.Table):
        return "the table", *_of_stream(frame)
    rows = _arrow(frame)
    names = tuple(rows.column_names)
    hidden = {name for alike in alike_names(names) for name in alike}
    known = rows.select([name for name in names if name not in hidden])
    return "the frame", ibis.memtable(known), *connect_duckdb(), names


def is_stream(source: Any) -> bool:
    """Whether rows come from it in batches: a relation of DuckDB, or a dataset of Arrow."""
    is_frame = hasattr(source, "to_arrow") or hasattr(source, "iloc")
    return not is_frame and (hasattr(source, "__arrow_c_stream__") or _is_dataset(source))


def _is_dataset(source: Any) -> bool:
    return any(kind.__module__ == "pyarrow._dataset" for kind in type(source).__mro__)


def _of_stream(source: Any) -> tuple[Any, Any, Callable[[], None], tuple[str, ...]]:
    """A dataset is read as often as it takes; what may give its rows but once is kept by DuckDB.

    That is on disk where memory does not hold it.
    """
    import pyarrow as pa

    from apfex.engines._duckdb import connect_duckdb

    backend, close = connect_duckdb()
    try:
        if _is_dataset(source):
            backend.con.register(_GIVEN, source)
            return backend.table(_GIVEN), backend, close, tuple(source.schema.names)
        reader = pa.RecordBatchReader.from_stream(source)
        backend.con.register(_GIVEN, reader)
        backend.con.execute(f"CREATE TEMP TABLE {_KEPT} AS FROM {_GIVEN}")
        backend.con.unregister(_GIVEN)
        return backend.table(_KEPT), backend, close, tuple(reader.schema.names)
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
