"""The search for rules on the partitions of a Dask DataFrame.

Workers encode their rows and keep them; all of them grow trees together. What comes back are
trees, a bounded sample of rows by which rules are fitted, and counts of the validation rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import torch

from apfex.chunks import Chunk, DaskRows, DaskTreeLearner, JointTargets, PartitionRows
from apfex.clusters import gather
from apfex.front._candidates import SearchResult
from apfex.front._cells import CellGroupings
from apfex.front._chunked_search import check_measurable, search_chunks
from apfex.front._dealing import Dealer
from apfex.front._rows import Encoder, fit_encoders_to_summary
from apfex.front._settings import SearchSettings
from apfex.front._spooled_rows import RowFacts, StreamedRows, check_same_rows
from apfex.models import NOWHERE, Checkpoint
from apfex.streams import StreamSettings

EncodedStrata = tuple[Any, np.ndarray, np.ndarray]
"""Inputs, ``group * c + label`` and weights of some rows."""


@final
@dataclass(frozen=True, eq=False)
class PartitionedRows:
    """Rows of a Dask DataFrame, and what one pass over them has told.

    Attributes
    ----------
    client : distributed.Client
    partitions : sequence of delayed frames
    read : callable
        Gives inputs, strata and weights of the frame of a partition; it runs on workers.
    streamed : StreamedRows
        What is known of all rows.
    strata : int array of shape [partitions, k * c]
        Rows of each partition by group and label.
    """

    client: Any
    partitions: Sequence[Any]
    read: Callable[[Any], EncodedStrata]
    streamed: StreamedRows
    strata: np.ndarray

    @property
    def facts(self) -> RowFacts:
        """Labels, groups and their rows."""
        return self.streamed.facts


def search_partitions(
    rows: PartitionedRows,
    settings: SearchSettings,
    streaming: StreamSettings,
    seed: int,
    checkpoint: Checkpoint = NOWHERE,
) -> SearchResult:
    """Encode the partitions where they are, grow trees on all workers, and search rules."""
    facts, n_folds = rows.facts, settings.n_folds
    fraction = settings.validation_fraction
    dealer = Dealer(facts.counts, fraction, streaming.rule_rows, n_folds, seed)
    check_measurable(facts, dealer.validation, settings)  # before workers have anything to do
    encoder = fit_encoders_to_summary(rows.streamed.summary, rows.streamed.sample, settings)
    many = CellGroupings.of(facts.crossing, dealer.training)
    joint = CellGroupings.targets(many, facts.shape)
    encoded = _encode_all(rows, encoder, dealer, n_folds, joint)
    trees = encoder.trees(settings, int(dealer.training.sum()), seed)
    learner = DaskTreeLearner(trees, encoder.feature_types, n_folds)
    return search_chunks(encoded, facts, many, [learner], encoder, settings, seed, checkpoint)


def _encode_all(
    rows: PartitionedRows, encoder: Encoder, dealer: Dealer, n_folds: int, joint: JointTargets
) -> DaskRows:
    """Rows on the workers, dealt into parts and folds.

    A row's lot depends on its place in its stratum alone, so that it can be drawn here, for each
    partition, from the numbers of its rows: one byte a row goes to the workers.
    """
    from dask import config
    from dask.delayed import delayed

    stands_for = (dealer.training / np.maximum(dealer.rules, 1)).ravel()
    take = delayed(_encode, pure=False)
    shared = delayed(_Work(rows.read, encoder, stands_for), pure=False, traverse=False)
    tasks, by_fold = [], []
    for place, (partition, counts) in enumerate(zip(rows.partitions, rows.strata, strict=True)):
        lots = _Lots.of(dealer, counts)
        by_fold.append(np.bincount(lots.folds[~lots.measures], minlength=n_folds))
        tasks.append(take(partition, shared, lots, place))
    # the warning is about data that belong on the workers: these are what tells them who learns
    with config.set({"distributed.admin.large-graph-warning-threshold": "1 PB"}):
        futures = rows.client.compute(tasks)
    gather(rows.client, [rows.client.submit(_count, future, pure=False) for future in futures])
    parts: Any = {name: getattr(dealer, name) for name in ("training", "rules", "validation")}
    return DaskRows(rows.client, futures, parts, np.stack(by_fold), encoder.n_inputs, joint)


@dataclass(frozen=True, eq=False)
class _Work:
    """What a worker needs for any partition."""

    read: Callable[[Any], EncodedStrata]
    encoder: Encoder
    stands_for: np.ndarray


@dataclass(frozen=True, eq=False)
class _Lots:
    """What the rows of a partition are for, stratum by stratum, packed into bytes."""

    counts: np.ndarray
    packed: np.ndarray

    @staticmethod
    def of(dealer: Dealer, counts: np.ndarray) -> _Lots:
        """Those of the next rows, so many of each stratum."""
        if not counts.any():
            return _Lots(counts, np.zeros(0, dtype=np.uint8))
        measures, judges, folds = dealer.deal(np.repeat(np.arange(len(counts)), counts))
        packed = folds | measures.astype(np.uint8) << 7 | judges.astype(np.uint8) << 6
        return _Lots(counts, packed)

    @property
    def folds(self) -> np.ndarray:
        return self.packed & 0b0011_1111

    @property
    def measures(self) -> np.ndarray:
        return self.packed >> 7 == 1

    def in_order(self, strata: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Whether each row measures, whether rules are fitted by it, and its fold."""
        check_same_rows(len(strata), len(self.packed))
        if (np.bincount(strata, minlength=len(self.counts)) != self.counts).any():
            raise ValueError(
                "X must give the same rows whenever it is computed, got other labels or groups "
                "the second time; persist it, or give what makes it a seed."
            )
        packed = np.empty(len(strata), dtype=np.uint8)
        packed[np.argsort(strata, kind="stable")] = self.packed
        return packed >> 7 == 1, packed >> 6 & 1 == 1, packed & 0b0011_1111


def _encode(frame: Any, work: _Work, lots: _Lots, place: int) -> PartitionRows:
    """Rows of a partition as inputs of models, where they are."""
    X, strata, weight = work.read(frame)
    try:
        measures, judges, folds = lots.in_order(strata)
        x = work.encoder.transform(X) if len(X) else np.zeros((0, work.encoder.n_inputs))
    except (TypeError, ValueError) as error:
        raise type(error)(f"In partition {place} of X: {error}") from error
    chunk = Chunk(
        torch.from_numpy(np.ascontiguousarray(x, dtype=np.float32)),
        torch.from_numpy(strata.astype(np.int64)),
        torch.from_numpy(folds.astype(np.int64)),
        torch.from_numpy(np.ascontiguousarray(weight, dtype=np.float64)),
    )
    return PartitionRows(chunk, measures, judges, work.stands_for)


def _count(rows: PartitionRows) -> int:
    return len(rows.rows)
