"""The worst-off groups and what drives them."""

import numpy as np
import pandas as pd
import pytest
from tests.auditing.rows import audit, counts

from apfex import make_groups
from apfex.auditing import AuditSettings, audit_counts
from apfex.auditing._worst import groups_below
from apfex.rates import count_rows


def planted(n=40_000, seed=0):
    """Three hundred cells at one half, but for one sex in one region at a quarter."""
    generator = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "sex": generator.choice(["F", "M"], n),
            "region": generator.integers(0, 30, n),
            "age": generator.choice(["a", "b", "c", "d", "e"], n),
        }
    )
    hit = (table["sex"] == "F") & (table["region"] == 7)
    rate = np.where(hit, np.where(table["age"] == "c", 0.1, 0.4), 0.5)
    return (generator.random(n) < rate).astype(int), table


def test_a_planted_group_is_found_among_hundreds():
    decided, table = planted()
    found = audit(None, decided, sensitive_features=table, criteria="dp")
    assert found.n_groups == 300
    worst = found.worst(3)
    assert len(worst) == 3
    assert worst["group"][0] == "sex=F, region=7, age=c"
    assert worst["difference"][0] == pytest.approx(worst["favored"][0] - decided.mean())
    by_region = found.worst(1, by="region")
    assert by_region["group"].tolist() == ["region=7"]


def test_a_handful_of_unlucky_rows_does_not_lead():
    decided, table = counts([3, 400, 400], [0, 120, 240])
    worst = audit(None, decided, sensitive_features=table, criteria="dp", min_count=1).worst()
    assert worst["group"].tolist() == ["g=b", "g=a", "g=c"]
    assert worst["favored"].tolist() == [0.3, 0.0, 0.6]


@pytest.mark.parametrize("attribute", ["sex", "race", "age"])
def test_the_driver_is_the_attribute_that_makes_the_difference(attribute):
    generator = np.random.default_rng(1)
    table = pd.DataFrame({name: generator.integers(0, 3, 6000) for name in ("sex", "race", "age")})
    decided = (generator.random(6000) < np.where(table[attribute] == 1, 0.2, 0.6)).astype(int)
    worst = audit(None, decided, sensitive_features=table, criteria="dp").worst(5)
    assert worst["driver"].tolist() == [attribute] * 5
    first = dict(part.split("=") for part in worst["group"][0].split(", "))
    same = np.all(
        [table[name] == int(value) for name, value in first.items() if name != attribute], axis=0
    )
    others = same & (table[attribute] != 1)
    assert worst["others"][0] == pytest.approx(decided[others].mean())


def test_worst_follows_the_favorable_label():
    decided, table = counts([200, 200], [50, 100])
    call = {"sensitive_features": table, "criteria": "dp"}
    assert audit(None, decided, **call).worst(1)["group"][0] == "g=a"
    swapped = audit(None, decided, favorable_label=0, **call)
    assert swapped.worst(1)["group"][0] == "g=b"
    assert swapped.worst(1)["favored"][0] == 0.5
    assert swapped.share_favored == 0.625
    names = np.array(["no", "maybe", "yes"])
    several = names[np.r_[np.repeat([0, 1, 2], [50, 100, 50]), np.repeat([0, 1, 2], [50, 50, 100])]]
    for label, worst in (("yes", "g=a"), ("maybe", "g=b")):
        found = audit(None, several, favorable_label=label, **call)
        assert found.worst(1)["group"][0] == worst


@pytest.mark.parametrize("weight", [None, np.tile([1.0, 3.0], 150)])
def test_classes_are_counted_by_the_favorable_label(weight):
    generator = np.random.default_rng(0)
    y, decided = generator.integers(0, 2, (2, 300))
    groups = make_groups(generator.choice(["a", "b"], 300))
    zero, one = (
        audit_counts(count_rows(y, decided, groups, weight, favorable=code), AuditSettings())
        for code in (0, 1)
    )
    assert zero.share_favored == pytest.approx(np.average(decided == 0, weights=weight))
    assert zero.share_favored == pytest.approx(1 - one.share_favored)
    other = audit(1 - y, 1 - decided, sensitive_features=groups, sample_weight=weight)
    assert zero.groups.equals(other.groups)


def test_nobody_is_driven_where_all_fare_alike():
    decided, table = counts([100, 100], [50, 50])
    worst = audit(None, decided, sensitive_features=table, criteria="dp").worst()
    assert worst["driver"].isna().all()


@pytest.mark.parametrize(
    ("sizes", "successes"),
    [
        ([3, 1000], [3, 950]),  # the few fare better
        ([3, 1000], [2, 950]),  # they seem to fare worse, and so do three in many
        ([5, 400], [5, 400]),  # all decisions are the same
        ([400, 5], [0, 0]),
    ],
)
def test_a_few_rows_are_driven_by_nothing(sizes, successes):
    decided, table = counts(sizes, successes)
    found = audit(None, decided, sensitive_features=table, criteria="dp", min_count=1)
    assert found.worst()["driver"].isna().all()
    assert found.worst()["others"].isna().all()


@pytest.mark.parametrize(("sizes", "successes"), [([3, 1000], [3, 950]), ([2, 400], [2, 400])])
def test_nobody_who_fares_as_well_is_driven_at_any_confidence(sizes, successes):
    decided, table = counts(sizes, successes)
    call = {"sensitive_features": table, "criteria": "dp", "min_count": 1, "confidence": 0.5}
    assert audit(None, decided, **call).worst().set_index("group")["driver"].isna()["g=a"]


def test_a_small_group_is_driven_where_it_is_clear():
    decided, table = counts([12, 1000], [2, 950])
    table = {"g": table["g"], "h": np.tile(["c"], 1012)}
    worst = audit(None, decided, sensitive_features=table, criteria="dp").worst(1)
    assert worst[["driver", "others"]].to_numpy().tolist() == [["g", 0.95]]


