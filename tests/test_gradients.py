from contextlib import nullcontext

import pytest
import torch
from torch import nn

from apfex.gradients import Jacobian, _check_batch, _largest, empirical_scales, jacobian
from apfex.objectives import CrossEntropy, FairnessLoss, SquaredError


def make_model(kind: str) -> tuple[nn.Module, torch.Tensor]:
    torch.manual_seed(0)
    models = {
        "mlp": (nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 1)), torch.randn(20, 5)),
        "dropout": (
            nn.Sequential(nn.Linear(5, 8), nn.Dropout(), nn.Linear(8, 1)),
            torch.randn(20, 5),
        ),
        "batch norm": (
            nn.Sequential(nn.Linear(5, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 1)),
            torch.randn(20, 5),
        ),
        "convolution": (
            nn.Sequential(nn.Conv2d(1, 3, 3), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(27, 1)),
            torch.randn(20, 1, 8, 8),
        ),
        "embedding": (
            nn.Sequential(nn.Embedding(7, 4), nn.Flatten(), nn.Linear(12, 1)),
            torch.randint(0, 7, (20, 3)),
        ),
        "layer norm": (nn.Sequential(nn.LayerNorm(5), nn.Linear(5, 1)), torch.randn(20, 5)),
    }
    model, x = models[kind]
    return model.double(), x.double() if x.is_floating_point() else x


MODELS = ["mlp", "dropout", "batch norm", "convolution", "embedding", "layer norm"]


def losses_of(scores: torch.Tensor) -> torch.Tensor:
    y, groups = torch.arange(20) % 2, torch.arange(20) // 2 % 4
    scores = scores.squeeze(1)
    return torch.stack(
        [
            CrossEntropy()(scores, y),
            FairnessLoss("dp")(scores, y, groups),
            FairnessLoss("tpr", aggregate="max")(scores, y, groups),
        ]
    )


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("batched", [True, False])
def test_jacobian_is_exact_for_every_kind_of_layer(kind, batched):
    model, x = make_model(kind)
    parameters = list(model.parameters())
    losses = losses_of(model(x))
    rows = [torch.autograd.grad(loss, parameters, retain_graph=True) for loss in losses]
    blocks = jacobian(losses, parameters, batched=batched).blocks
    for block, column in zip(blocks, zip(*rows, strict=True), strict=True):
        torch.testing.assert_close(block, torch.stack(column))


def test_gramian_and_combination():
    blocks = (torch.randn(3, 2, 4), torch.randn(3, 5))
    rows = Jacobian(blocks)
    flat = torch.cat([block.flatten(1) for block in blocks], 1)
    torch.testing.assert_close(rows.gramian(), flat @ flat.T)
    weights = torch.rand(3)
    combined = torch.cat([part.flatten() for part in rows.combine(weights)])
    torch.testing.assert_close(combined, weights @ flat)


def test_an_unused_parameter_has_a_zero_row():
    used, unused = torch.ones(2, requires_grad=True), torch.ones(3, requires_grad=True)
    rows = jacobian(torch.stack([used.sum(), used.prod()]), [used, unused])
    assert torch.equal(rows.blocks[1], torch.zeros(2, 3))


def test_through_the_outputs_as_directly():
    """Chain rule: by the outputs, then pulled back, is the parameter-space Jacobian."""
    model, x = make_model("mlp")
    parameters = list(model.parameters())
    scores = model(x)
    direct = jacobian(losses_of(scores), parameters, retain_graph=True)
    at_outputs = jacobian(losses_of(scores), [scores], retain_graph=True)
    pulled = jacobian(scores, parameters, at_outputs.blocks[0])
    for a, b in zip(direct.blocks, pulled.blocks, strict=True):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize("batched", [True, False])
def test_the_graph_is_freed_unless_kept(batched):
    w = torch.ones(2, requires_grad=True)
    losses = torch.stack([(w * w).sum(), w.exp().sum()])
    jacobian(losses, [w], batched=batched, retain_graph=True)
    jacobian(losses, [w], batched=batched)
    with pytest.raises(RuntimeError, match="second time"):
        jacobian(losses, [w], batched=batched)


