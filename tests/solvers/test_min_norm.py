from itertools import combinations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.generators import awkward_jacobians, gramian_of

from apfex.solvers import kkt_residual, min_norm

KINDS = list(awkward_jacobians(4))
SIZES = [2, 3, 4, 5, 6, 9, 16]


def face_enumeration(gramian: np.ndarray) -> float:
    """Smallest value over all faces, each solved by least squares: an independent oracle."""
    m, best = len(gramian), np.inf
    for size in range(1, m + 1):
        for face in map(list, combinations(range(m), size)):
            system = np.zeros((size + 1, size + 1))
            system[:size, :size] = gramian[np.ix_(face, face)]
            system[:size, size] = system[size, :size] = 1
            solution = np.linalg.lstsq(system, np.eye(size + 1)[size], rcond=None)[0][:size]
            if solution.min() >= -1e-12 and abs(solution.sum() - 1) < 1e-6:
                weights = solution.clip(0) / solution.clip(0).sum()
                best = min(best, weights @ gramian[np.ix_(face, face)] @ weights)
    return best


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("m", SIZES)
def test_kkt_conditions_hold_on_awkward_gramians(kind, m):
    for seed in range(6):
        gramian = gramian_of(awkward_jacobians(m, seed)[kind])
        weights = min_norm(gramian)
        assert kkt_residual(gramian, weights) <= 1


@pytest.mark.parametrize("m", SIZES)
def test_a_batch_of_awkward_gramians_is_solved_as_well(m):
    gramians = torch.stack([gramian_of(j) for j in awkward_jacobians(m, 3).values()])
    assert len(gramians) > 8  # past the size up to which problems are solved one by one
    assert (kkt_residual(gramians, min_norm(gramians)) <= 1).all()


@given(st.integers(2, 6), st.integers(0, 10_000))
@settings(deadline=None, max_examples=60)
def test_the_value_is_that_of_face_enumeration(m, seed):
    generator = torch.Generator().manual_seed(seed)
    jacobian = torch.randn(m, m + seed % 4, generator=generator, dtype=torch.float64)
    gramian = gramian_of(jacobian)
    weights = min_norm(gramian)
    value = (weights @ gramian @ weights).item()
    assert value == pytest.approx(face_enumeration(gramian.numpy()), rel=1e-8, abs=1e-12)


@pytest.mark.parametrize("m", [2, 3, 5, 7])
def test_leading_axes_are_independent_problems(m):
    jacobians = torch.randn(3, 4, m, 9, dtype=torch.float64)
    gramians = gramian_of(jacobians)
    weights = min_norm(gramians)
    assert weights.shape == (3, 4, m)
    for i in range(3):
        for j in range(4):
            torch.testing.assert_close(weights[i, j], min_norm(gramians[i, j]))


@pytest.mark.parametrize("m", [2, 4, 8])
def test_a_zero_gradient_takes_all_the_weight(m):
    jacobian = torch.randn(m, 10, dtype=torch.float64)
    jacobian[1] = 0
    weights = min_norm(gramian_of(jacobian))
    assert weights[1] == 1
    assert weights.sum() == 1


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
@pytest.mark.parametrize("m", [2, 3, 7])
def test_a_common_scale_changes_nothing(scale, m):
    gramian = gramian_of(torch.randn(m, 9, dtype=torch.float64))
    torch.testing.assert_close(min_norm(gramian * scale**2), min_norm(gramian))


def test_hand_checked_values():
    two = torch.tensor([[1.0, 0.0], [0.0, 3.0]], dtype=torch.float64)
    assert min_norm(two).tolist() == pytest.approx([0.75, 0.25])
    aligned = torch.tensor([[1.0, 2.0], [2.0, 4.0]], dtype=torch.float64)
    assert min_norm(aligned).tolist() == [1.0, 0.0]
    opposite = torch.tensor([[1.0, -1.0], [-1.0, 1.0]], dtype=torch.float64)
    assert min_norm(opposite).tolist() == [0.5, 0.5]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("m", [1, 2, 3, 8])
