"""``torch.compile``: several passes through a compiled graph, or a word at the first step."""

import copy
import warnings

import pytest
import torch
from tests.optimizer.loops import losses, same, snapshot
from torch import nn
from torch._functorch import config as functorch

from apfex.optimizer import APFEx
from apfex.strategies import AdaptiveSwitch, AdaptiveWeighting, ConeProjection

pytestmark = pytest.mark.filterwarnings("ignore:A layer cannot be differentiated in one batch")


@pytest.fixture
def setting():
    """A network with intermediate results that a compiled backward pass may write into."""
    torch.compiler.reset()
    torch.manual_seed(0)
    x = torch.randn(64, 3)
    model = nn.Sequential(nn.Linear(3, 6), nn.GELU(), nn.Linear(6, 6), nn.LayerNorm(6))
    model.append(nn.Linear(6, 1))
    yield model, x, (x[:, 0] > 0).long(), torch.arange(64) % 4
    torch.compiler.reset()


def compiled(model: nn.Module, backend: str = "aot_eager"):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the compiler itself
        return torch.compile(model, backend=backend)


def sgd(model: nn.Module, strategy=None, **more) -> APFEx:
    return APFEx(torch.optim.SGD(model.parameters(), lr=0.1), strategy, **more)


@pytest.mark.parametrize(
    ("strategy", "more"),
    [
        (AdaptiveSwitch(), {}),
        (AdaptiveSwitch(), {"space": "prediction"}),
        (ConeProjection(), {}),
        (AdaptiveWeighting(), {}),
        (AdaptiveWeighting(), {"accumulate": True}),
    ],
    ids=["switch", "switch at the outputs", "cone", "weighting", "accumulated"],
)
def test_a_compiled_model_trains_as_the_model_itself(setting, strategy, more):
    model, x, y, groups = setting
    twin = copy.deepcopy(model)
    optimizer, other = sgd(model, strategy, window=2, **more), sgd(twin, strategy, window=2, **more)
    with functorch.patch(donated_buffer=False):
        program = compiled(model)
        for rows in (slice(0, 64),) * 5 + (slice(0, 40),) * 3:  # another shape is compiled anew
            for forward, o in ((program, optimizer), (twin, other)):
                scores = forward(x[rows])
                o.backward(losses(scores, y[rows], groups[rows]), outputs=scores)
                o.step()
    for a, b in zip(model.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize("warm", [True, False])
@pytest.mark.parametrize("outputs", [True, False])
def test_donated_buffers_are_refused_at_the_first_step(setting, warm, outputs):
    """The first Gramian of the switching rule is asked for a window later."""
    model, x, y, groups = setting
    program = compiled(model)
    if warm:
        program(x).sum().backward()
        model.zero_grad()
    optimizer = sgd(model)
    before = snapshot(model, optimizer)
    scores = program(x)
    with pytest.raises(
        RuntimeError, match=r"config\.donated_buffer = False before the model first"
    ):
        optimizer.backward(losses(scores, y, groups), outputs=scores if outputs else None)
    with functorch.patch(donated_buffer=False):
        # Set too late: torch would not notice, and the second pass would find its inputs spoilt.
        scores = program(x)
        with pytest.raises(RuntimeError, match=r"also call torch\.compiler\.reset\(\)"):
            optimizer.backward(losses(scores, y, groups), outputs=scores if outputs else None)
        assert same(snapshot(model, optimizer), before)
        torch.compiler.reset()
        scores = compiled(model)(x)
        optimizer.backward(losses(scores, y, groups), outputs=scores if outputs else None)


def test_strategies_of_one_pass_need_no_remedy(setting):
    model, x, y, groups = setting
    program = compiled(model)
    program(x).sum().backward()
    model.zero_grad()
    optimizer = sgd(model, AdaptiveWeighting(), window=2)
    for _ in range(5):
        optimizer.backward(losses(program(x), y, groups))
        optimizer.step()
    assert optimizer.history is not None
    assert optimizer.history.n_windows == 2


@pytest.mark.slow
def test_compiled_to_machine_code(setting):
    model, x, y, groups = setting
    twin = copy.deepcopy(model)
    with warnings.catch_warnings(), functorch.patch(donated_buffer=False):
        warnings.simplefilter("ignore")
        program = torch.compile(model)
        for forward, m in ((program, model), (twin, twin)):
            optimizer = sgd(m, window=2)
            for _ in range(6):
                optimizer.backward(losses(forward(x), y, groups))
                optimizer.step()
    for a, b in zip(model.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)
