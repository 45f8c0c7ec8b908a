"""Promises of a drop-in: whatever a training loop does with an ordinary optimizer still works."""

import copy
import pickle
import warnings

import pytest
import torch
from tests.optimizer.test_apfex import losses, same
from torch import nn

from apfex.constraints import Constraint
from apfex.objectives import CrossEntropy, FairnessLoss
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


def sgd(model: nn.Module, strategy=None, **more) -> APFEx:
    return APFEx(torch.optim.SGD(model.parameters(), lr=0.1), strategy, **more)


@pytest.fixture
def batch():
    torch.manual_seed(0)
    x = torch.randn(64, 3)
    return x, (x[:, 0] > 0).long(), torch.arange(64) % 4


def test_another_result_of_the_same_layer_is_a_path_past_the_outputs(batch):
    x, _, _ = batch
    model = nn.Linear(3, 2)
    first, second = model(x).chunk(2, 1)
    with pytest.raises(ValueError, match=r"losses\[1\] must depend on .*outputs"):
        sgd(model).backward([first.square().mean(), second.square().mean()], outputs=first)


@pytest.mark.parametrize("outputs", [True, False])
def test_lengths_of_gradients_do_not_depend_on_the_size_of_the_batch(batch, outputs):
    norms = []
    for copies in (1, 50):
        x, y, groups = (part.repeat_interleave(copies, 0) for part in batch)
        torch.manual_seed(1)
        model = nn.Linear(3, 1)
        optimizer = sgd(model, MGDA(), scales="none", window=1)
        scores = model(x)
        optimizer.backward(losses(scores, y, groups), outputs=scores if outputs else None)
        optimizer.step()
        assert optimizer.history is not None
        norms.append(optimizer.history.largest_norms)
    torch.testing.assert_close(norms[0], norms[1], atol=1e-6, rtol=1e-4)


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


def test_a_foreign_loss_is_refused_at_any_step_and_in_any_form(batch):
    x, y, groups = batch
    model = nn.Linear(3, 1)
    optimizer = sgd(model, AdaptiveWeighting(), window=100)
    foreign = torch.ones((), requires_grad=True)
    for _ in range(2):
        optimizer.backward(losses(model(x), y, groups))
        optimizer.step()
    good = losses(model(x), y, groups)
    for joined in (
        [*good[:2], foreign * 2],
        torch.stack([*good[:2], foreign * 2]),
        torch.cat([good[0][None], good[1][None], foreign[None] * 2]),
    ):
        with pytest.raises(ValueError, match=r"losses\[2\] must depend on the parameters"):
            optimizer.backward(joined)


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


def bad_constraints(model, x):
    soft = model(x).mean()
    other = torch.ones((), requires_grad=True) * 2
    return {
        "detached": ([Constraint(soft.detach(), -9.0)], ValueError, r"constraints\[0\]\.soft must"),
        "elsewhere": (
            [Constraint(soft, -9.0), Constraint(other, 0.0)],
            ValueError,
            r"constraints\[1\]",
        ),
        "no constraint": ([0.5], TypeError, r"constraints\[0\] must be a Constraint, got float"),
    }


@pytest.mark.parametrize("kind", ["detached", "elsewhere", "no constraint"])
def test_bad_constraints_are_named(batch, kind):
    x, y, groups = batch
    model = nn.Linear(3, 1)
    optimizer = sgd(model)
    constraints, error, message = bad_constraints(model, x)[kind]
    with pytest.raises(error, match=message):
        optimizer.backward(losses(model(x), y, groups), constraints=constraints)
    assert optimizer.history is None


def test_a_single_constraint_needs_no_list(batch):
    x, y, _ = batch
    model = nn.Linear(3, 1)
    scores = model(x)
    sgd(model, EqualWeights()).backward(
        [CrossEntropy()(scores, y)], constraints=Constraint(scores.mean(), -9.0)
    )
    assert model.weight.grad is not None


