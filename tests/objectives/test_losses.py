import itertools
import math

import pytest
import torch
from tests.objectives.batches import LOSSES, N, two_groups

from apfex.groups import make_groups, soft_memberships
from apfex.metrics import largest_gap
from apfex.objectives import (
    CrossEntropy,
    DPLoss,
    FairnessLoss,
    MulticlassCCRLoss,
    Objectives,
    SquaredError,
    TPRLoss,
)
from apfex.rates import GroupIndex, rates_of, soft_counts
from apfex.relaxations import ccr_step, smooth_abs, tanh_step


def test_cross_entropy_is_torchs(batch):
    scores, y, _, _ = batch
    expected = torch.nn.functional.binary_cross_entropy_with_logits(scores, y.double())
    assert CrossEntropy()(scores, y) == expected
    classes = torch.randn(N, 3, dtype=torch.float64)
    labels = torch.arange(N) % 3
    expected = torch.nn.functional.cross_entropy(classes, labels)
    torch.testing.assert_close(CrossEntropy()(classes, labels), expected)


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_weights_count_rows(loss, batch):
    """A row of weight 3 is three rows, a row of weight 0 is none."""
    scores, y, groups, _ = batch
    groups = two_groups(loss, groups)
    counts = torch.arange(N) % 4
    repeated = [t.repeat_interleave(counts) for t in (scores, y, groups)]
    torch.testing.assert_close(loss(scores, y, groups, counts.double()), loss(*repeated))


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_every_form_of_groups_gives_the_same(loss, batch):
    scores, y, groups, weight = batch
    codes = two_groups(loss, groups)
    objects = make_groups(codes)
    expected = loss(scores, y, codes, weight)
    torch.testing.assert_close(loss(scores, y, objects, weight), expected)
    hard = torch.nn.functional.one_hot(torch.from_numpy(objects.codes)).double()
    torch.testing.assert_close(loss(scores, y, hard, weight), expected)
    torch.testing.assert_close(loss(scores.unsqueeze(1), y, codes, weight), expected)


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_rows_without_a_group_count_for_the_task_only(loss, batch):
    scores, y, groups, _ = batch
    groups = two_groups(loss, groups)
    outside = torch.where(torch.arange(N) < 10, -1, groups)
    if isinstance(loss, (CrossEntropy, SquaredError)):
        assert loss(scores, y, outside) == loss(scores, y, groups)
        return
    task = CrossEntropy() if isinstance(loss, FairnessLoss) else SquaredError()
    share = loss.task_weight

    def rest(s, t, g):
        value = loss(s, t, g) - share * task(s, t)
        p = torch.sigmoid(s)
        return value - getattr(loss, "beta", 0.0) * (p * p).mean()

    torch.testing.assert_close(rest(scores, y, outside), rest(scores[10:], y[10:], groups[10:]))


@pytest.mark.parametrize("rate", ["dp", "tpr", "fpr", "tnr", "fnr", "ppv", "npv", "accuracy"])
def test_fairness_loss_is_the_mean_over_pairs_of_soft_rates(rate, batch):
    scores, y, groups, _ = batch
    decisions = tanh_step(torch.sigmoid(scores))
    rates = rates_of(rate, soft_counts(decisions, y, GroupIndex.of(groups)))
    pairs = [smooth_abs(a - b) for a, b in itertools.combinations(rates, 2)]
    expected = torch.stack(pairs).mean() + 0.1 * CrossEntropy()(scores, y)
    torch.testing.assert_close(FairnessLoss(rate)(scores, y, groups), expected)


@pytest.mark.parametrize("relaxation", ["tanh", "ccr", "identity"])
def test_constant_scores_have_no_gap(relaxation, batch):
    _, y, groups, _ = batch
    for level in (-3.0, 0.0, 2.0):
        scores = torch.full((N,), level, dtype=torch.float64)
        loss = FairnessLoss("dp", relaxation=relaxation, task_weight=0.0)
        assert abs(loss(scores, y, groups)) <= 1e-3