@pytest.fixture
def setting():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5), nn.Linear(4, 1))
    batches = [
        (torch.randn(16, 3), torch.arange(16) % 2, torch.arange(16) // 2 % 4) for _ in range(4)
    ]
    return [CrossEntropy(), SquaredError(), FairnessLoss("dp")], model, batches


def by_hand(objectives, model, batches):
    rows = []
    for x, y, groups in batches:
        scores = model(x).detach()
        rows.append([float(loss(scores, y, groups)) for loss in objectives])
    return torch.tensor(rows, dtype=torch.float64)


def test_scales_max_over_batches_in_evaluation_mode(setting):
    objectives, model, batches = setting
    model.eval()
    expected = by_hand(*setting).amax(0)
    model.train()
    torch.testing.assert_close(empirical_scales(objectives, model, batches, floor=1e-9), expected)
    assert model.training


def test_scales_per_example_maximum_for_task_losses(setting):
    objectives, model, batches = setting
    model.eval()
    scales = empirical_scales(objectives, model, batches, "per_example_max", floor=1e-9)
    with torch.no_grad():
        rows = torch.cat(
            [
                nn.functional.binary_cross_entropy_with_logits(
                    model(x).squeeze(1), y.float(), reduction="none"
                )
                for x, y, _ in batches
            ]
        )
    assert scales[0].item() == pytest.approx(rows.max().item(), rel=1e-6)
    assert scales[2].item() == pytest.approx(by_hand(*setting)[:, 2].max().item())


def test_scales_mean_with_dropout_on_leaves_the_random_state(setting):
    objectives, model, batches = setting
    model.train()
    torch.manual_seed(3)
    expected = by_hand(*setting).mean(0)
    torch.manual_seed(3)
    state = torch.get_rng_state()
    scales = empirical_scales(objectives, model, batches, "mean", floor=1e-9)
    torch.testing.assert_close(scales, expected)
    assert torch.equal(torch.get_rng_state(), state)


def test_scales_mean_leaves_running_statistics(setting):
    objectives, _, batches = setting
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    empirical_scales(objectives, model, batches, "mean")
    assert all(torch.equal(before[name], tensor) for name, tensor in model.state_dict().items())


def test_each_objective_may_have_groups_of_its_own():
    torch.manual_seed(0)
    x, y = torch.randn(40, 3), torch.arange(40) % 2
    model, objectives = nn.Linear(3, 1), [CrossEntropy(), FairnessLoss("dp"), FairnessLoss("dp")]
    groups = [None, torch.arange(40) % 3, torch.arange(40) // 20]
    found = empirical_scales(objectives, model, [(x, y, groups)], "per_example_max")
    for place in (1, 2):
        alone = [(x, y, groups[place])]
        (expected,) = empirical_scales([objectives[place]], model, alone, "per_example_max")
        assert found[place] == expected
    assert found[1] != found[2]


def test_scales_range_and_floor(setting):
    objectives, model, batches = setting
    scales = empirical_scales(objectives, model, batches, "range")
    assert scales.tolist() == pytest.approx([0.6931, 0.25, 1.0693], abs=1e-4)
    wide = nn.Linear(3, 4)
    assert empirical_scales([CrossEntropy()], wide, batches, "range").item() == pytest.approx(
        1.3863, abs=1e-4
    )
    gap = [FairnessLoss("dp", task_weight=0.0)]
    for parameter in model.parameters():
        nn.init.zeros_(parameter)
    assert empirical_scales(gap, model, batches).item() == 0.05


def test_bad_scale_requests(setting):
    objectives, model, batches = setting
    with pytest.raises(ValueError, match="kind must be one of"):
        empirical_scales(objectives, model, batches, "median")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="batches must hold at least one batch"):
        empirical_scales(objectives, model, [])
    for floor in (-0.1, float("nan"), float("inf")):
        with pytest.raises(ValueError, match=f"floor must be at least 0 and finite, got {floor}"):
            empirical_scales(objectives, model, batches, floor=floor)


def test_scales_with_a_grouping_for_each_objective_and_bad_losses(setting):
    _, model, batches = setting
    model.eval()
    objectives = [FairnessLoss("dp", task_weight=0.0), FairnessLoss("dp", task_weight=0.0)]
    given = [(x, y, [groups, groups % 2]) for x, y, groups in batches]
    scales = empirical_scales(objectives, model, iter(given), floor=1e-9)
    alone = [
        empirical_scales(objectives[:1], model, [(x, y, g[k]) for x, y, g in given], floor=1e-9)
        for k in range(2)
    ]
    torch.testing.assert_close(scales, torch.cat(alone))
    model[0].weight.data[0, 0] = torch.nan
    with pytest.raises(ValueError, match=r"objectives\[0\] must have finite losses, got nan"):
        empirical_scales([CrossEntropy()], model, batches)


def test_gramians_keep_precision():
    """Those of half precision are added up in single, those of double in double."""
    rows = torch.randn(3, 4000, dtype=torch.float64)
    exact = rows @ rows.T
    half = Jacobian((rows.bfloat16(), rows.bfloat16())).gramian()
    assert half.dtype == torch.float32
    torch.testing.assert_close(half.double(), 2 * exact, rtol=0.02, atol=20.0)
    alone = Jacobian((rows[:, :1] * 2**-10 + 1,)).gramian()
    assert alone.dtype == torch.float64
    expected = (rows[:, :1] * 2**-10 + 1) @ (rows[:, :1] * 2**-10 + 1).T
    torch.testing.assert_close(alone, expected, rtol=1e-15, atol=0)


class Team:
    """What another worker gives, beside what this one does."""

    def __init__(self, other: float) -> None:
        self.other = other

    def gather(self, own: torch.Tensor) -> torch.Tensor:
        assert own.shape == (1,)
        return torch.stack([own, torch.tensor([self.other], dtype=own.dtype)])


@pytest.mark.parametrize(("other", "expected"), [(0.5, 3.0), (7.0, 7.0), (-torch.inf, 3.0)])
def test_the_largest_row_is_that_of_any_worker(monkeypatch, other, expected):
    monkeypatch.setattr("apfex.gradients.workers", lambda: Team(other))
    assert _largest(torch.tensor([1.0, 3.0, 2.0])) == expected


def test_a_worker_without_rows_has_no_say(monkeypatch):
    monkeypatch.setattr("apfex.gradients.workers", lambda: Team(2.0))
    assert _largest(torch.zeros(0)) == 2.0


def test_what_is_batched_wrongly_is_refused():
    torch.manual_seed(0)
    a, b = torch.randn(6, 5, requires_grad=True), torch.randn(3, 5, requires_grad=True)
    distances = torch.cdist(a, b)
    values = torch.stack([distances.sum(), 1e-3 * distances.square().mean(), a.sum()])
    with pytest.raises(RuntimeError, match=r"other gradients in one batched pass.*batched=False"):
        jacobian(values, [a, b], retain_graph=True)
    rows = jacobian(values, [a, b], batched=False)
    by_hand = (a.detach()[:, None] - b.detach()) / distances.detach()[..., None]
    assert torch.allclose(rows.blocks[0][0], by_hand.sum(1), atol=1e-5)


def test_rows_of_rounding_alone_are_no_reason_to_refuse():
    torch.manual_seed(0)
    weight = torch.randn(5, 4, requires_grad=True)
    unit = torch.nn.functional.normalize(torch.randn(6, 5) @ weight, dim=1)
    values = torch.stack([unit.sum(), unit.square().sum()])  # the second is a constant
    rows = jacobian(values, [weight]).blocks[0].flatten(1).norm(dim=1)
    assert rows[1] < 1e-5 * rows[0]


@pytest.mark.parametrize("factor", [1e-25, 1e25])
def test_a_gramian_of_very_short_or_long_gradients(factor):
    w = torch.tensor([1.0, 2.0], requires_grad=True)
    rows = jacobian(factor * torch.stack([w.sum(), 3 * w[0]]), [w])
    expected = factor**2 * torch.tensor([[2.0, 3.0], [3.0, 9.0]], dtype=torch.float64)
    assert torch.allclose(rows.gramian(), expected, rtol=1e-5, atol=0)


def test_a_gramian_of_zeros_stays_in_single_precision():
    w = torch.tensor([1.0, 2.0], requires_grad=True)
    gramian = jacobian(torch.stack([0 * w.sum(), w.sum()]), [w]).gramian()
    assert gramian.dtype == torch.float32
    assert gramian.tolist() == [[0.0, 0.0], [0.0, 2.0]]


def test_short_rows_that_are_batched_wrongly_are_refused_too():
    torch.manual_seed(0)
    a, b = torch.randn(6, 5, requires_grad=True), torch.randn(3, 5, requires_grad=True)
    distances = torch.cdist(a, b)
    long, short = 100 * (a.sum() + b.sum()), 1e-2 * distances.sum()
    with pytest.raises(RuntimeError, match="other gradients in one batched pass"):
        jacobian(torch.stack([long, short]), [a, b], retain_graph=True)


def test_gradients_of_zero_are_no_reason_to_refuse():
    w = torch.tensor([1.0, 2.0], requires_grad=True)
    assert not jacobian(torch.stack([0 * w.sum(), 0 * w[0]]), [w]).blocks[0].any()


@pytest.mark.parametrize(("dtype", "is_refused"), [(torch.float32, True), (torch.bfloat16, False)])
def test_half_precision_may_differ_by_more(dtype, is_refused):
    rows = Jacobian((torch.eye(2, dtype=dtype),))
    alone = [torch.tensor([0.8, 1.2], dtype=dtype)]
    with pytest.raises(RuntimeError) if is_refused else nullcontext():
        _check_batch(rows, torch.ones(2, dtype=torch.float64), alone)
    _check_batch(rows, torch.ones(2, dtype=torch.float64), [torch.ones(2, dtype=dtype)])


def test_a_short_gradient_by_one_of_several_tensors_counts():
    v, w = (torch.ones(2, requires_grad=True) for _ in range(2))
    gramian = jacobian(torch.stack([1e-25 * v.sum(), w.sum()]), [w, v]).gramian()
    assert float(gramian[0, 0]) == pytest.approx(2e-50, rel=1e-3, abs=0)
