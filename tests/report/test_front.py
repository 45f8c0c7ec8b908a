"""A description says what audits of the same points say."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.metrics import accuracy_score, balanced_accuracy_score
from tests.report.conftest import fit, make_people

from apfex import APFExClassifier, audit, make_biased
from apfex.front import Front
from apfex.plain import jsonable as plain
from apfex.report import describe_front


def groupings_by_name(described):
    return {one["by"]: one for one in described["groupings"]}


def test_gaps_are_those_of_an_audit_of_each_point(front):
    for place, point in enumerate(front.described["points"]):
        expected = front.clf.at(place).audit(
            front.new.X, front.new.y, sensitive_features=front.new.sensitive
        )
        own = [{k: v for k, v in gap.items() if k != "ends"} for gap in point["gaps"]]
        assert own == plain(expected.gaps.to_dict("records"))
        for gap in point["gaps"]:
            ends = expected.ends(gap["criterion"], gap["by"])
            assert gap["ends"] == plain(ends.to_dict("records"))
        assert point["worst"] == plain(expected.worst(8).to_dict("records"))


def test_rates_and_intervals_are_those_of_an_audit_of_the_decisions(front):
    criteria = ("tpr", "fpr", "ppv", "accuracy", "dp")
    groupings = groupings_by_name(front.described)
    for place in (0, len(front.described["points"]) - 1):
        point = front.described["points"][place]
        expected = audit(
            front.new.y,
            front.clf.at(place).predict(front.new.X),
            sensitive_features=front.new.sensitive,
            criteria=criteria,
            favorable_label=0,
        )
        groups: Any = expected.groups
        for (by, of), part in groups.groupby(["by", "of"]):
            own = point["rates"]["favored" if of == "dp" else of]["groupings"][by]
            assert [group["name"] for group in groupings[by]["groups"]] == part["group"].tolist()
            assert [group["rows"] for group in groupings[by]["groups"]] == part["count"].tolist()
            for name in ("rate", "lower", "upper"):
                assert own[name] == plain(part[name])
            assert own["few"] == np.flatnonzero(~part["in_gap"].to_numpy()).tolist()
        for of, part in expected.overall.groupby("of"):
            key = "favored" if of == "dp" else of
            assert point["rates"][key]["overall"]["rate"] == plain(part["rate"])


def test_favored_is_the_share_of_the_favorable_label(front):
    assert front.described["favorable"] == "0"
    point = front.described["points"][1]
    favored = front.clf.at(1).predict(front.new.X) == 0
    for grouping in front.described["groupings"]:
        keys = [front.new.sensitive[name] for name in grouping["attributes"]]
        expected: Any = pd.Series(favored).groupby(keys).mean()
        own = point["rates"]["favored"]["groupings"][grouping["by"]]
        assert sorted(own["rate"]) == pytest.approx(sorted(expected))
        assert all(
            a <= r <= b for a, r, b in zip(own["lower"], own["rate"], own["upper"], strict=True)
        )
    assert point["share_favored"] == pytest.approx(favored.mean())


def test_changes_are_those_of_compare(front):
    base = front.described["baseline"]
    crossing = front.described["groupings"][-1]["by"]
    for place, point in enumerate(front.described["points"]):
        expected = front.clf.compare(
            base, place, front.new.X, sensitive_features=front.new.sensitive
        )
        own = point["changes"][crossing]
        for name in ("gained", "lost", "net_share"):
            assert own[name] == plain(expected[name])
        assert point["tally"]["gained"] == expected["gained"].sum()
        assert point["tally"]["lost"] == expected["lost"].sum()
        moved = [point["tally"][f"groups_{name}"] for name in ("gain", "lose", "same")]
        assert moved == [own["direction"].count(sign) for sign in (1, -1, 0)]
        for by, change in point["changes"].items():  # people are the same by every grouping
            assert sum(change["gained"]) == expected["gained"].sum(), by
            assert sum(change["lost"]) == expected["lost"].sum(), by


def test_errors_and_figures_of_the_choice(front):
    for place, point in enumerate(front.described["points"]):
        decided, chosen = front.clf.at(place).predict(front.new.X), front.clf.front_[place]
        assert point["error"] == pytest.approx(1 - accuracy_score(front.new.y, decided))
        balanced = balanced_accuracy_score(front.new.y, decided)
        assert point["balanced_error"] == pytest.approx(1 - balanced)
        assert point["error_lower"] <= point["error"] <= point["error_upper"]
        assert point["validation"]["error"] == chosen.error
        assert point["validation"]["gaps"]["dp"]["gap"] == chosen.gaps["dp"].gap
        assert point["validation"]["rows"] == chosen.n_rows
    assert front.described["chosen"] == front.clf.point_


def test_it_is_plain_json(front):
    text = json.dumps(front.described, allow_nan=False)
    assert json.loads(text) == front.described
    assert front.described["kind"] == "apfex.front"
    assert front.described["schema_version"] == 2


def test_labels_are_called_what_words_say(front):
    new, told = front.new, {"sensitive_features": front.new.sensitive}
    words = {0: "rejected", 1: "hired"}
    described = describe_front(front.clf, new.X, new.y, words=words, **told)
    assert described["classes"] == ["rejected", "hired"]
    assert described["favorable"] == "rejected"
    assert "“rejected”" in described["criteria"][0]["text"]
    texts = {rate["key"]: rate["text"] for rate in described["rates"]}
    assert "“rejected”" in texts["favored"]
    assert "“rejected”" in texts["tpr"]
    assert not any(mark in json.dumps(texts) for mark in ("“0”", "“1”"))
    half = describe_front(front.clf, new.X, new.y, words={1: "hired"}, **told)
    assert half["classes"] == ["0", "hired"]
    with pytest.raises(ValueError, match=r"words must be of the labels \[0, 1\], got \['1'\]"):
        describe_front(front.clf, new.X, new.y, words={"1": "hired"}, **told)
    with pytest.raises(ValueError, match=r"words must tell the labels \[0, 1\] apart"):
        describe_front(front.clf, new.X, new.y, words={0: "1"}, **told)


def test_caveats_call_labels_what_words_say():
    people = make_people(400, 0, names=("a", "b"))
    clf = fit(people, n_points=2)
    y = np.zeros(len(people.y), dtype=int)  # nobody can be more accurate than 0 for everybody
    described = describe_front(
        clf, people.X, y, sensitive_features=people.sensitive, words={0: "no", 1: "yes"}
    )
    texts = [one["text"] for point in described["points"] for one in point["caveats"]]
    assert any("giving “no” to everybody" in text for text in texts)


def test_names_are_plain_where_they_can_be(front):
    names = front.described["names"]
    assert names["<i>kind</i>='<!-- <script>'"] == "<i>kind</i>=<!-- <script>"
    links = [name for name in names.values() if "=“=HYPERLINK(" in name]
    assert links  # a comma and an equals sign
    assert not any("</i>='" in shown for shown in names.values())
    kinds = {group["values"][0] for group in front.described["groupings"][0]["groups"]}
    assert "<!-- <script>" in kinds


def test_a_gap_that_grew_against_the_starting_point_is_told(front):
    """By the audits of both points, on the same rows; the others are trivial here."""
    new, clf = front.new, front.clf.at(1)
    *others, fairest = front.clf.front_
    others = [replace(point, trivial=True) for point in others]
    clf.fitted_ = replace(clf.fitted_, front=Front([*others, replace(fairest, trivial=False)]))
    told = {"sensitive_features": new.sensitive["sex"].to_frame()}
    described = describe_front(clf, new.X, new.y, **told)
    base = described["baseline"]
    assert not clf.front_[base].trivial
    audits = [
        clf.at(place).audit(new.X, new.y, **told).gaps.set_index("criterion")
        for place in range(len(clf.front_))
    ]
    found = 0
    for gaps, point in zip(audits, described["points"], strict=True):
        told = [one["text"] for one in point["caveats"] if one["code"] == "gap_grew"]
        is_new = (gaps["verdict"] == "violation") & (audits[base]["verdict"] != "violation")
        larger = gaps["gap"] > audits[base]["gap"]
        assert len(told) == ((gaps["lower"] > audits[base]["gap"]) | (is_new & larger)).sum()
        assert all(f"at point {base}:" in text for text in told)
        found += len(told)
    assert found > 0


def test_maps_know_the_values_of_both_attributes(front):
    crossing = front.described["groupings"][-1]
    assert all(len(group["values"]) == 2 for group in crossing["groups"])
    assert {group["values"][1] for group in crossing["groups"]} == {"F", "M"}


def test_several_classes_weights_and_sensitive_columns():
    """Everything at once: three labels, weights, sensitive columns within X."""
    data, new = (make_biased(n=500, random_state=seed) for seed in (0, 1))
    draw = np.random.default_rng(0)
    labels = [np.where(d.y == 1, draw.integers(1, 3, len(d.y)), 0) for d in (data, new)]
    labels = [np.array(["low", "mid", "top"])[y] for y in labels]
    tables = [pd.concat([d.X, d.sensitive], axis=1) for d in (data, new)]
    weight = draw.uniform(0.5, 3, len(new.y))
    clf = APFExClassifier(
        sensitive=["sex", "origin"], epochs=2, n_members=8, n_points=3, max_gap=1.0, random_state=0
    ).fit(tables[0], labels[0])
    described = describe_front(clf, tables[1], labels[1], sample_weight=weight)
    assert described["weighted"]
    assert described["favorable"] == "top"
    keys = [rate["key"] for rate in described["rates"]]
    assert keys[0] == "favored"
    assert "tpr:1" in keys
    assert "dp:2" not in keys  # that is the favorable one
    for place, point in enumerate(described["points"]):
        expected = clf.at(place).audit(tables[1], labels[1], sample_weight=weight)
        own = pd.DataFrame(point["gaps"]).drop(columns="ends")
        pd.testing.assert_frame_equal(own, expected.gaps)
        decided = clf.at(place).predict(tables[1])
        error = 1 - accuracy_score(labels[1], decided, sample_weight=weight)
        assert point["error"] == pytest.approx(error)
        share = np.average(decided == "top", weights=weight)
        assert point["rates"]["favored"]["overall"]["rate"] == pytest.approx([share])
        assert point["share_favored"] == pytest.approx(share)


def test_how_the_point_was_chosen(front):
    new = front.new

    def told(place, max_gap):
        clf = front.clf.at(place).set_params(max_gap=max_gap)
        described = describe_front(clf, new.X, new.y, sensitive_features=new.sensitive)
        return described["chosen"], described["chosen_by"]

    nearest = front.clf.front_.nearest({"dp": 0.0, "tpr": 0.0})
    assert told(0, {"demographic_parity": 1.0}) == (0, "bounds")
    assert told(1, 1.0) == (1, "hand")
    assert told(nearest, 0.0) == (nearest, "nearest")


def test_a_trivial_point_is_told_and_compared_with_nobody(front):
    """The most accurate point is the first that is not trivial."""
    new, clf = front.new, front.clf.at(1)
    first, *others = front.clf.front_
    clf.fitted_ = replace(clf.fitted_, front=Front([replace(first, trivial=True), *others]))
    described = describe_front(clf, new.X, new.y, sensitive_features=new.sensitive)
    assert described["baseline"] == 1
    assert described["points"][0]["trivial"]
    assert "trivial" in [one["code"] for one in described["points"][0]["caveats"]]
    assert described["points"][1]["tally"]["gained"] == 0
    expected = clf.compare(1, 0, new.X)["gained"].sum()
    assert described["points"][0]["tally"]["gained"] == expected


def test_rows_that_are_not_fresh_and_thresholds_by_group_are_told():
    people = make_people(400, 0, names=("a", "b"))
    clf = fit(people, group_thresholds=True, n_points=2)
    described = describe_front(
        clf, people.X, people.y, sensitive_features=people.sensitive, fresh=False
    )
    for point in described["points"]:
        codes = {one["code"] for one in point["caveats"]}
        assert {"seen_rows", "group_thresholds"} <= codes


def test_a_classifier_must_be_fitted_and_rows_are_checked(front):
    new = front.new
    with pytest.raises(NotFittedError):
        describe_front(APFExClassifier(), new.X, new.y, sensitive_features=new.sensitive)
    with pytest.raises(ValueError, match="must have the index of X"):
        describe_front(front.clf, new.X, pd.Series(new.y)[::-1], sensitive_features=new.sensitive)
    with pytest.raises(ValueError, match="sensitive_features must be given"):
        describe_front(front.clf, new.X, new.y)
