"""Rules are the best decisions there are, given the probabilities of group and label."""

import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from apfex.models import (
    GapWeights,
    JointModel,
    OutOfFoldPredictions,
    RuleModel,
    fit_rules,
    given_groups,
    rule_scores,
    weight_grid,
)


def make_predictions(n=200, k=3, c=2, seed=0, bias=0.0):
    """Probabilities of random rows; with a bias the first group has the last label more often."""
    generator = torch.Generator().manual_seed(seed)
    logits = 2 * torch.randn(n, k, c, generator=generator)
    logits[:, 0, -1] += bias
    q = torch.softmax(logits.flatten(1), 1)
    targets = torch.multinomial(q, 1, generator=generator).squeeze(1)
    q = q.double().view(n, k, c)  # so that rounding is far below all else
    return OutOfFoldPredictions(q, targets)


def dp_weights(*weights):
    return GapWeights(("dp",), torch.tensor(weights).unsqueeze(1))


def objective(decisions, q, weight):
    """Expected error plus weighted root mean square of the differences of selection rates."""
    eta = q[:, :, 1].sum(1)
    error = (decisions * (1 - eta) + (1 - decisions) * eta).mean(-1)
    groups = q.sum(2)
    rates = decisions @ groups / groups.sum(0)
    pairs = torch.combinations(torch.arange(rates.shape[-1]))
    gaps = rates[..., pairs[:, 0]] - rates[..., pairs[:, 1]]
    return error + weight * gaps.square().mean(-1).sqrt()


@pytest.mark.parametrize("seed", range(4))
def test_no_decisions_on_a_few_kinds_of_rows_are_better(seed):
    # 10 kinds of rows: all 2**10 decisions can be tried; a rule only differs by the rounding that
    # many rows of a kind allow, so each kind is 1 row and a soft rule may stop short by a little.
    predictions = make_predictions(n=10, k=2, seed=seed)
    q = predictions.probabilities
    every = torch.tensor(list(itertools.product((0.0, 1.0), repeat=10))).double()
    settings = {"steps": 400, "trusted_rows": 1e12, "softness": (0.5, 0.01)}
    for weight in (0.0, 0.1, 0.3):
        rules = fit_rules(predictions, dp_weights(weight), [torch.arange(2)], **settings)
        found = objective((rule_scores(rules, q) > 0).to(q), q, weight)
        best = objective(every, q, weight).min()
        plain = objective((q[:, :, 1].sum(1) > 0.5).to(q), q, weight)
        assert float(found) <= float(plain) + 1e-6
        assert float(found) <= float(best) + 0.03


def test_without_a_gap_the_likelier_label_is_chosen():
    for c in (2, 3):
        predictions = make_predictions(c=c)
        rules = fit_rules(predictions, dp_weights(0.0), [torch.arange(3)])
        scores = rule_scores(rules, predictions.probabilities)[0]
        decided = (scores > 0).long() if c == 2 else scores.argmax(1)
        assert (decided == predictions.probabilities.sum(1).argmax(1)).all()


@pytest.mark.parametrize("c", [2, 3])
def test_a_weight_closes_the_gap_on_the_rows_it_knows(c):
    predictions = make_predictions(n=2000, k=3, c=c, seed=1, bias=2.0)
    rules = fit_rules(predictions, dp_weights(0.0, 4.0), [torch.arange(3)], trusted_rows=0.0)
    scores = rule_scores(rules, predictions.probabilities)
    decided = (scores > 0).long() if c == 2 else scores.argmax(2)
    groups = predictions.targets // c
    gaps = []
    for row in decided:
        chosen = torch.nn.functional.one_hot(row, c).double()
        rates = torch.stack([chosen[groups == g].mean(0) for g in range(3)])
        gaps.append(float((rates.amax(0) - rates.amin(0)).max()))
    assert gaps[0] > 0.1
    assert gaps[1] < gaps[0] / 3
    assert decided[1].unique().numel() == c  # not by a constant


@given(st.integers(0, 100), st.integers(1, 6))
@settings(max_examples=10, deadline=None)
def test_rules_do_not_touch_each_other(seed, place):
    predictions, weights = make_predictions(seed=seed), weight_grid(("dp", "tpr"), 8)
    together = fit_rules(predictions, weights, [torch.arange(3)])
    alone = GapWeights(weights.rates, weights.weights[place : place + 1])
    one = fit_rules(predictions, alone, [torch.arange(3)])
    torch.testing.assert_close(one[0], together[place], rtol=0, atol=1e-3)


def test_weights_count_as_repeated_rows():
    predictions = make_predictions(n=60)
    times = torch.arange(60) % 3 + 1
    rows = torch.arange(60).repeat_interleave(times)
    weights = dp_weights(0.0, 0.3, 1.0)
    weighted = OutOfFoldPredictions(predictions.probabilities, predictions.targets, times.double())
    found = fit_rules(weighted, weights, [torch.arange(3)], trusted_rows=0.0)
    expected = fit_rules(predictions.take(rows), weights, [torch.arange(3)], trusted_rows=0.0)
    torch.testing.assert_close(found, expected, rtol=0, atol=0.01)


def test_groupings_by_attribute_close_gaps_of_the_attributes_alone():
    predictions = make_predictions(n=4000, k=4, seed=3, bias=2.0)
    first, second = torch.tensor([0, 0, 1, 1]), torch.tensor([0, 1, 0, 1])
    weights = GapWeights(("dp",), torch.tensor([[4.0, 0.0], [0.0, 4.0], [0.0, 0.0]]))
    rules = fit_rules(predictions, weights, [first, second], trusted_rows=0.0)
    decided = (rule_scores(rules, predictions.probabilities) > 0).double()
    groups = predictions.targets // 2

    def gap(row, parents):
        codes = parents[groups]
        return float((row[codes == 0].mean() - row[codes == 1].mean()).abs())

    assert min(gap(decided[2], first), gap(decided[2], second)) > 0.05
    assert gap(decided[0], first) < 0.02
    assert gap(decided[1], second) < 0.02


