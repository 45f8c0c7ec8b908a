import warnings
from typing import Any

import fairlearn.metrics as oracle
import numpy as np
import pandas as pd
import pytest
import sklearn
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import make_scorer, precision_score
from sklearn.model_selection import cross_validate
from tests.generators import people

from apfex import metrics
from apfex.groups import make_groups
from apfex.metrics import NotEstimableWarning, dp_gap, equalized_odds_gap, group_rates, tpr_gap
from apfex.rates import RATES, RateName

GAPS: dict[RateName, Any] = {name: getattr(metrics, f"{name}_gap") for name in RATES}
FAIRLEARN = {
    "dp": oracle.selection_rate,
    "tpr": oracle.true_positive_rate,
    "fpr": oracle.false_positive_rate,
    "tnr": oracle.true_negative_rate,
    "fnr": oracle.false_negative_rate,
    "ppv": precision_score,
    "npv": lambda y, decided, **weight: precision_score(y, decided, pos_label=0, **weight),
    "accuracy": sklearn.metrics.accuracy_score,
}


def fairlearn_gap(name, y, decided, table, weight):
    frame = oracle.MetricFrame(
        metrics=FAIRLEARN[name],
        y_true=y,
        y_pred=decided,
        sensitive_features=pd.DataFrame(table),
        sample_params=None if weight is None else {"sample_weight": weight},
    )
    return frame.difference()


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", sorted(RATES))
@pytest.mark.parametrize("seed", range(3))
def test_gaps_equal_those_of_fairlearn(name, weighted, seed):
    y, decided, table, weight = people(seed=seed)
    weight = weight if weighted else None
    call: dict[str, Any] = {"sensitive_features": table, "sample_weight": weight}
    expected = fairlearn_gap(name, y, decided, table, weight)
    assert GAPS[name](y, decided, **call) == pytest.approx(expected, abs=1e-12)
    by_attribute = GAPS[name](y, decided, grouping="attributes", **call)
    assert list(by_attribute) == ["sex", "race"]
    for attribute, column in table.items():
        expected = fairlearn_gap(name, y, decided, {attribute: column}, weight)
        assert by_attribute[attribute] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
def test_named_differences_equal_those_of_fairlearn(weighted):
    y, decided, table, weight = people(seed=7)
    call: dict[str, Any] = {
        "sensitive_features": pd.DataFrame(table),
        "sample_weight": weight if weighted else None,
    }
    assert dp_gap(y, decided, **call) == pytest.approx(
        oracle.demographic_parity_difference(y, decided, **call)
    )
    assert tpr_gap(y, decided, **call) == pytest.approx(
        oracle.equal_opportunity_difference(y, decided, **call)
    )
    assert equalized_odds_gap(y, decided, **call) == pytest.approx(
        oracle.equalized_odds_difference(y, decided, **call)
    )


def brute_force(name, y, decided, codes, c):
    """Gap of one class against the rest, by counting rows."""
    rates = []
    for group in np.unique(codes):
        s, t = decided[codes == group] == c, y[codes == group] == c
        counted = {"tpr": t, "fnr": t, "fpr": ~t, "tnr": ~t, "ppv": s, "npv": ~s}.get(
            name, np.ones(len(s)) > 0
        )
        met = {"tnr": ~s, "fnr": ~s, "ppv": t, "npv": ~t}.get(name, s)
        rates.append(met[counted].mean())
    return max(rates) - min(rates)


@pytest.mark.parametrize("name", sorted(RATES))
def test_multiclass_gap_is_the_largest_over_classes(name):
    y, decided, table, _ = people(n_classes=4, seed=1)
    codes = make_groups(table).codes
    if name == "accuracy":
        expected = np.ptp([(y == decided)[codes == g].mean() for g in range(6)])
    else:
        expected = max(brute_force(name, y, decided, codes, c) for c in range(4))
    assert GAPS[name](y, decided, sensitive_features=table) == pytest.approx(expected)
    letters = np.array(["d", "a", "c", "b"])
    renamed = GAPS[name](letters[y], letters[decided], sensitive_features=table, pos_label="zz")
    assert renamed == pytest.approx(expected)


@given(st.integers(0, 2**32 - 1), st.sampled_from(sorted(RATES)))
def test_crossing_gap_is_at_least_each_marginal_gap(seed, name):
    y, decided, table, weight = people(n=40, seed=seed)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call: dict[str, Any] = {"sensitive_features": table, "sample_weight": weight}
        crossing = GAPS[name](y, decided, **call)
        marginal = GAPS[name](y, decided, grouping="attributes", **call)
    if not caught:  # it need not hold once cells are left out
        assert crossing >= max(marginal.values()) - 1e-12


def test_a_group_without_positives_is_left_out_and_named_not_counted_as_zero():
    y, decided = [1, 1, 1, 1, 0, 0], [1, 1, 1, 0, 1, 1]
    sex = list("aabbcc")
    with pytest.warns(NotEstimableWarning, match="tpr is not estimable for 'attribute0=c'") as seen:
        assert tpr_gap(y, decided, sensitive_features=sex) == 0.5
    assert len(seen) == 1
    assert seen[0].filename == __file__
    assert dp_gap(y, decided, sensitive_features=sex) == 0.5


