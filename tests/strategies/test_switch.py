"""The switching rule, branch by branch."""

import math
import random
from itertools import combinations, pairwise

import pytest
import torch
from tests.strategies.test_contract import history_of

from apfex.strategies import (
    AdaptiveSwitch,
    AdaptiveWeighting,
    Choice,
    StepView,
    read_strategies,
)

PCP, AW, PSS = Choice.PCP, Choice.AW, Choice.PSS
ALIGNED = torch.tensor([[1.0, 0.5], [0.5, 1.0]], dtype=torch.float64)
OPPOSED = torch.tensor([[1.0, -0.5], [-0.5, 1.0]], dtype=torch.float64)
TINY = 1e-8 * ALIGNED

FALLING = [[1.0, 1.0], [0.9, 0.9]]  # both improve alike
ONE_LAGS = [[1.0, 1.0], [0.9, 0.99]]  # improvements .1 and .01
ONE_RISES = [[1.0, 1.0], [0.9, 1.05]]
BOTH_RISE = [[1.0, 1.0], [1.1, 1.3]]
FLAT = [[1.0, 1.0]] * 7


@pytest.mark.parametrize(
    ("losses", "choices", "gramian", "expected"),
    [
        pytest.param(FALLING, [AW, AW], ALIGNED, PCP, id="c: aligned"),
        pytest.param(FALLING, [AW, AW], OPPOSED, AW, id="d: keeps AW"),
        pytest.param(FALLING, [PCP, PCP], OPPOSED, PCP, id="d: keeps PCP"),
        pytest.param(ONE_LAGS, [PCP, PCP], ALIGNED, AW, id="b: ratio above beta"),
        pytest.param(ONE_RISES, [PCP, PCP], ALIGNED, AW, id="b: one loss rises"),
        pytest.param(BOTH_RISE, [AW, AW], ALIGNED, PCP, id="b: not if both rise"),
        pytest.param(FALLING[:1], [AW], ALIGNED, PCP, id="no rho after one window"),
        pytest.param(FLAT, [AW] * 7, ALIGNED, PSS, id="a: stagnant"),
        pytest.param(FLAT[:5], [AW] * 5, ALIGNED, PCP, id="a: not yet stagnant"),
        pytest.param(FALLING, [AW, AW], TINY, PSS, id="a: all gradients small"),
        pytest.param(FLAT, [AW] * 6 + [PSS], OPPOSED, AW, id="a: rests after PSS, d: back to AW"),
        pytest.param(FLAT, [PCP] * 6 + [PSS], OPPOSED, PCP, id="d: back to PCP"),
        pytest.param(FLAT, [AW, AW, PSS, AW, AW, AW, AW], ALIGNED, PCP, id="a: rests M windows"),
        pytest.param(FLAT, [AW, PSS, AW, AW, AW, AW, AW], ALIGNED, PSS, id="a: rested"),
    ],
)
def test_branches(losses, choices, gramian, expected):
    losses = torch.tensor(losses, dtype=torch.float64)
    history = history_of(losses, torch.tensor([int(choice) for choice in choices]))
    decision = AdaptiveSwitch().decide(StepView.of(gramian, losses[-1], history))
    assert decision.choice is not None
    assert Choice(int(decision.choice)) == expected
    assert decision.blend == (0.5 if expected == PSS else 1.0)


def test_the_first_window_is_adaptive_weighting_without_a_gramian():
    view = StepView.of(ALIGNED, torch.ones(2, dtype=torch.float64))
    decision = AdaptiveSwitch().decide(view)
    assert decision.choice == AW
    assert not view.has_gramian


def test_the_choice_is_kept_within_a_window():
    history = history_of(torch.tensor(FALLING, dtype=torch.float64))
    history.window = 3  # two steps are recorded, so the window is under way
    history._sums["choice"] = torch.tensor(int(PSS))
    view = StepView.of(ALIGNED, torch.ones(2, dtype=torch.float64), history, step=2)
    assert AdaptiveSwitch().decide(view).choice == PSS
    assert not view.has_gramian


def test_the_order_decides_where_both_rules_apply():
    losses = torch.tensor(ONE_LAGS, dtype=torch.float64)
    view = StepView.of(ALIGNED, losses[-1], history_of(losses))
    assert AdaptiveSwitch().choose(view) == AW
    assert AdaptiveSwitch(order="cone_first").choose(view) == PCP


