"""Promises of a drop-in: whatever a training loop does with an ordinary optimizer still works."""

import copy
import warnings

import pytest
import torch
from tests.optimizer.loops import losses, sgd
from torch import nn

from apfex.objectives import FairnessLoss
from apfex.optimizer import APFEx
from apfex.strategies import (
    MGDA,
    AdaptiveSwitch,
    AdaptiveWeighting,
    ConeProjection,
    Decision,
    EqualWeights,
    SetSampling,
)


def test_losses_that_stand_still_show_no_improvement():
    """The first window's scale grows while it is measured; its mean must not pretend to fall."""
    w = torch.ones(2, requires_grad=True)
    optimizer = APFEx(torch.optim.SGD([w], lr=0.0), AdaptiveWeighting(), window=4, trace=True)
    for step in range(12):
        value = (step % 4 + 1) / 10
        optimizer.backward([w.sum() * value / 2, w.sum() * 0.2])
        optimizer.step()
    assert optimizer.history is not None
    assert optimizer.history.losses[:, 0].tolist() == pytest.approx([0.625] * 3)
    assert optimizer.history.weights[-1].tolist() == pytest.approx([0.5, 0.5])
    frame = optimizer.history.to_frame()
    assert frame["loss0"].tolist() == pytest.approx([0.25, 0.5, 0.75, 1.0] * 3)


def test_parameters_may_be_unfrozen(batch):
    x, y, groups = batch
    model = nn.Sequential(nn.Linear(3, 6), nn.Tanh(), nn.Linear(6, 1))
    model[0].requires_grad_(False)
    optimizer = sgd(model, SetSampling())
    for step in range(4):
        if step == 2:
            model[0].requires_grad_(True)
        optimizer.backward(losses(model(x), y, groups))
        optimizer.step()
    assert all(p.isfinite().all() for p in model.parameters())


@pytest.mark.parametrize("strategy", [EqualWeights(), ConeProjection()], ids=str)
def test_parameters_that_no_loss_uses_are_left_alone(batch, strategy):
    x, y, groups = batch
    used, unused = nn.Linear(3, 1), nn.Linear(3, 1)
    model = nn.ModuleList([used, unused])
    optimizer = APFEx(torch.optim.AdamW(model.parameters(), lr=0.1, weight_decay=0.5), strategy)
    before = unused.weight.clone()
    for _ in range(3):
        optimizer.backward(losses(used(x), y, groups))
        assert unused.weight.grad is None
        optimizer.step()
    assert torch.equal(unused.weight, before)


def test_sparse_embeddings(batch):
    _, y, groups = batch
    rows = torch.arange(64) % 7
    model = nn.Embedding(7, 1, sparse=True)
    optimizer = APFEx(torch.optim.SparseAdam(model.parameters()), AdaptiveWeighting())
    before = model.weight.detach().clone()
    optimizer.backward(losses(model(rows), y, groups))
    optimizer.step()
    assert not torch.equal(model.weight, before)
    needy = APFEx(torch.optim.SparseAdam(model.parameters()), ConeProjection())
    values = losses(model(rows), y, groups)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(ValueError, match="sparse gradients"):
            needy.backward(values)


def test_outputs_may_retain_their_gradient(batch):
    x, y, groups = batch
    model = nn.Linear(3, 1)
    scores = model(x)
    scores.retain_grad()
    sgd(model, ConeProjection()).backward(losses(scores, y, groups), outputs=scores)
    assert model.weight.grad is not None
    assert scores.grad is None or scores.grad.isfinite().all()


