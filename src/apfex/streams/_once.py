"""Sources that can be read once, or in an order of their own: written to disk first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from apfex.streams._records import full_disk
from apfex.streams._source import Stream, in_order, open_dataset, without_dictionaries

if TYPE_CHECKING:
    import pyarrow as pa

LABEL, WEIGHT, SENSITIVE = "apfex:label", "apfex:weight", "apfex:sensitive"
"""Columns of labels, weights and attributes in rows that come as tuples."""


def keep_batches(batches: Iterable[pa.RecordBatch], folder: Path, name: str) -> Stream:
    """Write record batches to an Arrow file as they come, and open that."""
    import pyarrow as pa
    import pyarrow.dataset as ds

    path, writer, schema = folder / "source.arrow", None, None
    categories: set[str] = set()
    try:
        for place, given in enumerate(batches):
            categories |= {one.name for one in given.schema if pa.types.is_dictionary(one.type)}
            batch = in_order(given.cast(without_dictionaries(given.schema)), schema)
            if writer is None:
                schema, writer = batch.schema, pa.ipc.new_file(str(path), batch.schema)
            if not batch.schema.equals(schema):
                raise ValueError(
                    f"All batches of a stream must have one schema, got another in batch {place} "
                    f"of {name}: {_difference(schema, batch.schema)}."
                )
            writer.write_batch(batch)
    except OSError as error:
        raise full_disk(error, path) from error
    finally:
        if writer is not None:
            writer.close()
    if writer is None:
        raise ValueError(f"X must have rows, got a stream without any: {name}.")
    return open_dataset(ds.dataset(str(path), format="ipc"), name, categories)


def keep_tuples(rows: Iterable[Any], folder: Path, name: str) -> Stream:
    """Write tuples of inputs, labels, sensitive attributes and perhaps weights, as of a loader."""
    stream = keep_batches((_batch_of(one, name) for one in rows), folder, name)
    return _with_roles(stream)


def keep_data_iter(source: Any, folder: Path) -> Stream:
    """Write what an XGBoost ``DataIter`` hands out: data, label and weight."""
    stream = keep_batches(_data_iter_batches(source), folder, "the DataIter")
    return _with_roles(stream)


def _with_roles(stream: Stream) -> Stream:
    """Say which columns are labels, weights and attributes; made-up names are no names."""
    names = stream.columns
    sensitive = {
        name: f"attribute{name.removeprefix(SENSITIVE)}"
        for name in names
        if name.startswith(SENSITIVE)
    }
    features = [name for name in names if not name.startswith("apfex:")]
    numbered = features == [f"x{place}" for place in range(len(features))]
    return Stream(
        stream.name,
        stream.columns,
        stream.read,
        has_names=not numbered,
        label=LABEL if LABEL in names else None,
        weight=WEIGHT if WEIGHT in names else None,
        sensitive=sensitive,
    )


def _data_iter_batches(source: Any) -> Iterator[pa.RecordBatch]:
    handed: list[pa.RecordBatch] = []

    def take(*, data: Any, label: Any = None, weight: Any = None, **others: Any) -> None:
        known = ("feature_names", "feature_types")
        strange = sorted(name for name, value in others.items() if value is not None)
        strange = [name for name in strange if name not in known]
        if strange:
            raise ValueError(
                f"A DataIter must hand out data, label and weight, got {strange} as well; leave "
                "them out."
            )
        handed.append(_record_batch(data, {LABEL: label, WEIGHT: weight}))

    source.reset()
    while source.next(take):
        yield from handed
        handed.clear()
    yield from handed


def _batch_of(given: Any, name: str) -> pa.RecordBatch:
    if not isinstance(given, list | tuple) or len(given) not in (3, 4):
        length = f" of {len(given)}" if isinstance(given, list | tuple) else ""
        raise ValueError(
            f"{name} must yield tuples (X, y, sensitive) or (X, y, sensitive, weight), got a "
            f"{type(given).__name__}{length}."
        )
    X, y, sensitive, *weight = given
    sensitive = _array(sensitive)
    sensitive = sensitive[:, None] if sensitive.ndim == 1 else sensitive
    columns = {f"{SENSITIVE}{j}": sensitive[:, j] for j in range(sensitive.shape[1])}
    weights = {WEIGHT: weight[0]} if weight else {}
    return _record_batch(X, {**columns, LABEL: y, **weights})


def _record_batch(X: Any, columns: dict[str, Any]) -> pa.RecordBatch:
    """Inputs and further columns; the columns of arrays are called x0, x1, ..."""
    import pandas as pd
    import pyarrow as pa

    if not isinstance(X, pd.DataFrame):
        array = _array(X)
        if array.ndim != 2:
            raise ValueError(f"X must have 2 dimensions in every batch, got {array.ndim}.")
        X = {f"x{j}": array[:, j] for j in range(array.shape[1])}
    arrays = {str(name): _arrow(X[name]) for name in X}
    arrays |= {name: _arrow(value) for name, value in columns.items() if value is not None}
    lengths = {name: len(column) for name, column in arrays.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"A batch must have columns of one length, got {lengths}.")
    return pa.RecordBatch.from_pydict(arrays)


def _arrow(values: Any) -> pa.Array:
    import pandas as pd
    import pyarrow as pa

    if isinstance(values, pd.Series):
        return pa.Array.from_pandas(values)
    array = _array(values)
    return pa.array(np.ascontiguousarray(array.reshape(-1) if array.ndim == 2 else array))


def _array(values: Any) -> np.ndarray:
    """Tensors too; of a single column [n, 1] is made by whoever needs it."""
    values = values.detach().cpu() if hasattr(values, "detach") else values
    return np.asarray(values)


def _difference(first: pa.Schema, found: pa.Schema) -> str:
    types = [(field.name, str(field.type)) for field in found]
    known: Sequence[tuple[str, str]] = [(field.name, str(field.type)) for field in first]
    return f"{[pair for pair in types if pair not in known]} in place of " + str(
        [pair for pair in known if pair not in types]
    )
