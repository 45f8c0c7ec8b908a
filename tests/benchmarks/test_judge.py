# pyright: reportMissingImports=false
import numpy as np
import pytest
from front.judge import Judge, best_scores, judge_problem, make_judge, match, score
from front.made import MIXTURES, best_values
from rivals.common import Handed

from apfex.metrics import accuracy, dp_gap, equalized_odds_gap, tpr_gap

# Ten copies of eight rows: shares of positives 1/2 and 1/4, so the best constant errs on 3/8.
Y = np.tile([1, 1, 0, 0, 1, 0, 0, 0], 10)
GROUP = np.tile([0, 0, 0, 0, 1, 1, 1, 1], 10)


def judge_of(y, group):
    cells = np.zeros((len(y), group.max() + 1, 2))
    cells[np.arange(len(y)), group, y] = 1
    return Judge(cells)


JUDGE = judge_of(Y, GROUP)
NOBODY = np.zeros(80, int)


def test_values_by_hand():
    decided = np.tile([1, 0, 0, 0, 1, 1, 0, 0], 10)
    ((error, dp, tpr, eo),) = JUDGE.values(decided[None])
    assert (error, dp, tpr) == pytest.approx((2 / 8, 1 / 2 - 1 / 4, 1 - 1 / 2))
    assert eo == pytest.approx(1 / 2)  # false positive rates 0 and 1/3


def test_values_are_those_of_the_package():
    rng = np.random.default_rng(0)
    y, group, decided = (rng.integers(0, top, 500) for top in (2, 3, 2))
    found = judge_of(y, group).values(decided[None])[0]
    gaps = (g(y, decided, sensitive_features=group) for g in (dp_gap, tpr_gap, equalized_odds_gap))
    assert found == pytest.approx([1 - accuracy(y, decided), *gaps])


def test_groups_with_few_rows_of_a_label_do_not_count_for_its_rate():
    y, group = np.append(Y, np.ones(9, int)), np.append(GROUP, np.full(9, 2))
    judge = judge_of(y, group)
    assert (judge.n_groups(1), judge.n_groups(0)) == (2, 2)
    decided = np.append(Y, np.zeros(9, int))
    assert judge.values(decided[None])[0] == pytest.approx([9 / 89, 0.5, 0, 0])


def test_a_gap_that_no_two_groups_tell_is_the_worst():
    alone = judge_of(Y[:8], GROUP[:8]).values(Y[None, :8])[0]
    assert alone == pytest.approx([0, 1 / 4, 1, 1])


@pytest.mark.parametrize("decided", [np.zeros((1, 7), int), np.full((1, 80), 2)])
def test_what_is_no_decision_is_refused(decided):
    with pytest.raises(ValueError, match="80 decisions of 0 or 1"):
        JUDGE.values(decided)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([[0, 0]], 1),
        ([[0.2, 0.25]], 1 / 4),
        ([[0.1, 0.3], [0.2, 0.1]], (0.3 * 0.2 + 0.2 * 0.2) / 0.2),
        ([[0.1, 0.3], [0.2, 0.3]], 0.3 * 0.2 / 0.2),  # the second is dominated
        ([[0.4, 0.0], [0.1, 0.6]], 0),  # on the edge of the box, and beyond
        # Three values: boxes of 3/4 x 1/2 x 1/2 and 1/2 x 1 x 1/2, which share 1/2 x 1/2 x 1/2.
        ([[0.1, 0.25, 0.25], [0.2, 0.0, 0.25]], 3 / 16 + 1 / 4 - 1 / 8),
    ],
)
def test_score_is_the_share_of_the_box(values, expected):
    assert score(np.array(values, float), 0.4) == pytest.approx(expected)


def test_folds_are_matched_by_place():
    first, second = [[0], [1], [0]], [[1, 0], [0, 1]]
    found = match([Handed([np.array(p) for p in front]) for front in (first, second)])
    np.testing.assert_array_equal(found, [[0, 1, 0], [1, 1, 0], [0, 0, 1]])