def test_small_groups_are_nearer_to_the_models():
    predictions = make_predictions(n=500, k=2)
    flat = predictions.probabilities.flatten(1)
    own = torch.nn.functional.one_hot(predictions.targets, 4).double()
    torch.testing.assert_close(predictions.memberships(0.0), own)
    torch.testing.assert_close(predictions.memberships(1e12), flat, rtol=1e-4, atol=1e-4)
    mixed = predictions.memberships(200.0)
    trust = ((mixed - own) / (flat - own)).median(0).values
    counts = own.sum(0)
    torch.testing.assert_close(trust, 200 / (200 + counts), rtol=1e-3, atol=1e-3)


def test_known_groups_leave_the_others_no_probability():
    q = make_predictions(n=50).probabilities
    codes = torch.arange(50) % 4 - 1
    known = given_groups(q, codes)
    torch.testing.assert_close(known.sum((1, 2)), torch.ones(50).double())
    torch.testing.assert_close(known[codes < 0], q[codes < 0])
    for row in (codes >= 0).nonzero().flatten().tolist():
        within = q[row, codes[row]] / q[row, codes[row]].sum()
        torch.testing.assert_close(known[row, codes[row]], within)
        assert known[row].sum() == pytest.approx(float(known[row, codes[row]].sum()))


def test_rules_for_known_groups_close_the_gap_of_a_small_group():
    predictions = make_predictions(n=4000, k=6, seed=5, bias=3.0)
    rare = (predictions.targets // 2 != 3) | (torch.arange(4000) % 50 == 0)  # a fiftieth of group 3
    known = predictions.take(rare).given_groups()
    weights = (0.0, 0.05, 0.1, 0.2, 0.4, 4.0)
    rules = fit_rules(known, dp_weights(*weights), [torch.arange(6)], trusted_rows=0.0)
    decided = (rule_scores(rules, known.probabilities) > 0).double()
    rates = torch.stack([decided[:, known.targets // 2 == g].mean(1) for g in range(6)])
    gaps = rates.amax(0) - rates.amin(0)
    assert float(gaps[0]) > 0.3
    assert float(gaps[-1]) < 0.1
    for place, weight in enumerate(weights):  # of all rules a weight likes its own best
        values = objective(decided, known.probabilities, weight)
        assert float(values[place]) <= float(values.min()) + 0.004


def least_objective(known, weight):
    """The least that thresholds of their own for known groups reach, all of them tried.

    The spread of k rates is ``min_{m, s} (sum_g (r_g - m)^2 / (k - 1) / s + s / 2)``, so that for
    each mean m and each s the best threshold of a group does not depend on the other groups.
    """
    _, k, c = known.probabilities.shape
    means = torch.linspace(0, 1, 101).double()[:, None, None]
    spreads = torch.logspace(-4, 0, 81).double()[:, None]
    total = weight * spreads.squeeze(1) / 2
    for group in range(k):
        eta = (
            known.probabilities[known.targets // c == group, group, 1].sort(descending=True).values
        )
        missed = eta.sum() + torch.nn.functional.pad((1 - 2 * eta).cumsum(0), (1, 0))
        rates = torch.linspace(0, 1, len(missed)).double()
        costs = missed / len(known.targets) + weight * (rates - means) ** 2 / (k - 1) / spreads
        total = total + costs.amin(-1)  # [means, spreads]
    return float(total.min())


@pytest.mark.parametrize("seed", range(3))
def test_known_groups_of_unequal_sizes_get_the_thresholds_of_an_exhaustive_search(seed):
    sizes = torch.tensor([740, 500, 340, 220, 140, 60])  # the last is 3% of the rows
    generator = torch.Generator().manual_seed(seed)
    groups = torch.arange(6).repeat_interleave(sizes)
    noise = 0.5 * torch.randn(2000, generator=generator).double()
    eta = torch.sigmoid(noise + torch.linspace(0, 1, 6).double()[groups])
    labels = torch.bernoulli(eta, generator=generator).long()
    q = torch.zeros(2000, 6, 2).double()
    q[torch.arange(2000), groups] = torch.stack([1 - eta, eta], 1)
    known = OutOfFoldPredictions(q, 2 * groups + labels)
    weights = (0.0, 0.05, 0.1, 0.2, 0.4)
    rules = fit_rules(known, dp_weights(*weights), [torch.arange(6)])
    decided = (rule_scores(rules, q) > 0).double()
    for place, weight in enumerate(weights):
        found, least = float(objective(decided[place], q, weight)), least_objective(known, weight)
        assert least - 1e-3 < found < least + 0.015


@pytest.mark.parametrize("c", [2, 3])
def test_a_rule_model_decides_as_its_rule(c):
    joint = JointModel([torch.nn.Linear(3, 2 * c)], [1.0], (2, c))
    rule = torch.randn(1 if c == 2 else c, 2, c)
    x = torch.randn(50, 3)
    scores = torch.einsum("nkc,jkc->nj", joint(x), rule)
    logits = RuleModel(joint, rule)(x)
    if c == 2:
        assert ((logits > 0) == (scores > 0)).all()
    else:
        assert (logits.argmax(1) == scores.argmax(1)).all()