def broken_histories(history):
    """Histories that have lost something, and its name."""
    yield [], "closed"
    for key in history:
        yield {k: v for k, v in history.items() if k != key}, key
    for part in ("sums", "closed"):
        for key in history[part]:
            rest = {k: v for k, v in history[part].items() if k != key}
            yield {**history, part: rest}, f"{part}.{key}"


def test_a_bad_checkpoint_changes_nothing(batch):
    x, y, groups = batch
    model = nn.Linear(3, 1)
    optimizer = sgd(model, window=2)
    for _ in range(3):
        optimizer.backward(losses(model(x), y, groups))
        optimizer.step()
    state = optimizer.state_dict()
    other = sgd(nn.Linear(3, 1), window=100)
    before = copy.deepcopy(other.state_dict())
    for key in state:
        with pytest.raises(ValueError, match="state_dict must come from"):
            other.load_state_dict({k: v for k, v in state.items() if k != key})
    with pytest.raises(ValueError, match="as many parameters"):
        other.load_state_dict({**state, "last_direction": []})
    for broken, lost in broken_histories(state["history"]):
        with pytest.raises(
            ValueError, match=f"history must come from .*, got one without .*{lost}"
        ):
            other.load_state_dict({**state, "history": broken})
    assert same(other.state_dict(), before)
    other.load_state_dict(state)
    assert other.window == 2


@pytest.mark.parametrize("clone", [copy.deepcopy, lambda o: pickle.loads(pickle.dumps(o))])
def test_copies_and_pickles_continue_the_same(batch, clone):
    x, y, groups = batch
    model = nn.Linear(3, 1)
    optimizer = sgd(model, SetSampling(), window=2)
    torch.optim.lr_scheduler.StepLR(optimizer, 5)  # patches step
    optimizer.backward(losses(model(x), y, groups))
    optimizer.step()
    model_twin, twin = clone((model, optimizer))
    for m, o in ((model, optimizer), (model_twin, twin)):
        o.backward(losses(m(x), y, groups))
        o.step()
    assert torch.equal(model.weight, model_twin.weight)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"strategy": "mgda"}, TypeError, r"strategy must be a strategy as AdaptiveSwitch\(\)"),
        ({"strategy": EqualWeights}, TypeError, "strategy must be a strategy"),
        ({"window": 2.5}, ValueError, "window must be a whole number"),
    ],
)
def test_bad_settings(arguments, error, message):
    with pytest.raises(error, match=message):
        sgd(nn.Linear(2, 1), **arguments)


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


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize(
    "strategy", [AdaptiveSwitch(), SetSampling(), AdaptiveWeighting()], ids=str
)
@pytest.mark.parametrize("where", ["cpu", "cuda"])
def test_a_checkpoint_moves_between_devices(batch, tmp_path, strategy, where):
    x, y, groups = (part.cuda() for part in batch)
    model = nn.Linear(3, 1).cuda()
    optimizer = sgd(model, strategy, window=2)
    for _ in range(5):
        optimizer.backward(losses(model(x), y, groups))
        optimizer.step()
    torch.save(optimizer.state_dict(), tmp_path / "state.pt")
    twin = copy.deepcopy(model)
    other = sgd(twin, strategy, window=2)
    other.load_state_dict(torch.load(tmp_path / "state.pt", map_location=where))
    for m, o in ((model, optimizer), (twin, other)):
        o.backward(losses(m(x), y, groups))
        o.step()
    torch.testing.assert_close(model.weight, twin.weight)


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


def test_a_direction_that_rises_at_the_outputs_is_not_held_against_the_space():
    w = torch.tensor([1.0], requires_grad=True)
    optimizer = APFEx(torch.optim.SGD([w], lr=0.1), FirstAlone(), window=1, scales="none")
    outputs = torch.cat([w, w])
    optimizer.backward([outputs[0] * 1.0, outputs[1] * 0.1 - outputs[0]], outputs=outputs)
    optimizer.step()
    assert optimizer.history is not None
    assert optimizer.history.harmful_share == 0


