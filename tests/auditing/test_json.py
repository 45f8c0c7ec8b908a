"""JSON: all of an audit, plain values, and back."""

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.auditing.rows import audit, counts, rows

from apfex.auditing import Audit

read: Any = Audit.from_json
"""Untyped here: thresholds are there."""


def strict(text):
    def refuse(name):
        raise AssertionError(name)

    return json.loads(text, parse_constant=refuse)


def test_unknown_numbers_are_null():
    decided, table = counts([50, 5], [10, 2])
    content = strict(audit(None, decided, sensitive_features=table, criteria="dp").to_json())
    assert content["kind"] == "apfex.audit"
    assert content["schema_version"] == 4
    assert content["summary"]["verdict"] == "not estimable"
    assert content["summary"]["gap"] is None
    gap = content["gaps"][0]
    assert gap["gap"] is None
    assert gap["p_adjusted"] is None
    assert gap["verdict"] == "not estimable"
    assert [row["group"] for row in content["groups"]] == ["g=a", "g=b"]
    assert content["settings"]["criteria"] == ["dp"]


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_an_audit_survives_the_trip(n_classes, weighted):
    y, decided, table, weight = rows(300, n_classes)
    table["age"] = pd.Series(np.where(weight > 1.8, np.nan, (weight * 3).round()))
    table["flag"] = weight > 1
    found = audit(
        y,
        decided,
        sensitive_features=table,
        sample_weight=weight if weighted else None,
        tolerance=0.1,
    )
    again = Audit.from_json(found.to_json(indent=1))
    assert again.settings == found.settings
    pd.testing.assert_frame_equal(again.gaps, found.gaps)
    pd.testing.assert_frame_equal(again.groups, found.groups)
    pd.testing.assert_frame_equal(again.worst(9), found.worst(9))
    assert str(again) == str(found)
    assert (found.diff(again).gaps["change"].fillna(0) == 0).all()


def test_levels_of_any_kind_become_text():
    table = {"born": pd.to_datetime(["2001-01-01", "2002-01-01"] * 20), "x": ["a", None] * 20}
    found = audit(None, [0, 1] * 20, sensitive_features=table, favorable_label=np.int64(1))
    again = Audit.from_json(found.to_json())
    assert again.groups["group"].tolist() == found.groups["group"].tolist()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text[:50], "text must be JSON"),
        (lambda _: "[1]", "text must be an audit"),
        (lambda text: text.replace('"schema_version": 4', '"schema_version": 3'), "got 3; read it"),
        (lambda text: text.replace('"counts"', '"other"'), "damaged"),
        (lambda text: text.replace('"thresholds": null', '"thresholds": [{}]'), "damaged"),
        (lambda text: text.replace('"thresholds": null', '"thresholds": [5]'), "damaged"),
    ],
)
def test_what_cannot_be_read_is_refused(change, message):
    decided, table = counts([50, 50], [10, 20])
    text = audit(None, decided, sensitive_features=table, criteria="dp").to_json()
    with pytest.raises(ValueError, match=message):
        Audit.from_json(change(text))


def test_thresholds_are_in_the_json():
    y, decided, table, weight = rows(200)
    found = audit(y, decided, sensitive_features=table, y_score=weight.round(1))
    content = strict(found.to_json())
    assert len(content["thresholds"]) == len(found.thresholds)
    again = read(found.to_json())
    pd.testing.assert_frame_equal(again.thresholds, found.thresholds)
    with pytest.raises(ValueError, match="an audit from JSON no longer has them"):
        again.rates_by_threshold()


@pytest.mark.parametrize("min_count", [40, 1000])  # some, and all, are not estimable
def test_thresholds_that_are_not_estimable_survive_the_trip(min_count):
    y, decided, table, weight = rows(200)
    call = {"sensitive_features": table, "criteria": ("ppv", "equalized_odds")}
    found = audit(y, decided, y_score=weight.round(1), min_count=min_count, **call)
    assert found.thresholds["gap"].isna().any()
    again = read(found.to_json())
    pd.testing.assert_frame_equal(again.thresholds, found.thresholds)


def test_notes_survive_the_trip():
    decided, table = counts([50, 5], [10, 2])
    found = audit(None, decided, sensitive_features=table)
    assert "tpr left out" in found.notes[0]
    assert Audit.from_json(found.to_json()).notes == found.notes