def test_each_member_has_its_own_strategy():
    losses = torch.tensor([FALLING, ONE_LAGS], dtype=torch.float64).transpose(0, 1)
    gramians = torch.stack([ALIGNED, ALIGNED])
    view = StepView.of(gramians, losses[-1], history_of(losses))
    assert AdaptiveSwitch().decide(view).choice.tolist() == [PCP, AW]  # type: ignore[union-attr]


def rule(losses, choices, gramian, delta=1e-3, patience=5, small=1e-3, beta=2.0):
    """The choice of one member at the start of a window: the settled rule, a to d, in words."""
    moves = [math.dist(new, old) / math.sqrt(len(new)) for old, new in pairwise(losses)]
    lengths = [math.sqrt(gramian[k][k]) for k in range(len(gramian))]
    stagnant = len(moves) >= patience and max(moves[-patience:]) < delta
    if (stagnant or max(lengths) < small) and PSS not in choices[-patience:]:
        return PSS
    if len(losses) >= 2:
        rho = [(old - new) / abs(old) for old, new in zip(*losses[-2:], strict=True)]
        least, most = min(rho), max(rho)
        if most > beta * least if least > 0 else most > 0 and most - least > 0.01:
            return AW
    pairs = list(combinations(range(len(gramian)), 2))
    n_aligned = sum(gramian[i][j] > 0 for i, j in pairs)
    if n_aligned / len(pairs) > 1 / 2:
        return PCP
    return next((choice for choice in reversed([AW, *choices]) if choice != PSS), AW)


def situation(draw: random.Random):
    """Windows that mostly stand nearly still, and gradients some of which are short."""
    m, n_windows = draw.randint(2, 5), draw.randint(1, 9)
    losses = [[draw.choice([-1.0, 1.0]) for _ in range(m)]]
    for _ in range(n_windows - 1):
        steps = (0.0, 0.8e-3, -0.8e-3, 1.2e-3) if draw.random() < 0.85 else (0.03, 0.04, -0.05)
        losses.append([loss + draw.choice(steps) for loss in losses[-1]])
    choices = [draw.choice([PCP, AW])] + [PCP] * (n_windows - 1)
    for window in range(1, n_windows):  # an exploration is never followed by another
        if choices[window - 1] == PSS or draw.random() < 0.8:
            choices[window] = draw.choice([PCP, AW])
        else:
            choices[window] = PSS
    lengths = [draw.choice([1e-4, 1.0] if draw.random() < 0.3 else [1.0, 2.0]) for _ in range(m)]
    rows = [[length * draw.gauss(0, 1) for _ in range(4)] for length in lengths]
    jacobian = torch.tensor(rows, dtype=torch.float64)
    return losses, choices, jacobian @ jacobian.T


@pytest.mark.parametrize("patience", [1, 2, 5])
def test_every_choice_is_that_of_the_settled_rule(patience):
    seen = set()
    for seed in range(500):
        losses, choices, gramian = situation(random.Random(seed))
        history = history_of(torch.tensor(losses, dtype=torch.float64), torch.tensor(choices))
        view = StepView.of(gramian, history.losses[-1], history)
        expected = rule(losses, choices, gramian.tolist(), patience=patience)
        assert AdaptiveSwitch(patience=patience).choose(view) == expected, (losses, choices)
        seen.add(expected)
    assert seen == {PCP, AW, PSS}


def test_defaults_are_the_settled_ones():
    rule = AdaptiveSwitch()
    assert (rule.tolerance, rule.patience, rule.small_gradient) == (1e-3, 5, 1e-3)
    assert (rule.imbalance, rule.aligned, rule.order) == (2.0, 0.0, "weighting_first")


def test_a_search_switches_at_a_pace_of_its_own():
    (rule,) = read_strategies("switch")
    assert isinstance(rule, AdaptiveSwitch)
    assert isinstance(rule.weighting, AdaptiveWeighting)
    assert (rule.weighting.rate, rule.patience) == (1.0, 1)


@pytest.mark.parametrize(("cosine", "expected"), [(0.6, PCP), (0.4, AW)])
def test_a_pair_is_aligned_by_its_angle_whatever_the_lengths(cosine, expected):
    losses = torch.tensor(FALLING, dtype=torch.float64)
    history = history_of(losses, torch.tensor([int(AW)] * 2))
    for long, short in ((10.0, 1.0), (1.0, 10.0)):
        rows = torch.tensor(
            [[long, 0.0], [cosine * short, (1 - cosine**2) ** 0.5 * short]]
        ).double()
        view = StepView.of(rows @ rows.T, losses[-1], history)
        assert AdaptiveSwitch(aligned=0.5).choose(view) == expected
