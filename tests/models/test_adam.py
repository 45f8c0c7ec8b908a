import subprocess
import sys

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from apfex.models._adam import StackedAdamW

SHAPES = [(3, 4, 2), (3, 4), (3,)]


def make(dtype=torch.float64, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return [nn.Parameter(torch.randn(s, generator=generator).to(dtype)) for s in SHAPES]


def give_gradients(parameters, step):
    generator = torch.Generator().manual_seed(step)
    for parameter in parameters:
        parameter.grad = torch.randn(parameter.shape, generator=generator).to(parameter.dtype)


@settings(deadline=None)
@given(
    rate=st.floats(1e-4, 1.0),
    decay=st.floats(0.0, 0.5),
    n_steps=st.integers(1, 30),
    dtype=st.sampled_from([torch.float32, torch.float64]),
)
def test_it_moves_as_torch_does(rate, decay, n_steps, dtype):
    own, theirs = make(dtype), make(dtype)
    optimizer = StackedAdamW(own, rate, decay, n_steps)
    oracle = torch.optim.AdamW(theirs, lr=rate, weight_decay=decay, foreach=True)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(oracle, n_steps)
    for step in range(n_steps):
        for parameters in (own, theirs):
            give_gradients(parameters, step)
        assert optimizer.rate == pytest.approx(schedule.get_last_lr()[0], abs=1e-12)
        optimizer.step()
        oracle.step()
        schedule.step()
    torch.testing.assert_close(own, theirs, rtol=1e-4, atol=1e-5)
    if dtype == torch.float64:
        torch.testing.assert_close(own, theirs, rtol=1e-9, atol=1e-9)


def test_parameters_of_two_dtypes_move_each_in_its_own():
    mixed = [make(torch.float32)[0], make(torch.float64)[1]]
    apart = [make(torch.float32)[0], make(torch.float64)[1]]
    for groups in ([mixed], [apart[:1], apart[1:]]):
        for group in groups:
            optimizer = StackedAdamW(group, 0.1, 0.1, 5)
            for parameter in group:
                parameter.grad = torch.ones_like(parameter)
            optimizer.step()
    torch.testing.assert_close(mixed, apart)


def test_some_members_move_on_as_they_would_have():
    among, kept = make(), torch.tensor([2, 0])
    optimizer = StackedAdamW(among, 0.1, 0.1, 12)
    for step in range(4):
        give_gradients(among, step)
        optimizer.step()
    alone = [nn.Parameter(p.detach()[kept]) for p in among]
    rest = optimizer.of_members(kept, alone)
    for step in range(4, 12):
        give_gradients(among, step)
        for own, all_ in zip(alone, among, strict=True):
            assert all_.grad is not None
            own.grad = all_.grad[kept]
        optimizer.step()
        rest.step()
    torch.testing.assert_close(alone, [nn.Parameter(p.detach()[kept]) for p in among])


def test_no_gradient_is_a_gradient_of_zero():
    without, zero = make(), make()
    for parameters in (without, zero):
        optimizer = StackedAdamW(parameters, 0.1, 0.1, 5)
        give_gradients(parameters, 0)
        optimizer.step()
        optimizer.zero_grad()
        if parameters is zero:
            for parameter in parameters:
                parameter.grad = torch.zeros_like(parameter)
        optimizer.step()
    torch.testing.assert_close(without, zero)


def test_training_imports_no_compiler():
    """The first optimizer of torch imports its compiler, which takes seconds."""
    program = """
import sys, torch
from torch import nn
from apfex.models import *
rows = TrainingRows(torch.randn(64, 3), torch.arange(64) % 2, torch.arange(64)[None] % 4, (4,))
for population in (StackedMLP(3, 1, (4,), 2, 0), StackedModules(nn.Linear, 3, 1, 2, 0)):
    train_population(population, weight_ladder(("dp",), 2), rows, TrainingSettings(epochs=1))
sys.exit("torch._dynamo" in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
