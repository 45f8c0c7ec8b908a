"""Who learns, chooses and is tested."""

from collections import Counter
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apfex.datasets import Dataset, make_biased
from apfex.tables import TableEncoder
from apfex_reproduction.experiments import DATASETS, MAMO_SIZES
from apfex_reproduction.experiments._protocol import make_trial, split_dataset

PARTS = ("training", "validation", "test")
SHARES = {"training": 0.70, "validation": 0.15, "test": 0.15}


def numbered(y: Any, sensitive: Any, name: str = "own") -> Dataset:
    """A data set whose only input is the number of the row."""
    table = pd.DataFrame(sensitive)
    rows = pd.DataFrame({"row": np.arange(len(table))})
    return Dataset(rows, np.asarray(y), table, 1, name, "", "", "")


def rows_of(trial: Any) -> dict[str, np.ndarray]:
    return {part: getattr(trial, part).X["row"].to_numpy() for part in PARTS}


def cells(y: Any, sensitive: pd.DataFrame) -> Counter:
    """Rows of each label in each cell of the crossing."""
    return Counter(zip(y.tolist(), *sensitive.to_numpy().T.tolist(), strict=True))


@given(st.integers(20, 400), st.floats(0.05, 0.95), st.integers(0, 1000))
@settings(max_examples=40, deadline=None)
def test_parts_are_disjoint_whole_and_even(n, share_of_ones, seed):
    generator = np.random.default_rng(seed)
    y = (generator.random(n) < share_of_ones).astype(int)
    first = (generator.random(n) < share_of_ones).astype(str)
    data = numbered(y, {"first": first, "second": generator.choice(list("xyz"), n)})
    trial = split_dataset(data, "70/15/15", seed)
    rows = rows_of(trial)
    assert sorted(np.concatenate(list(rows.values()))) == list(range(len(y)))
    for part, share in SHARES.items():
        assert abs(len(rows[part]) - share * len(y)) <= 2, part
    for cell, size in cells(data.y, data.sensitive).items():
        for part, share in SHARES.items():
            own = getattr(trial, part)
            found = cells(own.y, own.sensitive)[cell]
            assert abs(found - share * size) < 2.2, (part, cell)


@pytest.mark.parametrize("split", ["70/15/15", "mamo"])
def test_a_row_keeps_its_label_and_its_attributes(split):
    n = sum(MAMO_SIZES["compas"])
    y = np.random.default_rng(0).integers(0, 2, n)
    data = numbered(y, {"sex": np.arange(n) % 5}, "compas")
    trial = split_dataset(data, split, 3)
    for part in (trial.training, trial.validation, trial.test):
        rows = part.X["row"].to_numpy()
        np.testing.assert_array_equal(part.y, y[rows])
        np.testing.assert_array_equal(part.sensitive["sex"], rows % 5)
        assert part.X.index.tolist() == part.sensitive.index.tolist() == list(range(len(part)))


def test_equal_seeds_give_equal_parts_and_others_do_not():
    data = numbered(np.arange(300) % 2, {"sex": np.arange(300) % 3})
    first, again, other = (rows_of(split_dataset(data, "70/15/15", seed)) for seed in (4, 4, 5))
    for part in PARTS:
        np.testing.assert_array_equal(first[part], again[part])
        assert set(first[part]) != set(other[part])


