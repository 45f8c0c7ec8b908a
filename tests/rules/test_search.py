"""Rules are the best decisions there are, given the probabilities of group and label."""

import itertools
from functools import cache

import numpy as np
import pytest
import scipy.optimize
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from apfex.front import hypervolume
from apfex.models import Aims, JointModel, OutOfFoldPredictions, spread_aims
from apfex.models._joint_model import given_groups
from apfex.rules import RuleModel, RuleProblem, explore_rules, rule_scores
from apfex.rules._search import RuleSchedule
from apfex.strategies import STRATEGIES, AdaptiveWeighting, EqualWeights, read_strategies

QUICK = RuleSchedule(arrive=12, windows=2, window=4)
"""Where it does not matter where members end up."""


def explore(predictions, aims, parents, strategies, schedule=None, seed=0, trace=True, **options):
    """What a single search finds."""
    problem = RuleProblem.of(predictions, aims.rates, parents, **options)
    given = {"schedule": schedule, "seed": seed, "trace": trace}
    return explore_rules([problem], aims, strategies, **given)[0]


def fit_rules(predictions, aims, parents, **options):
    """Where members end up that go to their aims and stay there."""
    found = explore(predictions, aims, parents, [EqualWeights()], trace=False, **options)
    return found.rules[-aims.n_members :]


def make_predictions(n=200, k=3, c=2, seed=0, bias=0.0):
    """Probabilities of random rows; with a bias the first group has the last label more often."""
    generator = torch.Generator().manual_seed(seed)
    logits = 2 * torch.randn(n, k, c, generator=generator)
    logits[:, 0, -1] += bias
    q = torch.softmax(logits.flatten(1), 1)
    targets = torch.multinomial(q, 1, generator=generator).squeeze(1)
    q = q.double().view(n, k, c)  # so that rounding is far below all else
    return OutOfFoldPredictions(q, targets)


def measure(problem, moves, softness):
    """Losses and gradients where rules have moved [b, j, f] along the basis."""
    rules = problem.at_rate(problem.start + moves @ problem.basis)
    return problem.measure(problem.decide(rules, softness))


def dp_weights(*weights):
    return Aims(("dp",), torch.tensor(weights).unsqueeze(1))


def objective(decisions, q, weight):
    """Expected error plus the weighted gap of selection rates."""
    eta = q[:, :, 1].sum(1)
    error = (decisions * (1 - eta) + (1 - decisions) * eta).mean(-1)
    groups = q.sum(2)
    rates = decisions @ groups / groups.sum(0)
    return error + weight * (rates.amax(-1) - rates.amin(-1))


@pytest.mark.parametrize("seed", range(4))
def test_no_decisions_on_a_few_kinds_of_rows_are_better(seed):
    # 10 kinds of rows: all 2**10 decisions can be tried; a rule only differs by the rounding that
    # many rows of a kind allow, so each kind is 1 row and a soft rule may stop short by a little.
    predictions = make_predictions(n=10, k=2, seed=seed)
    q = predictions.probabilities
    every = torch.tensor(list(itertools.product((0.0, 1.0), repeat=10))).double()
    schedule = RuleSchedule(arrive=300, softness=(0.5, 0.01))
    weights, options = (0.0, 0.1, 0.3), {"schedule": schedule, "trusted_rows": 1e12}
    rules = fit_rules(predictions, dp_weights(*weights), [torch.arange(2)], **options)
    for weight, rule in zip(weights, rules, strict=True):
        found = objective((rule_scores(rule[None], q) > 0).to(q), q, weight)
        best = objective(every, q, weight).min()
        plain = objective((q[:, :, 1].sum(1) > 0.5).to(q), q, weight)
        assert float(found) <= float(plain) + 5e-3
        assert float(found) <= float(best) + 0.03


def test_without_a_gap_the_likelier_label_is_chosen():
    for c in (2, 3):
        predictions = make_predictions(c=c)
        rules = fit_rules(predictions, dp_weights(0.0), [torch.arange(3)])
        scores = rule_scores(rules, predictions.probabilities)[0]
        decided = (scores > 0).long() if c == 2 else scores.argmax(1)
        assert (decided == predictions.probabilities.sum(1).argmax(1)).all()


@pytest.mark.parametrize("c", [2, 3])
def test_without_a_gap_the_least_expected_cost_is_chosen(c):
    """Costs of their own for each label and decision, and some for what is right."""
    predictions = make_predictions(c=c)
    costs = torch.rand(c, c, generator=torch.Generator().manual_seed(c)).double()
    costs[0, -1] += 2.0
    problem = RuleProblem.of(predictions, ("dp",), [torch.arange(3)], costs=costs)
    soft = problem.decide(problem.start.unsqueeze(0), softness=1e-9)
    scores = soft.scores.squeeze(0)
    decided = (scores[0] > 0).long() if c == 2 else scores.argmax(0)
    expected = predictions.probabilities.sum(1) @ costs
    assert (decided == expected.argmin(1)).all()
    torch.testing.assert_close(problem.measure(soft).losses[0, 0], expected.amin(1).mean())


