"""Any metric by group, calibration, and gaps within strata of control features."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from sklearn.metrics import brier_score_loss, f1_score, precision_score, roc_auc_score
from tests.auditing.rows import audit, rows

from apfex.auditing import Audit, AuditSettings
from apfex.auditing._metrics import compare_values
from apfex.metrics import of_scores


def scored(n=800, seed=0):
    generator = np.random.default_rng(seed)
    table = pd.DataFrame(
        {"sex": generator.choice(["F", "M"], n), "race": generator.choice(["a", "b"], n)}
    )
    p = generator.random(n)
    y = (generator.random(n) < p).astype(int)
    # For women in race b scores say nothing.
    p = np.where((table["sex"] == "F") & (table["race"] == "b"), generator.random(n), p)
    return y, p, table


def test_metrics_are_those_of_the_rows_of_each_group():
    y, p, table = scored()
    decided = (p > 0.5).astype(int)
    metrics = {"auc": roc_auc_score, "f1": f1_score, "mine": lambda a, b: np.mean(a == b)}
    found = audit(y, decided, sensitive_features=table, y_score=p, metrics=metrics)
    assert found.metrics is not None
    by = found.metrics.set_index(["metric", "by", "group"])
    rows_of = {
        ("overall", "all rows"): np.ones(len(y), dtype=bool),
        ("sex", "sex=F"): (table["sex"] == "F").to_numpy(),
        ("sex x race", "sex=M, race=b"): (
            (table["sex"] == "M") & (table["race"] == "b")
        ).to_numpy(),
    }
    for place, kept in rows_of.items():
        assert by.loc[("auc", *place), "value"] == pytest.approx(roc_auc_score(y[kept], p[kept]))
        assert by.loc[("f1", *place), "value"] == pytest.approx(f1_score(y[kept], decided[kept]))
        assert by.loc[("mine", *place), "value"] == np.mean(y[kept] == decided[kept])
        assert by.loc[("auc", *place), "count"] == kept.sum()
        row = by.loc[("f1", *place)]
        assert row["lower"] < row["value"] < row["upper"]
    crossing = found.metrics[found.metrics["by"] == "sex x race"]
    assert crossing["sex"].tolist()[:4] == ["F", "F", "M", "M"]


@pytest.mark.parametrize("k", [2, 5, 30])
def test_the_gap_of_a_metric_is_seldom_above_0_where_all_groups_are_alike(k):
    """Corrected for the k - 1 others of one group alone, it would be at 20% for fifteen groups."""
    generator, settings, above = np.random.default_rng(0), AuditSettings("dp"), []
    for _ in range(400):
        values = generator.normal(size=k)

        def limits(place, confidences, values=values):
            halves = norm.ppf(0.5 + np.array(confidences) / 2)
            return [(values[place] - half, values[place] + half) for half in halves]

        found = compare_values(values, np.full(k, 100.0), limits, settings)
        above.append(found.gap_lower > 0)
    assert np.mean(above) < 0.05 + 2 * np.sqrt(0.05 * 0.95 / 400)


def test_a_metric_without_any_value_says_why():
    y, p, table = scored()
    three = y + (p > 0.9)
    given = {"sensitive_features": table["sex"], "criteria": "accuracy"}
    found = audit(three, three, metrics={"f1": f1_score}, **given)
    assert found.metrics["value"].isna().all()
    assert [n for n in found.notes if "metric f1 is not defined" in n and "multiclass" in n]
    alone = audit(y * 0, p > 0.5, y_score=p, metrics="auc", **given)
    assert "The metric auc is not defined for these rows." in alone.notes
    assert not audit(y, p > 0.5, y_score=p, metrics=["auc", "f1"], **given).notes


def test_a_gap_of_a_metric_is_shown_with_its_ends():
    y, p, table = scored(3000)
    found = audit(y, p > 0.5, sensitive_features=table, y_score=p, metrics="auc", favorable_label=1)
    assert found.metric_gaps is not None
    row = found.metric_gaps.set_index(["metric", "by"]).loc[("auc", "sex x race")]
    assert row["lowest"] == "sex=F, race=b"
    assert row["gap"] == pytest.approx(row["highest_value"] - row["lowest_value"])
    assert 0.2 < row["lower"] < row["gap"] < row["upper"]
    assert (row["groups_compared"], row["groups"]) == (4, 4)
    assert "Metrics by group" in str(found)
    assert "sex=F, race=b 0.5" in str(found)


def test_equal_groups_rarely_show_a_gap_of_a_metric():
    wrong = 0
    for seed in range(25):
        generator = np.random.default_rng(seed)
        p = generator.random(400)
        y = (generator.random(400) < p).astype(int)
        group = generator.choice(list("abcd"), 400)
        found = audit(y, p > 0.5, sensitive_features=group, y_score=p, metrics="auc")
        assert found.metric_gaps is not None
        wrong += found.metric_gaps["lower"].iloc[0] > 0
    assert wrong <= 3


@pytest.mark.parametrize("weighted", [False, True])
def test_known_rates_are_those_of_the_audit(weighted):
    y, decided, table, weight = rows(500)
    given = {"sensitive_features": table, "sample_weight": weight if weighted else None}
    names = ["precision", "recall", "selection_rate", "false_positive_rate", "accuracy"]
    criteria = ("ppv", "tpr", "dp", "fpr", "accuracy")
    found = audit(y, decided, criteria=criteria, metrics=names, **given)
    assert found.metrics is not None
    assert found.metric_gaps is not None
    for name, rate in zip(names, criteria, strict=True):
        asked = found.metrics["metric"].eq(name)
        own = found.metrics[asked & found.metrics["by"].ne("overall")]
        theirs = found.groups[found.groups["of"].eq(rate)]
        for mine, other in (("value", "rate"), ("lower", "lower"), ("compared", "in_gap")):
            assert own[mine].tolist() == theirs[other].tolist()
        gaps = found.metric_gaps[found.metric_gaps["metric"].eq(name)]
        other = found.gaps[found.gaps["criterion"].eq(rate)]
        for column in ("gap", "lower", "upper", "lowest", "groups_compared"):
            assert gaps[column].tolist() == other[column].tolist(), (name, column)
    as_function = audit(y, decided, metrics={"precision": precision_score}, **given)
    assert as_function.metric_gaps is not None
    expected = found.metric_gaps.query("metric == 'precision'")
    pd.testing.assert_frame_equal(as_function.metric_gaps, expected)


def test_small_groups_are_shown_and_not_compared():
    y, p, table = scored()
    table.loc[:4, "race"] = "c"
    found = audit(y, p > 0.5, sensitive_features=table, y_score=p, metrics="auc")
    assert found.metrics is not None
    assert found.metric_gaps is not None
    small = found.metrics.query("group == 'race=c' and metric == 'brier'").iloc[0]
    assert (small["count"], small["compared"]) == (5, False)
    assert np.isfinite(small["value"])
    row = found.metric_gaps.query("by == 'race' and metric == 'brier'").iloc[0]
    assert (row["groups_compared"], row["groups"]) == (2, 3)


def test_what_metrics_need_is_told():
    y, decided, table, _ = rows(100)
    call = {"sensitive_features": table}
    with pytest.raises(ValueError, match=r"y_score must be given for the metrics \['auc'\]"):
        audit(y, decided, metrics=["auc", "precision"], **call)
    with pytest.raises(ValueError, match=r"y_true must be given for the metrics \['recall'\]"):
        audit(None, decided, metrics=["recall", "selection_rate"], **call)
    with pytest.raises(ValueError, match=r"between 0 and 1 for the metrics \['brier'\], got betw"):
        audit(y, decided, metrics="brier", y_score=np.arange(100), **call)
    with pytest.raises(ValueError, match=r"metrics must be some of .*'auc'.*, got 'gini'"):
        audit(y, decided, metrics="gini", **call)
    several = rows(100, 3)
    with pytest.raises(ValueError, match=r"3 labels found, got \['precision'\], which need two"):
        audit(*several[:2], metrics="precision", **call)
    macro = {"f1": lambda a, b: f1_score(a, b, average="macro"), "accuracy": "accuracy"}
    found = audit(*several[:2], metrics=macro, **call).metrics
    assert found is not None
    expected = f1_score(*several[:2], average="macro")
    assert found["value"].iloc[0] == pytest.approx(expected)


def test_a_metric_of_the_users_own_may_take_scores():
    y, p, table = scored(200)
    given = {"mean": of_scores(lambda _, score: score.mean())}
    found = audit(y, p > 0.5, sensitive_features=table, y_score=p, metrics=given).metrics
    assert found is not None
    assert found["value"].iloc[0] == pytest.approx(p.mean())


@pytest.mark.parametrize("weighted", [False, True])
def test_calibration_is_a_table_of_bins(weighted):
    y, p, table = scored(1000)
    weight = np.random.default_rng(1).uniform(0.5, 2, 1000) if weighted else None
    found = audit(y, p > 0.5, sensitive_features=table, y_score=p, sample_weight=weight)
    bins = found.calibration
    assert bins is not None
    everyone = bins[bins["by"] == "overall"]
    assert everyone["count"].tolist() == [100] * 10
    for by in ("sex", "sex x race"):
        assert bins[bins["by"] == by]["count"].sum() == 1000
    row = bins[bins["group"] == "sex=F"].iloc[2]
    kept = (table["sex"] == "F").to_numpy() & (p >= row["score_from"]) & (p < row["score_to"])
    ones = np.ones(kept.sum()) if weight is None else weight[kept]
    assert row["count"] == kept.sum()
    assert row["mean_score"] == pytest.approx(np.average(p[kept], weights=ones))
    assert row["observed"] == pytest.approx(np.average(y[kept], weights=ones))
    assert row["lower"] < row["observed"] < row["upper"]
    assert found.metrics is not None
    assert set(found.metrics["metric"]) == {"brier", "calibration"}
    brier = found.metrics.query("metric == 'brier' and by == 'overall'")["value"].iloc[0]
    assert brier == pytest.approx(np.average((p - y) ** 2, weights=weight))


def test_scores_that_are_no_probabilities_get_a_word():
    y, p, table = scored(200)
    found = audit(y, p > 0.5, sensitive_features=table, y_score=10 * p, metrics="auc")
    assert found.calibration is None
    assert "they are no probabilities, so that calibration and Brier score" in found.notes[-1]
    assert found.metrics is not None
    assert set(found.metrics["metric"]) == {"auc"}
    constant = audit(y, p > 0.5, sensitive_features=table, y_score=np.full(200, 0.5)).calibration
    assert constant is not None
    assert constant["count"].iloc[0] == 200


def simpson(n=4000):
    """Selection differs by region alone, and women live where it is low."""
    generator = np.random.default_rng(0)
    sex = generator.choice(["F", "M"], n)
    south = generator.random(n) < np.where(sex == "F", 0.8, 0.2)
    decided = (generator.random(n) < np.where(south, 0.2, 0.7)).astype(int)
    return decided, sex, np.where(south, "south", "north")


def test_gaps_within_strata_are_those_of_their_rows():
    decided, sex, region = simpson()
    call = {"sensitive_features": {"sex": sex}, "criteria": "dp"}
    found = audit(None, decided, control_features={"region": region}, **call)
    within = found.gaps_within
    assert within is not None
    assert found.gaps["verdict"].tolist() == ["violation"]
    assert "violation" not in set(within["verdict"])
    assert within["region"].tolist() == ["north", "south"]
    assert within.columns.tolist() == ["region", "count", *found.gaps.columns]
    for row in within.to_dict("records"):
        kept = region == row["region"]
        alone = audit(None, decided[kept], sensitive_features=sex[kept], criteria="dp").gaps
        assert row["count"] == kept.sum()
        assert row["gap"] == alone["gap"].iloc[0]
        assert row["lower"] == alone["lower"].iloc[0]
    assert "Within both strata of region there is too little data to tell" in found.summary.text
    assert "exceeds the limit." not in found.summary.text.partition("too little data to tell")[0]
    assert "Gaps within strata" in str(found)


def test_a_violation_within_a_stratum_is_the_headline():
    sex = simpson()[1]
    # Equal shares in both regions, so that the two differences are gone together.
    even = np.tile(["north", "south"], 2000)
    favored = np.where(even == "north", "F", "M")
    decided = (np.random.default_rng(1).random(4000) < np.where(sex == favored, 0.6, 0.4)) * 1
    call = {"sensitive_features": {"sex": sex}, "criteria": "dp", "control_features": even}
    found = audit(None, decided, **call)
    assert "violation" not in set(found.gaps["verdict"])
    assert found.summary.verdict == "violation"
    assert found.summary.stratum in ("attribute0=north", "attribute0=south")
    assert found.summary.text.startswith("The gap exceeds the limit within strata: within attribu")
    assert "Within both strata" in found.summary.text


def test_strata_that_are_too_small_are_said():
    decided, sex, region = simpson(400)
    region[:3] = "east"
    found = audit(None, decided, sensitive_features=sex, criteria="dp", control_features=region)
    assert found.notes[-1] == (
        "In 1 of 3 strata no two groups have enough rows to be compared: attribute0=east."
    )
    with pytest.raises(ValueError, match="at most 200 strata, got 400"):
        audit(None, decided, sensitive_features=sex, criteria="dp", control_features=range(400))
    with pytest.raises(ValueError, match=r"one entry per row of y_pred \(400\), got 399"):
        audit(None, decided, sensitive_features=sex, criteria="dp", control_features=region[1:])


@pytest.mark.parametrize("weighted", [False, True])
def test_all_of_it_survives_json(weighted):
    y, p, table = scored(300)
    found = audit(
        y,
        p > 0.5,
        sensitive_features=table,
        y_score=p,
        sample_weight=np.linspace(1, 2, 300) if weighted else None,
        metrics=["auc", "f1", "precision"],
        control_features={"by": np.tile([1, 2, np.nan], 100), "criterion": ["x"] * 300},
    )
    again = Audit.from_json(found.to_json())
    for name in ("metrics", "metric_gaps", "calibration", "gaps_within"):
        pd.testing.assert_frame_equal(getattr(again, name), getattr(found, name))
    assert again.summary == found.summary
    assert str(again) == str(found)
    assert found.gaps_within is not None
    assert found.gaps_within.columns[:2].tolist() == ["by (attribute)", "criterion (control)"]
    assert found.to_html()
    assert "Metrics by group" in found.to_markdown()


def test_a_name_that_was_given_is_not_taken_again():
    y, p, table = scored()
    own = {"brier": of_scores(brier_score_loss), "calibration": lambda a, b: np.mean(a == b)}
    decided = (p > 0.5).astype(int)
    found = audit(y, decided, sensitive_features=table, y_score=p, metrics=own)
    assert found.metrics is not None
    everyone = found.metrics[found.metrics["by"] == "overall"].set_index("metric")["value"]
    assert everyone.to_dict() == {
        "brier": pytest.approx(brier_score_loss(y, p)),
        "calibration": pytest.approx(np.mean(y == decided)),
    }
    assert "Metrics by group" in str(found)
    assert "Metrics by group" in found.to_html()


def test_strata_that_cannot_be_compared_are_no_all_clear():
    sex = np.array(["F", "M"] * 20 + ["F"] * 40)
    region = np.repeat(["north", "south"], 40)
    decided = np.array([0, 1, 1, 0] * 20)
    call = {"sensitive_features": {"sex": sex}, "criteria": "dp"}
    said = audit(None, decided, control_features={"region": region}, **call).summary.text
    assert said.endswith(
        "Of the 2 strata of region: in 1 there is too little data to tell whether a gap exceeds "
        "the limit, in 1 no comparison is possible."
    )
