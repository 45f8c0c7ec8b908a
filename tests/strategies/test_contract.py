"""What every strategy promises, on every awkward Jacobian."""

import copy
import pickle

import pytest
import torch
from tests.generators import awkward_jacobians, gramian_of

from apfex.history import History, StepRecord
from apfex.strategies import (
    MGDA,
    AdaptiveSwitch,
    AdaptiveWeighting,
    CAGrad,
    ConeProjection,
    EqualWeights,
    PCGrad,
    SetSampling,
    SmoothTchebycheff,
    StepView,
    Strategy,
    UPGrad,
    check_weights,
)

STRATEGIES = [
    AdaptiveSwitch(),
    AdaptiveWeighting(),
    CAGrad(),
    ConeProjection(),
    ConeProjection(form="unit"),
    EqualWeights(),
    MGDA(),
    PCGrad(),
    SetSampling(),
    SmoothTchebycheff(),
    UPGrad(),
]
RANDOM = (PCGrad, SetSampling)
NEVER_HARMS = [ConeProjection(), ConeProjection(form="unit"), MGDA(), UPGrad()]
ON_SIMPLEX = [ConeProjection(), MGDA(), AdaptiveWeighting(), SetSampling(), EqualWeights()]
SIZES = [2, 3, 5, 8]
by_name = pytest.mark.parametrize("strategy", STRATEGIES, ids=str)
sizes = pytest.mark.parametrize("m", SIZES)


def history_of(windows: torch.Tensor, choices: torch.Tensor | None = None) -> History:
    """A history of completed windows of one step, from mean losses [w, ..., m]."""
    members = windows.shape[1:-1]
    history = History(windows.shape[-1], window=1, members=members)
    for w, losses in enumerate(windows):
        choice = torch.ones(members, dtype=torch.int64) if choices is None else choices[w]
        history.record(StepRecord(losses, losses, choice, torch.ones(members)))
    return history


def view_of(jacobian: torch.Tensor, seed: int = 0, step: int = 4) -> StepView:
    members, m = jacobian.shape[:-2], jacobian.shape[-2]
    generator = torch.Generator().manual_seed(seed)
    windows = torch.rand(4, *members, m, generator=generator, dtype=torch.float64) + 0.1
    seeds = torch.arange(torch.Size(members).numel()).reshape(members)
    return StepView.of(gramian_of(jacobian), windows[-1], history_of(windows), step, seeds)


@by_name
@sizes
def test_finite_non_negative_and_of_the_right_shape(strategy, m):
    for kind, jacobian in awkward_jacobians(m).items():
        weights = strategy.decide(view_of(jacobian)).weights
        assert weights.shape == (m,), kind
        assert weights.isfinite().all(), kind
        assert (weights >= 0).all(), kind
        if strategy in ON_SIMPLEX:
            assert weights.sum().item() == pytest.approx(1), kind


# Draws are by position, so the law of the random ones is tested elsewhere; of two gradients
# PCGrad has one order only.
@pytest.mark.parametrize(
    ("strategy", "m"),
    [(one, m) for one in STRATEGIES if not isinstance(one, RANDOM) for m in SIZES]
    + [(PCGrad(), 2)],
    ids=str,
)
def test_reordering_objectives_reorders_weights(strategy, m):
    jacobian = awkward_jacobians(m)["random"]
    view = view_of(jacobian)
    order = torch.randperm(m, generator=torch.Generator().manual_seed(1))
    shuffled = StepView.of(
        gramian_of(jacobian[order]),
        view.losses[order],
        history_of(view.history.losses[..., order]),
        view.step,
        view.seeds,
    )
    expected = strategy.decide(view).weights[order]
    torch.testing.assert_close(strategy.decide(shuffled).weights, expected, atol=1e-7, rtol=1e-7)


@pytest.mark.parametrize("strategy", NEVER_HARMS, ids=str)
@sizes
def test_a_claimed_descent_direction_harms_no_objective(strategy, m):
    for kind, jacobian in awkward_jacobians(m).items():
        gramian = gramian_of(jacobian)
        weights = strategy.decide(view_of(jacobian)).weights
        products = gramian @ weights
        # What rounding may do to a sum of products of this size.
        rounding = 1e-9 * products.abs() + 64 * m * 2.3e-16 * (gramian.abs() @ weights + 1e-300)
        longest = gramian.diagonal().sqrt() * (weights @ gramian.abs() @ weights).sqrt()
        assert (products >= -rounding - 64 * m * 2.3e-16 * longest).all(), kind


def test_the_descent_promise_can_fail():
    jacobian = torch.tensor([[1.0, 0.0], [-3.0, 0.5]], dtype=torch.float64)
    weights = EqualWeights().decide(view_of(jacobian)).weights
    assert (gramian_of(jacobian) @ weights).min() < 0


