import numpy as np
import pytest
import torch
from scipy.optimize import nnls

from apfex.solvers import nonnegative_qp


def problems(count: int, m: int, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor, list]:
    """Least squares problems |Fu - t|, and the same as quadratic programmes."""
    rng = np.random.default_rng(seed)
    factors = rng.normal(size=(count, m + 2, m))
    targets = rng.normal(size=(count, m + 2))
    matrices = np.einsum("bij,bik->bjk", factors, factors)
    linears = np.einsum("bij,bi->bj", factors, targets)
    pairs = list(zip(factors, targets, strict=True))
    return torch.from_numpy(matrices), torch.from_numpy(linears), pairs


@pytest.mark.parametrize("count", [1, 40])  # one by one, and as a batch
@pytest.mark.parametrize("m", [1, 2, 5, 12])
def test_scipy_agrees(count, m):
    matrices, linears, pairs = problems(count, m)
    solutions = nonnegative_qp(matrices, linears)
    for solution, (factor, target) in zip(solutions.numpy(), pairs, strict=True):
        np.testing.assert_allclose(solution, nnls(factor, target)[0], atol=1e-9)


@pytest.mark.parametrize("count", [1, 40])
def test_rank_deficient_problems_meet_their_kkt_conditions(count):
    rng = np.random.default_rng(1)
    factor = torch.from_numpy(rng.normal(size=(count, 3, 7)))
    matrix = factor.mT @ factor
    linear = (factor.mT @ torch.from_numpy(rng.normal(size=(count, 3, 1)))).squeeze(-1)
    u = nonnegative_qp(matrix, linear)
    slope = (matrix @ u.unsqueeze(-1)).squeeze(-1) - linear
    assert (u >= 0).all()
    assert (slope >= -1e-9).all()
    assert ((u * slope).abs() <= 1e-9).all()


def test_one_matrix_serves_many_right_hand_sides():
    matrix = torch.eye(3, dtype=torch.float64)
    linear = torch.tensor([[1.0, -1.0, 2.0], [-1.0, 3.0, -2.0]], dtype=torch.float64)
    assert torch.equal(nonnegative_qp(matrix, linear), linear.clamp(min=0))


def test_integers_and_a_batch_without_problems_are_solved():
    assert nonnegative_qp(torch.eye(2).int(), torch.tensor([2, -1])).tolist() == [2.0, 0.0]
    assert nonnegative_qp(torch.zeros(0, 3, 3), torch.zeros(0, 3)).shape == (0, 3)


@pytest.mark.parametrize(
    ("matrix", "linear", "message"),
    [
        ((3,), (3,), r"matrix must have shape \[..., m, m\], got \[3\]"),
        ((2, 3), (3,), r"matrix must have shape \[..., m, m\], got \[2, 3\]"),
        ((3, 3), (1,), r"linear must have shape \[..., m\] with the m = 3 of matrix, got \[1\]"),
        ((3, 3), (), r"linear must have shape .* got \[\]"),
    ],
)
def test_wrong_shapes_are_refused(matrix, linear, message):
    with pytest.raises(ValueError, match=message):
        nonnegative_qp(torch.ones(matrix), torch.ones(linear))
