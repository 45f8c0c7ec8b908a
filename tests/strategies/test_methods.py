"""Each method against its formula, or an independent implementation."""

import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from tests.generators import gramian_of
from tests.strategies.test_contract import history_of
from torchjd.aggregation import UPGradWeighting

from apfex.history import History, StepRecord
from apfex.strategies import (
    MGDA,
    AdaptiveWeighting,
    CAGrad,
    ConeProjection,
    EqualWeights,
    FixedWeights,
    PCGrad,
    SetSampling,
    SmoothTchebycheff,
    StepView,
    UPGrad,
)
from apfex.strategies._sampling import dirichlet, uniforms
from apfex.strategies._weighting import relative_improvement


def first_view(jacobian: torch.Tensor, **more) -> StepView:
    return StepView.of(gramian_of(jacobian), torch.ones(jacobian.shape[:-1]).double(), **more)


def randn(*shape: int, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


# PCP


def test_cone_projection_leaves_out_vanished_gradients_where_mgda_stops():
    jacobian = randn(3, 5) + 2
    jacobian[1] *= 1e-12
    history = history_of(torch.ones(1, 3, dtype=torch.float64))
    history._largest_norms = torch.ones(3, dtype=torch.float64)
    view = first_view(jacobian, history=history)
    direction = ConeProjection().decide(view).weights @ jacobian
    assert direction.norm() > 0.1
    assert (MGDA().decide(view).weights @ jacobian).norm() < 1e-10
    assert ConeProjection().decide(view).weights[1] == 0


def test_a_small_gradient_that_was_never_longer_counts():
    """Relative to its own longest: an objective in other units is not left out."""
    jacobian = randn(3, 5)
    jacobian[1] *= 1e-12
    assert ConeProjection().decide(first_view(jacobian)).weights[1] > 0


def test_all_gradients_zero_is_no_error():
    weights = ConeProjection().decide(first_view(torch.zeros(3, 4, dtype=torch.float64))).weights
    assert weights.sum() == 1


@pytest.mark.parametrize("m", [2, 4])
def test_the_unit_form_has_length_one(m):
    jacobian = randn(m, 9) + 0.5
    weights = ConeProjection(form="unit").decide(first_view(jacobian)).weights
    assert (weights @ jacobian).norm().item() == pytest.approx(1)


# AW


def test_adaptive_weighting_is_dynamic_weight_averaging():
    """Without the clip: softmax of the loss ratios, at temperature 1 / rate."""
    losses = torch.rand(2, 5, dtype=torch.float64) + 0.5
    view = StepView.of(torch.eye(5), losses[1], history_of(losses))
    weights = AdaptiveWeighting(rate=4.0, clip=1e9).decide(view).weights
    torch.testing.assert_close(weights, torch.softmax(4.0 * losses[1] / losses[0], 0))


@pytest.mark.parametrize("tau", [0.5, 1.0, 10.0])
def test_adaptive_weights_have_their_true_lower_bound_also_when_losses_rise(tau):
    """w_k >= exp(-tau (rho_k - rho_min)) / m; the paper's bound fails for a rising loss."""
    for seed in range(50):
        rho = 4 * randn(4, seed=seed)
        before = torch.ones(4, dtype=torch.float64)
        now = before - rho * (before + 1e-8)
        view = StepView.of(torch.eye(4), now, history_of(torch.stack([before, now])))
        weights = AdaptiveWeighting(rate=tau, clip=1e9).decide(view).weights
        bound = torch.exp(-tau * (rho - rho.min())) / 4
        assert (weights >= bound * (1 - 1e-9)).all()


def test_the_paper_s_bound_on_the_weights_is_false():
    rho = torch.tensor([-3.0, 0.1, 0.1])
    assert torch.exp(-rho).sum() > 3  # the denominator said to be at most K


def test_equal_weights_before_two_windows_and_clipping_after():
    losses = torch.tensor([[1.0, 1.0], [0.5, 9.0]], dtype=torch.float64)
    early = StepView.of(torch.eye(2), losses[0], history_of(losses[:1]))
    assert AdaptiveWeighting().decide(early).weights.tolist() == [0.5, 0.5]
    late = StepView.of(torch.eye(2), losses[1], history_of(losses))
    expected = torch.softmax(torch.tensor([-0.5, 1.0], dtype=torch.float64), 0)
    torch.testing.assert_close(
        AdaptiveWeighting(rate=1.0).decide(late).weights, expected, atol=1e-7, rtol=0
    )


# PSS


def test_dirichlet_moments():
    draws = dirichlet(torch.arange(40_000), counter=7, size=4).numpy()
    assert draws.mean(0) == pytest.approx(np.full(4, 1 / 4), abs=4 * 0.1937 / 200)
    expected = (np.eye(4) * 4 - 1) / (16 * 5)  # covariance of Dirichlet(1, 1, 1, 1)
    assert np.cov(draws.T) == pytest.approx(expected, abs=2e-3)


def test_uniform_draws_are_even_and_independent_of_each_other():
    by_seed = uniforms(torch.arange(20_000), counter=0, size=2).numpy()
    by_counter = np.stack([uniforms(torch.tensor(3), t, 2).numpy() for t in range(5_000)])
    for draws in (by_seed, by_counter):
        assert draws.min() > 0
        assert draws.max() < 1
        histogram = np.histogram(draws[:, 0], bins=20, range=(0, 1))[0]
        chi_square = ((histogram - len(draws) / 20) ** 2 / (len(draws) / 20)).sum()
        assert chi_square < 43.8  # 0.999 quantile, 19 degrees of freedom
        assert abs(np.corrcoef(draws.T)[0, 1]) < 4 / np.sqrt(len(draws))
        assert abs(np.corrcoef(draws[1:, 0], draws[:-1, 0])[0, 1]) < 4 / np.sqrt(len(draws))


def test_sampled_weights_are_held_for_a_window():
    def weights(step: int, hold: str) -> list[float]:
        history = history_of(torch.ones(1, 3, dtype=torch.float64))
        history.window = 10
        view = StepView.of(torch.eye(3), torch.ones(3), history, step=step)
        return SetSampling(hold=hold).decide(view).weights.tolist()  # type: ignore[arg-type]

    assert weights(10, "window") == weights(19, "window") != weights(20, "window")
    assert weights(10, "step") != weights(11, "step")


# Rivals


@pytest.mark.parametrize("m", [2, 3, 6])
def test_pcgrad_follows_its_algorithm(m):
    jacobian = randn(m, 4, seed=m)
    view = first_view(jacobian, step=5)
    weights = PCGrad().decide(view).weights
    keys = uniforms(view.seeds, 5, m * m).reshape(m, m)
    total = torch.zeros(4, dtype=torch.float64)
    for i in range(m):
        gradient = jacobian[i].clone()
        for j in sorted((j for j in range(m) if j != i), key=lambda j: keys[i, j]):
            inner = gradient @ jacobian[j]
            if inner < 0:
                gradient = gradient - inner / (jacobian[j] @ jacobian[j]) * jacobian[j]
        total += gradient
    torch.testing.assert_close(weights @ jacobian, total)


@pytest.mark.parametrize("m", [2, 3, 6])
@pytest.mark.parametrize("radius", [0.0, 0.4, 0.9])
def test_cagrad_solves_its_dual(m, radius):
    jacobian = randn(m, 5, seed=m) + 0.2
    gramian = gramian_of(jacobian).numpy()
    mean = gramian.mean(1)
    length = np.sqrt(mean.mean())

    def dual(w: np.ndarray) -> float:
        return w @ mean + radius * length * np.sqrt(max(w @ gramian @ w, 0))

    weights = CAGrad(radius).decide(first_view(jacobian)).weights
    direction = weights @ jacobian
    inside = (direction - jacobian.mean(0)).norm() <= radius * length * (1 + 1e-6) + 1e-12
    assert inside
    best = minimize(
        dual,
        np.full(m, 1 / m),
        method="SLSQP",
        bounds=[(0, 1)] * m,
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1},
        options={"maxiter": 500, "ftol": 1e-14},
    ).fun
    # Strong duality: the worst improvement within the ball is the dual's minimum.
    assert (jacobian @ direction).min().item() == pytest.approx(best, rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("m", [2, 3, 6])
def test_upgrad_is_torchjds(m):
    gramian = gramian_of(randn(m, 7, seed=m))
    ours = UPGrad().decide(StepView.of(gramian, torch.ones(m).double())).weights
    torch.testing.assert_close(ours, UPGradWeighting()(gramian), atol=1e-3, rtol=1e-3)


def test_smooth_tchebycheff_is_the_gradient_of_its_scalarisation():
    losses = torch.rand(4, dtype=torch.float64, requires_grad=True)
    ray, ideal = torch.rand(4, dtype=torch.float64), 0.1 * torch.rand(4, dtype=torch.float64)
    value = 0.3 * torch.logsumexp(ray * (losses - ideal) / 0.3, 0)
    (expected,) = torch.autograd.grad(value, losses)
    view = StepView.of(torch.eye(4), losses.detach())
    weights = SmoothTchebycheff(ray, ideal, smoothing=0.3).decide(view).weights
    torch.testing.assert_close(weights, expected)


def test_fixed_weights_are_those_given_whatever_happens():
    losses = torch.rand(3, 4, 2, dtype=torch.float64)
    view = StepView.of(torch.eye(2).expand(3, 4, 2, 2), losses)
    weights = FixedWeights([1, 3]).decide(view).weights
    assert weights.shape == losses.shape
    assert torch.equal(weights, torch.tensor([0.25, 0.75]).double().expand_as(losses))
    equal = EqualWeights().decide(view).weights
    assert torch.equal(FixedWeights(torch.tensor([2.0, 2.0])).decide(view).weights, equal)


@pytest.mark.parametrize(
    "weights", [(), (0, 0), (1, -1), (1, float("nan")), ((1, 2), (3, 4)), "ab", None, 2.0], ids=str
)
def test_fixed_weights_that_weigh_nothing_are_refused(weights):
    with pytest.raises(ValueError, match=r"weights must be .*one for each objective.* got"):
        FixedWeights(weights)


def test_fixed_weights_of_the_wrong_length_are_refused():
    view = StepView.of(torch.eye(2), torch.ones(2))
    with pytest.raises(ValueError, match="for each of the 2 losses, got 3; give 2 numbers"):
        FixedWeights((1, 1, 1)).decide(view)


def test_a_loss_that_rises_from_zero_has_not_improved():
    history = History(2, window=1)
    for losses in ([0.0, 0.5], [0.1, 0.4]):
        row = torch.tensor(losses, dtype=torch.float64)
        history.record(StepRecord(row, row, torch.tensor(0), torch.tensor(1.0)))
    found = relative_improvement(history)
    assert found[0] < 0
    assert found[1] == pytest.approx(0.2)