def test_one_attribute_alone_drives_nothing():
    decided, table = counts([200, 200], [50, 150])
    found = audit(None, decided, sensitive_features=table, criteria="dp")
    assert found.worst()["driver"].isna().all()
    assert "driven by" not in str(found)
    two = {"g": table["g"], "h": np.tile(["c", "d"], 200)}
    assert "driven by" in str(audit(None, decided, sensitive_features=two, criteria="dp"))


def test_a_driver_is_a_difference_that_its_interval_tells():
    decided, table = planted(12_000)
    found = audit(None, decided, sensitive_features=table, criteria="dp", min_count=1)
    worst = found.worst(300)
    driven = worst[worst["driver"].notna()]
    assert worst["group"][0] == "sex=F, region=7, age=c"
    assert 0 < len(driven) < 5
    assert driven["driver"].iloc[0] in ("sex", "region")
    assert (driven["favored"] < driven["others"]).all()


def test_the_worst_of_many_groups_that_fare_alike_are_driven_by_nothing():
    """Without a correction nearly every such audit would name a driver."""
    generator, named = np.random.default_rng(0), 0
    for _ in range(10):
        table = {name: generator.integers(0, 7, 1500) for name in ("a", "b")}
        found = audit(None, generator.integers(0, 2, 1500), sensitive_features=table, criteria="dp")
        named += found.worst(5)["driver"].notna().any()
    assert named <= 2  # one in twenty is expected


def test_a_large_group_that_fares_well_is_not_among_the_worst():
    decided, table = counts([60, 60, 60, 60, 9000], [24, 25, 26, 27, 4600])
    found = audit(None, decided, sensitive_features=table, criteria="dp")
    worst = found.worst()
    assert worst["difference"].iloc[-1] > 0
    assert worst["group"].tolist() == ["g=a", "g=b", "g=c", "g=d", "g=e"]
    assert "g=e" in found.worst(5)["group"].tolist()
    assert found.worst(5, only_below=True)["group"].tolist() == ["g=a", "g=b", "g=c", "g=d"]
    assert "g=e" not in str(found)


def test_worst_first_is_sorted_by_what_is_shown():
    decided, table = planted(6000)
    worst = audit(None, decided, sensitive_features=table, criteria="dp").worst(300)
    assert worst["clearly_below"].is_monotonic_decreasing
    for _, part in worst.groupby("clearly_below"):
        assert part["favored"].is_monotonic_increasing


def test_who_is_clearly_below_comes_first():
    decided, table = counts([3, 400, 400, 400], [0, 120, 80, 240])
    found = audit(None, decided, sensitive_features=table, criteria="dp", min_count=1)
    worst = found.worst()
    assert worst["group"].tolist() == ["g=c", "g=b", "g=a", "g=d"]
    assert worst["clearly_below"].tolist() == [True, True, False, False]
    assert found.n_worse_off == 2
    lines = [line.split() for line in str(found).splitlines()[-3:]]
    assert [(cells[0], cells[-1]) for cells in lines] == [("c", "yes"), ("b", "yes"), ("a", "no")]


def test_attributes_are_columns_of_their_own():
    decided, table = planted(6000)
    table = table.rename(columns={"sex": "group"}).astype({"region": float})
    table.loc[:99, "region"] = np.nan
    found = audit(None, decided, sensitive_features=table, criteria="dp")
    first = found.worst(1).iloc[0]
    named = f"group={first['group (attribute)']}, region={first['region']}, age={first['age']}"
    assert first["group"] == named
    assert "<missing>" in set(found.groups["region"])
    alone = found.groups[found.groups["by"] == "age"]
    assert alone["age"].tolist() == ["a", "b", "c", "d", "e"]
    assert alone[["group (attribute)", "region"]].isna().all(axis=None)


@pytest.mark.parametrize(("k", "n", "rate"), [(200, 3, 0.98), (30, 40, 0.97), (30, 40, 0.5)])
def test_few_rows_make_nobody_clearly_worse_off_where_all_fare_alike(k, n, rate):
    """By Wilson's interval four of five audits of two hundred groups of three would."""
    generator, found = np.random.default_rng(0), 0
    groups = make_groups({"g": np.repeat(np.arange(k), n)})
    for _ in range(100):
        decided = (generator.random(k * n) < rate).astype(int)
        counts = count_rows(None, decided, groups)
        found += groups_below(counts, [("g",)], 0.95).shape[0] > 0
    assert found <= 9  # five in a hundred at most are expected


def test_chance_among_many_groups_makes_nobody_clearly_worse_off():
    hits = []
    for seed in range(20):
        generator = np.random.default_rng(seed)
        decided, table = counts([50] * 20, generator.binomial(50, 0.4, 20))
        found = audit(None, decided, sensitive_features=table, criteria="dp")
        hits.append(found.n_worse_off > 0)
        assert ("none is clearly worse off" in str(found)) == (not hits[-1])
    assert sum(hits) <= 2
    decided, table = counts([50] * 20, [20] * 19 + [4])
    found = audit(None, decided, sensitive_features=table, criteria="dp")
    assert found.n_worse_off == 1
    assert "none is clearly" not in str(found)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n": 0}, "n must be a whole number of at least 1, got 0"),
        ({"n": 2.5}, "n must be a whole number of at least 1, got 2.5"),
        ({"by": "zip"}, r"by must be one of \['g'\], got 'zip'"),
    ],
)
def test_bad_choices_are_named(options, message):
    decided, table = counts([20, 20], [5, 10])
    found = audit(None, decided, sensitive_features=table, criteria="dp")
    with pytest.raises(ValueError, match=message):
        found.worst(**options)
