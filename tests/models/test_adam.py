import subprocess
import sys

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from apfex.models import Adam

SHAPES = [(3, 4, 2), (3, 4), (3,)]


def make(dtype=torch.float64, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return [nn.Parameter(torch.randn(s, generator=generator).to(dtype)) for s in SHAPES]


def draw_gradients(parameters, step):
    generator = torch.Generator().manual_seed(step)
    return [torch.randn(p.shape, generator=generator).to(p.dtype) for p in parameters]


def give_gradients(parameters, step):
    for parameter, gradient in zip(parameters, draw_gradients(parameters, step), strict=True):
        parameter.grad = gradient


@settings(deadline=None)
@given(
    rates=st.lists(st.floats(1e-4, 1.0), min_size=1, max_size=30),
    decay=st.floats(0.0, 0.5),
    betas=st.sampled_from([(0.9, 0.999), (0.9, 0.99)]),
    epsilon=st.sampled_from([1e-8, 1e-3]),
    fused=st.booleans(),
    dtype=st.sampled_from([torch.float32, torch.float64]),
)
def test_it_moves_as_torch_does(rates, decay, betas, epsilon, fused, dtype):
    own, theirs = make(dtype), make(dtype)
    optimizer = Adam(own, decay, betas, epsilon, fused=fused)
    oracle = torch.optim.AdamW(theirs, weight_decay=decay, betas=betas, eps=epsilon, foreach=True)
    for step, rate in enumerate(rates):
        oracle.param_groups[0]["lr"] = rate
        give_gradients(theirs, step)
        optimizer.step(draw_gradients(own, step), rate)
        oracle.step()
    torch.testing.assert_close(own, theirs, rtol=1e-4, atol=1e-5)
    if dtype == torch.float64:
        torch.testing.assert_close(own, theirs, rtol=1e-9, atol=1e-9)


def test_parameters_of_two_dtypes_move_each_in_its_own():
    mixed = [make(torch.float32)[0], make(torch.float64)[1]]
    apart = [make(torch.float32)[0], make(torch.float64)[1]]
    for group in (mixed, apart[:1], apart[1:]):
        Adam(group, 0.1).step([torch.ones_like(parameter) for parameter in group], 0.1)
    torch.testing.assert_close(mixed, apart)


def test_some_members_move_on_as_they_would_have():
    among, kept = make(), torch.tensor([2, 0])
    optimizer = Adam(among, 0.1)
    for step in range(4):
        optimizer.step(draw_gradients(among, step), 0.1)
    alone = [nn.Parameter(p.detach()[kept]) for p in among]
    rest = optimizer.of_members(kept, alone)
    for step in range(4, 12):
        gradients = draw_gradients(among, step)
        optimizer.step(gradients, 0.1)
        rest.step([gradient[kept] for gradient in gradients], 0.1)
    torch.testing.assert_close(alone, [nn.Parameter(p.detach()[kept]) for p in among])


def test_no_gradient_is_a_gradient_of_zero():
    without, zero = make(), make()
    for parameters in (without, zero):
        optimizer = Adam(parameters, 0.1)
        optimizer.step(draw_gradients(parameters, 0), 0.1)
        none = [None if parameters is without else torch.zeros_like(p) for p in parameters]
        optimizer.step(none, 0.1)
    torch.testing.assert_close(without, zero)


def test_training_imports_no_compiler():
    """torch's own optimizers import its compiler, and gradients that are given SymPy: seconds."""
    program = """
import sys, torch
from torch import nn
from apfex.models import (
    StackedMLP, StackedModules, TrainingRows, TrainingSettings, train_population, spread_aims
)
rows = TrainingRows(torch.randn(64, 3), torch.arange(64) % 2, torch.arange(64)[None] % 4, (4,))
for population in (StackedMLP(3, 1, (4,), 2, 0), StackedModules(nn.Linear, 3, 1, 2, 0)):
    train_population(population, rows, TrainingSettings(epochs=1), aims=spread_aims(("dp",), 2))
sys.exit(not {"torch._dynamo", "sympy"}.isdisjoint(sys.modules))
"""
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
