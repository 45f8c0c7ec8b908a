"""Rows of a table as the inputs of models, encoded a chunk at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, final

import numpy as np
import torch
from torch import Tensor

from apfex.tables import Fill

_CHUNK = 2**12


@final
@dataclass(frozen=True, eq=False)
class EncodedRows:
    """A table that was read and checked, and what encodes any of its rows.

    Models take a chunk of it while that is in the processor's cache; the whole matrix, which is
    often ten times larger than the table, is never made.

    Attributes
    ----------
    n_rows : int
    fills : sequence of pairs of function and int
        What writes the inputs of some rows, and how many these are; their inputs lie side by side.
    dtype : type of NumPy
        That models count in: inputs have the precision of float32 in any.
    """

    n_rows: int
    fills: Sequence[tuple[Fill, int]]
    dtype: type[np.floating[Any]] = np.float32

    def __len__(self) -> int:
        """Return the number of rows."""
        return self.n_rows

    def to(self, dtype: torch.dtype) -> EncodedRows:
        """The same rows for models that count in this type."""
        return replace(self, dtype=np.float64 if dtype == torch.float64 else np.float32)

    def split(self, size: int) -> Iterator[Tensor]:
        """Inputs [rows, d] of so many rows at a time; one part without rows if none."""
        for start in range(0, max(self.n_rows, 1), size):
            rows = slice(start, min(start + size, self.n_rows))
            out = np.zeros((rows.stop - start, self._n_inputs), self.dtype)
            self._write(rows, out)
            yield torch.from_numpy(out)

    def transform(self) -> np.ndarray:
        """Inputs of all rows, float32 [n, d]."""
        out = np.zeros((self.n_rows, self._n_inputs), np.float32)
        for start in range(0, self.n_rows, _CHUNK):
            rows = slice(start, start + _CHUNK)
            self._write(rows, out[rows])
        return out

    @property
    def _n_inputs(self) -> int:
        return sum(width for _, width in self.fills)

    def _write(self, rows: slice, out: np.ndarray) -> None:
        start = 0
        for fill, width in self.fills:
            fill(rows, out[:, start : start + width])
            start += width


InputRows: TypeAlias = Tensor | EncodedRows
"""Inputs of models [n, d]: all of them, or what makes them a chunk at a time."""
