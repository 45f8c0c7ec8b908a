"""Decisions inside an engine: a function that DuckDB and Spark run, also in other processes."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, final

from apfex.extras import need_extra
from apfex.runs._decider import NAMES, Decider
from apfex.sources import RunError, hint

if TYPE_CHECKING:
    import pyarrow as pa

    from apfex.estimator import APFExClassifier

_SQL = {"number": "DOUBLE", "boolean": "BOOLEAN", "date": "TIMESTAMP"}
_MOST_LOADED = 8
_lock = threading.Lock()
_loaded: dict[str, Decider] = {}
"""Those of this process by the digest of what they were made from: each is loaded once."""


@final
@dataclass(frozen=True, eq=False, repr=False)
class RunUDF:
    """A point of a run as a function of Arrow tables; made by :meth:`Run.udf`.

    It travels to other processes as plain values: the files of the model as bytes, which are read
    there as :func:`apfex.load` reads them, once in each process. No code is in it, so that a
    worker needs apfex itself.

    Attributes
    ----------
    files : mapping from name to bytes
        Of the model's folder.
    point : int
    columns : mapping from column to "number", "text", "boolean", "date" or "any"
        All that it needs, and what each holds.
    """

    files: Mapping[str, bytes]
    point: int
    features: Mapping[str, str]
    words: Sequence[str]
    bins: Mapping[str, Sequence[float]] | None
    columns: Mapping[str, str]

    @staticmethod
    def of(decider: Decider) -> RunUDF:
        """A copy of a decider that can travel."""
        columns, point = decider.columns, decider.classifier.point_
        files = _store(decider.classifier)
        return RunUDF(files, point, decider.features, decider.words, decider.bins, columns)

    def __repr__(self) -> str:
        """The point, and what it needs."""
        return f"<RunUDF of point {self.point}: {', '.join(self.columns)}>"

    def __call__(self, rows: Any) -> pa.Table:
        """Decide for rows.

        Parameters
        ----------
        rows : pyarrow.Table, RecordBatch or StructArray
            With the columns that are needed, in any order.

        Returns
        -------
        pyarrow.Table
            ``prediction``, ``probability`` and ``decision_margin``, as of :meth:`Run.predict`.
        """
        import pyarrow as pa

        table = _to_table(rows)
        self._decider.check(table.column_names, "The table")
        types = (pa.string(), pa.float64(), pa.float64())
        schema = pa.schema(list(zip(NAMES, types, strict=True)))
        if not len(table):
            return schema.empty_table()
        found = self._decider.decide(table.select(list(self.columns)), "The table")
        return pa.table([pa.array(column) for column in found.values()], schema=schema)

    def map_batches(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Batches with three columns more; what ``mapInArrow`` of Spark takes.

        Parameters
        ----------
        batches : iterable of pyarrow.RecordBatch
        """
        import pyarrow as pa

        for batch in batches:
            added = self(batch).combine_chunks()
            columns = [*batch.columns, *(_whole(column) for column in added.columns)]
            yield pa.RecordBatch.from_arrays(columns, names=[*batch.schema.names, *NAMES])

    def to_spark(self, frame: Any) -> Any:
        """A Spark frame with three columns more, decided where its rows are.

        Parameters
        ----------
        frame : pyspark.sql.DataFrame

        Returns
        -------
        pyspark.sql.DataFrame
            Nothing is computed until it is asked for. Needs pyspark with pyarrow, and apfex on
            the workers.
        """
        need_extra("spark", "pyspark", "to_spark")
        from pyspark.sql.types import DoubleType, StringType, StructField, StructType

        self._decider.check(frame.columns, "The Spark frame")
        taken = [name for name in NAMES if name in frame.columns]
        if taken:
            raise RunError(
                f"The Spark frame has a column '{taken[0]}' already; rename it first.",
                found=taken[0],
            )
        types = (StringType(), DoubleType(), DoubleType())
        more = [StructField(name, type) for name, type in zip(NAMES, types, strict=True)]
        return frame.mapInArrow(self.map_batches, StructType([*frame.schema.fields, *more]))

    def register(self, connection: Any, name: str = "apfex_predict") -> str:
        """Make it a function of a DuckDB connection.

        Parameters
        ----------
        connection : duckdb.DuckDBPyConnection
        name : str
            Of the function, which takes one struct with the columns by their names, so that their
            order does not matter, and gives a struct with ``prediction``, ``probability`` and
            ``decision_margin``.

        Returns
        -------
        str
            The call for a table that has these columns, to be put into a query.
        """
        if not name.isidentifier():
            raise RunError(
                f"{hint('name')} must be letters, digits and underscores, got '{name}'.", found=name
            )
        types = {column: _SQL.get(kind, "VARCHAR") for column, kind in self.columns.items()}
        result = dict(zip(NAMES, ("VARCHAR", "DOUBLE", "DOUBLE"), strict=True))
        connection.create_function(
            name,
            self._decide_structs,
            [connection.struct_type(types)],
            connection.struct_type(result),
            type="arrow",
            null_handling="special",  # a missing value is a value
        )
        cells = (
            f"{_quoted(column, chr(39))}: CAST({_quoted(column, chr(34))} AS {type})"
            for column, type in types.items()
        )
        return f"{name}({{{', '.join(cells)}}})"

    def _decide_structs(self, rows: Any) -> Any:
        import pyarrow as pa

        found = self(_whole(rows)).combine_chunks()
        return pa.StructArray.from_arrays([_whole(c) for c in found.columns], names=list(NAMES))

    @cached_property
    def _decider(self) -> Decider:
        with _lock:
            found = _loaded.get(self._digest)
            if found is None:
                classifier = _restore(self.files).at(self.point)
                found = Decider(classifier, self.features, self.words, self.bins)
                if len(_loaded) >= _MOST_LOADED:
                    del _loaded[next(iter(_loaded))]
                _loaded[self._digest] = found
        return found

    @cached_property
    def _digest(self) -> str:
        digest = hashlib.sha256(repr((self.point, self.features, self.words, self.bins)).encode())
        for name in sorted(self.files):
            digest.update(name.encode())
            digest.update(hashlib.sha256(self.files[name]).digest())
        return digest.hexdigest()

    def __getstate__(self) -> dict[str, Any]:
        """Plain values; what was loaded stays in its process."""
        return {k: v for k, v in vars(self).items() if k not in ("_decider", "_digest")}


