import subprocess
import sys
from collections import Counter

import numpy as np
import pytest

from apfex.datasets import Dataset, list_datasets, load_dataset
from apfex.tables import TableEncoder


def rows(data: Dataset) -> list[tuple[str, ...]]:
    return [tuple(row) for row in data.sensitive.to_numpy().tolist()]


def cells(data: Dataset) -> dict[tuple[str, ...], int]:
    return Counter(rows(data))


def positives(data: Dataset) -> dict[tuple[str, ...], int]:
    return Counter(cell for cell, y in zip(rows(data), data.y, strict=True) if y == 1)


def missing(data: Dataset) -> dict[str, int]:
    counts = data.X.isna().to_numpy().sum(axis=0)
    return {name: n for name, n in zip(data.X.columns, counts, strict=True) if n}


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("adlut", {}, "adult, celeba, compas, german, heart, got 'adlut'; did you mean 'adult'"),
        (3, {}, r"name must be one of .* got 3"),
        ("adult", {"colums": "all"}, "one of columns, race, got 'colums'; did you mean 'columns'"),
        ("adult", {"columns": "mamo+"}, r"one of all, mamo, mamo\+capital, got 'mamo\+'; did you"),
        ("german", {"foreign_worker": "yes"}, "foreign_worker must be one of False, True, got"),
    ],
)
def test_unknown_names_and_options_list_what_there_is(name, options, message):
    with pytest.raises(ValueError, match=message):
        load_dataset(name, **options)


def test_every_data_set_tells_its_story():
    for info in list_datasets():
        assert all([info.description, info.licence, info.citation, info.homepage])
        assert info.favorable_label in (0, 1)
        assert all(len(file.sha256) == 64 and file.size > 0 for file in info.files)
        assert info.archives


def test_import_is_light():
    code = "import sys, apfex.datasets; print({'pandas', 'torch', 'rich'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["adult", "celeba", "compas", "german", "heart"])
def test_parts_fit_together(name):
    data = load_dataset(name)
    assert data.X.index.equals(data.sensitive.index)
    assert len(data.X) == len(data.y)
    assert set(np.unique(data.y)) == {0, 1}
    assert not data.sensitive.isna().to_numpy().any()
    assert data.y.dtype == np.int64
    assert not set(data.X.columns) & set(data.sensitive.columns)


@pytest.mark.slow
def test_adult_counts():
    data = load_dataset("adult")
    assert (len(data.X), data.y.sum(), data.favorable_label) == (48_842, 11_687, 1)
    assert cells(data) == {
        ("Female", "Non-White"): 3_165,
        ("Female", "White"): 13_027,
        ("Male", "Non-White"): 3_915,
        ("Male", "White"): 28_735,
    }
    expected = {("Female", "Non-White"): 0.072, ("Female", "White"): 0.118}
    expected |= {("Male", "Non-White"): 0.218, ("Male", "White"): 0.315}
    rates = {cell: n / cells(data)[cell] for cell, n in positives(data).items()}
    assert rates == pytest.approx(expected, abs=5e-4)
    assert missing(data) == {"workclass": 2_799, "occupation": 2_809, "native-country": 857}


@pytest.mark.slow
def test_adult_variants():
    data = load_dataset("adult", race="all", columns="mamo")
    assert Counter(data.sensitive["race"]) == {
        "White": 41_762,
        "Black": 4_685,
        "Asian-Pac-Islander": 1_519,
        "Amer-Indian-Eskimo": 470,
        "Other": 406,
    }
    assert data.X.shape[1] == 8
    countries = Counter(data.X["native-country"])
    assert countries.pop("other") > 150
    assert min(countries.values()) > 150
    assert countries["?"] == 857
    assert load_dataset("adult", columns="mamo+capital").X.shape[1] == 10


@pytest.mark.slow
def test_compas_counts():
    data = load_dataset("compas")
    assert (len(data.X), data.y.sum(), data.favorable_label) == (6_167, 2_809, 0)
    expected = {("Other", "Female"): 693, ("Other", "Male"): 3_374}
    expected |= {("Caucasian", "Female"): 480, ("Caucasian", "Male"): 1_620}
    assert cells(data) == expected
    assert not {"name", "first", "last", "dob", "is_recid", "decile_score"} & set(data.X.columns)
    assert Counter(load_dataset("compas", race="three").sensitive["race"]) == {
        "African-American": 3_173,
        "Caucasian": 2_100,
        "Other": 894,
    }


@pytest.mark.slow
def test_compas_as_in_the_paper_has_401_inputs():
    data = load_dataset("compas", charge_description=True)
    assert len(set(data.X["c_charge_desc"])) == 389
    # Two more are the sensitive attributes, as one flag each.
    assert TableEncoder(min_count=1).fit(data.X).n_features_out_ == 399


@pytest.mark.slow
def test_german_counts():
    data = load_dataset("german")
    assert (len(data.X), data.y.sum(), data.favorable_label) == (1_000, 700, 1)
    expected = {("over 25", "male"): 605, ("over 25", "female"): 205}
    expected |= {("up to 25", "female"): 105, ("up to 25", "male"): 85}
    assert cells(data) == expected
    third = load_dataset("german", foreign_worker=True).sensitive["foreign_worker"]
    assert Counter(third) == {"yes": 963, "no": 37}


@pytest.mark.slow
def test_heart_counts():
    data = load_dataset("heart")
    assert (len(data.X), data.y.sum(), data.favorable_label) == (297, 137, 0)
    expected = {("55 and over", "male"): 102, ("under 55", "male"): 99}
    expected |= {("55 and over", "female"): 57, ("under 55", "female"): 39}
    assert cells(data) == expected
    everybody = load_dataset("heart", rows="all")
    assert (len(everybody.X), everybody.y.sum()) == (303, 139)
    assert missing(everybody) == {"ca": 4, "thal": 2}


@pytest.mark.slow
def test_celeba_counts():
    data = load_dataset("celeba")
    assert (len(data.X), data.y.sum(), data.X.shape[1]) == (202_599, 97_669, 37)
    male = data.sensitive["Male"].to_numpy() == "Male"
    assert (male.sum(), (~male).sum()) == (84_434, 118_165)
    assert (data.y[male].mean(), data.y[~male].mean()) == pytest.approx((0.400, 0.541), abs=5e-4)
    five = load_dataset("celeba", hair="five", hide_hair=True)
    assert set(five.sensitive["hair"]) == {"Black", "Blond", "Brown", "Gray", "Other"}
    assert not {"Black_Hair", "Blond_Hair", "Brown_Hair", "Gray_Hair"} & set(five.X.columns)
