"""What a masked array masks is missing, wherever it is given: never the value that lies there."""

import numpy as np
import pytest
from tests.estimator.tables import DATA, quick

from apfex import audit
from apfex.groups import make_groups
from apfex.metrics import dp_gap
from apfex.tables import TableEncoder, unmasked

N = 40
Y, SEX = np.arange(N) % 2, np.where(np.arange(N) < 20, "F", "M")
HIDDEN = np.arange(N) < 5


def masked(values):
    return np.ma.array(values, mask=HIDDEN[: len(values)])


def test_masked_values_in_a_list_are_missing():
    people = [*SEX[:-1], np.ma.masked]
    assert make_groups(people).names[-1] == "attribute0=<missing>"
    with pytest.raises(ValueError, match="y_true must not have missing values, got 1"):
        audit([*Y[:-1], np.ma.masked], Y, sensitive_features=SEX)
    rows = list(np.ma.array([[1.0, 2.0], [3.0, 4.0]], mask=[[True, False], [False, False]]))
    assert np.isnan(unmasked(rows)).tolist() == [[True, False], [False, False]]


def test_no_mask_changes_nothing():
    for values in (Y, SEX, Y / 3, np.ma.array(Y), Y.astype(object)):
        assert unmasked(values).dtype == values.dtype
        assert unmasked(values).tolist() == np.asarray(values).tolist()


@pytest.mark.parametrize("name", ["y_true", "y_pred", "sample_weight"])
def test_masked_labels_decisions_and_weights_are_refused(name):
    given = {"y_true": Y, "y_pred": Y[::-1], "sample_weight": np.ones(N)}
    given[name] = masked(given[name])
    with pytest.raises(ValueError, match=name):
        audit(**given, sensitive_features=SEX)


@pytest.mark.parametrize(
    "people", [masked(SEX), {"sex": masked(SEX)}, np.ma.array(SEX[:, None], mask=HIDDEN[:, None])]
)
def test_masked_sensitive_values_are_a_level_of_their_own(people):
    names = make_groups(people).names
    assert [name.split("=")[1] for name in names] == ["F", "M", "<missing>"]
    rows = audit(None, Y, sensitive_features=people, criteria="dp").groups["count"].tolist()
    assert rows == [15, 20, 5]
    decided = np.where(HIDDEN, 1, 0)
    assert dp_gap(None, decided, sensitive_features=people) == 1.0


def test_masked_inputs_are_encoded_as_missing_ones():
    numbers = np.random.default_rng(0).normal(size=(60, 2))
    hidden = np.random.default_rng(1).random(numbers.shape) < 0.2
    under_the_mask = np.where(hidden, 1e6, numbers)
    given = np.ma.array(under_the_mask, mask=hidden)
    plain = np.where(hidden, np.nan, numbers)
    expected = TableEncoder().fit_transform(plain)
    np.testing.assert_array_equal(TableEncoder().fit_transform(given), expected)


def test_a_fit_takes_masks_as_what_is_missing():
    numbers = DATA.X.select_dtypes("number").to_numpy()
    hidden = np.random.default_rng(1).random(numbers.shape) < 0.2
    plain = np.where(hidden, np.nan, numbers)
    given = np.ma.array(np.where(hidden, 1e6, numbers), mask=hidden)
    expected, found = (
        quick().fit(X, DATA.y, sensitive_features=DATA.sensitive).decision_function(X)
        for X in (plain, given)
    )
    np.testing.assert_array_equal(found, expected)
    hole = np.arange(len(DATA.y)) < 3
    for y in (DATA.y, np.where(DATA.y == 1, "yes", "no")):
        with pytest.raises(ValueError, match="y must not have missing values, got 3"):
            quick().fit(plain, np.ma.array(y, mask=hole), sensitive_features=DATA.sensitive)
    weight = np.ma.array(np.ones(len(DATA.y)), mask=hole)
    with pytest.raises(ValueError, match="sample_weight must be finite"):
        quick().fit(plain, DATA.y, sensitive_features=DATA.sensitive, sample_weight=weight)
