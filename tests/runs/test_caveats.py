"""The caveats of a run are those of its chosen point, in memory and from its folder."""

from typing import Any

import numpy as np
import pytest
from tests.people import COLUMNS, TRAINING, people

from apfex import explore
from apfex.report import Caveat
from apfex.runs import load_run


@pytest.fixture(scope="module")
def unfair(tmp_path_factory):
    """A run whose chosen point surely prefers men."""
    frame = people()
    men = (frame["sex"] == "male").to_numpy()
    frame["merit_1"] += 3.0 * men
    frame["hired"] = np.where(men ^ (np.arange(300) % 5 == 0), "hired", "rejected")
    folder = tmp_path_factory.mktemp("unfair") / "run"
    return explore(frame, **COLUMNS, **TRAINING, max_gap=1, out=folder)


def test_a_gap_above_the_tolerance_is_told(unfair):
    (caveat,) = [one for one in unfair.caveats if one.code == "violation"]
    assert caveat.level == "warning"
    assert caveat.data["criterion"] == "dp"
    assert caveat.data["gap"] > 0.05
    assert str(caveat).startswith(
        "Violation: the gap in selection rate surely exceeds the limit of 0.05. It is 0."
    )
    assert "sex x origin" in str(caveat)


def test_they_are_what_the_page_says_of_the_chosen_point(unfair):
    chosen = unfair.described["points"][unfair.described["chosen"]]
    assert unfair.caveats == tuple(Caveat(**one) for one in chosen["caveats"])
    assert load_run(unfair.folder).caveats == unfair.caveats


def test_sensitive_inputs_are_warned_of_on_page_and_record(tmp_path):
    given = {**COLUMNS, **TRAINING, "max_gap": 1, "out": tmp_path / "run"}
    run = explore(people(), **given, include_sensitive=True)
    (caveat,) = [one for one in run.caveats if one.code == "sensitive_inputs"]
    assert caveat.level == "warning"
    assert "(sex, origin)" in caveat.text
    assert "may be unlawful" in caveat.text
    assert "sensitive_inputs" in [
        one["code"] for one in load_run(tmp_path / "run").record["caveats"]
    ]


def test_no_sensitive_inputs_no_caveat(unfair):
    assert "sensitive_inputs" not in [one.code for one in unfair.caveats]


def test_groups_that_the_choice_did_not_count_are_told_on_page_and_record():
    frame = people()
    frame.loc[:1, ["sex", "hired"]] = ["other", "rejected"]  # for tpr no row of theirs counts
    given: dict[str, Any] = {**COLUMNS, **TRAINING, "sensitive": "sex", "criteria": "dp,tpr"}
    with pytest.warns(UserWarning, match="some groups have no rows that count") as caught:
        run = explore(frame, **given, max_gap=1)
    assert {one.filename for one in caught} == {__file__}
    (caveat,) = [one for one in run.caveats if one.code == "groups_left_out"]
    assert (caveat.level, caveat.data["criterion"]) == ("warning", "tpr")
    assert caveat.data["groups"] == ["sex=other"]
    assert "chosen without these groups" in caveat.text
    assert "groups_left_out" in [one["code"] for one in run.record["caveats"]]


def test_the_chosen_point_is_audited_once_and_as_the_classifier_audits_it(unfair, monkeypatch):
    chosen = unfair.described["points"][unfair.described["chosen"]]
    assert [gap["gap"] for gap in chosen["gaps"]] == unfair.audit.gaps["gap"].tolist()
    assert unfair.audit.n_rows == unfair.data.test_rows
    monkeypatch.setattr(
        "apfex.estimator.APFExClassifier.audit", lambda *_, **__: pytest.fail("audited again")
    )
    again = explore(people(), **COLUMNS, **TRAINING, max_gap=1)
    assert again.audit.n_rows == again.data.test_rows
