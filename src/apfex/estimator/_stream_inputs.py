"""The rows of a stream, checked in one pass: labels, groups, weights, and a sample."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, final

import numpy as np
import pandas as pd

from apfex.estimator._inputs import (
    check_labels,
    encode_classes,
    groupings_of,
)
from apfex.estimator._stream_roles import Roles, read_roles
from apfex.front import RowFacts, Rows, StreamedRows, check_same_rows, other_rows
from apfex.groups import Groups, check_truths, make_groups
from apfex.streams import RowSample, Stream, StreamSettings, column_of, count_cells, joined
from apfex.tables import TableSummary, summarize

_MOST_LEVELS = 2**16
"""Different values of a column of text beyond which they are not counted in memory."""
_MOST_CELLS = 2**16
"""Combinations of label and sensitive values beyond which they are not counted in memory."""
_NUMBERS = ("integer", "floating", "decimal", "boolean", "mixed-integer-float", "empty")
"""What pandas calls values that may be weights."""
_SAMPLE_ROWS, _SAMPLE_VALUES = 2**15, 2**19
"""Rows that are kept for bins and for ``model="auto"``, fewer of wide tables."""


@final
@dataclass(frozen=True, eq=False)
class OpenedStream:
    """A stream whose rows have been read once."""

    stream: Stream
    roles: Roles
    rows: StreamedRows
    keeps_sensitive: bool
    """Whether the sensitive columns are part of the table that ``predict`` is given."""

    @staticmethod
    def of(
        stream: Stream,
        given: tuple[Any, Any, Any],
        settings: StreamSettings,
        *,
        sensitive: Sequence[str] | str | None,
        include_sensitive: bool,
        grouping: str,
    ) -> OpenedStream:
        """Read it: levels and means of its columns, labels, groups, weights, a sample.

        ``given`` are the labels, sensitive features and weights of ``fit``.
        """
        roles = read_roles(stream, *given, sensitive=sensitive, include_sensitive=include_sensitive)
        first = FirstPass(roles)
        for frame in stream.frames(roles.columns, settings.chunk_rows):
            first.add(frame)
        rows = first.rows(stream, grouping, settings)
        return OpenedStream(stream, roles, rows, sensitive is not None)

    def header(self) -> Any:
        """An empty table with the columns of ``X``, as ``fit`` would have it in memory."""
        wanted = {*self.roles.features, *(self.roles.sensitive if self.keeps_sensitive else ())}
        names = [name for name in self.stream.columns if name in wanted]
        return pd.DataFrame(columns=names) if self.stream.has_names else np.zeros((0, len(names)))

    def in_memory(self) -> Rows:
        """All rows."""
        frames, strata, weights = zip(*self.rows.read(), strict=True)
        facts, c = self.rows.facts, len(self.rows.facts.classes)
        X = joined(frames) if self.stream.has_names else np.concatenate(frames)
        codes = np.concatenate(strata)
        crossing = facts.crossing
        groupings: Sequence[Groups] = []
        if crossing is not None:
            crossing = replace(crossing, codes=codes // c)
            groupings = [
                replace(one, codes=crossing.parent_codes(one.attributes)[crossing.codes])
                for one in facts.groupings
            ]
        weight = np.concatenate(weights) if facts.weighted else None
        return Rows(X, codes % c, facts.classes, crossing, groupings, weight)


class FirstPass:
    """What is known of the rows read so far, of what messages call ``name``."""

    def __init__(self, roles: Roles, name: str = "the stream") -> None:
        self.roles, self.name = roles, name
        self.n = self.missing = 0
        self.cells: Counter[tuple[Any, ...]] = Counter()
        self.levels: dict[str, dict[tuple[type, Any], Any]] = {}
        self.label_weight: Counter[Any] = Counter()
        self.summary: TableSummary | None = None
        self.weight = _Weights()
        self.sample = RowSample(min(_SAMPLE_ROWS, max(2_000, _SAMPLE_VALUES // len(roles.columns))))

    def add(self, frame: Any) -> None:
        """Look at some more rows."""
        if not len(frame):
            return
        start = self.n
        self.n += len(frame)
        try:
            self._add(frame)
        except (TypeError, ValueError) as error:
            said = f"In rows {start:,} to {self.n - 1:,} of {self.name}: {error}"
            raise type(error)(said) from error
        self.check_sizes()

    def _add(self, frame: Any) -> None:
        roles = self.roles
        weight = None
        if roles.weight is not None:
            weight = read_weights(frame, roles.weight)
            self.weight.add(weight)
            frame, weight = frame[weight > 0], weight[weight > 0]
        self.missing += int(frame[roles.label].isna().sum())
        if not len(frame) or self.missing:
            return  # an error at the end tells of missing labels, all of them
        for name in roles.crossed:
            check_truths(name, frame[name], roles.argument_of(name))
        summary = summarize(frame[roles.features])
        self.summary = summary if self.summary is None else self.summary + summary
        self.add_cells(count_cells(frame[roles.crossed]))
        if weight is not None:
            sums: Any = pd.Series(weight, frame.index).groupby(frame[roles.label], observed=True)
            self.label_weight.update(sums.sum().to_dict())
        self.sample.add(frame)

    def add_cells(self, cells: Mapping[tuple[Any, ...], int]) -> None:
        """Count rows by their sensitive values and labels; True beside 1 would be one level."""
        self.cells.update(cells)
        for name, values in zip(self.roles.crossed, zip(*cells, strict=True), strict=False):
            seen = self.levels.setdefault(name, {})
            before = len(seen)
            seen.update({(type(value), value): value for value in values})
            if len(seen) > before:
                known = pd.Series(list(seen.values()), dtype=object)
                check_truths(name, known, self.roles.argument_of(name))

    def check_sizes(self) -> None:
        """Refuse more different values than memory is meant for."""
        roles = self.roles
        if len(self.cells) > _MOST_CELLS:
            raise ValueError(
                f"Labels and sensitive features must have at most {_MOST_CELLS:,} combinations in "
                f"a stream, got more in columns {[*roles.sensitive, roles.label]}; use fewer "
                "attributes or merge levels."
            )
        for column in () if self.summary is None else self.summary.columns:
            if len(column.levels) > _MOST_LEVELS:
                raise ValueError(
                    f"Column {column.name!r} of X must have at most {_MOST_LEVELS:,} different "
                    "values of text in a stream, got more; leave it out if it names rows, or "
                    "merge levels."
                )

    def rows(self, stream: Stream, grouping: str, settings: StreamSettings) -> StreamedRows:
        """What the search needs."""
        roles = self.roles
        if self.missing:
            raise ValueError(
                f"y must not have missing values, got {self.missing} in {self.n} rows (NaN or "
                "None); drop these rows or give them a label of their own."
            )
        if self.summary is None:
            what = "" if not self.n else f" with weight, of {self.n:,}"
            raise ValueError(f"X must have rows, got a stream of 0 rows{what}: {stream.name}.")
        keys, counts = list(self.cells), np.array(list(self.cells.values()))
        labels = column_of([key[-1] for key in keys]).to_numpy()
        check_labels(labels)
        classes, codes = encode_classes(labels)
        crossing = None
        if roles.sensitive:
            columns = {
                name: column_of([key[place] for key in keys])
                for place, name in enumerate(roles.attributes)
            }
            crossing = make_groups(columns)
        cell = np.zeros(len(keys), dtype=np.int64) if crossing is None else crossing.codes
        k, c = 1 if crossing is None else len(crossing), len(classes)
        table = np.bincount(cell * c + codes, counts, k * c).astype(np.int64).reshape(k, c)
        groups = groupings_of(crossing, int(table.sum()), grouping)
        none = np.arange(0)
        totals = table.sum(0)
        if roles.weight is not None:
            sums = [self.label_weight[label] for label in classes.tolist()]
            totals = np.array(sums) / self.weight.mean
        facts = RowFacts(
            classes,
            None if crossing is None else crossing.take(none),
            [one.take(none) for one in groups],
            table,
            totals,
            roles.weight is not None,
        )
        summary = replace(self.summary, has_names=stream.has_names)
        reader = Reader(stream, roles, facts, self.weight.mean, self.n, settings.chunk_rows)
        return StreamedRows(
            reader.read,
            facts,
            summary,
            reader.rows_of(self.sample.frame()),
            self.sample.places,
            reader.read_strata,
        )


@final
@dataclass(frozen=True, eq=False)
class Reader:
    """Chunks of a stream as the search takes them, once all labels and groups are known."""

    stream: Stream
    roles: Roles
    facts: RowFacts
    mean_weight: float
    n: int
    chunk_rows: int
    orders: set[int] = field(default_factory=set)

    def read(self) -> Iterator[tuple[Any, np.ndarray, np.ndarray]]:
        """Inputs, ``group * c + label`` and weights of some rows at a time."""
        for frame, strata in self._frames(self.roles.columns):
            X: Any = frame[self.roles.features]
            X = X if self.stream.has_names else X.to_numpy()
            yield X, strata, self.weights(frame)

    def read_strata(self) -> Iterator[np.ndarray]:
        """``group * c + label`` of the same rows; inputs are not read."""
        return (strata for _, strata in self._frames(self.roles.known))

    def _frames(self, columns: Sequence[str]) -> Iterator[tuple[Any, np.ndarray]]:
        """Rows with weight, and strata; an error at the end where they are not those of before."""
        n, order, counts = 0, 0, np.zeros(self.facts.counts.size, dtype=np.int64)
        for frame in self.stream.frames(columns, self.chunk_rows):
            n += len(frame)
            frame = self.weighed(frame)
            if len(frame):
                strata = self.strata(frame)
                order = zlib.crc32(strata.astype("<i8").tobytes(), order)
                counts += np.bincount(strata, minlength=len(counts))
                yield frame, strata
        check_same_rows(n, self.n)
        self.orders.add(order)
        if (counts != self.facts.counts.ravel()).any():
            raise other_rows("another number of rows of a label in a group than at first")
        if len(self.orders) > 1:  # which rows measure is known by their places
            raise other_rows("rows in another order than before")

    def strata(self, frame: Any) -> np.ndarray:
        """``group * c + label``."""
        return self.groups(frame) * len(self.facts.classes) + self.labels(frame)

    def labels(self, frame: Any) -> np.ndarray:
        """Codes of the classes."""
        codes, values = pd.factorize(frame[self.roles.label])
        places = {label: place for place, label in enumerate(self.facts.classes.tolist())}
        found = np.array([places.get(value, -1) for value in np.asarray(values).tolist()])
        if (codes < 0).any() or (found < 0).any():
            raise ValueError(
                "X must give the same rows whenever it is read, got labels later that it did not "
                "have at first."
            )
        return found[codes]

    def groups(self, frame: Any) -> np.ndarray:
        """Codes of the groups."""
        crossing = self.facts.crossing
        if crossing is None:
            return np.zeros(len(frame), dtype=np.int64)
        return _encode(crossing, frame[self.roles.sensitive], self.roles.attributes)

    def weighed(self, frame: Any) -> Any:
        """The rows whose weight is above zero."""
        if self.roles.weight is None:
            return frame
        return frame[read_weights(frame, self.roles.weight) > 0]

    def weights(self, frame: Any) -> np.ndarray:
        """One on average over all rows."""
        if self.roles.weight is None:
            return np.ones(len(frame))
        return read_weights(frame, self.roles.weight) / self.mean_weight

    def rows_of(self, frame: Any) -> Rows:
        """The rows of a frame, of the classes and groups of all rows."""
        crossing = self.facts.crossing
        if crossing is not None:
            crossing = replace(crossing, codes=self.groups(frame))
        weight = None if self.roles.weight is None else self.weights(frame)
        X = frame[self.roles.features]
        X = X if self.stream.has_names else X.to_numpy()
        return Rows(X, self.labels(frame), self.facts.classes, crossing, [], weight)


def _encode(crossing: Groups, frame: Any, attributes: Sequence[str]) -> np.ndarray:
    import warnings

    columns = dict(zip(attributes, (frame[name] for name in frame), strict=True))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # refused below
        codes = crossing.encode(columns)
    if (codes < 0).any():
        raise ValueError(
            "X must give the same rows whenever it is read, got groups later that it did not have "
            "at first."
        )
    return codes


def read_weights(frame: Any, name: str) -> np.ndarray:
    """The weights of some rows as floats, checked; decimals and categories of numbers are such."""
    column = frame[name]
    levels = column.cat.categories if isinstance(column.dtype, pd.CategoricalDtype) else column
    kind = pd.api.types.infer_dtype(levels, skipna=True)
    if kind not in _NUMBERS:
        said = "text" if kind == "string" else f"{kind} values"
        raise ValueError(f"sample_weight must be numbers, got {said} in column {name!r}.")
    weight = column.to_numpy(np.float64, na_value=np.nan)
    if not (np.isfinite(weight).all() and (weight >= 0).all()):
        raise ValueError(
            f"sample_weight must be finite, non-negative and not all zero, got other values "
            f"in column {name!r}."
        )
    return weight


class _Weights:
    """Sum of the weights that are above zero, and how many there are."""

    def __init__(self) -> None:
        self.total, self.n = 0.0, 0

    def add(self, weight: np.ndarray) -> None:
        """Take those of some more rows."""
        self.total += float(weight.sum())
        self.n += int((weight > 0).sum())

    @property
    def mean(self) -> float:
        """Of the weights above zero."""
        return self.total / max(1, self.n)
