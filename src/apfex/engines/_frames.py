"""Frames of other libraries as tables of Ibis."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Any

from apfex.engines._names import alike_names

_TAKEN = (
    "a path, a glob, a folder or a URL of Parquet or CSV, a file of DuckDB or SQLite, a table of "
    "Ibis, a data frame of Spark, or a frame of pandas, polars or Arrow"
)


def frame_table(frame: Any) -> tuple[str, Any, Any, Callable[[], None], tuple[str, ...]]:
    """Name, table, backend, what closes it and columns; Spark and lazy polars keep their rows.

    Columns of frames in memory whose names the engine cannot tell apart are not given to it.
    """
    import ibis

    if is_spark(frame):
        return "the data frame", *_of_spark(frame), tuple(frame.columns)
    if type(frame).__name__ == "LazyFrame" and type(frame).__module__.startswith("polars"):
        backend = ibis.polars.connect({"frame": frame})
        table = backend.table("frame")
        return "the frame", table, backend, backend.disconnect, tuple(table.columns)
    from apfex.engines._duckdb import connect_duckdb

    rows = _arrow(frame)
    names = tuple(rows.column_names)
    hidden = {name for alike in alike_names(names) for name in alike}
    known = rows.select([name for name in names if name not in hidden])
    return "the frame", ibis.memtable(known), *connect_duckdb(), names


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
    raise TypeError(f"table must be {_TAKEN}, got {type(frame).__name__}.")