def test_folds_are_matched_by_the_figures_that_they_show():
    figures = np.array([[0.1, 0.3, 0.0], [0.2, 0.2, 0.1], [0.3, 0.1, 0.2]])
    codes, order = [np.array([0, 0]), np.array([0, 1]), np.array([1, 1])], [2, 0, 1]
    first = Handed(codes, figures=figures)
    other = Handed([codes[i] for i in order], figures=figures[order] + 0.01)
    short = Handed(codes[:2], figures=figures[:2])
    found = match([first, other, short])
    np.testing.assert_array_equal(found[:, :4], np.hstack([codes, codes]))
    np.testing.assert_array_equal(found[:, 4:], [codes[0], codes[1], codes[1]])


def test_all_points_count_and_bounds_are_pooled():
    half = np.arange(80) < 40
    folds = [
        Handed([Y[part], NOBODY[part]][::step], {0.02: Y[part]}, np.array([[0.0], [1.0]])[::step])
        for part, step in ((half, 1), (~half, -1))
    ]
    found = judge_problem("dp", JUDGE, [Handed([Y, NOBODY], {0.02: NOBODY})])
    assert found["points"] == [[0, 0.25], [0.375, 0]]
    assert found["within"] == {"0.02": [0.375, 0]}
    assert (found["n_points"], found["n_constant"]) == (2, 1)
    assert found["hypervolume"] == pytest.approx(score(np.array(found["points"]), 3 / 8))
    pooled = judge_problem("dp", JUDGE, folds)  # by figures, not by place
    assert pooled["points"] == found["points"]
    assert pooled["within"] == {"0.02": [0, 0.25]}


def test_both_gaps_at_once():
    found = judge_problem("both", JUDGE, [Handed([Y, NOBODY])])
    assert found["points"] == [[0, 0.25, 0], [0.375, 0, 0]]
    assert found["hypervolume"] == pytest.approx(0.5)


@pytest.mark.parametrize(("problem", "n"), [("dp", 0), ("dp", 17), ("both", 33)])
def test_no_more_points_than_allowed(problem, n):
    with pytest.raises(ValueError, match=f"hand out 1 to .* points for '{problem}', got {n}"):
        judge_problem(problem, JUDGE, [Handed([Y] * n)])


@pytest.fixture
def few_rows(monkeypatch):
    """The best front of fewer bounds and rows."""
    import front.judge as judge
    import front.made as made
    import front.tables as tables

    for module in (made, tables):
        monkeypatch.setattr(module, "N_TEST", 1000)
    monkeypatch.setattr(made, "BOUNDS", np.linspace(0, 0.5, 6))
    monkeypatch.setattr(made, "PAIRS", np.linspace(0, 0.5, 3))
    yield judge
    made.best_values.cache_clear()
    tables._read.cache_clear()


def test_the_best_front_of_a_made_table_is_not_passed_by_the_bayes_rule(few_rows):
    name = "made-uneven"
    judge = make_judge(name, 0, needs_attribute=False)
    bayes = judge.cells.sum(1)[:, 1] > 0.5
    told = judge_problem("dp", judge, [Handed([bayes, np.zeros_like(bayes)])])
    best = best_scores(name, judge.constant_error)
    assert 0 < told["hypervolume"] < best["dp"] < 1
    values = best_values(name)
    assert values["dp"][-1, 0] == pytest.approx(judge.values(bayes[None])[0, 0])
    assert (np.diff(values["dp"][:, 0]) <= 1e-9).all()
    assert best["both"] <= best["dp"]
    assert few_rows.COLUMNS["both"] == [0, 1, 2]


def test_known_probabilities_are_those_of_the_drawn_rows():
    mixture = MIXTURES["made-even"]
    data = mixture.draw(20_000, 1)
    q = mixture.probabilities(data.X.to_numpy())
    group = data.sensitive["group"].str[1:].astype(int).to_numpy()
    likely = q[:, :, 1].sum(1)
    for low in (0.1, 0.4, 0.7):  # labels come as often as they should
        rows = (likely > low) & (likely < low + 0.2)
        assert data.y[rows].mean() == pytest.approx(likely[rows].mean(), abs=0.02)
    assert np.mean(q.sum(2).argmax(1) == group) > 0.5
    np.testing.assert_allclose(q.sum(2).mean(0), mixture.shares.sum(1), atol=0.01)


def test_who_reads_the_attribute_is_judged_given_the_group(few_rows):
    given = few_rows.make_judge("made-even", 0, needs_attribute=True)
    assert ((given.cells.sum(2) > 0).sum(1) == 1).all()