def test_steep_relaxations_tend_to_the_hard_gap(batch):
    scores, y, groups, _ = batch
    counts = soft_counts((scores > 0).double(), y, GroupIndex.of(groups))
    hard = largest_gap(rates_of("dp", counts)[None])
    loss = FairnessLoss(
        "dp", lambda p: tanh_step(p, steepness=1e6), task_weight=0.0, aggregate="max"
    )
    torch.testing.assert_close(loss(scores, y, groups), hard, atol=1e-6, rtol=0)


def test_dp_loss_is_padhs_formula(batch):
    scores, y, groups, _ = batch
    p = torch.sigmoid(scores)
    groups = groups % 2
    h = 0.5 + 0.5 * torch.tanh(5 * (p - 0.5))
    rates = [h[groups == g].mean() for g in (0, 1)]
    expected = (rates[0] - rates[1]).abs() + 0.1 * ((p - y) ** 2).mean() + 0.3 * (p * p).mean()
    torch.testing.assert_close(DPLoss(beta=0.3)(scores, y, groups), expected)


@pytest.mark.parametrize(("loss", "steepness"), [(DPLoss, 3.0), (TPRLoss, 5.0)])
def test_masked_form_adds_up_rows_above_one_half(loss, steepness, batch):
    scores, y, groups, _ = batch
    groups = groups % 2
    h = tanh_step(torch.sigmoid(scores), steepness=steepness)
    rates = []
    for g in (0, 1):
        member = (groups == g) & ((y == 1) | (loss is DPLoss))
        rates.append(h[member & (h > 0.5)].sum() / member.sum())
    expected = (rates[0] - rates[1]).abs()
    value = loss(task_weight=0.0, form="masked")(scores, y, groups)
    torch.testing.assert_close(value, expected)


def test_masked_form_is_blind_where_nobody_is_selected(batch):
    """The published code's trap: an all-negative model is an exact minimum without gradient."""
    _, y, groups, _ = batch
    scores = torch.linspace(-3, -0.1, N, dtype=torch.float64).requires_grad_()
    groups = groups % 2
    for form, blind in (("masked", True), ("plain", False)):
        loss = DPLoss(0.0, form=form)(scores, y, groups)  # type: ignore[arg-type]
        (slope,) = torch.autograd.grad(loss, scores)
        assert bool((slope == 0).all()) is blind


@pytest.mark.parametrize("rate", ["dp", "tpr"])
def test_multiclass_ccr_loss_equation_by_equation(rate):
    generator = torch.Generator().manual_seed(1)
    c, k = 3, 4
    scores = torch.randn(N, c, generator=generator, dtype=torch.float64)
    y = torch.arange(N) % c
    attribute = torch.rand(N, k, generator=generator, dtype=torch.float64)
    thresholds = torch.tensor([0.3, 0.4, 0.5, 0.6], dtype=torch.float64)
    widths = torch.tensor([0.1, 0.2, 0.3, 0.4], dtype=torch.float64)
    h = torch.stack([ccr_step(attribute[:, g], thresholds[g], widths[g]) for g in range(k)], 1)
    p = torch.softmax(scores, 1)
    total = torch.zeros((), dtype=torch.float64)
    for j in range(c):
        rows = torch.ones(N) if rate == "dp" else (y == j)
        means = [(h[:, g] * rows * p[:, j]).sum() / (h[:, g] * rows).sum() for g in range(k)]
        total += sum(smooth_abs(a - b) for a, b in itertools.combinations(means, 2))
    expected = 2 / (c * k * (k - 1)) * total + 0.1 * CrossEntropy()(scores, y)
    loss = MulticlassCCRLoss(rate, threshold=thresholds, width=widths)
    torch.testing.assert_close(loss(scores, y, attribute), expected)


def test_gradients_flow_through_learned_memberships():
    scores = torch.randn(12, 3, dtype=torch.float64, requires_grad=True)
    attribute = (0.3 + 0.4 * torch.rand(12, 2, dtype=torch.float64)).requires_grad_()
    y = torch.arange(12) % 3
    assert torch.autograd.gradcheck(
        lambda s, a: MulticlassCCRLoss("dp")(s, y, a), (scores, attribute), eps=1e-7, atol=1e-4
    )
    memberships = soft_memberships(attribute)
    loss = FairnessLoss("dp")(scores[:, 0], y.clamp(max=1), memberships)
    (slope,) = torch.autograd.grad(loss, attribute)
    assert (slope != 0).any()


