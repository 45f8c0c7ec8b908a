"""Learners of rows in chunks: batches that keep small groups, and models like those in memory."""
# pyright: reportArgumentType=false

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from apfex.chunks import (
    Chunk,
    ChunkedColumnsLearner,
    ChunkedNetworkLearner,
    ChunkedTreeLearner,
    JointTargets,
    out_of_fold,
)
from apfex.chunks._learners import batches, deal_batches
from apfex.models import JointRows, TrainingSettings, TreeLearner, TreeSettings, network_learners

CPU = torch.device("cpu")


class Chunks:
    """Rows in memory, of which ``cell * c + label`` is known, as chunks."""

    def __init__(self, rows: JointRows, size: int = 300, joint: JointTargets | None = None) -> None:
        self.rows, self.size = rows, size
        self.shape, self.n_folds, self.n_inputs = rows.shape, rows.n_folds, rows.x.shape[1]
        self.joint = joint or JointTargets(rows.shape)

    def counts(self, part) -> np.ndarray:
        del part
        k, c = self.shape
        return np.bincount(self.rows.targets.numpy(), minlength=k * c).reshape(k, c)

    def chunks(self, part) -> Iterator[Chunk]:
        del part
        rows = self.rows
        for part in torch.arange(len(rows.x)).split(self.size):
            yield Chunk(
                rows.x[part], rows.targets[part], rows.folds[part], rows.weight[part].double()
            )

    def mixed(self, seed, epoch) -> Iterator[Chunk]:
        del seed, epoch
        return self.chunks("training")

    def add_up(self, part, measure):
        return sum(measure(chunk) for chunk in self.chunks(part))


def rows_of(n=3_000, k=2, seed=0) -> JointRows:
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 4, generator=generator)
    groups = (x[:, 0] + torch.randn(n, generator=generator) > 0.3).long()
    groups = torch.where(torch.arange(n) % 50 == 0, k - 1, groups.clamp_max(k - 1))
    if k > 3:  # of all sizes, and not by chance alone
        groups = (2.0 * x[:, 2] + torch.randn(n, generator=generator) * 3 + k / 2).long() % k
    labels = (x[:, 1] + 0.5 * groups + torch.randn(n, generator=generator) > 0.5).long()
    weight = torch.rand(n, generator=generator) + 0.5
    return JointRows(x, groups * 2 + labels, (k, 2), torch.arange(n) % 3, weight)


