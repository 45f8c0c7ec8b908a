"""Frames of other libraries as tables of Ibis."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Any

_TAKEN = (
    "a path, a glob, a folder or a URL of Parquet or CSV, a file of DuckDB or SQLite, a table of "
    "Ibis, a relation of DuckDB, a data frame of Spark, a frame of pandas, polars or Arrow, or "
    "anything with __arrow_c_stream__"
)
_GIVEN, _KEPT = "apfex_given", "apfex_kept"


def frame_table(frame: Any) -> tuple[str, Any, Any, Callable[[], None]]:
    """Name, table, backend and what closes it; Spark and lazy polars keep their rows."""
    import ibis
    import pyarrow as pa

    if is_spark(frame):
        return "the data frame", *_of_spark(frame)
    if type(frame).__name__ == "LazyFrame" and type(frame).__module__.startswith("polars"):
        backend = ibis.polars.connect({"frame": frame})
        return "the frame", backend.table("frame"), backend, backend.disconnect
    from apfex.engines._duckdb import connect_duckdb

    if is_stream(frame) and not isinstance(frame, pa.Table):
        return "the table", *_of_stream(frame)
    rows = ibis.memtable(_arrow(frame))
    return "the frame", rows, *connect_duckdb()


def is_stream(source: Any) -> bool:
    """Whether rows come from it in batches: a relation of DuckDB, or a dataset of Arrow."""
    is_frame = hasattr(source, "to_arrow") or hasattr(source, "iloc")
    return not is_frame and (hasattr(source, "__arrow_c_stream__") or _is_dataset(source))


def _is_dataset(source: Any) -> bool:
    return any(kind.__module__ == "pyarrow._dataset" for kind in type(source).__mro__)


def _of_stream(source: Any) -> tuple[Any, Any, Callable[[], None]]:
    """A dataset is read as often as it takes; what may give its rows but once is kept by DuckDB.

    That is on disk where memory does not hold it.
    """
    import pyarrow as pa

    from apfex.engines._duckdb import connect_duckdb

    backend, close = connect_duckdb()
    try:
        if _is_dataset(source):
            backend.con.register(_GIVEN, source)
            return backend.table(_GIVEN), backend, close
        backend.con.register(_GIVEN, pa.RecordBatchReader.from_stream(source))
        backend.con.execute(f"CREATE TEMP TABLE {_KEPT} AS FROM {_GIVEN}")
        backend.con.unregister(_GIVEN)
        return backend.table(_KEPT), backend, close
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
            named = frame.set_axis([str(name) for name in frame.columns], axis=1)
            return pa.Table.from_pandas(named, preserve_index=False)
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            raise ValueError(
                f"table must have values of one kind in each column, got others: {error}."
            ) from error
    raise TypeError(f"table must be {_TAKEN}, got {_kind(frame)}.")
