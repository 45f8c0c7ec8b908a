"""On a GPU steps are recorded and replayed; that must change nothing but the time."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from tests.models.test_training import make_rows

import apfex.models._learners as learners
from apfex.models import (
    StackedMLP,
    TrainingRows,
    TrainingSettings,
    spread_aims,
    train_population,
)
from apfex.strategies import AdaptiveSwitch

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
SETTINGS = TrainingSettings(epochs=6, batch_size=60, learning_rate=1e-2)  # 200 rows: 60, 60, 60, -


def rows_on(device, c=2, weighted=True):
    rows = make_rows(c=c, weighted=weighted, dtype=torch.float64)
    x, y, codes = (part.to(device) for part in (rows.x, rows.y, rows.codes))
    weight = None if rows.sample_weight is None else rows.sample_weight.to(device)
    return TrainingRows(x, y, codes, rows.n_groups, weight)


def trained(rows, c=2, aims="bounds", on_epoch=None, patience=None):
    members = spread_aims(("dp", "tpr"), 8, limits=(0.1, 0.1)) if aims else None
    population = StackedMLP(3, 1 if c == 2 else c, (5,), 8, seed=0).to(rows.x.device)
    for parameter in population.parameters():
        parameter.data = parameter.data.double()
    settings = TrainingSettings(**{**vars(SETTINGS), "patience": patience})
    history = train_population(
        population,
        rows,
        settings,
        aims=members,
        strategies=[AdaptiveSwitch()],
        on_epoch=None if on_epoch is None else on_epoch(population, rows),
    )
    return population.values(), history


def validated(population, rows):
    """Losses by which members stop at different epochs."""

    def losses(epoch):
        odd = torch.arange(population.n_members, device=rows.x.device) % 2
        return (1.0 + odd * epoch).double()

    return losses


@needs_gpu
@pytest.mark.gpu
@pytest.mark.parametrize("aims", ["bounds", None])
@pytest.mark.parametrize("c", [2, 3])
def test_a_recording_learns_what_steps_one_by_one_learn(c, aims, monkeypatch):
    rows = rows_on("cuda", c)
    replayed, history = trained(rows, c, aims)
    monkeypatch.setattr(learners, "can_record", lambda *_: False)
    taken, same = trained(rows, c, aims)
    for ours, theirs in zip(replayed, taken, strict=True):
        assert torch.equal(ours, theirs)
    if history is not None and same is not None:
        assert history.to_frame().equals(same.to_frame())


@needs_gpu
@pytest.mark.gpu
@pytest.mark.parametrize("c", [2, 3])
def test_a_gpu_learns_what_a_cpu_learns(c):
    for ours, theirs in zip(
        trained(rows_on("cuda", c), c)[0], trained(rows_on("cpu", c), c)[0], strict=True
    ):
        torch.testing.assert_close(ours.cpu(), theirs, rtol=1e-6, atol=1e-8)


@needs_gpu
@pytest.mark.gpu
def test_members_that_stop_leave_the_recording(monkeypatch):
    replayed, _ = trained(rows_on("cuda"), on_epoch=validated, patience=2)
    monkeypatch.setattr(learners, "can_record", lambda *_: False)
    taken, _ = trained(rows_on("cuda"), on_epoch=validated, patience=2)
    for ours, theirs in zip(replayed, taken, strict=True):
        assert torch.equal(ours, theirs)


@needs_gpu
@pytest.mark.gpu
def test_threads_record_at_the_same_time():
    alone, _ = trained(rows_on("cuda"))
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda _: trained(rows_on("cuda"))[0], range(8)))
    for one in found:
        assert all(torch.equal(ours, theirs) for ours, theirs in zip(one, alone, strict=True))


def test_nothing_is_recorded_on_a_cpu():
    population = StackedMLP(3, 1, (5,), 2, seed=0)
    assert not learners.can_record(population, torch.arange(4))