@by_name
def test_same_view_same_decision_and_nothing_is_changed(strategy):
    jacobian = awkward_jacobians(4)["random"]
    view = view_of(jacobian)
    state = copy.deepcopy(view.history.state_dict())
    gramian, losses = view.gramian.clone(), view.losses.clone()
    first, second = strategy.decide(view), strategy.decide(view_of(jacobian))
    assert torch.equal(first.weights, second.weights)
    assert torch.equal(view.gramian, gramian)
    assert torch.equal(view.losses, losses)
    after = view.history.state_dict()
    assert torch.equal(
        torch.stack(after["closed"]["losses"]), torch.stack(state["closed"]["losses"])
    )
    assert after["step"] == state["step"]


@by_name
@sizes
def test_a_population_decides_as_its_members_alone(strategy, m):
    generator = torch.Generator().manual_seed(2)
    jacobians = torch.randn(3, 4, m, 9, generator=generator, dtype=torch.float64)
    view = view_of(jacobians)
    together = strategy.decide(view)
    assert together.weights.shape == (3, 4, m)
    for i in range(3):
        for j in range(4):
            alone = StepView.of(
                view.gramian[i, j],
                view.losses[i, j],
                history_of(view.history.losses[:, i, j]),
                view.step,
                view.seeds[i, j],
            )
            decision = strategy.decide(alone)
            torch.testing.assert_close(together.weights[i, j], decision.weights)
            if together.blend is not None and decision.blend is not None:
                assert together.blend[i, j] == decision.blend


@by_name
def test_survives_pickle_and_meets_the_protocol(strategy):
    assert isinstance(strategy, Strategy)
    clone = pickle.loads(pickle.dumps(strategy))
    view = view_of(awkward_jacobians(3)["random"])
    assert torch.equal(clone.decide(view).weights, strategy.decide(view).weights)


@pytest.mark.parametrize(
    "strategy", [AdaptiveWeighting(), SetSampling(), EqualWeights(), SmoothTchebycheff()], ids=str
)
def test_cheap_strategies_never_ask_for_a_gramian(strategy):
    def refuse() -> torch.Tensor:
        raise AssertionError("asked for a Gramian")

    losses = torch.rand(3, dtype=torch.float64)
    history = history_of(torch.rand(3, 3, dtype=torch.float64))
    view = StepView(losses, history, 3, torch.tensor(0), refuse)
    assert strategy.decide(view).weights.isfinite().all()
    assert not view.has_gramian


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ConeProjection(form="cone"), "form must be"),  # type: ignore[arg-type]
        (lambda: ConeProjection(zero=1.0), "zero must be"),
        (lambda: AdaptiveWeighting(rate=-1), "rate must be at least 0, got -1"),
        (lambda: AdaptiveWeighting(clip=0), "clip must be positive"),
        (lambda: SetSampling(blend=0), "blend must be above 0"),
        (lambda: SetSampling(hold="epoch"), "hold must be"),  # type: ignore[arg-type]
        (lambda: CAGrad(radius=1), "radius must be"),
        (lambda: SmoothTchebycheff(smoothing=0), "smoothing must be positive"),
        (lambda: SmoothTchebycheff(preference=[1.0, -1.0]), "preference must be non-negative"),
        (lambda: AdaptiveSwitch(patience=0), "patience must be at least 1"),
        (lambda: AdaptiveSwitch(imbalance=0.5), "imbalance must be at least 1"),
        (lambda: AdaptiveSwitch(tolerance=-1), "tolerance must be at least 0"),
        (lambda: AdaptiveSwitch(aligned=2), "aligned must be a cosine"),
        (lambda: AdaptiveSwitch(order="pcp"), "order must be"),  # type: ignore[arg-type]
    ],
)
def test_bad_settings_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: CAGrad(radius="wide"), "radius must be a number"),  # type: ignore[arg-type]
        (lambda: SmoothTchebycheff(ideal="low"), "ideal must be numbers"),  # type: ignore[arg-type]
    ],
)
def test_settings_of_another_kind_are_refused(make, message):
    with pytest.raises(TypeError, match=message):
        make()


@pytest.mark.parametrize("name", ["preference", "ideal"])
@pytest.mark.parametrize("given", [[0.5, 0.5], [1.0], torch.ones(2, 2), torch.tensor(1.0)], ids=str)
def test_tchebycheff_has_one_number_for_each_loss(name, given):
    shape = list(torch.as_tensor(given).shape)
    message = rf"{name} must have one entry for each of the 3 losses, got shape {shape}; give 3"
    with pytest.raises(ValueError, match=message.replace("[", r"\[")):
        SmoothTchebycheff(**{name: given}).decide(StepView.of(torch.eye(3), torch.ones(3)))


@pytest.mark.parametrize("wrong", [-1e-9, torch.nan, torch.inf])
def test_weights_that_no_direction_can_be_made_of_are_refused(wrong):
    with pytest.raises(ValueError, match="weights that are finite and not negative, got"):
        check_weights(torch.tensor([1.0, wrong]), EqualWeights())
    check_weights(torch.tensor([1.0, 0.0]), EqualWeights())


def test_a_view_without_a_history_is_the_first_step_of_windows_of_one():
    view = StepView.of(torch.eye(2), torch.ones(3, 2))
    assert (view.step, view.history.window, view.history.members) == (0, 1, (3,))
    assert view.seeds.shape == (3,)
