"""Rates of groups, against fairlearn and against metrics."""

from typing import Any

import fairlearn.metrics as fm
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, precision_score
from tests.auditing.rows import audit, rows

from apfex.metrics import group_rates
from apfex.rates import RateName

ORACLES: dict[RateName, Any] = {
    "dp": fm.selection_rate,
    "tpr": fm.true_positive_rate,
    "fpr": fm.false_positive_rate,
    "tnr": fm.true_negative_rate,
    "fnr": fm.false_negative_rate,
    "accuracy": accuracy_score,
    "ppv": precision_score,
}
RATES = tuple(ORACLES)


@pytest.mark.parametrize("weighted", [False, True])
def test_rates_are_fairlearns_on_every_grouping(weighted):
    y, decided, table, weight = rows(800, attributes=2)
    found = audit(
        y,
        decided,
        sensitive_features=table,
        criteria=RATES,
        sample_weight=weight if weighted else None,
    )
    for by, part in found.groups.groupby("by"):
        names = by.split(" x ")
        given_weight = {name: {"sample_weight": weight} for name in RATES} if weighted else None
        oracle = fm.MetricFrame(
            metrics={str(name): oracle for name, oracle in ORACLES.items()},
            y_true=y,
            y_pred=decided,
            sensitive_features=table[names],
            sample_params=given_weight,
        ).by_group
        for key, expected in oracle.iterrows():
            values = key if isinstance(key, tuple) else (key,)
            group = ", ".join(f"{n}={v}" for n, v in zip(names, values, strict=True))
            shown = part[part["group"] == group].set_index("of")["rate"]
            assert shown[list(RATES)].tolist() == pytest.approx(expected[list(RATES)].tolist())


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("weighted", [False, True])
def test_rates_and_sums_are_those_of_metrics(n_classes, weighted):
    y, decided, table, weight = rows(400, n_classes, attributes=2)
    sample_weight = weight if weighted else None
    call = {"sensitive_features": table, "sample_weight": sample_weight}
    found = audit(y, decided, criteria=RATES, **call)
    for of in RATES:
        crossing = group_rates(y, decided, rate=of, **call)
        alone: Any = group_rates(y, decided, rate=of, grouping="attributes", **call)
        for by, expected in [("sex x race", crossing), *alone.groupby("attribute")]:
            part = found.groups[(found.groups["by"] == by) & (found.groups["of"] == of)]
            for column in ("group", "count", "class"):
                if column in expected:
                    assert part[column].tolist() == expected[column].tolist()
            for column in ("numerator", "denominator", "rate"):
                assert part[column].to_numpy() == pytest.approx(expected[column].to_numpy())


def test_levels_are_attributes_pairs_and_the_crossing():
    y, decided, table, _ = rows(attributes=3)
    by = audit(y, decided, sensitive_features=table).gaps["by"].tolist()
    pairs = ["sex x race", "sex x age", "race x age"]
    assert by == ["sex", "race", "age", *pairs, "sex x race x age"] * 2
    assert audit(y, decided, sensitive_features=table["sex"]).gaps["by"].tolist() == ["sex"] * 2
    four = table.assign(more=["x", "y"] * 300)
    by = audit(y, decided, sensitive_features=four, criteria="dp").gaps["by"]
    assert len(by) == 4 + 6 + 1


def test_differences_are_to_the_rate_of_all_rows():
    y, decided, table, _ = rows()
    found = audit(y, decided, sensitive_features=table)
    assert not found.notes
    overall = found.overall.set_index("of")["rate"]
    assert overall.tolist() == pytest.approx([decided.mean(), decided[y == 1].mean()])
    expected = found.groups["rate"] - overall[found.groups["of"]].to_numpy()
    assert found.groups["difference"].tolist() == pytest.approx(expected.tolist())


def test_a_weighted_rate_without_rows_is_not_known():
    """Sums of weights that should cancel out are off by rounding."""
    weight = np.array([0.1, 0.7, 0.2, 0.3] * 25)
    y, decided = np.tile([0, 1], 50), np.repeat([1, 0], 50)
    decided[50:] = np.tile([0, 1], 25)
    table = {"g": np.repeat(["all selected", "some"], 50)}
    found = audit(y, decided, sensitive_features=table, sample_weight=weight, criteria="npv")
    first = found.groups.iloc[0]
    assert np.isnan(first["rate"])
    assert first[["numerator", "denominator", "effective"]].tolist() == [0, 0, 0]


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6))
def test_the_order_of_rows_does_not_matter(seed):
    y, decided, table, weight = rows(120, seed=seed)
    order = np.random.default_rng(seed).permutation(120)
    call = {"criteria": "dp", "min_count": 1}
    one = audit(y, decided, sensitive_features=table, **call)
    other = audit(y[order], decided[order], sensitive_features=table.iloc[order].to_numpy(), **call)
    named = ["by", "lowest", "highest"]  # the second table has no names of attributes
    assert one.gaps.drop(columns=named).equals(other.gaps.drop(columns=named))
    assert one.groups["rate"].equals(other.groups["rate"])
    assert len(weight) == 120


def test_inputs_stay_as_they_are():
    y, decided, table, weight = rows()
    before = [y.copy(), decided.copy(), table.copy(), weight.copy()]
    audit(y, decided, sensitive_features=table, sample_weight=weight, y_score=weight)
    assert table.equals(before[2])
    for now, then in zip((y, decided, weight), (before[0], before[1], before[3]), strict=True):
        assert (now == then).all()
