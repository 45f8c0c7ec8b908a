"""Probabilities of the test rows, against what came true."""

import numpy as np
import pytest
from sklearn.metrics import brier_score_loss, roc_auc_score


def test_measures_and_bins_are_those_of_the_probabilities(front):
    told = front.described["calibration"]
    y = (front.new.y == 0).astype(int)  # 0 is favorable
    score = front.clf.predict_proba(front.new.X)[:, 0]
    measures = told["measures"]
    assert measures["brier"]["value"] == pytest.approx(brier_score_loss(y, score))
    assert measures["auc"]["value"] == pytest.approx(roc_auc_score(y, score))
    assert measures["calibration"]["value"] == pytest.approx(y.mean() - score.mean())
    assert told["constant"] == pytest.approx(y.mean() * (1 - y.mean()))
    for one in measures.values():
        assert one["lower"] <= one["value"] <= one["upper"]
    bins = told["bins"]
    sizes = np.array([one["rows"] for one in bins])
    assert sizes.sum() == len(y)
    assert np.ptp(sizes) <= 1
    assert sizes @ [one["share"] for one in bins] == pytest.approx(y.sum())
    assert sizes @ [one["probability"] for one in bins] == pytest.approx(score.sum())
    assert all(0 <= one["lower"] <= one["share"] + 1e-9 for one in bins)


def test_every_group_is_told_what_it_was_promised(front):
    told = {one["group"]: one for one in front.described["calibration"]["groups"]}
    crossing = front.described["groupings"][-1]
    assert set(told) == {group["name"] for group in crossing["groups"]}
    rows = sum(one["rows"] for one in told.values())
    off = sum(one["rows"] * one["value"] for one in told.values()) / rows
    whole = front.described["calibration"]["measures"]["calibration"]["value"]
    assert off == pytest.approx(whole)


def test_several_labels_have_none(front):
    from apfex.estimator import read_audit_rows
    from apfex.report._calibration import measure_calibration

    rows = read_audit_rows(
        front.clf, front.new.X, front.new.y, sensitive_features=front.new.sensitive
    )
    object.__setattr__(rows, "classes", np.arange(3))
    assert measure_calibration(front.clf, rows, front.new.X, None) is None