def test_every_row_is_tested_as_often_as_any_other():
    """Places are drawn at random within a cell: over many seeds nobody is left out."""
    data = numbered(np.arange(60) % 2, {"sex": np.arange(60) // 2 % 2})
    seen = np.zeros((2, 60))
    for seed in range(200):
        rows = rows_of(split_dataset(data, "70/15/15", seed))
        seen[0, rows["test"]] += 1
        seen[1, rows["validation"]] += 1
    # 200 draws of probability .15 come to 30, standard deviation 5: five of them for 120 counts.
    assert (abs(seen - 30) < 25).all()


def test_the_sizes_of_padh_et_al():
    for name, sizes in MAMO_SIZES.items():
        n = sum(sizes)
        data = numbered(np.arange(n) % 2, {"sex": np.arange(n) % 3}, name)
        first, again, other = (split_dataset(data, "mamo", seed) for seed in (0, 0, 1))
        assert tuple(first.sizes.values()) == sizes
        rows = rows_of(first)
        assert sorted(np.concatenate(list(rows.values()))) == list(range(n))
        np.testing.assert_array_equal(rows["test"], rows_of(again)["test"])
        assert set(rows["test"]) != set(rows_of(other)["test"])


def test_splits_of_the_same_seed_have_nothing_in_common():
    n = sum(MAMO_SIZES["compas"])
    data = numbered(np.arange(n) % 2, {"sex": np.arange(n) % 3}, "compas")
    even, mamo = (set(rows_of(split_dataset(data, s, 0))["test"]) for s in ("70/15/15", "mamo"))
    expected = len(even) * len(mamo) / n
    assert abs(len(even & mamo) - expected) < 6 * expected**0.5


@pytest.mark.parametrize(
    ("split", "message"),
    [
        ("mamo", "split 'mamo' is known for adult, compas only, got 'biased-crossing'; use '70/"),
        ("80/20", r"split must be one of '70/15/15', 'mamo', got '80/20'\."),
    ],
)
def test_a_split_that_is_not_known_is_refused(split, message):
    with pytest.raises(ValueError, match=message):
        split_dataset(make_biased(100, random_state=0), split, 0)


def test_groupings_are_the_attributes_and_then_their_crossing():
    trial = split_dataset(make_biased(100, random_state=0), "70/15/15", 0)
    assert trial.groupings == {
        "sex": ["sex"],
        "origin": ["origin"],
        "sex x origin": ["sex", "origin"],
    }
    alone = split_dataset(numbered(np.arange(100) % 2, {"sex": np.arange(100) % 2}), "70/15/15", 0)
    assert alone.groupings == {"sex": ["sex"]}


def test_heart_has_the_columns_of_the_paper():
    trial = make_trial("heart", "70/15/15", 0)
    assert trial.attributes == ("age", "sex")
    assert trial.training.X.shape[1] == 13  # age and sex among them
    assert {"age", "sex"} <= set(trial.training.X.columns)
    assert sum(trial.sizes.values()) == 297
    assert set(trial.test.y.tolist()) == {0, 1}


@pytest.mark.slow
@pytest.mark.parametrize("name", DATASETS)
def test_every_table_has_its_attributes_first_and_second_and_among_the_inputs(name):
    expected = {
        "adult": (48_842, ("sex", "race"), {"sex", "race"}),
        "compas": (6_167, ("race", "sex"), {"sex", "race"}),
        "german": (1_000, ("age", "sex"), {"age", "personal_status_sex"}),
        "heart": (297, ("age", "sex"), {"age", "sex"}),
        "celeba": (202_599, ("Male", "Black_Hair"), {"Male", "Black_Hair"}),
    }
    n, attributes, inputs = expected[name]
    trial = make_trial(name, "70/15/15", 0)
    assert sum(trial.sizes.values()) == n
    assert trial.attributes == attributes
    assert inputs <= set(trial.training.X.columns)
    assert all(len(set(trial.training.sensitive[one])) == 2 for one in attributes)


@pytest.mark.slow
def test_adult_is_without_capital_and_compas_with_the_text_of_the_charge():
    adult, compas = (make_trial(name, "70/15/15", 0) for name in ("adult", "compas"))
    left_out = {"capital-gain", "capital-loss", "education", "fnlwgt"}
    assert not left_out & set(adult.training.X.columns)
    charges = pd.concat([getattr(compas, part).X["c_charge_desc"] for part in PARTS])
    assert len(set(charges)) == 389
    encoder = TableEncoder(min_count=1).fit(compas.training.X)
    assert encoder.n_features_out_ > 300
    for name, sizes in MAMO_SIZES.items():
        assert tuple(make_trial(name, "mamo", 0).sizes.values()) == sizes
