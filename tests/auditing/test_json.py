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
    content["counts"]["rows"] = [[[0, 1, 1, 1]]]
    with pytest.raises(ValueError, match="more than an audit can cross"):
        Audit.from_json(json.dumps(content))
