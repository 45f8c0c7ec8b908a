"""Where gradients are compared: at the outputs, or in parameter space."""

import pytest
import torch
from tests.optimizer.loops import losses, sgd
from torch import nn

from apfex.objectives import CrossEntropy, FairnessLoss, Objectives
from apfex.optimizer import APFEx
from apfex.strategies import (
    MGDA,
    ConeProjection,
    Decision,
    EqualWeights,
    StepView,
    UPGrad,
)


@pytest.mark.parametrize("strategy", [ConeProjection(), MGDA(), UPGrad()], ids=str)
def test_both_spaces_write_what_their_gramian_says(setting, strategy):
    model, x, y, groups = setting
    parameters = list(model.parameters())
    for space in ("parameter", "prediction"):
        optimizer = APFEx(torch.optim.SGD(parameters, lr=0.1), strategy, scales="none", space=space)
        scores = model(x)
        values = torch.stack(losses(scores, y, groups))
        inputs = parameters if space == "parameter" else [scores]
        rows = [torch.autograd.grad(v, inputs, retain_graph=True) for v in values]
        flat = torch.stack([torch.cat([g.flatten() for g in row]) for row in rows]).double()
        view = StepView.of(flat @ flat.T, values.detach().double())
        weights = strategy.decide(view).weights.float()
        expected = torch.autograd.grad(values @ weights, parameters, retain_graph=True)
        optimizer.backward(values, outputs=scores)
        for parameter, gradient in zip(parameters, expected, strict=True):
            torch.testing.assert_close(parameter.grad, gradient, atol=1e-6, rtol=1e-4)
        optimizer.zero_grad()


def test_known_gradients_at_the_outputs_lead_where_a_backward_pass_does(setting):
    model, x, y, groups = setting
    objectives = Objectives([CrossEntropy(), FairnessLoss("dp"), FairnessLoss("tpr")])
    written = []
    for hooked in (False, True):
        optimizer = APFEx(torch.optim.SGD(model.parameters(), lr=0.1), ConeProjection())
        scores = model(x).squeeze(1)
        if hooked:  # somebody looks at the gradients, so that a pass is needed
            scores.register_hook(lambda gradient: gradient)
        optimizer.backward(objectives(scores, y, groups), outputs=scores)
        written.append([parameter.grad.clone() for parameter in model.parameters()])
        optimizer.zero_grad()
    torch.testing.assert_close(*written)


def test_prediction_space_falls_back_when_it_harms(setting):
    model, x, y, groups = setting
    optimizer = APFEx(torch.optim.SGD(model.parameters(), lr=0.05), MGDA(), window=1)
    share = 0.0
    for _ in range(40):
        share = 0.0 if optimizer.history is None else float(optimizer.history.harmful_share)
        scores = model(x)
        optimizer.backward(losses(scores, y, groups), outputs=scores)
        optimizer.step()
        assert optimizer.state_dict()["compared"] == (share <= 0.05)
    assert share > 0.05


def test_harm_is_measured_in_parameter_space():
    """Two outputs of one parameter: u = (1, 0) and (0, 1) agree, the parameter gradients oppose."""
    w = torch.tensor([1.0], requires_grad=True)
    optimizer = APFEx(torch.optim.SGD([w], lr=0.1), EqualWeights(), window=1, scales=[1.0, 3.0])
    outputs = torch.cat([w, -w])
    optimizer.strategy = MGDA()
    optimizer.backward([outputs[0] + 2, outputs[1] + 2], outputs=outputs)
    optimizer.step()
    assert optimizer.history is not None
    assert optimizer.history.harmful_share == 1
    outputs = torch.cat([w, -w])
    optimizer.backward([outputs[0] + 2, outputs[1] + 2], outputs=outputs)
    optimizer.step()
    assert not optimizer.state_dict()["compared"]


def test_paths_past_the_outputs_are_an_error_not_a_lost_gradient(setting):
    model, x, y, groups = setting
    optimizer = APFEx(torch.optim.Adam(model.parameters()))
    scores = model(x)
    values = losses(scores, y, groups)
    penalised = [values[0] + model[0].weight.square().sum(), *values[1:]]
    with pytest.raises(
        ValueError, match=r"losses\[0\] must depend on the parameters through outputs"
    ):
        optimizer.backward(penalised, outputs=scores)
    with pytest.raises(ValueError, match=r"losses\[0\] must depend on outputs, but it does not"):
        optimizer.backward([torch.ones((), requires_grad=True) * 2, values[1]], outputs=scores)
    with pytest.raises(ValueError, match="outputs must depend on the model's parameters"):
        optimizer.backward(values, outputs=scores.detach())
    assert optimizer.history is None
    optimizer.backward(values, outputs=scores)


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
