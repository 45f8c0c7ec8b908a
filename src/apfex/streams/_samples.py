"""What is kept of a stream in memory: a sample of its rows, and counts of their values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any, final

import numpy as np


@final
class RowSample:
    """A uniform sample of the rows, the same whatever chunks they come in.

    Every row draws a number; those with the smallest stay.
    """

    def __init__(self, most: int) -> None:
        self.most, self._generator = most, np.random.default_rng(0)
        self._frames: list[Any] = []
        self._draws: list[np.ndarray] = []
        self._places: list[np.ndarray] = []
        self._seen = 0
        self._below = 1.0

    def add(self, frame: Any) -> None:
        """Take some of the rows."""
        draws = self._generator.random(len(frame))
        taken = draws < self._below
        if taken.any():
            self._frames.append(frame[taken])
            self._draws.append(draws[taken])
            self._places.append(self._seen + np.flatnonzero(taken))
        self._seen += len(frame)
        if sum(map(len, self._draws)) > 1.25 * self.most:
            self._trim()

    def frame(self) -> Any:
        """The rows, in their order."""
        self._trim()
        return self._frames[0]

    @property
    def places(self) -> np.ndarray:
        """Which of all rows they are."""
        self._trim()
        return self._places[0]

    def _trim(self) -> None:
        draws, frame = np.concatenate(self._draws), joined(self._frames)
        places = np.concatenate(self._places)
        if len(draws) > self.most:
            self._below = float(np.partition(draws, self.most)[self.most])
            kept = draws < self._below
            draws, frame = draws[kept], frame[kept].reset_index(drop=True)
            places = places[kept]
        self._draws, self._frames, self._places = [draws], [frame], [places]


def joined(frames: Sequence[Any]) -> Any:
    """One frame; categories of chunks, which differ, are put together."""
    import pandas as pd

    if len(frames) == 1:
        return frames[0].reset_index(drop=True)
    columns: dict[str, Any] = {}
    for name in frames[0].columns:
        parts = [frame[name] for frame in frames]
        if isinstance(parts[0].dtype, pd.CategoricalDtype):
            columns[name] = pd.api.types.union_categoricals(_of_one_kind(parts))
        else:
            columns[name] = pd.concat(parts, ignore_index=True)
    return pd.DataFrame(columns)


def _of_one_kind(parts: Sequence[Any]) -> list[Any]:
    """Categories of chunks without any value get the type of the others: their own says nothing."""
    kind = next((p.cat.categories.dtype for p in parts if len(p.cat.categories)), None)
    if kind is None:
        return [part.cat.set_categories([]) for part in parts]
    none = parts[0].cat.categories[:0].astype(kind)
    return [p if len(p.cat.categories) else p.cat.set_categories(none) for p in parts]


def count_cells(frame: Any) -> Mapping[tuple[Any, ...], int]:
    """Rows by the values of all columns; a missing value is None."""
    import pandas as pd

    places, values = [], []
    for name in frame:
        codes, found = pd.factorize(frame[name])
        places.append(codes)
        values.append([*np.asarray(found, dtype=object).tolist(), None])
    table = np.stack(places, 1)
    cells, counts = np.unique(table, axis=0, return_counts=True)
    return {
        tuple(column[place] for column, place in zip(values, cell, strict=True)): int(count)
        for cell, count in zip(cells.tolist(), counts, strict=True)
    }


def column_of(values: Sequence[Any]) -> Any:
    """Values as the column that they come from would have them.

    Whole numbers beside a missing one stay as they are: pandas would round them to floats.
    """
    import pandas as pd

    column = pd.Series(list(values), dtype=object)
    inferred = column.infer_objects()
    is_rounded = inferred.dtype.kind == "f" and any(isinstance(value, Integral) for value in values)
    return column if is_rounded else inferred