@pytest.mark.parametrize("aggregate", ["smooth_mean", "mean", "max", "smooth_max"])
def test_multiclass_fairness_loss_takes_each_class_against_the_rest(aggregate):
    scores = torch.randn(N, 3, dtype=torch.float64)
    y, groups = torch.arange(N) % 3, torch.arange(N) // 3 % 4
    loss = FairnessLoss("tpr", "identity", 0.0, aggregate)
    p = torch.softmax(scores, 1)
    one_vs_rest = []
    for j in range(3):
        binary = FairnessLoss("tpr", "identity", 0.0, aggregate)
        one_vs_rest.append(binary(torch.logit(p[:, j]), (y == j).long(), groups))
    together = torch.stack(one_vs_rest)
    expected = together.mean() if "mean" in aggregate else together.max()
    torch.testing.assert_close(loss(scores, y, groups), expected)


def test_together_as_one_by_one(batch):
    scores, y, groups, weight = batch
    scores.requires_grad_()
    other = (groups + 1) % 3
    losses = [
        FairnessLoss("dp"),
        CrossEntropy(),
        FairnessLoss("tpr"),
        FairnessLoss("dp", task_weight=0.0),
        FairnessLoss("dp", min_count=16.0),  # which leaves some groups out
        FairnessLoss("fpr", aggregate="max"),
        DPLoss(),
    ]
    given = [groups, None, other, other, groups, groups, groups % 2]
    together = Objectives(losses)(scores, y, given, weight)
    single = torch.stack(
        [loss(scores, y, g, weight) for loss, g in zip(losses, given, strict=True)]
    )
    torch.testing.assert_close(together, single)
    mix = torch.rand(len(losses), dtype=torch.float64)
    torch.testing.assert_close(
        torch.autograd.grad(together @ mix, scores)[0], torch.autograd.grad(single @ mix, scores)[0]
    )


def test_several_classes_together_as_one_by_one():
    """Losses that differ in one setting share nothing that depends on it."""
    generator = torch.Generator().manual_seed(3)
    scores = torch.randn(N, 3, generator=generator, dtype=torch.float64)
    attribute = torch.rand(N, 4, generator=generator, dtype=torch.float64)
    y, codes = torch.arange(N) % 3, torch.randint(0, 4, (N,), generator=generator)
    ccr = [MulticlassCCRLoss(), MulticlassCCRLoss(threshold=0.3), MulticlassCCRLoss(width=0.5)]
    gaps = [
        FairnessLoss("dp"),
        FairnessLoss("tpr"),
        FairnessLoss("dp", min_count=16.0),
        FairnessLoss("dp", relaxation="ccr"),
        FairnessLoss("dp", aggregate="max"),
        FairnessLoss("dp", task_weight=0.5),
    ]
    given = [attribute] * len(ccr) + [codes] * len(gaps)
    together = Objectives([*ccr, *gaps])(scores, y, given)
    single = [loss(scores, y, groups) for loss, groups in zip([*ccr, *gaps], given, strict=True)]
    torch.testing.assert_close(together, torch.stack(single))
    assert together.unique().numel() == len(given)


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_a_single_group_leaves_the_task_part_in_the_graph(loss, batch):
    scores, y, _, _ = batch
    scores.requires_grad_()
    value = loss(scores, y, torch.zeros(N, dtype=torch.int64))
    (slope,) = torch.autograd.grad(value, scores)
    assert slope.isfinite().all()
    if isinstance(loss, FairnessLoss):
        expected = loss.task_weight * CrossEntropy()(scores, y)
        torch.testing.assert_close(value, expected)


