"""A stream's rows as inputs of models, dealt into parts and kept in files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np
import torch

from apfex.chunks import Chunk, JointTargets, Part
from apfex.front._dealing import Dealer
from apfex.front._rows import Encoder, Rows
from apfex.groups import Groups, make_groups
from apfex.streams import RecordFile, StreamSettings
from apfex.tables import TableSummary

_CHUNK_BYTES = 2**22
_BUFFER_BYTES = 2**24
"""Of inputs that are in memory at a time."""
_KNOWN = ("inputs", "labels or groups", "weights")
"""What is compared of rows that are read again."""


@final
@dataclass(frozen=True, eq=False)
class RowFacts:
    """What is known of rows without looking at them again.

    Attributes
    ----------
    classes : array of shape [c]
    crossing : Groups or None
        Of all sensitive attributes, without rows.
    groupings : sequence of Groups
        Those whose gaps count, without rows.
    counts : int array of shape [k, c]
        Rows of each group and label; those of weight zero are not among them.
    label_totals : array of shape [c]
        Sum of weights of each label.
    weighted : bool
        Whether rows have weights.
    """

    classes: np.ndarray
    crossing: Groups | None
    groupings: Sequence[Groups]
    counts: np.ndarray
    label_totals: np.ndarray
    weighted: bool

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return int(self.counts.sum())

    @property
    def shape(self) -> tuple[int, int]:
        """Number of groups k and of classes c."""
        k, c = self.counts.shape
        return k, c

    @property
    def groups(self) -> Groups:
        """The crossing; everybody where there is none."""
        if self.crossing is not None:
            return self.crossing
        return make_groups(np.zeros(1, dtype=np.int64)).take(np.arange(0))

    def parents(self) -> list[np.ndarray]:
        """For each grouping the group that a cell of the crossing belongs to."""
        if self.crossing is None:
            return []
        return [self.crossing.parent_codes(grouping.attributes) for grouping in self.groupings]


@final
@dataclass(frozen=True, eq=False)
class StreamedRows:
    """Rows of a stream as they come, and what one pass over them has told.

    Attributes
    ----------
    read : callable
        Gives chunks of a frame of inputs, ``group * c + label`` [n] and weights [n] (one on
        average), from the first row on whenever it is called.
    facts : RowFacts
    summary : TableSummary
        Of the inputs.
    sample : Rows
        Some of them, or all.
    places : int array
        Which of all rows those of the sample are.
    read_strata : callable
        Gives ``group * c + label`` alone, in chunks as they come.
    """

    read: Callable[[], Iterator[tuple[Any, np.ndarray, np.ndarray]]]
    facts: RowFacts
    summary: TableSummary
    sample: Rows
    places: np.ndarray
    read_strata: Callable[[], Iterator[np.ndarray]]

    def training_sample(self, dealer: Dealer) -> Rows:
        """The rows of the sample that learn: labels of the others must not shape the inputs."""
        start, kept = 0, []
        for strata in self.read_strata():
            measures = dealer.deal(strata)[0]
            own = self.places[(self.places >= start) & (self.places < start + len(strata))]
            kept.append(~measures[own - start])
            start += len(strata)
        return self.sample.part(np.flatnonzero(np.concatenate(kept)))


@final
class SpooledRows:
    """Encoded rows in files of fixed width: a :class:`~apfex.models.ChunkedRows`.

    Parameters
    ----------
    streamed : StreamedRows
    encoder : Encoder
    dealer : Dealer
    n_folds : int
    settings : StreamSettings
    folder : Path
        For the files; whoever made it removes it.
    joint : JointTargets
        What models learn of the rows.
    """

    def __init__(
        self,
        streamed: StreamedRows,
        encoder: Encoder,
        dealer: Dealer,
        n_folds: int,
        settings: StreamSettings,
        folder: Path,
        joint: JointTargets,
    ) -> None:
        self.joint = joint
        self.shape, self.n_folds, self.n_inputs = streamed.facts.shape, n_folds, encoder.n_inputs
        self._dealer, self._settings = dealer, settings
        fields = [("x", "<f4", (self.n_inputs,)), ("target", "<i4"), ("fold", "u1")]
        dtype = np.dtype([*fields, ("weight", "<f8")])
        self._chunk_rows = min(2**15, max(256, _CHUNK_BYTES // dtype.itemsize))
        names: list[Part] = ["training", "rules", "validation"]
        self._files = {name: RecordFile(folder / name, dtype) for name in names}
        self._samples = bool((dealer.rules < dealer.training).any())
        self._write(streamed, encoder)
        if not self._samples:
            self._files["rules"] = self._files["training"]

    def counts(self, part: Part) -> np.ndarray:
        """Return the rows of a part by group and label, int64 [k, c]."""
        return getattr(self._dealer, part)

    def chunks(self, part: Part) -> Iterator[Chunk]:
        """Return the rows of a part in the order of the stream."""
        return map(_chunk_of, self._files[part].chunks(self._chunk_rows))

    def mixed(self, seed: int, epoch: int) -> Iterator[Chunk]:
        """Return the training rows in buffers that are each even along the stream."""
        file = self._files["training"]
        size = min(self._settings.buffer_rows, max(256, _BUFFER_BYTES // file.dtype.itemsize))
        return map(_chunk_of, file.mixed(size, seed, epoch))

    def add_up(self, part: Part, measure: Callable[[Chunk], np.ndarray]) -> np.ndarray:
        """Return the sum of what is measured of each chunk."""
        chunks = self.chunks(part)
        total = measure(next(chunks))
        for chunk in chunks:
            total += measure(chunk)
        return total

    def _write(self, streamed: StreamedRows, encoder: Encoder) -> None:
        c = self.shape[1]
        stands_for = self._dealer.training / np.maximum(self._dealer.rules, 1)
        dtype = self._files["training"].dtype
        look = _SecondLook(streamed, encoder)
        for frame, strata, weight in streamed.read():
            records = np.empty(len(strata), dtype=dtype)
            records["x"], records["target"] = encoder.transform(frame), strata
            look.compare(records["x"], strata, weight)
            measures, judges, records["fold"] = self._dealer.deal(strata)
            records["weight"] = weight
            self._files["training"].append(records[~measures])
            self._files["validation"].append(records[measures])
            if self._samples:
                chosen = records[judges]
                chosen["weight"] *= stands_for[strata[judges] // c, strata[judges] % c]
                self._files["rules"].append(chosen)
        look.check_all()


class _SecondLook:
    """Rows that are read again, in which those of the sample must be what they were at first."""

    def __init__(self, streamed: StreamedRows, encoder: Encoder) -> None:
        self._streamed, self._encoder = streamed, encoder
        self._start = 0

    def compare(self, *found: np.ndarray) -> None:
        """Take inputs, strata and weights of the next rows; refuse those that were others."""
        start, stop = self._start, self._start + len(found[0])
        self._start = stop
        places = self._streamed.places
        own = slice(*np.searchsorted(places, [start, stop]).tolist())
        for name, known, values in zip(_KNOWN, self._known(own), found, strict=True):
            if not np.array_equal(known, values[places[own] - start], equal_nan=True):
                raise other_rows(f"other {name} in rows {start:,} to {stop - 1:,} than at first")

    def _known(self, own: slice) -> Iterator[np.ndarray]:
        """Inputs, strata and weights of a part of the sample."""
        sample, n = self._streamed.sample, own.stop - own.start
        n_inputs, c = self._encoder.n_inputs, self._streamed.facts.shape[1]
        yield self._encoder.transform(sample.X[own]) if n else np.zeros((0, n_inputs))
        yield (0 if sample.crossing is None else sample.crossing.codes[own] * c) + sample.y[own]
        yield np.ones(n) if sample.sample_weight is None else sample.sample_weight[own]

    def check_all(self) -> None:
        """Refuse another number of rows."""
        check_same_rows(self._start, self._streamed.facts.n_rows)


def other_rows(got: str) -> ValueError:
    """The error for a stream that was another when it was read again."""
    return ValueError(
        "X must give the same rows in the same order whenever it is read, got "
        f"{got}; a function must return a new reader of the same rows each time, and files must "
        "not change meanwhile. An iterator or reader itself in place of the function is read once."
    )


def check_same_rows(found: int, before: int) -> None:
    """Refuse a stream that was another when it was read again."""
    if found != before:
        raise other_rows(f"{before:,} rows at first and {found:,} later")


def _chunk_of(records: np.ndarray) -> Chunk:
    return Chunk(
        torch.from_numpy(np.ascontiguousarray(records["x"])),
        torch.from_numpy(records["target"].astype(np.int64)),
        torch.from_numpy(records["fold"].astype(np.int64)),
        torch.from_numpy(np.ascontiguousarray(records["weight"])),
    )
