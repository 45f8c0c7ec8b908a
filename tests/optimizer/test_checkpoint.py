"""A checkpoint, a copy and a pickle continue bit for bit; a bad one changes nothing."""

import copy
import pickle

import pytest
import torch
from tests.optimizer.loops import STRATEGIES, losses, same, sgd
from torch import nn

from apfex.optimizer import APFEx
from apfex.strategies import (
    AdaptiveSwitch,
    AdaptiveWeighting,
    SetSampling,
)


@pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda s: type(s).__name__)
@pytest.mark.parametrize("outputs", [True, False])
@pytest.mark.parametrize("stop", [1, 5, 11])
def test_a_checkpoint_continues_bit_for_bit(setting, strategy, outputs, stop):
    model, x, y, groups = setting

    def make(model):
        inner = torch.optim.Adam(model.parameters(), lr=1e-2)
        optimizer = APFEx(inner, strategy, window=3, seed=5)
        return optimizer, torch.optim.lr_scheduler.StepLR(optimizer, step_size=4)

    def train(model, optimizer, schedule, steps):
        for _ in range(steps):
            scores = model(x)
            optimizer.backward(losses(scores, y, groups), outputs=scores if outputs else None)
            optimizer.step()
            schedule.step()

    whole, part, fresh = (copy.deepcopy(model) for _ in range(3))
    train(whole, *make(whole), 20)
    optimizer, schedule = make(part)
    train(part, optimizer, schedule, stop)
    saved = copy.deepcopy((part.state_dict(), optimizer.state_dict(), schedule.state_dict()))
    train(part, optimizer, schedule, 1)  # must not reach into what was saved
    restored, restored_schedule = make(fresh)
    fresh.load_state_dict(saved[0])
    restored.load_state_dict(saved[1])
    restored_schedule.load_state_dict(saved[2])
    train(fresh, restored, restored_schedule, 20 - stop)
    for a, b in zip(whole.parameters(), fresh.parameters(), strict=True):
        assert torch.equal(a, b)


def test_a_checkpoint_survives_a_file(setting, tmp_path):
    model, x, y, groups = setting
    optimizer = APFEx(torch.optim.Adam(model.parameters()), window=2)
    for _ in range(5):
        optimizer.backward(losses(model(x), y, groups))
        optimizer.step()
    torch.save(optimizer.state_dict(), tmp_path / "state.pt")
    state = torch.load(tmp_path / "state.pt", weights_only=True)
    other = APFEx(torch.optim.Adam(model.parameters()), window=2)
    other.load_state_dict(state)
    assert same(other.state_dict(), optimizer.state_dict())


def broken_histories(history):
    """Histories that have lost something, and its name."""
    yield [], "closed"
    for key in history:
        yield {k: v for k, v in history.items() if k != key}, key
    for part in ("sums", "closed"):
        for key in history[part]:
            rest = {k: v for k, v in history[part].items() if k != key}
            yield {**history, part: rest}, f"{part}.{key}"


def test_a_bad_checkpoint_changes_nothing(batch):
    x, y, groups = batch
    model = nn.Linear(3, 1)
    optimizer = sgd(model, window=2)
    for _ in range(3):
        optimizer.backward(losses(model(x), y, groups))
        optimizer.step()
    state = optimizer.state_dict()
    other = sgd(nn.Linear(3, 1), window=100)
    before = copy.deepcopy(other.state_dict())
    for key in state:
        with pytest.raises(ValueError, match="state_dict must come from"):
            other.load_state_dict({k: v for k, v in state.items() if k != key})
    with pytest.raises(ValueError, match="as many parameters"):
        other.load_state_dict({**state, "last_direction": []})
    for broken, lost in broken_histories(state["history"]):
        with pytest.raises(
            ValueError, match=f"history must come from .*, got one without .*{lost}"
        ):
            other.load_state_dict({**state, "history": broken})
    assert same(other.state_dict(), before)
    other.load_state_dict(state)
    assert other.window == 2


@pytest.mark.parametrize("clone", [copy.deepcopy, lambda o: pickle.loads(pickle.dumps(o))])
def test_copies_and_pickles_continue_the_same(batch, clone):
    x, y, groups = batch
    model = nn.Linear(3, 1)
    optimizer = sgd(model, SetSampling(), window=2)
    torch.optim.lr_scheduler.StepLR(optimizer, 5)  # patches step
    optimizer.backward(losses(model(x), y, groups))
    optimizer.step()
    model_twin, twin = clone((model, optimizer))
    for m, o in ((model, optimizer), (model_twin, twin)):
        o.backward(losses(m(x), y, groups))
        o.step()
    assert torch.equal(model.weight, model_twin.weight)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize(
    "strategy", [AdaptiveSwitch(), SetSampling(), AdaptiveWeighting()], ids=str
)
@pytest.mark.parametrize("where", ["cpu", "cuda"])
def test_a_checkpoint_moves_between_devices(batch, tmp_path, strategy, where):
    x, y, groups = (part.cuda() for part in batch)
    model = nn.Linear(3, 1).cuda()
    optimizer = sgd(model, strategy, window=2)
    for _ in range(5):
        optimizer.backward(losses(model(x), y, groups))
        optimizer.step()
    torch.save(optimizer.state_dict(), tmp_path / "state.pt")
    twin = copy.deepcopy(model)
    other = sgd(twin, strategy, window=2)
    other.load_state_dict(torch.load(tmp_path / "state.pt", map_location=where))
    for m, o in ((model, optimizer), (twin, other)):
        o.backward(losses(m(x), y, groups))
        o.step()
    torch.testing.assert_close(model.weight, twin.weight)


def test_a_checkpoint_with_a_broken_history_changes_nothing(batch):
    x, y, groups = batch
    model = nn.Linear(3, 1)
    optimizer = sgd(model, window=2)
    optimizer.backward(losses(model(x), y, groups))
    optimizer.step()
    state = {**optimizer.state_dict(), "history": {"n_objectives": 3}}
    state["inner"]["param_groups"][0]["lr"] = 7.0
    other = sgd(nn.Linear(3, 1))
    with pytest.raises(ValueError, match="history must come from"):
        other.load_state_dict(state)
    assert other.param_groups[0]["lr"] == 0.1
    assert other.history is None