class FirstAlone:
    """Looks at the Gramian, and then follows the first objective alone."""

    def decide(self, view):
        assert view.gramian[0, 1] < 0
        return Decision(torch.tensor([1.0, 0.0], dtype=torch.float64))


def test_lengths_start_anew_when_the_space_changes(batch):
    x, y, groups = batch
    model = nn.Linear(3, 1)
    optimizer = sgd(model, MGDA(), window=1, scales="none")
    for outputs in (True, False):
        scores = model(x)
        values = losses(scores, y, groups)
        rows = [torch.autograd.grad(v, list(model.parameters()), retain_graph=True) for v in values]
        optimizer.backward(values, outputs=scores if outputs else None)
        optimizer.step()
    norms = [torch.cat([g.flatten() for g in row]).norm().item() for row in rows]
    assert optimizer.history is not None
    assert optimizer.history.largest_norms.tolist() == pytest.approx(norms, rel=1e-4)


def test_parameters_that_only_a_constraint_uses_follow_it(batch):
    x, y, _ = batch
    trunk, first, second = nn.Linear(3, 4), nn.Linear(4, 1), nn.Linear(4, 1)
    model = nn.ModuleList([trunk, first, second])
    optimizer = sgd(model, EqualWeights())
    hidden = trunk(x)
    soft = second(hidden).square().mean() + 1
    optimizer.backward([CrossEntropy()(first(hidden), y)], constraints=Constraint(soft, 0.1))
    assert second.weight.grad is not None
    assert (second.weight.grad != 0).any()


def test_a_foreign_loss_is_found_behind_a_division(batch):
    x, y, groups = batch
    model = nn.Linear(3, 1)
    good = losses(model(x), y, groups)
    foreign = torch.ones((), requires_grad=True) * 2
    with pytest.raises(ValueError, match=r"losses\[2\] must depend on the parameters"):
        sgd(model).backward(torch.stack([*good[:2], foreign]) / 4)


class Answers:
    def __init__(self, weights):
        self.weights = weights

    def decide(self, view):  # noqa: ARG002
        return Decision(torch.tensor(self.weights))


@pytest.mark.parametrize("weights", [[1.0], [1.0, float("nan"), 0.0]])
def test_a_strategy_that_answers_nonsense_is_named(batch, weights):
    x, y, groups = batch
    model = nn.Linear(3, 1)
    with pytest.raises(ValueError, match=r"strategy must answer with 3 finite weights.*Answers"):
        sgd(model, Answers(weights)).backward(losses(model(x), y, groups))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"losses": None}, "losses must be a list of scalars"),
        ({"outputs": [torch.ones(2)]}, "outputs must be a tensor, got list"),
    ],
)
def test_arguments_of_another_kind_are_named(batch, arguments, message):
    x, y, groups = batch
    model = nn.Linear(3, 1)
    given = {"losses": losses(model(x), y, groups), **arguments}
    with pytest.raises(TypeError, match=message):
        sgd(model).backward(**given)


def test_lbfgs_is_refused_at_once():
    with pytest.raises(TypeError, match="optimizer must take one gradient per step, got LBFGS"):
        APFEx(torch.optim.LBFGS([torch.ones(2, requires_grad=True)]))


def test_a_checkpoint_with_a_broken_history_changes_nothing(batch):
    x, y, groups = batch
    model = nn.Linear(3, 1)
    optimizer = sgd(model, window=2)
    optimizer.backward(losses(model(x), y, groups))
    optimizer.step()
    state = {**optimizer.state_dict(), "history": {"n_objectives": 3}}
    state["inner"]["param_groups"][0]["lr"] = 7.0
    other = sgd(nn.Linear(3, 1))
    with pytest.raises(ValueError, match="history must come from"):
        other.load_state_dict(state)
    assert other.param_groups[0]["lr"] == 0.1
    assert other.history is None


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
