import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from apfex.relaxations import ccr_step, identity_step, smooth_abs, smooth_max, tanh_step

reals = st.floats(-3, 3, allow_nan=False, width=32)


def slope(function, x: float) -> float:
    point = torch.tensor(x, dtype=torch.float64, requires_grad=True)
    (gradient,) = torch.autograd.grad(function(point), point)
    return gradient.item()


@pytest.mark.parametrize("step", [tanh_step, ccr_step])
def test_what_is_no_tensor_is_refused_by_name(step):
    with pytest.raises(TypeError, match="x must be a tensor, got list"):
        step([0.5, 1.0])


def test_tanh_step_has_the_printed_end_values():
    ends = tanh_step(torch.tensor([0.0, 1.0], dtype=torch.float64))
    assert ends.tolist() == pytest.approx([0.0067, 0.9933], abs=5e-5)


@pytest.mark.parametrize("step", [tanh_step, ccr_step])
@pytest.mark.parametrize("threshold", [0.2, 0.5])
def test_steps_are_one_half_at_the_threshold(step, threshold):
    assert step(torch.tensor(threshold), threshold=threshold).item() == pytest.approx(0.5)


@given(st.lists(reals, min_size=2, max_size=20))
def test_steps_rise_and_stay_between_zero_and_one(values):
    x = torch.tensor(sorted(values))
    for step in (tanh_step, ccr_step):
        y = step(x)
        assert (y.diff() >= 0).all()
        assert ((y >= 0) & (y <= 1)).all()


@given(reals.filter(lambda x: abs(x - 0.5) > 1e-2))
def test_steps_tend_to_the_indicator_off_the_threshold(x):
    point = torch.tensor(x, dtype=torch.float64)
    indicator = float(x > 0.5)
    assert tanh_step(point, steepness=1e5).item() == pytest.approx(indicator, abs=1e-6)
    assert ccr_step(point, width=1e-4).item() == indicator


@pytest.mark.parametrize("width", [0.05, 0.25, 0.5])
def test_ccr_slope_inside_at_the_corners_and_outside(width):
    inside = 1 / (2 * width)
    assert slope(lambda x: ccr_step(x, width=width), 0.5) == pytest.approx(inside)
    # Exactly representable corners: the inner subgradient is taken.
    assert slope(lambda x: ccr_step(x, 0.5, 0.25), 0.25) == pytest.approx(2.0)
    assert slope(lambda x: ccr_step(x, 0.5, 0.25), 0.75) == pytest.approx(2.0)
    assert slope(lambda x: ccr_step(x, width=width), 1.01) == 0.0


def test_ccr_takes_a_threshold_and_width_per_group():
    scores = torch.full((3, 2), 0.4)
    steps = ccr_step(scores, torch.tensor([0.4, 0.2]), torch.tensor([0.1, 0.1]))
    assert steps.tolist() == [[0.5, 1.0]] * 3


def test_identity_step_is_the_identity():
    x = torch.rand(5)
    assert torch.equal(identity_step(x), x)


@given(reals, st.floats(1e-4, 1.0))
def test_smooth_abs_stays_near_the_absolute_value(x, width):
    point = torch.tensor(x, dtype=torch.float64)
    value = smooth_abs(point, width).item()
    assert abs(x) - width / 2 - 1e-12 <= value <= abs(x)
    assert abs(slope(lambda t: smooth_abs(t, width), x)) <= 1 + 1e-12


def test_smooth_abs_is_zero_with_zero_slope_at_zero_and_near_the_square_root_form():
    assert smooth_abs(torch.tensor(0.0)).item() == 0.0
    assert slope(smooth_abs, 0.0) == 0.0
    x = torch.linspace(-0.01, 0.01, 1001, dtype=torch.float64)
    assert (smooth_abs(x) - torch.sqrt(x * x + 1e-6)).abs().max() <= 1.5e-3


