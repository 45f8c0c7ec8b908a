"""The switching rule, branch by branch."""

import pytest
import torch
from tests.strategies.test_contract import history_of

from apfex.strategies import AdaptiveSwitch, Choice, StepView

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


def test_more_than_half_of_the_pairs_must_be_aligned():
    def gramian(*cosines: float) -> torch.Tensor:
        a, b, c = cosines
        return torch.tensor([[1, a, b], [a, 1, c], [b, c, 1]], dtype=torch.float64)

    losses = torch.tensor([[1.0] * 3, [0.9] * 3], dtype=torch.float64)
    for cosines, expected in (((0.1, 0.1, -0.1), PCP), ((0.1, -0.1, -0.1), AW)):
        view = StepView.of(gramian(*cosines), losses[-1], history_of(losses))
        assert AdaptiveSwitch().choose(view) == expected


def test_each_member_has_its_own_strategy():
    losses = torch.tensor([FALLING, ONE_LAGS], dtype=torch.float64).transpose(0, 1)
    gramians = torch.stack([ALIGNED, ALIGNED])
    view = StepView.of(gramians, losses[-1], history_of(losses))
    assert AdaptiveSwitch().decide(view).choice.tolist() == [PCP, AW]  # type: ignore[union-attr]


@pytest.mark.parametrize(("move", "stagnant"), [(0.5e-3, True), (2e-3, False)])
def test_stagnation_is_measured_by_the_root_mean_square_move(move, stagnant):
    steps = torch.arange(7, dtype=torch.float64)[:, None]
    losses = 1.0 - steps * torch.tensor([move, move], dtype=torch.float64)
    view = StepView.of(ALIGNED, losses[-1], history_of(losses))
    assert (AdaptiveSwitch().choose(view) == PSS) == stagnant
