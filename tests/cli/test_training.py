"""What ``fit`` warns of is told in words of the command line."""

import warnings

import numpy as np
import pytest
from tests.cli.conftest import COLUMNS, TRAINING, people

from apfex.cli._training import in_our_words
from apfex.estimator import APFExClassifier
from apfex.metrics import NotEstimableWarning

ODD = """O'Neil "q"; tpr of [x]"""


def with_a_group_without_positives(origin='O\'Neil "q"'):
    frame = people()
    frame.loc[:5, "origin"] = origin
    frame.loc[:5, "hired"] = "rejected"
    return frame


def test_names_are_shown_once_escaped_and_options_are_ours(apfex, tmp_path):
    with_a_group_without_positives().to_csv(tmp_path / "p.csv", index=False)
    training = [*TRAINING[:-1], "tpr"]
    said = apfex("explore", tmp_path / "p.csv", *COLUMNS, *training, "--out", tmp_path / "run")
    assert said.code == 0, said.err
    assert """tpr of sex=female, origin='O\\'Neil "q"' and sex=male,""" in said.err
    assert "--test-fraction" in said.err
    assert "validation" not in said.err


@pytest.mark.parametrize("odd", ["plain", "O'Neil", ODD, "];", "a\nb", "\\"])
def test_any_name_goes_through(odd):
    """The words are those of the library itself, not of this test."""
    frame = with_a_group_without_positives(odd)
    clf = APFExClassifier("tpr", search="members", model="linear", epochs=1, random_state=0)
    X, groups = frame[["merit_1", "merit_2"]], frame[["sex", "origin"]]
    with warnings.catch_warnings(record=True, action="always") as caught:
        clf.fit(X, frame["hired"] == "hired", sensitive_features=groups)
    (told,) = (str(w.message) for w in caught if w.category is NotEstimableWarning)
    ours = in_our_words(told)
    assert "validation" not in ours
    assert "left out of the gaps: tpr of sex=" in ours


def test_other_warnings_are_told_as_they_are():
    assert in_our_words("Something else.") == "Something else."


def test_a_criterion_that_cannot_be_measured(apfex, tmp_path):
    frame = people()
    frame["hired"] = np.where(frame["sex"] == "male", frame["hired"], "rejected")
    frame.to_csv(tmp_path / "p.csv", index=False)
    columns = [*COLUMNS[:-1], "sex"]
    training = [*TRAINING[:-1], "tpr"]
    said = apfex("explore", tmp_path / "p.csv", *columns, *training, "--out", tmp_path / "run")
    assert said.code == 2
    assert "--criteria tpr cannot be measured" in said.err
    assert "validation" not in said.err
