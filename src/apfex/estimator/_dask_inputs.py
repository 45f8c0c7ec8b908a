"""The rows of a Dask DataFrame, checked where they are: what is known of partitions adds up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
import pandas as pd

from apfex.clusters import client_in_use, gather
from apfex.estimator._stream_inputs import FirstPass, Reader
from apfex.estimator._stream_roles import Roles, read_roles
from apfex.front import PartitionedRows, RowFacts, SearchSettings
from apfex.streams import RowSample, Stream, StreamSettings, column_of


def settings_for_dask(settings: SearchSettings) -> SearchSettings:
    """Trees are what learns on Dask workers; "auto" means these."""
    if settings.models not in (("auto",), ("boosting",)):
        raise ValueError(
            f"model must be 'boosting' or 'auto' where X is a Dask DataFrame, got "
            f"{list(settings.models)}: workers grow trees together. Networks learn from files "
            "(X a path of Parquet), or from a table in memory (X.compute())."
        )
    return replace(settings, models=("boosting",))


@final
@dataclass(frozen=True, eq=False)
class OpenedFrame:
    """A Dask DataFrame whose rows have been looked at once."""

    stream: Stream
    roles: Roles
    rows: PartitionedRows
    keeps_sensitive: bool
    """Whether the sensitive columns are part of the table that ``predict`` is given."""

    @staticmethod
    def of(
        X: Any,
        given: tuple[Any, Any, Any],
        settings: StreamSettings,
        *,
        sensitive: Sequence[str] | str | None,
        include_sensitive: bool,
        grouping: str,
    ) -> OpenedFrame:
        """Look at all partitions; ``given`` are the labels, sensitive features and weights."""
        client, stream = client_in_use(), _stream_of(X)
        roles = read_roles(stream, *given, sensitive=sensitive, include_sensitive=include_sensitive)
        partitions = X.to_delayed()
        passes = _look(client, partitions, roles, stream.columns)
        together = _added(passes, roles)
        streamed = together.rows(stream, grouping, settings)
        reader = Reader(stream, roles, streamed.facts, together.weight.mean, together.n, 0)
        strata = np.stack([_strata(one, streamed.facts, reader) for one in passes])
        rows = PartitionedRows(client, partitions, _Read(reader), streamed, strata)
        return OpenedFrame(stream, roles, rows, sensitive is not None)

    @property
    def names(self) -> list[str]:
        """Columns of ``X`` as ``predict`` is given it."""
        wanted = {*self.roles.features, *(self.roles.sensitive if self.keeps_sensitive else ())}
        return [name for name in self.stream.columns if name in wanted]

    def header(self) -> Any:
        """An empty table with these columns."""
        return pd.DataFrame(columns=self.names)

    def in_memory(self) -> tuple[Any, tuple[Any, Any, Any]]:
        """All rows: the table, and its labels, sensitive features and weights."""
        rows, roles = self.rows, self.roles
        frame = pd.concat(gather(rows.client, rows.client.compute(rows.partitions)))
        frame = frame.reset_index(drop=True)
        apart = bool(roles.sensitive) and not self.keeps_sensitive
        return frame[self.names], (
            frame[roles.label],
            frame[roles.sensitive] if apart else None,
            None if roles.weight is None else frame[roles.weight],
        )


def _stream_of(X: Any) -> Stream:
    """The columns of a frame; its rows are not read through it."""
    names = list(X.columns)
    strange = [name for name in names if not isinstance(name, str)]
    if strange or len(set(names)) < len(names):
        raise ValueError(
            "A Dask DataFrame must have columns with names of text that differ from each other, "
            f"got {names}."
        )
    return Stream("the Dask DataFrame", tuple(names), _not_here)


def _not_here(columns: Sequence[str], rows: int) -> Any:
    raise TypeError(f"{rows} rows of {list(columns)} must stay where they are.")


def _look(
    client: Any, partitions: Sequence[Any], roles: Roles, columns: Sequence[str]
) -> list[FirstPass]:
    """One pass over each partition, where it is."""
    from dask.delayed import delayed

    look = delayed(_look_at, pure=False)
    tasks = [look(frame, roles, columns, place) for place, frame in enumerate(partitions)]
    return gather(client, client.compute(tasks))


def _look_at(frame: Any, roles: Roles, columns: Sequence[str], place: int) -> FirstPass:
    found = FirstPass(roles, f"partition {place} of X")
    found.sample = RowSample(1)  # trees need none: rows stay where they are
    _check_columns(frame, columns, place)
    found.add(frame[roles.columns])
    return found


def _check_columns(frame: Any, wanted: Sequence[str], place: int) -> None:
    """Refuse a partition of other columns; these may stand in another order."""
    if sorted(frame.columns, key=str) != sorted(wanted):
        lacking = [name for name in wanted if name not in frame.columns]
        more = [str(name) for name in frame.columns if name not in wanted]
        repeated = sorted(map(str, frame.columns[frame.columns.duplicated()]))
        raise ValueError(
            f"All partitions of X must have the same columns, got partition {place} with other "
            f"ones: missing {lacking or 'none'}, unknown {more or 'none'}, twice "
            f"{repeated or 'none'}; write it again, or leave it out."
        )


def _added(passes: Sequence[FirstPass], roles: Roles) -> FirstPass:
    """What is known of all partitions."""
    together = FirstPass(roles)
    for place, one in enumerate(passes):
        try:
            _add(together, one)
        except (TypeError, ValueError) as error:
            raise type(error)(f"From partition {place} of X on: {error}") from error
    return together


def _add(together: FirstPass, one: FirstPass) -> None:
    together.n += one.n
    together.missing += one.missing
    together.add_cells(one.cells)
    together.label_weight.update(one.label_weight)
    together.weight.total += one.weight.total
    together.weight.n += one.weight.n
    if one.summary is not None:
        if together.summary is None:
            together.summary, together.sample = one.summary, one.sample
        else:
            together.summary += one.summary
        together.check_sizes()


def _strata(one: FirstPass, facts: RowFacts, reader: Reader) -> np.ndarray:
    """Rows of a partition by group and label, int64 [k * c]."""
    k, c = facts.shape
    if not one.cells:
        return np.zeros(k * c, dtype=np.int64)
    columns = zip(reader.roles.crossed, zip(*one.cells, strict=True), strict=True)
    codes = _strata_of(pd.DataFrame({n: column_of(values) for n, values in columns}), reader)
    return np.bincount(codes, list(one.cells.values()), k * c).astype(np.int64)


def _strata_of(frame: Any, reader: Reader) -> np.ndarray:
    """``group * c + label`` of each row; there may be none."""
    return reader.strata(frame) if len(frame) else np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class _Read:
    """Inputs, strata and weights of the frame of a partition."""

    reader: Reader

    def __call__(self, frame: Any) -> tuple[Any, np.ndarray, np.ndarray]:
        roles = self.reader.roles
        frame = self.reader.weighed(frame)
        strata = _strata_of(frame, self.reader)
        return frame[roles.features], strata, self.reader.weights(frame)