def test_names_that_would_fill_a_memory_are_refused():
    """An attribute is in the name of each group: a megabyte of it, and 1,000 levels, are a few."""
    sex = ["F", "M"] * 50
    content = json.loads(audit(None, [0, 1] * 50, sensitive_features={"sex": sex}).to_json())
    content["counts"]["attributes"] = ["x" * 10**6]
    content["counts"] |= {"levels": [[*range(1_000)]], "cells": [[n] for n in range(1_000)]}
    content["counts"]["rows"] = [[[0, 1, 1, 1]] * 1_000]
    with pytest.raises(ValueError, match="names of at most 67,108,864 characters in all"):
        Audit.from_json(json.dumps(content))
    content["counts"]["attributes"] = [str(n) for n in range(5_000)]
    content["counts"] |= {"levels": [["a"]] * 5_000, "cells": [[0] * 5_000]}
    content["counts"]["rows"] = [[[1, 0, 2, 0]]]
    with pytest.raises(ValueError, match="more than an audit can cross"):
        Audit.from_json(json.dumps(content))


def selected(content):
    return content["counts"]["rows"][0]


EDITED = {
    "a gap": (lambda c: c["gaps"][0].update(gap=0.0), r"gaps\[0\]\.gap is 0\.0, its counts say"),
    "a verdict": (
        lambda c: c["gaps"][0].update(verdict="within tolerance"),
        r"gaps\[0\] says 'within tolerance', its counts say 'violation'",
    ),
    "a summary": (lambda c: c["summary"].update(verdict="within tolerance"), "summary says"),
    "a limit": (lambda c: c["settings"].update(tolerance=0.9), "its counts say 'within tolerance'"),
    "a rate": (lambda c: c["groups"][0].update(rate=0.99), r"groups\[0\]\.rate is 0\.99"),
    "all rows": (lambda c: c.update(n_rows=10**6), "n_rows is 1000000, its counts say 400"),
    "the verdict of a stratum": (
        lambda c: c["gaps_within"][0].update(verdict="within tolerance"),
        r"gaps_within\[0\] says 'within tolerance', its interval says 'violation'",
    ),
    "no verdict": (lambda c: c["gaps_within"][0].update(verdict="fine"), "says 'fine'"),
    "the gap of a stratum": (
        lambda c: c["gaps_within"][0].update(gap=0.0),
        r"gaps_within\[0\]\.gap is 0\.0, between 0\.0 and 0\.5",
    ),
    "rows of a stratum": (lambda c: c["gaps_within"][0].update(count=10**6), "more groups or rows"),
    "rows of a metric": (lambda c: c["metrics"][1].update(count=7), "has 7 rows of g=a, not 200"),
    "a share of a bin": (
        lambda c: c["calibration"][0].update(observed=-3),
        r"calibration\[0\]\.observed is -3\.0, no share",
    ),
    "part of a row": (lambda c: selected(c)[0].__setitem__(2, 100.5), "must be whole numbers of r"),
    "rows in words": (lambda c: selected(c)[0].__setitem__(2, "100"), "must be whole numbers of r"),
    "endless rows": (lambda c: selected(c)[0].__setitem__(2, 2**62), "at most 9,007,199,254,740"),
    "no rows": (lambda c: c["counts"].update(rows=[[[0] * 4] * 2]), "are of no rows"),
    "part of a place": (lambda c: c["counts"].update(cells=[[0.6], [1]]), "cells by whole numbers"),
    "a group twice": (lambda c: c["counts"].update(levels=[["a", "a"]]), "differ as text, got 'a'"),
    "a level of levels": (lambda c: c["counts"].update(levels=[["a", {}]]), "text and numbers in"),
    "no labels": (lambda c: c["counts"].update(labelled=False), "must have no positives"),
    "another weight": (lambda c: c["counts"].update(weight=3.0), "must have weight 1, got 3.0"),
    "weights of no rows": (
        lambda c: c["counts"].update(sums=selected_once(c), squares=[[[1e-9] * 4] * 2]),
        "sums that weights of so many rows have",
    ),
    "classes of other rows": (
        lambda c: c["counts"].update(classes=[*"xyz"], rows=3 * c["counts"]["rows"]),
        "must decide each row for one class",
    ),
    "classes of other sizes": (
        lambda c: c["counts"].update(
            classes=[*"xyz"], rows=[*2 * c["counts"]["rows"], [[0, 0, 1, 0]] * 2]
        ),
        "the same rows for each class",
    ),
}


def selected_once(content):
    return [[[float(n) for n in row] for row in selected(content)]]


@pytest.mark.parametrize("name", EDITED)
def test_an_audit_whose_parts_say_different_things_is_refused(name):
    change, message = EDITED[name]
    g = np.repeat(["a", "b"], 200)
    decided = np.r_[[0, 0, 0, 1] * 50, [0, 1, 1, 1] * 50]
    y = np.tile([0, 1], 200)
    stored = audit(
        y,
        decided,
        sensitive_features={"g": g},
        control_features={"c": np.tile(["p", "q"], 200)},
        y_score=0.2 + 0.6 * decided,
        criteria="dp",
    ).to_json()
    assert Audit.from_json(stored).summary.verdict == "violation"
    content = json.loads(stored)
    change(content)
    with pytest.raises(ValueError, match=message):
        Audit.from_json(json.dumps(content))
