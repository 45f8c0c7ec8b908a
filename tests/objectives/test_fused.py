"""One pass for several losses gives what their definitions give."""

import pytest
import torch
from tests.objectives.batches import LOSSES, N, two_groups
from torch import nn

from apfex.objectives import CrossEntropy, FairnessLoss, Objectives, known_gradients
from apfex.objectives._batch import check_batch
from apfex.objectives._fused import Step
from apfex.objectives._pairs import smooth_mean_of_few
from apfex.rates import RATES, GroupIndex

GAPS = [loss for loss in LOSSES if isinstance(loss, FairnessLoss)]
GAPS += [FairnessLoss(rate) for rate in RATES]


class MeanScore:
    """A loss of a user's own."""

    def __call__(self, scores, y, groups=None, sample_weight=None):  # noqa: ARG002
        return scores.square().mean()

    def evaluate(self, batch, index):  # noqa: ARG002
        return batch.scores.square().mean()

    def typical_scale(self, n_classes):  # noqa: ARG002
        return 1.0


def both(loss, scores, y, groups, weight):
    """Value and gradient by the fused pass, and by the definition."""
    scores = scores.clone().requires_grad_()
    checked, index = check_batch(scores, y, weight), GroupIndex.of(groups)
    values = [loss.evaluate(checked, index), loss.define(checked, index)]
    return [(value, torch.autograd.grad(value, scores)[0]) for value in values]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("k", [2, 4, 40])
@pytest.mark.parametrize("loss", [*GAPS, *LOSSES[-2:]], ids=str)
def test_one_pass_is_the_definition(loss, k, weighted, dtype, batch):
    scores, y, _, weight = batch
    groups = two_groups(loss, torch.arange(N) * 7 % (k + 1) - 1)  # -1: in no group
    fused, defined = both(loss, scores.to(dtype), y, groups, weight if weighted else None)
    assert type(fused[0].grad_fn) is not type(defined[0].grad_fn)
    for own, expected in zip(fused, defined, strict=True):
        torch.testing.assert_close(own, expected)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("place", range(4))
def test_losses_of_ones_own_may_stand_anywhere(place, seed):
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randn(N, generator=generator, dtype=torch.float64, requires_grad=True)
    y, first, second = (torch.randint(0, k, (N,), generator=generator) for k in (2, 3, 9))
    members = [CrossEntropy(), FairnessLoss("dp"), FairnessLoss("tpr")]
    groups: list[torch.Tensor | None] = [None, first, second]
    members.insert(place, MeanScore())
    groups.insert(place, None)
    together = Objectives(members)(scores, y, groups)
    single = torch.stack([loss(scores, y, g) for loss, g in zip(members, groups, strict=True)])
    torch.testing.assert_close(together, single)
    mix = torch.rand(4, generator=generator, dtype=torch.float64)
    gradients = [torch.autograd.grad(losses @ mix, scores)[0] for losses in (together, single)]
    torch.testing.assert_close(*gradients)


@pytest.mark.parametrize("loss", [FairnessLoss("ppv"), FairnessLoss("tpr", "ccr", 0.3)], ids=str)
def test_gradients_of_one_pass_are_those_of_small_changes(loss, batch):
    scores, y, groups, weight = batch
    objectives = Objectives([CrossEntropy(), loss, FairnessLoss("dp")])
    assert torch.autograd.gradcheck(
        lambda s: objectives(s, y, groups, weight), (scores.requires_grad_(),), eps=1e-7, atol=1e-5
    )


def test_known_gradients_are_those_of_a_backward_pass(batch):
    x, y, groups, _ = batch
    scores = nn.Linear(1, 1, dtype=torch.float64)(x.unsqueeze(1)).squeeze(1)
    losses = Objectives([CrossEntropy(), FairnessLoss("dp"), FairnessLoss("fpr")])(
        scores, y, groups
    )
    rows = known_gradients(losses, scores)
    assert rows is not None
    for loss, row in zip(losses, rows, strict=True):
        torch.testing.assert_close(torch.autograd.grad(loss, scores, retain_graph=True)[0], row)


def test_gradients_are_not_known_by_other_tensors_or_past_a_hook(batch):
    x, y, groups, _ = batch
    outputs = nn.Linear(1, 1, dtype=torch.float64)(x.unsqueeze(1))
    scores = outputs.squeeze(1)
    losses = Objectives([CrossEntropy(), FairnessLoss("dp")])(scores, y, groups)
    assert known_gradients(losses, outputs) is None
    assert known_gradients(losses * 2, scores) is None
    scores.register_hook(lambda gradient: 2 * gradient)
    assert known_gradients(losses, scores) is None
    kept = x.clone().requires_grad_() * 2
    losses = Objectives([CrossEntropy(), FairnessLoss("dp")])(kept, y, groups)
    assert known_gradients(losses, kept) is not None
    kept.retain_grad()
    assert known_gradients(losses, kept) is None


@pytest.mark.parametrize(
    "step", [Step("tanh"), Step("ccr"), Step("identity"), Step("tanh", 3.0, True)]
)
def test_slopes_of_steps_are_those_of_autograd_at_corners_too(step):
    p = torch.tensor([0.1, 0.25, 0.4, 0.5, 0.6, 0.75, 0.9], dtype=torch.float64)
    scores = torch.logit(p).requires_grad_()
    decisions = step.decide(p + (torch.sigmoid(scores) - torch.sigmoid(scores).detach()))
    (expected,) = torch.autograd.grad(decisions.sum(), scores)
    found = step.slopes(p.numpy(), decisions.detach().numpy())
    torch.testing.assert_close(torch.from_numpy(found), expected)


def test_few_groups_with_too_little_or_nan():
    counts = [[1.0, 1.0, 4.0, 4.0], [0.0, 0.0, 0.0, 0.0]]
    assert smooth_mean_of_few(counts, RATES["dp"], 1e-3) == (0.0, [0.0] * 4)
    counts[1][0] = float("nan")
    gap, slopes = smooth_mean_of_few(counts, RATES["dp"], 1e-3)
    assert gap != gap
    assert slopes == [0.0] * 4
