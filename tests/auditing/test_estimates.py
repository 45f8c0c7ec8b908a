"""Estimates of rates: intervals of Wilson and Newcombe, and shrunken rates.

Shrunken ones are closer to the truth for tiny groups, and the raw rate for large ones.
"""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm
from tests.auditing.rows import audit, counts, rows


def assert_wilson(found, confidence):
    """The rate has the score of the confidence at either end, and nothing lies beyond 0 and 1."""
    z = norm.ppf(0.5 + confidence / 2)
    for row in found.to_dict("records"):
        rate, n = row["rate"], row["effective"]
        assert 0 <= row["lower"] <= rate <= row["upper"] <= 1
        for end, sure in ((row["lower"], rate == 0), (row["upper"], rate == 1)):
            if sure:
                assert end == rate
            else:
                assert abs(rate - end) / np.sqrt(end * (1 - end) / n) == pytest.approx(z, rel=1e-6)


@settings(deadline=None)
@given(st.integers(1, 500), st.floats(0, 1), st.sampled_from([0.5, 0.9, 0.95, 0.999]))
def test_wilson_ends_have_the_score_of_the_confidence(n, share, confidence):
    decided, table = counts([n], [round(share * n)])
    found = audit(None, decided, sensitive_features=table, criteria="dp", confidence=confidence)
    assert_wilson(found.groups, confidence)


def test_intervals_of_groups_are_wilsons_at_effective_sizes():
    y, decided, table, weight = rows()
    found = audit(y, decided, sensitive_features=table, sample_weight=weight, confidence=0.9)
    groups = found.groups
    assert_wilson(groups, 0.9)
    assert (groups["effective"] < groups["count"]).all()
    codes = pd.factorize(table["sex"], sort=True)[0]
    kish = np.bincount(codes, weight) ** 2 / np.bincount(codes, weight**2)
    by_sex = groups[(groups["by"] == "sex") & (groups["of"] == "dp")]
    assert by_sex["effective"].tolist() == kish.round().tolist()


def change_of_rates(now, earlier):
    """Ends of the change of the rate of each group, from successes and totals."""
    found, before = (
        audit(
            None,
            np.concatenate([np.arange(n) < x for x, n in one]).astype(int),
            sensitive_features=np.repeat(np.arange(len(one)), [n for _, n in one]),
            criteria="dp",
        )
        for one in (now, earlier)
    )
    change = found.diff(before).groups
    return change["lower"].to_numpy(), change["upper"].to_numpy()


def test_newcombes_interval_is_that_of_his_paper():
    """Table II of Newcombe (1998), method 10: 56 of 70 against 48 of 80, and 5 of 56 against 0."""
    low, high = change_of_rates([(56, 70), (5, 56)], [(48, 80), (0, 29)])
    assert low == pytest.approx([0.0524, -0.0381], abs=6e-5)
    assert high == pytest.approx([0.3339, 0.1926], abs=6e-5)


def test_newcombes_interval_covers():
    generator = np.random.default_rng(0)
    now, earlier = (
        [(int(x), n) for x in generator.binomial(n, rate, 4000)]
        for n, rate in ((40, 0.3), (90, 0.6))
    )
    low, high = change_of_rates(now, earlier)
    covered = np.mean((low <= -0.3) & (high >= -0.3))
    assert 0.935 <= covered <= 0.97


def people(n, interaction, seed):
    """Decisions of rates that add up on the logit scale, plus noise for each cell."""
    generator = np.random.default_rng(seed)
    codes = [generator.integers(0, k, n) for k in (3, 4, 5)]
    effects = [generator.normal(0, 0.6, k) for k in (3, 4, 5)]
    cells = np.ravel_multi_index(codes, (3, 4, 5))
    logits = sum(effect[code] for effect, code in zip(effects, codes, strict=True))
    logits = logits + generator.normal(0, interaction, 60)[cells]
    truth = 1 / (1 + np.exp(-logits))
    decided = (generator.random(n) < truth).astype(int)
    table = dict(zip("abc", codes, strict=True))
    order = np.unique(cells, return_index=True)[1]
    return decided, table, truth[order]


@pytest.mark.parametrize("interaction", [0.0, 0.5])
def test_estimates_of_small_cells_are_nearer_to_the_truth(interaction):
    raw, shrunken = [], []
    for seed in range(5):
        decided, table, truth = people(900, interaction, seed)
        groups = audit(None, decided, sensitive_features=table, criteria="dp").groups
        cells = groups[groups["by"] == "a x b x c"]
        raw.append(np.mean((cells["rate"] - truth) ** 2))
        shrunken.append(np.mean((cells["shrunken"] - truth) ** 2))
    assert np.mean(shrunken) < 0.6 * np.mean(raw)


def test_large_groups_keep_their_rate():
    decided, table = counts([4000, 4000, 4000, 4], [800, 2000, 3000, 4])
    groups = audit(None, decided, sensitive_features=table, criteria="dp").groups
    assert groups["shrunken"][:3].tolist() == pytest.approx(groups["rate"][:3].tolist(), abs=0.01)
    assert 0.5 < groups["shrunken"][3] < 0.99


def test_groups_that_do_not_differ_get_the_rate_of_all():
    decided, table = counts([50, 50, 2], [25, 25, 1])
    groups = audit(None, decided, sensitive_features=table, criteria="dp").groups
    assert groups["shrunken"].tolist() == pytest.approx([0.5] * 3)


def test_estimates_stay_inside_and_unknown_where_there_are_no_rows():
    y = np.array([1, 1, 0, 0] * 10 + [0] * 6)
    decided = np.array([1, 0, 1, 0] * 10 + [1] * 6)
    table = {"g": ["a", "b"] * 20 + ["c"] * 6, "h": (["u", "u", "v", "v"] * 12)[:46]}
    groups = audit(y, decided, sensitive_features=table).groups
    known = groups[groups["denominator"] > 0]
    assert known["shrunken"].between(0, 1).all()
    assert groups[groups["denominator"] == 0]["shrunken"].isna().all()
    assert (groups["denominator"] == 0).any()
