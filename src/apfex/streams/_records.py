"""Rows of fixed width in a file, read back in order or mixed, a bounded number at a time."""

from __future__ import annotations

import errno
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import final

import numpy as np

_PIECE_ROWS, _PIECE_BYTES = 256, 2**16
"""Most rows that lie together in the file and stay together in a buffer."""


@final
class RecordFile:
    """Rows as records of one type, appended once and then read as often as needed.

    They are read by explicit reads and never mapped: pages of a mapped file count as memory of
    the process.

    Parameters
    ----------
    path : Path
    dtype : numpy.dtype

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = RecordFile(Path(folder) / "rows", np.dtype("i4"))
    ...     file.append(np.arange(5, dtype="i4"))
    ...     [chunk.tolist() for chunk in file.chunks(3)]
    [[0, 1, 2], [3, 4]]
    """

    def __init__(self, path: Path, dtype: np.dtype) -> None:
        self.path, self.dtype, self.n = path, dtype, 0

    def append(self, records: np.ndarray) -> None:
        """Add rows at the end."""
        try:
            with self.path.open("ab") as stream:
                stream.write(np.ascontiguousarray(records, self.dtype).data)
        except OSError as error:
            raise full_disk(error, self.path) from error
        self.n += len(records)

    def read(self, start: int, stop: int) -> np.ndarray:
        """Rows from one place up to another."""
        return np.fromfile(
            self.path, self.dtype, min(stop, self.n) - start, offset=start * self.dtype.itemsize
        )

    def chunks(self, size: int) -> Iterator[np.ndarray]:
        """All rows in order, so many at a time."""
        for start in range(0, self.n, size):
            yield self.read(start, start + size)

    def mixed(self, size: int, seed: int, epoch: int) -> Iterator[np.ndarray]:
        """All rows in buffers of about so many; each has rows from all over the file.

        The file is cut into pieces of 64 kB, and into as many stretches as a buffer has pieces;
        from every stretch each buffer gets one piece by lot. So every buffer is a sample that is
        even along the file, also of one that is sorted by label. All of it is a function of seed
        and epoch.
        """
        generator = np.random.default_rng([seed, epoch])
        rows = min(_PIECE_ROWS, max(1, _PIECE_BYTES // self.dtype.itemsize))
        pieces = -(-self.n // rows)
        n_buffers = -(-pieces // max(1, size // rows))
        stretches = [
            generator.permutation(np.arange(start, min(start + n_buffers, pieces)))
            for start in range(0, pieces, n_buffers)
        ]
        for place in range(n_buffers):
            own = [int(stretch[place]) for stretch in stretches if place < len(stretch)]
            yield self._gather([(piece * rows, min(rows, self.n - piece * rows)) for piece in own])

    def _gather(self, pieces: Sequence[tuple[int, int]]) -> np.ndarray:
        """Rows from several places of the file, by where each begins and how many they are."""
        found = np.empty(sum(n for _, n in pieces), dtype=self.dtype)
        place, space = 0, memoryview(found.view(np.uint8))  # pyright: ignore[reportArgumentType]
        with self.path.open("rb", buffering=0) as stream:
            for start, n in pieces:
                stream.seek(start * self.dtype.itemsize)
                end = place + n * self.dtype.itemsize
                while place < end:
                    read = stream.readinto(space[place:end])
                    if not read:
                        raise OSError(f"{self.path} is shorter than it was written.")
                    place += read
        return found


def full_disk(error: OSError, path: Path) -> OSError:
    """The same error, with what to do about it where the disk is full."""
    if error.errno not in (errno.ENOSPC, errno.EDQUOT):
        return error
    return OSError(
        error.errno,
        f"No room is left in {path.parent} for the rows of the stream; name a folder on a larger "
        "disk: streaming=StreamSettings(folder=...)",
    )
