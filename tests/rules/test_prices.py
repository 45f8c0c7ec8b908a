"""Prices keep bounds at the least error there is, and weigh gaps as the exact optimum does."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog, minimize

from apfex.models import Aims, OutOfFoldPredictions
from apfex.rules import RuleProblem, explore_rules
from apfex.rules._prices import _MOST, Prices, _settle
from apfex.rules._problem import largest_gaps
from apfex.rules._search import RuleSchedule
from apfex.strategies import EqualWeights

inf = float("inf")
ROWS = 2000


def make_predictions(n=ROWS, k=3, c=2, seed=0, bias=2.0, dtype=torch.float64):
    """Probabilities of random rows; the first group has the last label more often."""
    generator = torch.Generator().manual_seed(seed)
    logits = 2 * torch.randn(n, k, c, generator=generator)
    logits[:, 0, -1] += bias
    q = torch.softmax(logits.flatten(1), 1)
    targets = torch.multinomial(q, 1, generator=generator).squeeze(1)
    return OutOfFoldPredictions(q.to(dtype).view(n, k, c), targets)


def expected_problem(predictions, rates, parents=None, **options):
    """The problem by the predictions alone, without the labels that were seen."""
    k = predictions.probabilities.shape[1]
    parents = [torch.arange(k)] if parents is None else parents
    return RuleProblem.of(predictions, rates, parents, trusted_rows=1e12, **options)


def rate_rows(q, rate, parents):
    """[groups, n]: what a decision for each row adds to the rate of each group."""
    members = {"dp": q.sum(2), "tpr": q[:, :, 1], "fpr": q[:, :, 0]}[rate]
    members = np.stack([members[:, parents == g].sum(1) for g in np.unique(parents)])
    return members / members.sum(1, keepdims=True)


def least(q, rates, *, bounds, groupings=None):
    """Least expected error within bounds: a linear programme over all rows.

    Its variables are the decisions, and for each gap the lowest rate and the gap itself.
    """
    n, k, _ = q.shape
    eta = q[:, :, 1].sum(1)
    groupings = [np.arange(k)] if groupings is None else groupings
    gaps = [(rate, parents) for parents in groupings for rate in rates]
    cost = np.concatenate([(1 - 2 * eta) / n, np.zeros(2 * len(gaps))])
    tables = []
    for place, (rate, parents) in enumerate(gaps):
        above = rate_rows(q, rate, parents)
        low, high = np.zeros((2, len(above), 2 * len(gaps)))
        low[:, 2 * place] = 1.0
        high[:, 2 * place : 2 * place + 2] = -1.0
        tables += [np.hstack([-above, low]), np.hstack([above, high])]
    limits = [(0, 1)] * n
    for bound in bounds:
        limits += [(0, 1), (0, bound)]
    table = np.vstack(tables)
    found = linprog(cost, table, np.zeros(len(table)), bounds=limits, method="highs")
    assert found.status == 0
    return float(found.fun + eta.mean())


def follow(problem, bounds, steps=150, softness=0.002):
    """Prices after so many steps on decisions that harden, as in a search."""
    bounds = torch.tensor(bounds, dtype=torch.float64)
    prices = Prices(problem.q, (len(bounds), len(problem.start)), problem.rates, problem.parents)
    for step in range(steps):
        wide = 0.2 * (softness / 0.2) ** min(1.0, step / (0.6 * steps))
        soft = problem.decide(problem.rules(prices.moves(ahead=True)), wide)
        prices.step(soft.counts, problem.near(soft), bounds)
    return prices


def hard(problem, rules):
    """Expected error [b] and largest gaps [b, a r] of what rules decide."""
    scores = rules @ problem.q
    if len(problem.own) == 1:
        decisions = (scores > 0).to(scores)
    else:
        decisions = torch.nn.functional.one_hot(scores.argmax(1), len(problem.own)).mT.to(scores)
    error = problem.most + (decisions * problem.costs).sum((1, 2))
    return error, largest_gaps(problem.counts(decisions), problem.rates)


@pytest.mark.parametrize(
    ("k", "rates"),
    [(2, ("dp",)), (3, ("tpr",)), (5, ("dp",)), (4, ("dp", "tpr")), (3, ("tpr", "fpr"))],
)
def test_bounds_are_kept_at_the_error_of_the_linear_programme(k, rates):
    predictions = make_predictions(n=1200, k=k, seed=k)
    problem, q = expected_problem(predictions, rates), predictions.probabilities.numpy()
    bounds = [[bound] * len(rates) for bound in (0.0, 0.02, 0.06)]
    bounds += [[0.03, inf], [0.06, 0.01]] if len(rates) == 2 else [[inf]]
    error, gaps = hard(problem, problem.rules(follow(problem, bounds).moves()))
    for place, bound in enumerate(bounds):
        assert (gaps[place] <= torch.tensor(bound) + 0.005).all()
        assert float(error[place]) == pytest.approx(least(q, rates, bounds=bound), abs=1e-3)


def test_bounds_of_two_groupings_are_kept_at_once():
    predictions = make_predictions(n=1200, k=4, seed=7)
    parents = [torch.tensor([0, 0, 1, 1]), torch.tensor([0, 1, 0, 1])]
    problem = expected_problem(predictions, ("dp",), parents)
    bounds = [[0.02, 0.01], [inf, 0.01], [0.0, 0.0]]
    error, gaps = hard(problem, problem.rules(follow(problem, bounds).moves()))
    groupings = [parent.numpy() for parent in parents]
    for place, bound in enumerate(bounds):
        assert (gaps[place] <= torch.tensor(bound) + 0.005).all()
        best = least(predictions.probabilities.numpy(), ("dp",), bounds=bound, groupings=groupings)
        assert float(error[place]) == pytest.approx(best, abs=1e-3)
    assert gaps[1, 0] > 0.05  # what is not asked for is not paid for


@given(st.integers(0, 10_000), st.integers(1, 6), st.sampled_from([0.0, 0.3, 1.0, 9.0]))
@settings(max_examples=40, deadline=None)
def test_bounded_prices_are_the_nearest_beside_what_the_bound_costs(seed, g, bound):
    """Against a general solver: the bound costs as much for every unit of rise and of fall."""
    reached, pace = drawn(seed, g)
    found = _settle(reached, pace, torch.tensor([bound]).double())
    assert abs(float(found.sum())) < 1e-9
    aim, metric = (reached * pace).numpy(), pace.numpy()

    def objective(v):
        return ((v[:g] - v[g:] - aim) ** 2 / metric).sum() / 2 + bound / 2 * v.sum()

    oracle = minimize(
        objective,
        np.full(2 * g, 0.1),
        method="SLSQP",
        bounds=[(0, None)] * (2 * g),
        constraints={"type": "eq", "fun": lambda v: v[:g].sum() - v[g:].sum()},
        options={"ftol": 1e-14, "maxiter": 500},
    )
    ours = objective(np.concatenate([found.clamp_min(0).numpy(), (-found).clamp_min(0).numpy()]))
    assert ours <= oracle.fun + 1e-6
    assert found.numpy() == pytest.approx(oracle.x[:g] - oracle.x[g:], abs=2e-3)


def drawn(seed, g):
    """What is reached and the pace; some groups reach alike."""
    generator = torch.Generator().manual_seed(seed)
    reached = torch.randn(g, generator=generator).double()
    reached[-1] = reached[0] if seed % 3 == 0 else reached[-1]
    return reached, 0.2 + torch.rand(g, generator=generator).double()


def test_no_bound_is_no_price():
    reached, pace = drawn(1, 5)
    assert not _settle(reached, pace, torch.tensor([inf]).double()).any()
    within = _settle(reached, pace, torch.tensor([9.0]).double())
    torch.testing.assert_close(within, torch.zeros(5).double(), rtol=0, atol=1e-12)


def test_what_nobody_can_reach_is_priced_no_higher_than_the_most():
    reached, pace = 1e6 * drawn(2, 5)[0], drawn(2, 5)[1]
    found = _settle(reached, pace, torch.zeros(1).double())
    assert float(found.clamp_min(0).sum()) == pytest.approx(_MOST)
    assert abs(float(found.sum())) < 1e-6


def test_a_bound_that_nobody_can_meet_leaves_rules_finite():
    """Where decisions must be for nobody or for everybody, or gaps are asked to be negative."""
    predictions = make_predictions(n=300, k=3)
    problem = expected_problem(predictions, ("dp", "tpr"))
    prices = follow(problem, [[-1.0, -1.0], [0.0, -0.5]])
    assert prices.moves().isfinite().all()
    assert prices.of_gaps.isfinite().all()
    assert prices.of_gaps.max() <= _MOST * 1.0001
    assert (prices.of_gaps[0] > 0).any()


@pytest.mark.parametrize("share", [0.0, 1e-12])
def test_groups_without_rows_do_not_matter(share):
    q = make_predictions(n=600, k=3).probabilities
    nobody = torch.full((600, 1, 2), share).double()
    targets = make_predictions(n=600, k=3).targets
    whole = expected_problem(OutOfFoldPredictions(q, targets), ("dp", "tpr"))
    more = OutOfFoldPredictions(torch.cat([q, nobody], 1), targets)
    problem = expected_problem(more, ("dp", "tpr"))
    bounds = [[0.02, inf], [0.0, 0.0]]
    found, expected = follow(problem, bounds).moves(), follow(whole, bounds).moves()
    torch.testing.assert_close(found[:, :, :3], expected, rtol=1e-4, atol=1e-4)
    assert not found[:, :, 3].any()


@pytest.mark.parametrize("rate", ["dp", "tpr"])
def test_of_several_classes_every_gap_is_within_the_bound(rate):
    predictions = make_predictions(n=800, k=3, c=3, bias=3.0)
    problem = expected_problem(predictions, (rate,))
    bounds = [0.9, 0.04, 0.01]
    prices = follow(problem, [[bound] for bound in bounds])
    error, gaps = hard(problem, problem.rules(prices.moves()))
    assert gaps[0, 0] > 0.06
    for place, bound in enumerate(bounds):
        best = least_of_classes(predictions.probabilities.numpy(), rate, bound)
        assert float(gaps[place]) <= bound + 0.01
        assert float(error[place]) == pytest.approx(best, abs=3e-3)


def least_of_classes(q, rate, bound):
    """Least expected error where no class has a wider gap: a variable for every row and class."""
    n, k, c = q.shape
    rows = []
    for own in range(c):
        members = q.sum(2) if rate == "dp" else q[:, :, own]
        above = np.zeros((k, c, n))
        above[:, own] = (members / members.sum(0)).T
        rows += [a - b for a, b in itertools.permutations(above.reshape(k, -1), 2)]
    one = np.tile(np.eye(n), c)  # a decision for each row
    cost = -q.sum(1).T.reshape(-1) / n
    limits = np.full(len(rows), bound)
    found = linprog(cost, np.array(rows), limits, one, np.ones(n), bounds=(0, 1), method="highs")
    assert found.status == 0
    return 1 + float(found.fun)


@pytest.mark.parametrize("rate", ["ppv", "npv", "accuracy", "fnr", "tnr"])
def test_every_rate_has_prices(rate):
    """Those of quotients of decisions are priced by their slopes, which promises no optimum."""
    predictions = make_predictions(n=1500, k=3)
    problem = expected_problem(predictions, (rate,))
    plain, widest = hard(problem, problem.start.unsqueeze(0))
    bound = float(widest) / 4
    prices = follow(problem, [[inf], [bound]])
    error, gaps = hard(problem, problem.rules(prices.moves()))
    assert prices.moves().isfinite().all()
    assert float(gaps[0]) == pytest.approx(float(widest))
    assert float(error[1]) < float(plain) + 0.1
    assert float(gaps[1]) < (float(widest) / 2 if rate in ("ppv", "npv") else bound + 0.005)


def bounded_aims(bounds):
    """A plain member and one for every row of bounds, which are not swept."""
    absolute = torch.tensor([[inf] * len(bounds[0]), *bounds]).repeat(2, 1, 1)
    rates = ("dp", "tpr")[: len(bounds[0])]
    return Aims(rates, torch.zeros(len(bounds) + 1, len(bounds[0])), absolute=absolute)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_members_of_a_search_keep_their_bounds_by_what_they_decide_in_truth(dtype):
    bounds = [[0.1, inf], [0.02, inf], [inf, 0.005], [0.03, 0.03], [0.0, 0.0]]
    predictions, aims = make_predictions(dtype=dtype), bounded_aims(bounds)
    problem = expected_problem(predictions, aims.rates)
    [found] = explore_rules([problem], aims, [EqualWeights()], trace=False)
    rules = found.rules.flatten(2).unflatten(0, (-1, aims.n_members))
    plain, plain_gaps = hard(problem, rules[-1, :1])
    assert (plain_gaps > torch.tensor([0.12, 0.015])).all()
    ends = [hard(problem, look) for look in rules[:, 1:]]
    for error, gaps in ends:  # at every look
        assert (gaps <= torch.tensor(bounds) + 0.01).all()
        assert (error >= plain - 1e-6).all()
    q = predictions.probabilities.double().numpy()
    for bound, error in zip(bounds, ends[-1][0].tolist(), strict=True):
        assert error == pytest.approx(least(q, aims.rates, bounds=bound), abs=2e-3)


def test_members_with_bounds_have_no_part_in_what_others_find():
    """Members with weights find the same in their company, and so do they alone."""
    quick = RuleSchedule(arrive=12, windows=2, window=4)
    problem = expected_problem(make_predictions(n=300), ("dp",))
    absolute = torch.tensor([inf, 0.05, inf, 0.01]).view(1, 4, 1).repeat(2, 1, 1)
    both = Aims(("dp",), torch.tensor([[0.0], [0.0], [1.0], [0.0]]), absolute=absolute)
    together = explore_rules([problem, problem], both, [EqualWeights()], schedule=quick)
    for members in ([0, 2], [1, 3], [0, 1, 2]):
        alone = both.of_members(torch.tensor(members))
        [found] = explore_rules([problem], alone, [EqualWeights()], schedule=quick)
        expected = together[1].rules.unflatten(0, (-1, 4))[:, members].flatten(0, 1)
        torch.testing.assert_close(found.rules, expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("trace", [True, False])
def test_a_table_without_groups_has_the_likelier_label(trace):
    predictions = make_predictions(n=100, k=1)
    problem = RuleProblem.of(predictions, (), [])
    [found] = explore_rules([problem], Aims((), torch.zeros(1, 0)), [EqualWeights()], trace=trace)
    scores = torch.einsum("bjkc,nkc->bn", found.rules, predictions.probabilities)
    assert ((scores > 0) == (predictions.probabilities[:, 0, 1] > 0.5)).all()


def test_a_selection_rate_is_kept_beside_a_bound():
    predictions = make_predictions(n=1000)
    problem = expected_problem(predictions, ("dp",), selection_rate=0.3)
    aims = bounded_aims([[0.05], [0.0]])
    [found] = explore_rules([problem], aims, [EqualWeights()], trace=False)
    rules = found.rules[-3:].flatten(2)
    chosen = (rules @ problem.q > 0).double().mean(2)
    torch.testing.assert_close(chosen, torch.full_like(chosen, 0.3), rtol=0, atol=2e-3)
    _, gaps = hard(problem, rules)
    assert gaps[0, 0] > 0.1
    assert gaps[1, 0] <= 0.06
    assert gaps[2, 0] <= 0.01


def test_what_gaps_are_worth_is_told():
    """The price of a bound that binds, by which a wider one lowers the error; 0 of any other."""
    predictions = make_predictions(n=1200, seed=3)
    problem, q = expected_problem(predictions, ("dp",)), predictions.probabilities.numpy()
    prices = follow(problem, [[0.05], [0.9]], steps=400).of_gaps
    errors = [least(q, ("dp",), bounds=[bound]) for bound in (0.045, 0.055)]
    assert float(prices[0]) == pytest.approx((errors[0] - errors[1]) / 0.01, rel=0.1)
    assert float(prices[1]) == 0


def test_a_few_steps_are_enough():
    """Momentum takes prices there: without it the gaps are five times as wide by then."""
    problem = expected_problem(make_predictions(n=1200, seed=3), ("tpr", "fpr"))
    _, gaps = hard(problem, problem.rules(follow(problem, [[0.0, 0.0]], steps=30).moves()))
    assert float(gaps.max()) <= 0.005


def test_prices_of_groupings_add_up():
    """The same grouping twice: each half moves half as far, together as far as one."""
    counts = torch.tensor([[[[0.1, 0.1, 0.3, 0.2], [0.0, 0.1, 0.3, 0.2]]]], dtype=torch.float64)
    near, groups = torch.ones(1, 1, 2, 2, dtype=torch.float64), torch.arange(2)
    moved = []
    for places in (1, 2):
        prices = Prices(counts, (1, 1), ("dp",), [groups] * places)
        prices.step([counts] * places, [near] * places, torch.full((1, places), 0.1).double())
        moved.append(prices.moves())
    assert moved[0].abs().min() > 0
    torch.testing.assert_close(moved[1], moved[0])