MANY = torch.tensor([[place // 9, 3 + place // 3 % 3, 6 + place % 3] for place in range(27)])
"""The groups of 27 cells in three groupings of three."""


def by_groupings(rows: JointRows) -> tuple[JointRows, JointTargets]:
    """The same rows, whose models learn groups of three groupings, and what says so."""
    joint = JointTargets((9, 2), MANY, (3, 3, 3))
    return replace(rows, targets=joint.of(rows.targets), shape=(9, 2), sizes=(3, 3, 3)), joint


def log_loss(models, rows: JointRows) -> float:
    chunk = Chunk(rows.x, rows.targets, rows.folds, rows.weight)
    own = out_of_fold(models, chunk).gather(1, rows.targets.view(len(rows.x), -1))
    return float(-(own.log().mean(1) @ rows.weight) / rows.weight.sum())


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(0, 400), min_size=1, max_size=8).filter(any),
    st.integers(1, 20),
    st.integers(0, 30),
)
def test_batches_keep_weights_and_spread_every_target(counts, n_batches, spare):
    targets = np.repeat(np.arange(len(counts)), counts)
    chosen, dealt, times = deal_batches(targets, n_batches, spare, np.random.default_rng(0))
    np.testing.assert_allclose(np.bincount(chosen, 1 / times, len(targets)), 1)
    assert (np.bincount(chosen, minlength=len(targets))[chosen] == times).all()
    for target, count in enumerate(counts):
        each = np.bincount(dealt[targets[chosen] == target], minlength=n_batches)
        assert each.max() - each.min() <= 1  # as even as can be
        if 0 < count < n_batches and spare >= len(counts):
            assert (each > 0).sum() > n_batches / 2  # present in most batches
    pairs = np.stack([chosen, dealt])
    assert len(np.unique(pairs, axis=1).T) == len(chosen)  # no batch has a row twice
    extra = len(chosen) - len(targets)
    assert extra <= max(spare, 1) * n_batches


def test_a_rare_group_is_in_nearly_every_batch():
    """One row in 2,000, and batches of 64: without repetition one batch in 30 would see it."""
    targets = torch.zeros(4_000, dtype=torch.int64)
    targets[[100, 3_000]] = 1
    rows = Chunks(JointRows(torch.zeros(4_000, 1), targets, (1, 2), torch.arange(4_000) % 2), 4_000)
    found = list(batches(rows, TrainingSettings(batch_size=64), 0))
    assert sum(bool((batch.targets == 1).any()) for batch in found) >= len(found) - 1
    assert float(sum(batch.weight.sum() for batch in found)) == pytest.approx(4_000)


@pytest.mark.parametrize("hidden", [(), (8,)])
def test_networks_of_chunks_predict_as_those_in_memory(hidden):
    rows, training = rows_of(), TrainingSettings(epochs=6, batch_size=256, learning_rate=0.02)
    learner = network_learners(hidden, training)[-1]
    models, _ = learner.fit(rows, lambda: None)
    found = ChunkedNetworkLearner(learner.hidden, training, CPU).fit(Chunks(rows), lambda: None)
    assert log_loss(found, rows) == pytest.approx(log_loss(models, rows), rel=0.02)


@pytest.mark.parametrize("k", [1, 2, 3])
def test_trees_of_chunks_predict_as_those_in_memory(tmp_path, k):
    rows, settings_ = rows_of(k=k), TreeSettings(n_estimators=15, max_depth=3)
    steps = []
    models, _ = TreeLearner(settings_, "qqqq", 3).fit(rows, lambda: None)
    learner = ChunkedTreeLearner(settings_, "qqqq", 3, tmp_path)
    found = learner.fit(Chunks(rows), lambda: steps.append(1))
    assert len(steps) == learner.steps
    assert log_loss(found, rows) == pytest.approx(log_loss(models, rows), rel=0.02)


def test_of_many_cells_networks_learn_groupings_as_those_in_memory():
    rows, training = rows_of(k=27), TrainingSettings(epochs=6, batch_size=256, learning_rate=0.02)
    grouped, joint = by_groupings(rows)
    learner = network_learners((), training)[-1]
    models, _ = learner.fit(grouped, lambda: None)
    chunks = Chunks(rows, joint=joint)
    found = ChunkedNetworkLearner(learner.hidden, training, CPU).fit(chunks, lambda: None)
    assert log_loss(found, grouped) == pytest.approx(log_loss(models, grouped), rel=0.02)


def test_of_many_cells_trees_learn_groupings_as_those_in_memory(tmp_path):
    rows, settings_ = rows_of(k=27), TreeSettings(n_estimators=15, max_depth=3)
    grouped, joint = by_groupings(rows)
    steps = []
    models, _ = TreeLearner(settings_, "qqqq", 3).fit(grouped, lambda: None)
    learner = ChunkedTreeLearner(settings_, "qqqq", 3, tmp_path)
    found = learner.fit(Chunks(rows, joint=joint), lambda: steps.append(1))
    assert len(steps) == learner.steps
    assert log_loss(found, grouped) == pytest.approx(log_loss(models, grouped), rel=0.02)
    pages = {path.name.split(".")[0] for path in tmp_path.iterdir()}
    assert len(pages) <= 2  # all groupings share the rows in bins


@pytest.mark.parametrize("kind", ["networks", "trees"])
def test_models_do_not_learn_from_their_own_fold(tmp_path, kind):
    """Labels of a fold turned round change all models but its own."""
    rows = rows_of(900, k=1)
    turned = torch.where(rows.folds == 0, 1 - rows.targets, rows.targets)
    other = JointRows(rows.x, turned, rows.shape, rows.folds, rows.sample_weight)
    learner = ChunkedNetworkLearner((), TrainingSettings(epochs=2, batch_size=10_000), CPU)
    if kind == "trees":
        learner = ChunkedTreeLearner(TreeSettings(n_estimators=1), "qqqq", 3, tmp_path)
    before, after = (learner.fit(Chunks(part, 900), lambda: None) for part in (rows, other))
    with torch.no_grad():
        pairs = zip(before, after, strict=True)
        change = [float((a(rows.x) - b(rows.x)).abs().max()) for a, b in pairs]
    assert change[0] < 1e-6
    assert min(change[1:]) > 1e-3


def test_a_learner_of_some_columns_sees_no_others():
    rows = rows_of(600)
    learner = ChunkedNetworkLearner((), TrainingSettings(epochs=1), CPU)
    models = ChunkedColumnsLearner(learner, 1, 3).fit(Chunks(rows), lambda: None)
    moved = rows.x.clone()
    moved[:, [0, 3]] += 5
    assert torch.equal(models[0](rows.x), models[0](moved))
