"""From decisions on the validation rows to the points of a front."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from apfex import audit, metrics
from apfex.front import Criteria, NumericColumns, Scoring
from apfex.front._candidates import (
    Candidate,
    Evaluation,
    SearchResult,
    decisions_of,
    evaluate,
)
from apfex.front._rows import ValidationRows
from apfex.front._search import _by_volume, make_front
from apfex.groups import make_groups
from apfex.models import StackedMLP

ENCODER = NumericColumns(("x",))


def make_validation(n=200, c=2, weighted=False, seed=0, attributes=False):
    rng = np.random.default_rng(seed)
    crossing = make_groups({"a": rng.integers(0, 2, n), "b": rng.integers(0, 2, n)})
    groupings = [crossing.parent(name) for name in "ab"] if attributes else [crossing]
    # Small weights: sums below one are no reason to leave a group out.
    weight = rng.random(n) * 0.01 if weighted else None
    return ValidationRows(rng.integers(0, c, n), groupings, crossing, weight, range(c))


def make_settings(**changes) -> Any:
    settings = {"criteria": Criteria.of("dp"), "bounds": {"dp": 0.1}, "n_points": 16}
    settings |= {"dtype": torch.float64, "scoring": Scoring()}
    return SimpleNamespace(**{**settings, **changes})


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("c", [2, 3])
@pytest.mark.parametrize("by", ["error", "balanced_error"])
@pytest.mark.parametrize("attributes", [False, True])
def test_scores_are_those_of_the_public_metrics(weighted, c, by, attributes):
    n = 2000  # so that no group has fewer than ten rows that count
    validation = make_validation(n, c=c, weighted=weighted, attributes=attributes)
    decisions = np.random.default_rng(1).integers(0, c, (5, n))
    criteria = Criteria.of(("dp", "tpr", "equalized_odds", "ppv", "accuracy"))
    found = evaluate(torch.from_numpy(decisions), validation, criteria, Scoring(by))
    measure = metrics.accuracy if by == "error" else metrics.balanced_accuracy
    for row, values in zip(decisions, found.values, strict=True):
        common = {"sample_weight": validation.sample_weight}
        gaps = [
            getattr(metrics, f"{name}_gap")(
                validation.y,
                row,
                sensitive_features=validation.crossing,
                grouping="attributes" if attributes else "intersectional",
                **common,
            )
            for name in criteria.names
        ]
        largest = [max(found.values()) if isinstance(found, dict) else found for found in gaps]
        np.testing.assert_allclose(values, [1 - measure(validation.y, row, **common), *largest])


@pytest.mark.parametrize("sizes", [(60, 40, 9), (60, 9, 8)])
def test_groups_that_choose_have_as_many_rows_as_those_that_are_reported(sizes):
    """Ten that count, as in audits; where fewer than two groups have so many, all take part."""
    groups = make_groups(np.repeat(["a", "b", "c"], sizes))
    y = np.arange(sum(sizes)) % 2
    decided = np.where(groups.codes == 2, 1, np.where(groups.codes == 1, y, 0))
    validation = ValidationRows(y, [groups], groups, None, [0, 1])
    found = evaluate(torch.from_numpy(decided[None]), validation, Criteria.of("dp"), Scoring())
    rates = [decided[groups.codes == g].mean() for g in range(3) if sizes[1] < 10 or sizes[g] >= 10]
    assert found.values[0, 1] == pytest.approx(max(rates) - min(rates))
    (point,) = make_front(
        SearchResult(
            found.candidates(np.zeros(1), StackedMLP(1, 1, (), 1, seed=0), np.array([True])),
            validation,
            ENCODER,
        ),
        make_settings(),
        favorable=1,
    )
    assert point.gaps["dp"].gap == pytest.approx(max(rates) - min(rates))
    if sizes[1] >= 10:
        reported: Any = audit(y, decided, sensitive_features=groups, criteria="dp").gaps
        assert reported["gap"].iloc[0] == pytest.approx(point.gaps["dp"].gap)


def test_a_constant_and_a_coin_are_trivial_and_a_good_model_is_not():
    validation = make_validation(n=20_000)
    rng = np.random.default_rng(2)
    coin = rng.integers(0, 2, len(validation.y))
    good = np.where(rng.random(len(validation.y)) < 0.8, validation.y, 1 - validation.y)
    nearly = np.zeros_like(coin)
    nearly[:3] = 1
    decisions = torch.from_numpy(np.stack([coin * 0, coin * 0 + 1, nearly, coin, good]))
    assert evaluate(decisions, validation, Criteria(()), Scoring()).trivial.tolist() == [
        True
    ] * 4 + [False]


def test_what_cannot_be_estimated_is_nan_not_zero():
    validation = make_validation()
    nobody = torch.zeros(1, 200, dtype=torch.int64)
    assert np.isnan(evaluate(nobody, validation, Criteria.of("ppv"), Scoring()).values[0, 1])


def test_a_gap_that_is_not_estimable_counts_as_one():
    values = np.array([[0.2, 0.1], [0.1, np.nan]])
    found = Evaluation(torch.zeros(2, 3), values, np.zeros(2, dtype=bool))
    assert found.losses.tolist() == pytest.approx([0.3, 1.1])


def test_a_score_of_zero_is_decided_for_the_first_class_as_by_predict():
    assert decisions_of(torch.tensor([[-1.0, 0.0, 1.0]])).tolist() == [[0, 0, 1]]
    assert decisions_of(torch.tensor([[[1.0, 1.0, 0.0]]])).tolist() == [[0]]


def candidate(*values, trivial=False, decisions=None, member=0, ranks=None, stays=False):
    snapshot = StackedMLP(1, 1, (), 40, seed=0)
    ranks, decisions = np.array([values] if ranks is None else ranks), np.asarray(decisions)
    return Candidate(member, 1, decisions, np.array(values), ranks, trivial, snapshot, stays)


def chosen(candidates, **settings):
    """Which of the candidates are on the front, by their order in it."""
    n = 8
    validation = replace(make_validation(n=n), y=np.arange(n) % 2)  # a constant has an error of .5
    offered = [
        replace(one, member=place, decisions=np.arange(n) % 2)
        for place, one in enumerate(candidates)
    ]
    front = make_front(
        SearchResult(offered, validation, ENCODER), make_settings(**settings), favorable=1
    )
    return [candidates[point.member] for point in front]


def test_a_trivial_model_takes_no_other_off_the_front():
    constant = candidate(0.2, 0.0, trivial=True)
    worse = candidate(0.25, 0.01)
    best = candidate(0.1, 0.3)
    dominated = candidate(0.26, 0.02)
    twin = candidate(0.1, 0.3)
    assert chosen([constant, worse, best, dominated, twin]) == [best, constant, worse]
    assert chosen([constant, candidate(0.1, 0.0)])[-1] is not constant
    assert chosen([constant, candidate(0.3, 0.0, trivial=True)]) == [constant]


def test_thinning_keeps_the_most_accurate_and_what_the_bounds_choose():
    leading = [candidate(0.1 + i / 100, 0.5 - i / 100) for i in range(40)]
    for n_points in (1, 2, 5, 16):
        for bound in (0.0, 0.11, 0.333, 0.5):
            kept = chosen(leading, n_points=n_points, bounds={"dp": bound})
            assert len(kept) == len(set(map(id, kept))) == n_points
            within = [c for c in leading if c.values[1] <= bound]
            assert not within or within[0] in kept
            assert n_points == 1 or leading[0] in kept
    kept = chosen(leading, n_points=5, bounds={})
    losses = [0.1, *(c.values[0] for c in kept), 0.5]
    assert max(np.diff(losses)) < 0.2  # spread over the whole front


def test_what_is_worse_than_a_constant_is_shown_only_where_a_bound_asks_for_it():
    good, useless = candidate(0.1, 0.3), candidate(0.6, 0.05)
    assert chosen([good, useless], bounds={}) == [good]
    assert chosen([good, useless], bounds={"dp": 0.1}) == [good, useless]


def test_points_are_chosen_by_resamples_and_shown_by_the_validation_rows():
    """One that leads in some resample stays, one that leads in none goes, whatever is shown."""
    best = candidate(0.1, 0.3, ranks=[[0.1, 0.3], [0.1, 0.3]])
    lucky = candidate(0.05, 0.01, ranks=[[0.2, 0.4], [0.2, 0.4]])
    unsure = candidate(0.4, 0.4, ranks=[[0.2, 0.4], [0.2, 0.1]])
    assert chosen([best, lucky, unsure], bounds={}) == [best, unsure]


def test_within_a_bound_by_both_measures_goes_before_by_luck():
    lucky = candidate(0.1, 0.05, ranks=[[0.1, 0.05], [0.1, 0.25]])
    sure = candidate(0.2, 0.05, ranks=[[0.2, 0.05], [0.2, 0.1]])
    assert chosen([lucky, sure], n_points=1, bounds={"dp": 0.1}) == [sure]
    assert chosen([lucky], n_points=1, bounds={"dp": 0.1}) == [lucky]
    assert chosen([sure], n_points=1, bounds={"dp": 0.05}) == [sure]  # a bound may be met exactly


def test_the_model_of_the_user_stays_once_and_where_there_is_room():
    own, best = candidate(0.4, 0.4, stays=True), candidate(0.1, 0.3)
    assert chosen([own, best], bounds={}) == [best, own]
    assert chosen([own, best], n_points=1, bounds={"dp": 0.0}) == [best]
    trivial = candidate(0.2, 0.0, stays=True, trivial=True)
    assert chosen([trivial, best], bounds={}) == [best, trivial]


def test_a_trivial_model_takes_nobodys_place():
    constant, *others = candidate(0.3, 0.0, trivial=True), candidate(0.1, 0.3), candidate(0.2, 0.1)
    assert chosen([constant, *others], n_points=2, bounds={}) == others
    assert chosen([constant, *others], n_points=3, bounds={}) == [*others, constant]


def test_gaps_above_one_half_are_told_apart_where_the_best_model_has_one():
    wide, less = candidate(0.1, 0.8), candidate(0.2, 0.7)
    assert chosen([wide, less], bounds={}) == [wide, less]


def _volume_of_two(points):
    """What points [n, 2] dominate of the unit square: strip by strip."""
    area, low = 0.0, 1.0
    for x, y in sorted(map(tuple, points)):
        area, low = area + max(0.0, 1 - x) * max(0.0, low - y), min(low, y)
    return area


@pytest.mark.parametrize("seed", range(10))
def test_each_choice_is_the_one_that_adds_most_volume(seed):
    """Against a search through all of them."""
    rng = np.random.default_rng(seed)
    ranks, worst = rng.random((3, 8, 2)), np.ones(2)
    ranks[:, 7] = ranks[:, 6] + 0.01  # never on the front

    def volume(places):
        return sum(_volume_of_two(draw[places]) for draw in ranks) / 3

    found = [2]
    while len(found) < 5:
        gains = {i: volume([*found, i]) - volume(found) for i in range(8) if i not in found}
        best = max(gains, key=lambda i: gains[i])
        if gains[best] <= 1e-9:
            break
        found.append(best)
    assert _by_volume(ranks, [2], worst, 5) == found
    assert 7 not in _by_volume(ranks, [6], worst, 8)


def test_levelling_down_is_shown_only_where_nobody_gains():
    validation = ValidationRows(
        np.array([1, 1, 0, 0] * 2),
        [make_groups(["f"] * 4 + ["m"] * 4)],
        make_groups(["f"] * 4 + ["m"] * 4),
        None,
        [0, 1],
    )
    base = [1, 0, 0, 0, 1, 1, 1, 0]
    harmed = [1, 0, 0, 0, 1, 0, 0, 0]  # men lose two, nobody gains
    moved = [1, 1, 0, 0, 1, 1, 0, 0]  # a woman gains one, a man loses one
    rows = [
        candidate(0.1, 0.5, decisions=base, member=0),
        candidate(0.2, 0.2, decisions=harmed, member=1),
        candidate(0.3, 0.1, decisions=moved, member=2),
    ]
    constant = candidate(0.05, 0.0, decisions=[1] * 8, member=3, trivial=True)
    for offered in (rows, [*rows, constant]):  # nobody is measured by a trivial model
        found = SearchResult(offered, validation, ENCODER)
        front = make_front(found, make_settings(), favorable=1)
        shown = {point.member: point.levelled_down for point in front}
        assert shown == {0: (), 1: ("attribute0=m",), 2: ()} | ({3: ()} if len(shown) > 3 else {})
        assert len(shown) == len(offered)
    mirrored = make_front(SearchResult(rows[:2], validation, ENCODER), make_settings(), favorable=0)
    assert all(point.levelled_down == () for point in mirrored)  # label 0 is gained


def test_no_candidate_is_an_error_with_a_remedy():
    with pytest.raises(ValueError, match="lower learning_rate, or choose another criterion"):
        make_front(SearchResult([], make_validation(), ENCODER), make_settings(), favorable=1)