def test_dtype_and_input_are_kept(dtype, m):
    gramian = gramian_of(torch.randn(m, 12, dtype=dtype))
    before = gramian.clone()
    weights = min_norm(gramian)
    assert weights.dtype == dtype
    assert torch.equal(gramian, before)
    assert kkt_residual(gramian, weights) <= 1


@pytest.mark.parametrize("m", [1, 2, 3, 8])
def test_a_batch_without_problems_has_no_weights(m):
    weights = min_norm(torch.zeros(0, m, m))
    assert weights.shape == (0, m)
    assert kkt_residual(torch.zeros(0, m, m), weights).shape == (0,)
    assert min_norm(torch.zeros(2, 0, m, m)).shape == (2, 0, m)


@pytest.mark.parametrize("count", [1, 40])
def test_integers_are_solved_in_the_default_dtype(count):
    gramians = torch.tensor([[1, 0], [0, 3]]).expand(count, 2, 2)
    assert min_norm(gramians).tolist() == [[0.75, 0.25]] * count
    assert min_norm(gramians).dtype == torch.get_default_dtype()
    assert kkt_residual(gramians[0], torch.tensor([1, 0])) > 1


def test_weights_whose_sum_is_not_one_are_no_solution():
    gramian = torch.eye(2, dtype=torch.float64)
    best = min_norm(gramian)
    assert kkt_residual(gramian, best) <= 1
    for wrong in (0.9 * best, 1.1 * best, torch.zeros(2, dtype=torch.float64)):
        assert not kkt_residual(gramian, wrong) <= 1


@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (4, 3, 2)])
def test_what_is_no_square_matrix_is_refused(shape):
    for call in (min_norm, lambda gramian: kkt_residual(gramian, torch.ones(3))):
        with pytest.raises(ValueError, match=r"gramian must have shape \[..., m, m\], got \["):
            call(torch.ones(shape))


def test_other_shapes_are_refused():
    with pytest.raises(ValueError, match=r"weights must have .* m = 3 of gramian, got \[1\]"):
        kkt_residual(torch.eye(3), torch.ones(1))
    with pytest.raises(ValueError, match=r"at least one gradient, got \[2, 0, 0\]"):
        min_norm(torch.zeros(2, 0, 0))


def test_the_residual_can_fail():
    """A long gradient must not hide a wrong answer, as a tolerance relative to max |G| would."""
    jacobian = torch.tensor([[1e6, 0.0], [0.0, 1.0], [1.0, 1.0]], dtype=torch.float64)
    gramian = gramian_of(jacobian)
    right = min_norm(gramian)
    wrong = torch.tensor([0.0, 0.0, 1.0], dtype=torch.float64)
    assert kkt_residual(gramian, right) <= 1
    assert kkt_residual(gramian, wrong) > 1e3
    off = torch.tensor([0.5, -0.1, 0.6], dtype=torch.float64)
    assert kkt_residual(gramian, off) == torch.inf


def test_a_few_frank_wolfe_steps_are_told_apart():
    """Near stationarity an unconverged solver returns a direction that worsens an objective."""
    jacobian = awkward_jacobians(4, 1)["nearly stationary"]
    gramian = gramian_of(jacobian)
    weights = torch.full((4,), 0.25, dtype=torch.float64)
    for t in range(100):
        corner = torch.zeros(4, dtype=torch.float64)
        corner[(gramian @ weights).argmin()] = 1
        weights = weights + 2 / (t + 2) * (corner - weights)
    assert kkt_residual(gramian, weights) > 1
    assert (gramian @ weights).min() < 0
    assert (gramian @ min_norm(gramian)).min() >= -1e-18


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("m", SIZES)
def test_on_a_gpu(m):
    gramians = torch.stack([gramian_of(j) for j in awkward_jacobians(m).values()]).cuda()
    weights = min_norm(gramians)
    assert weights.device == gramians.device
    assert (kkt_residual(gramians, weights) <= 1).all()


def test_nan_is_never_certified():
    nan = torch.full((2,), torch.nan)
    assert kkt_residual(torch.eye(2), nan) == torch.inf
    assert kkt_residual(torch.full((2, 2), torch.nan), torch.tensor([0.5, 0.5])) == torch.inf