def test_a_group_without_positives_is_left_out_of_tpr(batch):
    scores, y, groups, _ = batch
    y = torch.where(groups == 3, 0, y)
    loss = FairnessLoss("tpr", task_weight=0.0)
    kept = groups != 3
    expected = loss(scores[kept], y[kept], groups[kept])
    torch.testing.assert_close(loss(scores, y, groups), expected)


def test_typical_scales():
    assert CrossEntropy().typical_scale(2) == pytest.approx(math.log(2))
    assert FairnessLoss().typical_scale(2) == pytest.approx(1.0693, abs=1e-4)
    assert DPLoss(beta=1.0).typical_scale(2) == pytest.approx(1 + 0.025 + 0.25)


def test_a_class_that_cannot_be_told_is_left_out_of_the_mean():
    y = torch.tensor([0, 0, 0, 0, 1, 2] * 5)
    groups = torch.tensor([0, 1, 0, 1, 0, 0] * 5)  # classes 1 and 2 occur in one group only
    scores = torch.randn(30, 3, dtype=torch.float64)
    loss = FairnessLoss("tpr", "identity", task_weight=0.0, aggregate="mean")
    p = torch.softmax(scores, 1)[:, 0]
    means = [p[(y == 0) & (groups == g)].mean() for g in (0, 1)]
    torch.testing.assert_close(loss(scores, y, groups), (means[0] - means[1]).abs())


def test_the_least_count_is_relative_to_the_weights(batch):
    scores, y, groups, _ = batch
    loss = FairnessLoss("dp", task_weight=0.0)
    tiny = torch.full((N,), 1e-9, dtype=torch.float64)
    torch.testing.assert_close(loss(scores, y, groups, tiny), loss(scores, y, groups))


@pytest.mark.parametrize("k", [4, 40])
def test_nan_scores_give_a_nan_loss(k):
    scores = torch.zeros(200)
    scores[7] = torch.nan
    loss = FairnessLoss("dp", task_weight=0.0)
    assert loss(scores, torch.arange(200) % 2, torch.arange(200) % k).isnan()


def test_without_a_task_weight_the_task_is_not_computed():
    scores = torch.tensor([1e38, 1.0, 0.0, 2.0])
    value = FairnessLoss("dp", task_weight=0.0)(
        scores * 10, torch.tensor([0, 1, 0, 1]), torch.arange(4) % 2
    )
    assert value.isfinite()


def test_membership_scores_may_have_any_sign():
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(N, 3, generator=generator, dtype=torch.float64)
    attribute = torch.randn(N, 2, generator=generator, dtype=torch.float64)
    y = torch.arange(N) % 3
    loss = MulticlassCCRLoss(threshold=0.0, width=1.0)
    value = loss(scores, y, attribute)
    plain = FairnessLoss("dp", "identity")
    torch.testing.assert_close(value, plain(scores, y, soft_memberships(attribute, 0.0, 1.0)))
    torch.testing.assert_close(Objectives([loss, CrossEntropy()])(scores, y, attribute)[0], value)


@pytest.mark.parametrize("form", ["smooth_mean", "mean", "max", "rms", "classes"])
@pytest.mark.parametrize("rate", ["dp", "tpr"])
@pytest.mark.parametrize("c", [2, 3, 5])
def test_the_range_scale_is_attained(form, rate, c):
    """Two groups that are decided as differently as can be; the task adds its uninformed loss."""
    y, groups = torch.arange(6 * c) % c, torch.arange(6 * c) // (3 * c)
    decided = torch.where(
        groups == 0, y if rate == "tpr" else 0, (y + 1) % c if rate == "tpr" else 1
    )
    scores = 60.0 * torch.nn.functional.one_hot(decided, c).double()
    if c == 2 and form != "classes":
        scores = scores[:, 1] - scores[:, 0]

    def make(task_weight):
        if form == "classes":
            return MulticlassCCRLoss(rate, task_weight=task_weight)
        return FairnessLoss(rate, "identity", task_weight=task_weight, aggregate=form)

    scale = make(0.0).typical_scale(c)
    assert make(0.0)(scores, y, groups).item() == pytest.approx(scale, abs=1e-3)
    assert make(0.3).typical_scale(c) == pytest.approx(scale + 0.3 * math.log(c))
