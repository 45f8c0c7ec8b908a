"""Labels and decisions: 0 and 1 as they are, anything else by what the user says."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apfex.runs import RunError, audit_file
from apfex.runs._labels import read_decisions, read_outcomes


def one(values, positive=None):
    return read_outcomes({"label": pd.Series(values, name="paid")}, positive)[0]


@pytest.mark.parametrize(
    "values", [[0, 1, 1], [0.0, 1.0, 1.0], ["0", "1", "1"], [False, True, True]]
)
@pytest.mark.parametrize("as_category", [False, True])
def test_zero_and_one_are_taken_as_they_are(values, as_category):
    series = pd.Series(values, name="paid", dtype="category" if as_category else None)
    assert read_outcomes({"label": series}, None)[0].codes.tolist() == [0, 1, 1]


@given(st.lists(st.sampled_from(["yes", "no", "perhaps"]), min_size=1), st.data())
def test_codes_are_one_exactly_at_the_positive_value(values, data):
    positive = data.draw(st.sampled_from(values))
    found = one(values, positive)
    assert found.codes.tolist() == [int(value == positive) for value in values]
    assert found.share == np.mean([value == positive for value in values])


@pytest.mark.parametrize(
    ("values", "positive", "codes"),
    [
        ([1, 2, 2], "1", [1, 0, 0]),
        ([1.0, 2.0, 2.0], "1.0", [1, 0, 0]),
        ([True, False], "true", [1, 0]),
        ([0, 1], "0", [1, 0]),
        ([" >50K", "<=50K"], " >50K", [1, 0]),
    ],
)
def test_a_value_is_meant_as_it_is_written(values, positive, codes):
    assert one(values, positive).codes.tolist() == codes


def test_missing_values_are_counted():
    found = one(["yes", None, "no", np.nan], "yes")
    assert found.codes.tolist() == [1, -1, 0, -1]
    assert found.missing == 2


@pytest.mark.parametrize(
    ("values", "positive", "words"),
    [
        (["yes", "no"], None, r"holds 2 values \(no, yes\).*positive='yes'"),
        (list("abcde"), None, r"holds 5 values \(a, b, c, d, e\)"),
        ([f"v{i:03}" for i in range(100)], None, "and 88 more"),
        (["yes", "no"], "Yess", "did you mean 'yes'"),
        (["yes", "no"], "maybe", "there are no, yes"),
        ([0, 1], "2", "no value of paid"),
        ([0.25, 0.5], None, "must hold labels, got numbers from 0.25 to 0.5"),
        ([None, None], None, "no values at all"),
        (["good one", "bad"], None, "positive='good one'"),
    ],
)
def test_what_would_have_to_be_guessed_is_refused(values, positive, words):
    with pytest.raises(RunError, match=words):
        one(values, positive)


def both(decided, labels, positive):
    columns = {
        "prediction": pd.Series(decided, name="d"),
        "label": pd.Series(labels, name="y"),
    }
    return [outcome.codes.tolist() for outcome in read_outcomes(columns, positive)]


def test_two_columns_share_the_positive_value():
    assert both(["a", "b"], ["b", "b"], "a") == [[1, 0], [0, 0]]
    assert both(["b", "b"], ["a", "b"], "a") == [[0, 0], [1, 0]]  # a model against everybody
    assert both([1, 0], ["yes", "no"], "yes") == [[1, 0], [1, 0]]
    assert both(["yes", "no"], [0, 1], "yes") == [[1, 0], [0, 1]]
    assert both([1, 1], [0, 1], "0") == [[0, 0], [1, 0]]  # not as they are: 0 is positive


def test_a_column_with_other_words_is_refused():
    with pytest.raises(RunError, match="prediction d holds 2 values"):
        both(["approve", "deny"], ["yes", "no"], "yes")


@pytest.mark.parametrize(
    ("values", "positive", "negative"),
    [(["a", "b"], "a", "b"), (["a", "b", "c"], "a", "not a"), ([1, 1], None, "0"), ([0], "0", "1")],
)
def test_the_other_outcome_has_a_name(values, positive, negative):
    assert one(values, positive).negative == negative


def decisions(predicted, label=None, **options) -> Any:
    columns = {"prediction": pd.Series(predicted, name="decision")}
    if label is not None:
        columns["label"] = pd.Series(label, name="repaid")
    given = {"positive": None, "threshold": None, "positive_prediction": None} | options
    return read_decisions(columns, **given)[:2]


WORDS = ["approved", "declined", "approved"]


def test_decisions_may_be_written_in_other_words_than_labels():
    call = {"positive_prediction": "approved"}
    decided, label = decisions(WORDS, ["Y", "Y", "N"], positive="Y", **call)
    assert (decided.codes.tolist(), label.codes.tolist()) == ([1, 0, 1], [1, 1, 0])
    assert (decided.positive, label.positive) == ("approved", "Y")
    assert decisions(WORDS, [0, 1, 1], **call)[1].codes.tolist() == [0, 1, 1]
    assert decisions(WORDS, **call)[0].codes.tolist() == [1, 0, 1]
    same = decisions(WORDS, WORDS[::-1], **call)[1]
    assert same.positive == "approved"
    assert decisions([0, 1, 1], ["Y", "Y", "N"], positive="Y")[0].codes.tolist() == [0, 1, 1]


@pytest.mark.parametrize(
    ("options", "proposed"),
    [
        ({}, "for instance positive_prediction='approved' positive='Y'"),
        ({"positive": "Y"}, "for instance positive_prediction='approved'"),
        ({"positive": "declined"}, "positive_prediction='declined' positive='Y'"),
        ({"positive": "X"}, "positive 'X' is no value of decision or repaid"),
        ({"positive_prediction": "aproved"}, "did you mean 'approved'"),
        ({"positive_prediction": "approved"}, r"repaid holds 2 values \(N, Y\).*positive='Y'"),
        ({"positive_prediction": "approved", "threshold": 0.5}, "which decides itself"),
    ],
)
def test_the_option_that_helps_is_proposed(options, proposed):
    predicted = [0.1, 0.6, 0.7] if "threshold" in options else WORDS
    with pytest.raises(RunError, match=proposed):
        decisions(predicted, ["Y", "N", "Y"], **options)
    with pytest.raises(RunError, match="no label"):
        decisions(WORDS, positive="Y", positive_prediction="approved")


def test_what_is_proposed_works():
    label = ["Y", "Y", "N"]
    with pytest.raises(RunError) as caught:
        decisions(WORDS, label)
    proposed = caught.value._proposed
    assert decisions(WORDS, label, **proposed)[0].codes.tolist() == [1, 0, 1]


@pytest.mark.parametrize("positive", ["good,fair", " good , fair", ("good", "fair")])
def test_several_values_count_as_one_outcome(positive):
    found = one(["good", "bad", "fair", None], positive)
    assert found.codes.tolist() == [1, 0, 1, -1]
    assert (found.positive, found.negative) == ("good or fair", "bad")


def test_a_value_with_a_comma_is_taken_whole_where_the_column_has_it():
    assert one(["a,b", "a", "b"], "a,b").codes.tolist() == [1, 0, 0]
    assert one(["a, b", "c"], ("a, b",)).codes.tolist() == [1, 0]
    assert one([1, 2, 3], "1,3").codes.tolist() == [1, 0, 1]


def test_one_of_several_values_that_is_not_there_is_named():
    with pytest.raises(RunError, match="'fare' is no value of paid; did you mean 'fair'") as caught:
        one(["good", "fair", "bad"], "good,fare")
    assert caught.value.suggestion == "fair"
    with pytest.raises(RunError, match="must leave a value of paid that is not positive"):
        one(["good", "fair"], "good,fair")


def test_several_values_are_shared_by_decisions():
    assert both(["a", "b", "c"], ["c", "b", "a"], "a,b") == [[1, 1, 0], [0, 1, 1]]
    assert both(["a", "a", "a"], ["c", "b", "a"], "a,b") == [[1, 1, 1], [0, 1, 1]]


@pytest.mark.parametrize("bad", ["inf", "-inf", "1e400"])
@pytest.mark.parametrize("form", ["csv", "frame", "parquet"])
def test_an_infinite_score_decides_nothing(tmp_path, form, bad):
    source: Any = tmp_path / f"scores.{form}"
    frame = pd.DataFrame({"risk": [0.2, 0.9, float(bad), 0.6], "sex": ["f", "m", "f", "m"]})
    if form == "csv":
        source.write_text("risk,sex\n0.2,f\n0.9,m\n" + bad + ",f\n0.6,m\n")
    elif form == "parquet":
        frame.to_parquet(source)
    else:
        source = frame
    said = f"prediction risk must be finite, got {float(bad):g}; drop or fill these rows"
    with pytest.raises(RunError, match=said):
        audit_file(source, prediction="risk", sensitive="sex", threshold=0.5)