@given(st.lists(reals, min_size=1, max_size=12), st.floats(1e-3, 1.0))
def test_smooth_max_is_bracketed_by_the_maximum(values, temperature):
    x = torch.tensor(values, dtype=torch.float64)
    value = smooth_max(x, temperature).item()
    top = x.max().item()
    assert top - temperature * math.log(len(values)) - 1e-9 <= value <= top + 1e-9


@given(st.lists(reals, min_size=1, max_size=6))
def test_smooth_max_leaves_out_what_where_excludes(values):
    x = torch.tensor(values, dtype=torch.float64)
    padded = torch.cat([x, torch.tensor([1e6, torch.nan], dtype=torch.float64)])
    where = torch.arange(len(padded)) < len(values)
    assert smooth_max(padded, where=where).item() == pytest.approx(smooth_max(x).item())


@pytest.mark.parametrize(("dim", "shape"), [(-1, (3, 1)), (-1, (4,)), (0, (4,)), (0, (3, 1))])
def test_smooth_max_takes_a_mask_that_broadcasts(dim, shape):
    x = torch.linspace(0, 0.1, 12, dtype=torch.float64).view(3, 4)
    where = (torch.arange(math.prod(shape)) != 1).view(shape)
    every = torch.where(where.expand(3, 4), x, torch.nan)
    kept = [row[~row.isnan()] for row in every.unbind(1 - dim % 2)]
    expected = [smooth_max(row).item() if len(row) else -math.inf for row in kept]
    assert smooth_max(x, dim=dim, where=where).tolist() == pytest.approx(expected)


@pytest.mark.parametrize(
    "relaxation",
    [
        tanh_step,
        lambda x: tanh_step(x, 0.3, 2.0),
        ccr_step,
        lambda x: ccr_step(x, torch.linspace(0.2, 0.4, 7), torch.linspace(0.3, 0.6, 7)),
        identity_step,
        smooth_abs,
        lambda x: smooth_abs(x - 0.5, 0.2),
        smooth_max,
        lambda x: smooth_max(x, 0.5),
        lambda x: smooth_max(x, 0.5, where=torch.arange(7) != 2),
    ],
)
def test_slopes_are_those_of_small_changes(relaxation):
    x = torch.tensor([0.03, 0.18, 0.31, 0.46, 0.62, 0.71, 0.97], dtype=torch.float64)
    assert torch.autograd.gradcheck(relaxation, (x.requires_grad_(),))
    single = relaxation(x.detach().float())
    torch.testing.assert_close(single.double(), relaxation(x).detach(), rtol=1e-5, atol=1e-6)


def test_defaults_are_those_of_the_documents():
    x = torch.linspace(-0.1, 1.1, 7, dtype=torch.float64)
    assert torch.equal(tanh_step(x), tanh_step(x, threshold=0.5, steepness=5.0))
    assert torch.equal(ccr_step(x), ccr_step(x, threshold=0.5, width=0.25))
    assert torch.equal(smooth_abs(x), smooth_abs(x, width=1e-3))
    assert torch.equal(smooth_max(x), smooth_max(x, temperature=0.02))


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda x: tanh_step(x, steepness=0.0), "steepness"),
        (lambda x: ccr_step(x, width=-0.1), "width"),
        (lambda x: ccr_step(x, width=torch.tensor([0.1, 0.0])), "width"),
        (lambda x: smooth_abs(x, width=0), "width"),
        (lambda x: smooth_max(x, temperature=0), "temperature"),
    ],
)
def test_non_positive_shapes_are_refused_by_name(call, name):
    with pytest.raises(ValueError, match=f"{name} must be positive, got"):
        call(torch.zeros(2))


@pytest.mark.parametrize("bad", [math.nan, math.inf, torch.tensor([0.5, math.nan])])
@pytest.mark.parametrize("step", [tanh_step, ccr_step])
def test_thresholds_are_finite(step, bad):
    with pytest.raises(ValueError, match="threshold must be finite, got"):
        step(torch.zeros(2), threshold=bad)