def _store(classifier: APFExClassifier) -> dict[str, bytes]:
    """The files of a classifier."""
    with TemporaryDirectory() as folder:
        home = classifier.save(Path(folder) / "model")
        return {path.name: path.read_bytes() for path in home.iterdir()}


def _restore(files: Mapping[str, bytes]) -> APFExClassifier:
    from apfex.estimator import load

    with TemporaryDirectory() as folder:
        for name, data in files.items():
            (Path(folder) / Path(name).name).write_bytes(data)
        return load(folder)


def _to_table(rows: Any) -> pa.Table:
    import pyarrow as pa

    if isinstance(rows, pa.Table):
        return rows
    if isinstance(rows, pa.StructArray):
        fields = [field.name for field in rows.type]
        return pa.table(dict(zip(fields, rows.flatten(), strict=True)))
    if isinstance(rows, pa.RecordBatch):
        return pa.Table.from_batches([rows])
    raise TypeError(
        f"rows must be a Table, RecordBatch or StructArray of pyarrow, got {type(rows).__name__}."
    )


def _whole(column: Any) -> Any:
    """One array, also where there are several parts or none."""
    import pyarrow as pa

    if not isinstance(column, pa.ChunkedArray):
        return column
    if column.num_chunks == 1:
        return column.chunk(0)
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


def _quoted(name: str, mark: str) -> str:
    return f"{mark}{name.replace(mark, 2 * mark)}{mark}"