def test_min_count_leaves_small_groups_out_by_rows_also_where_they_are_weighted():
    decided, sex = [1, 0, 1, 0, 1], list("aabbc")
    for weight in (None, [1e-6] * 5, [1e6] * 5):
        call: dict[str, Any] = {"sensitive_features": sex, "sample_weight": weight}
        with pytest.warns(NotEstimableWarning, match="'attribute0=c': fewer than 2 rows"):
            assert dp_gap(None, decided, min_count=2, **call) == 0.0
        assert dp_gap(None, decided, **call) == 0.5


def test_a_group_without_weight_is_left_out():
    with pytest.warns(NotEstimableWarning, match="'attribute0=b'"):
        gap = dp_gap(None, [1, 0, 0], sensitive_features=list("abc"), sample_weight=[1, 0, 1])
    assert gap == 1.0


def test_many_left_out_groups_are_counted():
    sex = [*"aabb", *"cdefgh"]
    with pytest.warns(NotEstimableWarning, match="'attribute0=e' and 3 more: fewer than 2 rows"):
        dp_gap(None, [0, 1] * 5, sensitive_features=sex, min_count=2)


@pytest.mark.parametrize("sex", [list("aaaa"), list("aaab")])
def test_fewer_than_two_estimable_groups_give_nan_and_a_warning(sex):
    with pytest.warns(NotEstimableWarning, match=r"NaN: it needs 2 estimable groups, got 1 of"):
        assert np.isnan(dp_gap(None, [1, 0, 1, 0], sensitive_features=sex, min_count=2))


def test_equalized_odds_are_unknown_where_one_of_the_two_gaps_is():
    y, decided = [1, 1, 1, 1, 0], [1, 0, 1, 1, 1]
    with pytest.warns(NotEstimableWarning, match="The result for fpr is NaN"):
        assert np.isnan(equalized_odds_gap(y, decided, sensitive_features=list("aabbb")))


def test_a_class_without_two_estimable_groups_is_named():
    y, decided = [0, 1, 0, 1, 2], [0, 0, 0, 1, 2]
    with pytest.warns(NotEstimableWarning, match=r"'attribute0=a' \(class 2\)"):
        assert tpr_gap(y, decided, sensitive_features=list("aabbb")) == 1.0


def test_rows_without_a_group_count_nowhere():
    groups = make_groups(list("ab"))
    kept = groups.encode(list("ab"))
    codes = np.array([*kept, -1])
    partly = type(groups)(codes, groups.attributes, groups.levels, groups.cells, groups._keys)
    assert dp_gap(None, [1, 1, 0], sensitive_features=partly) == 0.0


def test_group_rates_tell_what_gaps_are_made_of():
    y, decided, table, weight = people(n_classes=3)
    call: dict[str, Any] = {"sensitive_features": table, "sample_weight": weight}
    for name, gap in GAPS.items():
        frame = group_rates(y, decided, rate=name, **call)
        assert frame["rate"].to_numpy() == pytest.approx(
            (frame["numerator"] / frame["denominator"]).to_numpy()
        )
        by_class = frame.groupby("class") if "class" in frame else [(None, frame)]
        largest = max(np.ptp(part["rate"]) for _, part in by_class)
        assert gap(y, decided, **call) == pytest.approx(largest)
    frame = group_rates(y, decided, rate="accuracy", **call)
    assert list(frame.columns) == ["group", "count", "numerator", "denominator", "rate"]
    frame = group_rates(y, decided, rate="dp", grouping="attributes", **call)
    assert list(frame.columns[:4]) == ["attribute", "group", "class", "count"]
    assert frame["group"].unique().tolist() == ["sex=F", "sex=M", "race=A", "race=B", "race=C"]
    for _, part in frame.groupby(["attribute", "class"]):
        assert sum(part["count"]) == 400


def test_group_rates_show_what_is_not_estimable_as_nan():
    frame = group_rates([0, 1], [1, 1], rate="tpr", sensitive_features=list("ab"))
    assert frame["rate"].isna().tolist() == [True, False]
    assert frame["denominator"].tolist() == [0.0, 1.0]


@pytest.mark.parametrize("form", [pd.DataFrame, lambda table: np.array(list(table.values())).T])
def test_gaps_are_scorers_with_metadata_routing(form):
    y, _, table, weight = people(seed=3)
    X = np.random.default_rng(0).normal(size=(len(y), 2)) + 0.5 * y[:, None]
    sensitive = form(table)
    with sklearn.config_context(enable_metadata_routing=True):
        scoring = {
            "plain": make_scorer(dp_gap, greater_is_better=False).set_score_request(
                sensitive_features=True
            ),
            "weighted": make_scorer(equalized_odds_gap, greater_is_better=False).set_score_request(
                sensitive_features=True, sample_weight=True
            ),
        }
        result = cross_validate(
            LogisticRegression().set_fit_request(sample_weight=False),
            X,
            y,
            cv=3,
            scoring=scoring,
            params={"sensitive_features": sensitive, "sample_weight": weight},
            return_estimator=True,
            return_indices=True,
        )
    for fold, (model, test) in enumerate(
        zip(result["estimator"], result["indices"]["test"], strict=True)
    ):
        part = {name: column[test] for name, column in table.items()}
        decided = model.predict(X[test])
        assert result["test_plain"][fold] == -dp_gap(None, decided, sensitive_features=part)
        assert result["test_weighted"][fold] == -equalized_odds_gap(
            y[test], decided, sensitive_features=part, sample_weight=weight[test]
        )
        assert result["test_plain"][fold] < 0
