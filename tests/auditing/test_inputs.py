"""Bad input: an error that names the argument, the rule, the value and the remedy."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from tests.auditing.rows import audit, rows

from apfex import make_groups
from apfex.auditing import AuditSettings

Y, DECIDED, TABLE, WEIGHT = rows(60)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"y_true": Y[1:]}, r"y_pred must have one entry per row of y_true \(59\), got 60"),
        ({"sensitive_features": TABLE[1:]}, r"sensitive_features must .* \(60\), got 59"),
        ({"sample_weight": WEIGHT[1:]}, r"sample_weight must have one entry .*got 59"),
        ({"y_score": WEIGHT[1:]}, r"y_score must have one entry .*got 59"),
        ({"y_score": WEIGHT * np.nan}, "y_score must be finite, got nan; drop or fill"),
        ({"sample_weight": -WEIGHT}, "sample_weight must be finite and at least 0"),
        ({"y_pred": WEIGHT}, r"y_pred must hold labels, got the number .*turn scores into"),
        ({"y_pred": [], "y_true": None}, "y_pred must have at least one row, got 0"),
        ({"criteria": "parity"}, r"criteria must be some of .*'dp'.*got \['parity'\]"),
        ({"criteria": ()}, "criteria must be some of"),
        ({"tolerance": 1.0}, "tolerance must be at least 0 and below 1, got 1.0; 0.05 is 5"),
        ({"tolerance": -0.1}, "tolerance must be at least 0"),
        ({"confidence": 95}, "confidence must lie between 0.5 and 0.999, got 95; 0.95 is usual"),
        ({"min_count": 0}, "min_count must be at least 1, got 0"),
        ({"favorable_label": "yes"}, r"favorable_label must be .*got 'yes' .*\[0, 1\]"),
        (
            {"y_true": Y + DECIDED, "y_pred": DECIDED * 2, "favorable_label": 7},
            r"favorable_label must be one of the labels found, \[0, 1, 2\], got 7",
        ),
        (
            {"y_true": Y + DECIDED, "y_pred": DECIDED, "y_score": WEIGHT},
            "y_score must be None with more than two labels",
        ),
        (
            {"y_true": pd.Series(Y), "y_pred": pd.Series(DECIDED, index=range(1, 61))},
            "y_pred must have the index of y_true",
        ),
        (
            {"y_pred": pd.Series(DECIDED), "y_score": pd.Series(WEIGHT, index=range(1, 61))},
            "y_score must have the index of",
        ),
        (
            {"control_features": pd.Series(DECIDED, index=range(1, 61)), "y_true": pd.Series(Y)},
            "control_features must have the index of y_true",
        ),
        (
            {
                "control_features": {"a": pd.Series(DECIDED, index=range(1, 61))},
                "sensitive_features": {"b": pd.Series(DECIDED)},
            },
            r"control_features must have the index of sensitive_features\['b'\]",
        ),
        (
            {"y_pred": np.arange(60), "y_true": Y},
            r"y_pred must hold labels, got 60 numbers from 0 to 59 .*\[0, 1\]; turn scores",
        ),
    ],
)
def test_values_are_named(changes, message):
    call = {"y_true": Y, "y_pred": DECIDED, "sensitive_features": TABLE.to_numpy()} | changes
    with pytest.raises(ValueError, match=message):
        audit(call.pop("y_true"), call.pop("y_pred"), **call)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"y_score": ["a"] * 60}, "y_score must hold numbers"),
        ({"tolerance": "5%"}, "tolerance must be a number, got '5%'"),
        ({"min_count": True}, "min_count must be a number, got True"),
    ],
)
def test_kinds_are_named(changes, message):
    with pytest.raises(TypeError, match=message):
        audit(Y, DECIDED, sensitive_features=TABLE, **changes)


def test_one_group_is_a_result():
    found = audit(Y, DECIDED, sensitive_features=["same"] * 60)
    assert (found.gaps["verdict"] == "not estimable").all()
    assert found.groups["rate"].notna().all()
    assert "not estimable" in str(found)


def test_thousands_of_levels_are_a_result_with_a_note():
    generator = np.random.default_rng(0)
    table = {"zip": np.r_[np.arange(5000), generator.integers(0, 5000, 5000)]}
    decided = generator.integers(0, 2, 10_000)
    found = audit(None, decided, sensitive_features=table, criteria="dp", min_count=2)
    assert found.n_groups == 5000
    assert "zip has 5,000 levels; put it into bins" in found.notes[0]
    assert len(str(found).splitlines()) <= 22


def test_more_groups_than_anybody_reads_are_refused(monkeypatch):
    monkeypatch.setattr("apfex.auditing._settings.MOST_GROUPS", 50)
    with pytest.raises(ValueError, match=r"at most 50 groups, got 60; the attribute 'id' .*bins"):
        audit(None, DECIDED, sensitive_features={"sex": ["F", "M"] * 30, "id": range(60)})


def test_every_kind_of_column_is_taken():
    plain = audit(Y, DECIDED, sensitive_features=TABLE, min_count=1)
    for y, decided, table in [
        (list(Y), list(DECIDED), TABLE.to_dict("list")),
        (torch.tensor(Y), torch.tensor(DECIDED), make_groups(TABLE)),
        (pl.Series(Y), pl.Series(DECIDED), pl.DataFrame(TABLE.to_dict("list"))),
        (Y.astype(bool), DECIDED.astype(bool), TABLE.astype("category")),
    ]:
        found = audit(y, decided, sensitive_features=table, min_count=1)
        assert found.gaps.equals(plain.gaps)
        assert found.groups.equals(plain.groups)
    words = np.array(["deny", "grant"])
    found = audit(
        words[Y], words[DECIDED], sensitive_features=TABLE, min_count=1, favorable_label="grant"
    )
    assert found.gaps.equals(plain.gaps)


def test_rows_without_a_group_are_left_out_and_told():
    groups = make_groups(TABLE)
    codes = groups.encode(TABLE)
    codes[:7] = -1
    outside = type(groups)(codes, groups.attributes, groups.levels, groups.cells, groups._keys)
    found = audit(Y, DECIDED, sensitive_features=outside, y_score=WEIGHT, min_count=1)
    inside = audit(
        Y[7:], DECIDED[7:], sensitive_features=TABLE[7:], y_score=WEIGHT[7:], min_count=1
    )
    assert found.n_rows == 53
    assert found.gaps.equals(inside.gaps)
    assert found.thresholds is not None
    assert found.thresholds.equals(inside.thresholds)
    assert any("7 rows belong to no group" in note for note in found.notes)


def test_settings_are_values():
    assert AuditSettings("equal_opportunity") == AuditSettings(("tpr",))


def test_classes_that_only_one_column_shows_are_noted():
    generator = np.random.default_rng(0)
    y, sex = generator.integers(0, 3, 300), generator.choice(["F", "M"], 300)
    shifted = audit(y, y + 1, sensitive_features=sex, favorable_label=1)
    assert any("No decision is 0, and no label is 3" in note for note in shifted.notes)
    fewer = audit(y, np.minimum(y, 1), sensitive_features=sex, favorable_label=1)
    assert not any("written alike" in note for note in fewer.notes)
    more = audit(np.minimum(y, 1), y, sensitive_features=sex, favorable_label=1)
    assert any("No label is 2: make sure" in note for note in more.notes)


def test_many_numbers_without_labels_are_noted():
    percent, sex = np.arange(300) % 101, ["F", "M"] * 150
    found = audit(None, percent, sensitive_features=sex, criteria="dp")
    assert any("101 values" in note and "if they are scores" in note for note in found.notes)
    words = audit(
        None,
        [f"{n}%" for n in percent],
        sensitive_features=sex,
        criteria="dp",
        favorable_label="1%",
    )
    assert not any("scores" in note for note in words.notes)


def test_levels_that_differ_in_spelling_alone_are_noted():
    decided = [0, 1] * 100
    people = {"sex": ["F", "f ", "M", "M"] * 50, "race": ["A", "B", "C", "D"] * 50}
    notes = audit(None, decided, sensitive_features=people, criteria="dp").notes
    assert [note for note in notes if "'F' and 'f '" in note and "sex" in note]
    assert not [note for note in notes if "race" in note and "spell" in note]
    long = {"place": ["12345678901234567890", "12345678901234567891"] * 100}
    assert not audit(None, decided, sensitive_features=long, criteria="dp").notes


def test_scores_of_the_other_label_are_noted():
    generator = np.random.default_rng(0)
    score, sex = generator.random(300), generator.choice(["F", "M"], 300)
    decided = (score > 0.5).astype(int)
    given = {"sensitive_features": sex, "y_score": score, "criteria": "dp"}
    assert not audit(None, decided, **given).notes
    other = audit(None, decided, favorable_label=0, **given)
    assert "Scores are lower where the favorable label is decided" in other.notes[0]


@pytest.mark.parametrize("argument", ["y_true", "y_pred", "sensitive_features", "sample_weight"])
def test_columns_of_dask_must_be_computed_first(argument):
    dask = pytest.importorskip("dask.dataframe", reason="needs the extra dask")
    given = {"y_true": Y, "y_pred": DECIDED, "sensitive_features": TABLE["sex"]}
    given[argument] = dask.from_pandas(pd.Series(given.get(argument, WEIGHT)), npartitions=2)
    with pytest.raises(TypeError, match=f"{argument} must be in memory here, got a Dask Series"):
        audit(**given)