def test_resampled_rows_count_as_repeated_ones():
    predictions = make_predictions(n=40)
    times = torch.arange(40) % 3
    again = torch.arange(40).repeat_interleave(times)
    repeated = OutOfFoldPredictions(predictions.probabilities[again], predictions.targets[again])
    parents = [torch.arange(3), torch.tensor([0, 0, 1])]
    decisions = torch.rand(2, 1, 40, generator=torch.Generator().manual_seed(0)).double()
    problem, other = (
        RuleProblem.of(given, ("dp", "tpr"), parents, trusted_rows=0.0)
        for given in (predictions, repeated)
    )
    counts = problem.resampled(times).counts(decisions)
    for found, expected in zip(counts, other.counts(decisions[..., again]), strict=True):
        torch.testing.assert_close(found * 40, expected * len(again))


def test_at_a_selection_rate_nothing_is_gained_by_moving_all_scores_alike():
    predictions = make_predictions(n=60)
    problem = RuleProblem.of(predictions, ("dp", "tpr"), [torch.arange(3)], selection_rate=0.3)
    moves = 0.1 * torch.randn(2, 1, len(problem.basis), generator=torch.Generator().manual_seed(1))
    ones = torch.ones(problem.basis.shape[1], 1).double()
    alike = (torch.linalg.pinv(problem.basis.T) @ ones).squeeze(1)
    torch.testing.assert_close(problem.basis.T @ alike, ones.squeeze(1))
    _, gradients = measure(problem, moves.double(), softness=0.1)
    assert gradients.abs().amax(2).min() > 1e-4
    assert (gradients @ alike).abs().max() < 1e-6


def test_bounds_are_swept_look_by_look():
    """A bound that is swept from 0 to -1 is missed by the gap and by how much is done."""
    swept = torch.tensor([0.0, -1.0]).view(2, 1, 1)
    aims, schedule = Aims(("dp",), torch.zeros(1, 1), absolute=swept), RuleSchedule(6, 2, 4)
    predictions = make_predictions(n=40, k=1)  # without a gap, which nobody could be kept from
    found = explore(predictions, aims, [torch.arange(1)], [EqualWeights()], schedule)
    done = found.trace.to_frame()["slack"].to_numpy()
    assert done == pytest.approx([1 / 6] * 6 + [3 / 6] * 4 + [5 / 6] * 4)
    assert found.steps.tolist() == [6, 10, 14]


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
@settings(max_examples=4, deadline=None)
def test_members_do_not_touch_each_other(seed, place):
    predictions, aims = make_predictions(seed=seed), spread_aims(("dp", "tpr"), 8)
    aims = Aims(aims.rates, aims.weights)  # relative bounds are in units of the first member
    strategies = [AdaptiveWeighting()]
    together = explore(predictions, aims, [torch.arange(3)], strategies, QUICK).rules
    alone = aims.of_members(torch.tensor([place]))
    one = explore(predictions, alone, [torch.arange(3)], strategies, QUICK).rules
    torch.testing.assert_close(one, together[place::8], rtol=0, atol=1e-3)


def test_problems_in_step_find_what_each_finds_alone():
    parents, aims = [torch.arange(3)], spread_aims(("dp", "tpr"), 8)  # relative bounds among them
    tables = [make_predictions(n=n, seed=n, bias=1.0) for n in (100, 150, 200)]
    problems = [RuleProblem.of(predictions, aims.rates, parents) for predictions in tables]
    strategies = read_strategies(["switch", "pss", "aw"])
    together = explore_rules(problems, aims, strategies, schedule=QUICK, seed=3, trace=False)
    for predictions, found in zip(tables, together, strict=True):
        alone = explore(predictions, aims, parents, strategies, QUICK, seed=3)
        torch.testing.assert_close(found.rules, alone.rules, rtol=0, atol=1e-3)
        assert found.steps.equal(alone.steps)
    assert together[0].trace.step == 0


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
    weights = Aims(("dp",), torch.tensor([[4.0, 0.0], [0.0, 4.0], [0.0, 0.0]]))
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
        assert float(values[place]) <= float(values.min()) + 0.01