def test_recurrent_layers_and_low_precision(batch):
    x, y, groups = batch

    class Recurrent(nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm, self.head = nn.LSTM(1, 4, batch_first=True), nn.Linear(4, 1)

        def forward(self, x):
            return self.head(self.lstm(x.unsqueeze(-1))[0][:, -1])

    for model, inputs in ((Recurrent(), x), (nn.Linear(3, 1).bfloat16(), x.bfloat16())):
        optimizer = sgd(model, ConeProjection())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch tells that its batched LSTM is slow
            for _ in range(3):
                optimizer.backward(losses(model(inputs), y, groups))
                optimizer.step()
        assert all(p.isfinite().all() for p in model.parameters())


def test_half_precision_gradients_do_not_overflow_in_the_gramian():
    w = torch.ones(4, dtype=torch.float16, requires_grad=True)
    optimizer = APFEx(torch.optim.SGD([w], lr=1e-6), MGDA(), scales="none")
    optimizer.backward([(400 * w).sum(), (w * 300).sum()])
    assert w.grad is not None
    assert w.grad.isfinite().all()


def test_the_history_names_the_strategy_and_shows_the_gradients(batch):
    x, y, groups = batch
    model = nn.Linear(3, 1)
    for strategy, names in ((AdaptiveSwitch(), {"PCP", "AW", "PSS"}), (MGDA(), {"MGDA"})):
        optimizer = sgd(model, strategy, window=2)
        for _ in range(8):
            optimizer.backward(losses(model(x), y, groups))
            optimizer.step()
        assert optimizer.history is not None
        frame = optimizer.history.to_frame()
        assert set(frame["strategy"]) <= names
        last = frame.iloc[-1]
        assert -1 <= last["alignment"] <= 1
        assert last["norm0"] > 0
        assert last["omega"] >= 0


def test_fairness_under_autocast_is_that_of_full_precision():
    torch.manual_seed(0)
    groups = torch.arange(8192) % 2
    scores = torch.randn(8192) + groups
    y = torch.arange(8192) // 2 % 2
    loss = FairnessLoss("dp", task_weight=0.0)
    exact = loss(scores, y, groups).item()
    assert loss(scores.bfloat16(), y, groups).item() == pytest.approx(exact, abs=0.01)


@pytest.mark.parametrize("scaler", [None, torch.amp.GradScaler("cpu", init_scale=1024.0)])
def test_set_sampling_blends_with_the_last_direction(scaler):
    """d = blend d~ + (1 - blend) d_last, as it arrives in .grad."""
    w = torch.zeros(3, dtype=torch.float64, requires_grad=True)
    slopes = torch.tensor([[1.0, 0.0, 2.0], [0.0, 3.0, 1.0]], dtype=torch.float64)
    strategy = SetSampling(blend=0.25, hold="step")
    optimizer = APFEx(torch.optim.SGD([w], lr=0.0), strategy, scales="none", trace=True)
    last = None
    for _ in range(4):
        optimizer.backward((slopes @ w).unbind(), scaler=scaler)
        assert w.grad is not None
        written = w.grad.clone()
        torch.nn.utils.clip_grad_norm_([w], 1e-3)  # of no concern to the next direction
        if scaler is None:
            optimizer.step()
        else:
            scaler.step(optimizer)
            scaler.update()
        assert optimizer.history is not None
        frame = optimizer.history.to_frame().iloc[-1]
        fresh = torch.tensor([frame["weight0"], frame["weight1"]]) @ slopes
        expected = fresh if last is None else 0.25 * fresh + 0.75 * last
        torch.testing.assert_close(written / (1.0 if scaler is None else 1024.0), expected)
        last = expected


def test_a_traced_history_has_one_column_per_quantity(batch):
    x, y, groups = batch
    model = nn.Linear(3, 1)
    optimizer = sgd(model, window=2, trace=True)
    for _ in range(5):
        optimizer.backward(losses(model(x), y, groups))
        optimizer.step()
    assert optimizer.history is not None
    columns = list(optimizer.history.to_frame().columns)
    objectives = [f"{stem}{k}" for stem in ("loss", "weight", "norm") for k in range(3)]
    single = ["direction_norm", "choice", "alignment", "harmful", "omega", "omega_active", "slack"]
    assert sorted(columns) == sorted(["step", "member", "strategy", *objectives, *single])


def test_a_state_loaded_into_the_wrapped_optimizer_is_shared(batch):
    x, y, groups = batch
    model = nn.Linear(3, 1)
    inner = torch.optim.Adam(model.parameters(), lr=0.1)
    optimizer = APFEx(inner)
    for _ in range(2):
        optimizer.backward(losses(model(x), y, groups))
        optimizer.step()
    inner.load_state_dict(copy.deepcopy(inner.state_dict()))
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5)
    optimizer.backward(losses(model(x), y, groups))
    optimizer.step()
    scheduler.step()
    assert inner.param_groups[0]["lr"] == 0.05
    assert optimizer.state is inner.state
    assert optimizer.history is not None
    assert optimizer.history.step == 3


def test_what_a_strategy_does_with_its_weights_later_is_not_in_the_history(batch):
    class Moving:
        def __init__(self):
            self.weights = torch.tensor([0.5, 0.25, 0.25], dtype=torch.float64)

        def decide(self, view):  # noqa: ARG002
            self.weights += torch.tensor([0.25, 0.0, -0.05], dtype=torch.float64)
            return Decision(self.weights)

    x, y, groups = batch
    model = nn.Linear(3, 1)
    optimizer = APFEx(torch.optim.SGD(model.parameters(), lr=0.1), Moving(), trace=True)
    for _ in range(3):
        optimizer.backward(losses(model(x), y, groups))
        optimizer.step()
    assert optimizer.history is not None
    assert list(optimizer.history.to_frame()["weight0"]) == [0.75, 1.0, 1.25]


class Apart(nn.Module):
    """Distances from prototypes, which torch differentiates wrongly in a batch."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.body, self.prototypes = nn.Linear(3, 2), nn.Parameter(torch.randn(4, 2))

    def forward(self, x):
        return 1.5 - torch.cdist(self.body(x), self.prototypes).mean(1)


def test_layers_that_torch_batches_wrongly_are_taken_one_by_one(batch):
    x, y, groups = (part[:20] for part in batch)  # many rows are multiplied, which is right
    found = []
    for known in (None, False):
        model = Apart()
        optimizer = APFEx(torch.optim.SGD(model.parameters(), lr=0.1), ConeProjection())
        optimizer._batched = known
        for step in range(3):
            values = losses(model(x), y, groups)
            if known is None and step == 0:
                with pytest.warns(UserWarning, match="one by one.*other gradients in one batched"):
                    optimizer.backward(values)
            else:
                optimizer.backward(values)
            optimizer.step()
        found.append([parameter.detach() for parameter in model.parameters()])
    assert all(map(torch.equal, *found))


@pytest.mark.parametrize("size", [1e-24, 1e22])
def test_losses_of_any_size_are_weighed_alike(batch, size):
    """Squares of such gradients are beyond float32."""
    x, y, groups = batch
    weights = []
    for factor in (1.0, size):
        torch.manual_seed(0)
        model = nn.Linear(3, 1)
        inner = torch.optim.SGD(model.parameters(), lr=0.1)
        optimizer = APFEx(inner, ConeProjection(), scales="none", trace=True)
        optimizer.backward([factor * loss for loss in losses(model(x), y, groups)])
        optimizer.step()
        assert optimizer.history is not None
        weights.append(optimizer.history.to_frame()[["weight0", "weight1", "weight2"]].to_numpy())
    assert abs(weights[0] - weights[1]).max() < 1e-4
    assert (weights[0] > 0.01).sum() >= 2