def least_objective(known, weight):
    """The least that thresholds of their own for known groups reach, all of them tried.

    For each lowest rate and each gap the best threshold of a group does not depend on the others.
    """
    _, k, c = known.probabilities.shape
    lowest = torch.linspace(0, 1, 101).double()[:, None, None]
    gaps = torch.linspace(0, 0.5, 101).double()[:, None]
    total = weight * gaps.squeeze(1)
    for group in range(k):
        eta = (
            known.probabilities[known.targets // c == group, group, 1].sort(descending=True).values
        )
        missed = eta.sum() + torch.nn.functional.pad((1 - 2 * eta).cumsum(0), (1, 0))
        rates = torch.linspace(0, 1, len(missed)).double()
        slack = 0.5 / len(eta)  # a rate is a whole number of rows
        within = (rates >= lowest - slack) & (rates <= lowest + gaps + slack)
        total = total + torch.where(within, missed / len(known.targets), 9.0).amin(-1)
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
        assert least - 5e-3 < found < least + 0.015


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


@pytest.mark.parametrize("c", [2, 3])
def test_moves_are_added_at_the_label_that_is_decided_for_and_at_others(c):
    problem = RuleProblem.of(make_predictions(n=20, c=c), ("dp",), [torch.arange(3)])
    j = len(problem.start)
    moves = torch.randn(2, j, 3, 2, generator=torch.Generator().manual_seed(0)).double()
    found = (problem.rules(moves) - problem.start).view(2, j, 3, c)
    for place, label in itertools.product(range(j), range(c)):
        is_own = label == (place if c > 2 else 1)
        torch.testing.assert_close(found[:, place, :, label], moves[:, place, :, int(is_own)])


@pytest.mark.parametrize(("c", "groupings"), [(2, 1), (2, 2), (3, 1)])
def test_gradients_are_those_of_the_losses(c, groupings):
    predictions = make_predictions(n=60, k=4, c=c, seed=2)
    parents = [torch.arange(4), torch.tensor([0, 0, 1, 1])][:groupings]
    problem = RuleProblem.of(predictions, ("dp", "tpr", "fpr"), parents)
    generator = torch.Generator().manual_seed(0)
    shape = (2, len(problem.start), len(problem.basis))
    moves = 0.1 * torch.randn(shape, generator=generator).double()
    softness, step = 0.3, 1e-5
    _, gradients = measure(problem, moves, softness)

    def losses(moved):
        """With the entropy that is part of the error."""
        found, _ = measure(problem, moved, softness)
        scores = (problem.start + moved @ problem.basis) @ problem.q / softness
        if c == 2:
            d = torch.sigmoid(scores)
            entropy = -(d * d.log() + (1 - d) * (1 - d).log()).sum(1)
        else:
            d = torch.softmax(scores, 1)
            entropy = -(d * d.log()).sum(1)
        found[:, 0] -= softness * (entropy * problem.shares).sum(1)
        return found

    for place in range(0, gradients.shape[2], 5):
        ahead, behind = moves.clone(), moves.clone()
        ahead.flatten(1)[:, place] += step
        behind.flatten(1)[:, place] -= step
        measured = (losses(ahead) - losses(behind)) / (2 * step)
        torch.testing.assert_close(gradients[:, :, place], measured, rtol=1e-4, atol=1e-6)


@cache
def best_front(rate, widest):
    """Least errors at gaps from 0 on, of the table below."""
    q = BIASED.probabilities.numpy()
    return np.array([[optimum(q, rate, bound), bound] for bound in np.linspace(0, widest, 20)])


BIASED = make_predictions(n=1500, k=3, seed=1, bias=2.0)


def optimum(q, rate, bound):
    """Least expected error within a bound on an expected gap: a linear programme over all rows."""
    n, k, _ = q.shape
    eta, members = q[:, :, 1].sum(1), q.sum(2) if rate == "dp" else q[:, :, 1]
    rates, ones = (members / members.sum(0)).T, np.ones((k, 1))
    above = np.vstack([np.hstack([rates, -ones]), np.hstack([-rates, ones])])
    cost, limits = np.append((1 - 2 * eta) / n, 0.0), np.full(2 * k, bound / 2)
    found = scipy.optimize.linprog(cost, above, limits, bounds=(0, 1))
    return found.fun + eta.mean()


@pytest.mark.parametrize("rate", ["dp", "tpr"])
@pytest.mark.parametrize("strategy", ["switch", "fixed", "pcp"])
def test_the_front_is_that_of_linear_programmes(rate, strategy):
    aims, q = spread_aims((rate,), 26, limits=[0.05]), BIASED.probabilities
    options = {"trusted_rows": 1e12, "trace": False}
    found = explore(BIASED, aims, [torch.arange(3)], read_strategies(strategy), **options)
    decided, eta = (rule_scores(found.rules, q) > 0).double(), q[:, :, 1].sum(1)
    error = (decided * (1 - eta) + (1 - decided) * eta).mean(1)
    members = q.sum(2) if rate == "dp" else q[:, :, 1]
    rates = decided @ (members / members.sum(0))
    ours = torch.stack([error, rates.amax(1) - rates.amin(1)], 1)
    widest = float(ours[0, 1])
    best = best_front(rate, round(widest, 6))
    corner = [float(ours[:, 0].max()), widest]
    assert hypervolume(ours, corner) > 0.93 * hypervolume(best, corner)


def test_members_with_bounds_end_within_them():
    predictions = make_predictions(n=3000, k=3, seed=1, bias=2.0)
    weights = torch.zeros(4, 2)
    absolute = torch.full((2, 4, 2), torch.inf)
    absolute[:, 1, 0], absolute[:, 2, 1], absolute[:, 3] = 0.1, 0.005, 0.03
    aims = Aims(("dp", "tpr"), weights, absolute=absolute)
    found = explore(predictions, aims, [torch.arange(3)], read_strategies(None), trusted_rows=1e12)
    columns = ["loss0", "loss1", "loss2"]
    ends = found.trace.to_frame().query("step == 91").sort_values("member")
    last = {name: ends[name].to_numpy() for name in columns}
    assert last["loss1"][0] > 0.14
    assert last["loss2"][0] > 0.015
    assert last["loss1"][1] < 0.11
    assert last["loss2"][2] < 0.01
    assert last["loss1"][3] < 0.04
    assert last["loss2"][3] < 0.04
    assert last["loss0"][1] < last["loss0"][3]  # the wider bound costs less
    every = found.trace.to_frame().sort_values(["member", "step"])["weight1"].to_numpy()
    shown = every.reshape(4, -1).max(1)
    assert shown[0] == 0  # what the constraint step adds is told
    assert min(shown[1], shown[3]) > 0


@pytest.mark.parametrize("name", STRATEGIES)
def test_every_strategy_drives_the_search(name):
    predictions, aims = make_predictions(n=300, c=3), spread_aims(("dp",), 8, limits=[0.1])
    found = explore(predictions, aims, [torch.arange(3)], read_strategies(name), QUICK)
    assert found.rules.isfinite().all()
    frame = found.trace.to_frame()
    bounded = frame["member"].isin(aims.bounded.tolist())
    assert set(frame[bounded]["strategy"]) == {"bound"}
    assert set(frame[~bounded].query("step < 12 or member == 0")["strategy"]) == {"aim"}
    deciding = set(frame[~bounded].query("step >= 12 and member > 0")["strategy"])
    assert deciding <= {"PCP", "AW", "PSS"} if name == "switch" else len(deciding) == 1
    assert not deciding & {"aim", "bound"}
    arriving = frame.query("step == 0").sort_values("member")[["weight0", "weight1"]].to_numpy()
    np.testing.assert_allclose(arriving[:, 0], 1.0, rtol=1e-6)
    free = np.setdiff1d(np.arange(8), aims.bounded)
    np.testing.assert_allclose(arriving[free, 1], aims.weights[free, 0], rtol=1e-6)
    assert frame["omega"].to_numpy().min() >= 0


def test_strategies_are_dealt_to_the_members_in_turn():
    predictions, aims = make_predictions(n=200), Aims(("dp",), torch.ones(5, 1))
    strategies = read_strategies(["pcp", "fixed"])
    trace = explore(predictions, aims, [torch.arange(3)], strategies, QUICK).trace.to_frame()
    last = trace.groupby("member")["strategy"].last().tolist()
    assert last == ["PCP", "fixed"] * 2 + ["PCP"]


def test_a_selection_rate_is_kept_by_every_rule():
    predictions = make_predictions(n=400, bias=1.0)
    aims = spread_aims(("dp",), 8, limits=[0.1])
    found = explore(
        predictions, aims, [torch.arange(3)], read_strategies(None), selection_rate=0.25
    )
    chosen = (rule_scores(found.rules, predictions.probabilities) > 0).double().mean(1)
    torch.testing.assert_close(chosen, torch.full_like(chosen, 0.25), rtol=0, atol=1 / 400)
    ends = found.trace.to_frame().query("step == 91").sort_values("member")
    gaps = ends["loss1"].to_numpy()
    assert gaps[3] < gaps[0] / 2


def test_the_same_seed_gives_the_same_rules():
    predictions, aims = make_predictions(n=300), spread_aims(("dp",), 8, limits=[0.1])
    runs = [
        explore(predictions, aims, [torch.arange(3)], read_strategies("pss"), QUICK, seed)
        for seed in (1, 1, 2)
    ]
    assert torch.equal(runs[0].rules, runs[1].rules)
    assert not torch.equal(runs[0].rules, runs[2].rules)
