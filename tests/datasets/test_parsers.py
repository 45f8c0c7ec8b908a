"""Each parser on a few made-up rows in the published layout."""

import numpy as np
import pytest

from apfex.datasets import load_dataset

ADULT = """\
39, State-gov, 77516, Bachelors, 13, Never-married, Adm-clerical, Not-in-family, White, Male, \
2174, 0, 40, United-States, {low}
50, ?, 83311, HS-grad, 9, Divorced, ?, Husband, Black, Female, 0, 10, 13, ?, {high}

"""
COMPAS_HEADER = (
    "id,name,first,last,sex,dob,age,age_cat,race,juv_fel_count,decile_score,juv_misd_count,"
    "juv_other_count,priors_count,days_b_screening_arrest,c_charge_degree,c_charge_desc,is_recid,"
    "decile_score,score_text,priors_count,two_year_recid"
)
COMPAS_ROW = (
    "1,a b,a,b,{sex},1980-01-01,34,25 - 45,{race},0,1,0,0,2,{days},{degree},{text},{recid},"
    "1,{score},9,{y}"
)
GERMAN = """\
A11 6 A34 A43 1169 A65 A75 4 A93 A101 4 A121 67 A143 A152 2 A173 1 A192 A201 1
A12 48 A32 A43 5951 A61 A73 2 A92 A101 2 A121 25 A143 A152 1 A173 1 A191 A202 2
"""
HEART = """\
63.0,1.0,1.0,145.0,233.0,1.0,2.0,150.0,0.0,2.3,3.0,0.0,6.0,0
55.0,0.0,4.0,160.0,286.0,0.0,2.0,108.0,1.0,1.5,2.0,3.0,3.0,3
53.0,0.0,3.0,128.0,216.0,0.0,2.0,115.0,0.0,0.0,1.0,0.0,?,1
"""
CELEBA = (
    "4\r\nBald Black_Hair Blond_Hair Brown_Hair Gray_Hair Male Smiling \r\n"
    "000001.jpg -1  1 -1 -1 -1  1  1\r\n"
    "000002.jpg 1 -1 -1 -1  1 -1 -1\r\n"
    "000003.jpg -1  1  1 -1 -1 -1 -1\r\n"
    "000004.jpg -1 -1 -1 -1 -1 -1  1\r\n"
)


@pytest.fixture
def load(tmp_path, monkeypatch):
    """A data set from files of these texts, in place of the published ones."""

    def load_texts(name, *texts, **options):
        paths = [tmp_path / str(place) for place in range(len(texts))]
        for path, text in zip(paths, texts, strict=True):
            path.write_bytes(text.encode())
        monkeypatch.setattr("apfex.datasets._load.locate", lambda *_, **__: paths)
        return load_dataset(name, **options)

    return load_texts


def adult(load, **options):
    first = ADULT.format(low="<=50K", high=">50K")
    second = "|1x3 Cross validator\n" + ADULT.format(low="<=50K.", high=">50K.")
    return load("adult", first, second, **options)


def test_adult(load):
    parts = adult(load)
    np.testing.assert_array_equal(parts.y, [0, 1, 0, 1])
    assert parts.sensitive.iloc[:2].to_numpy().tolist() == [
        ["Male", "White"],
        ["Female", "Non-White"],
    ]
    assert not {"sex", "race", "income"} & set(parts.X.columns)
    assert parts.X["workclass"].isna().tolist() == [False, True, False, True]
    assert parts.X["age"].tolist() == [39, 50, 39, 50]


def test_adult_variants(load):
    parts = adult(load, columns="mamo", race="all", include_sensitive=True)
    assert parts.sensitive["race"].tolist()[:2] == ["White", "Black"]
    assert {"sex", "race"} < set(parts.X.columns)
    assert parts.X["race"].tolist()[1] == "Black"
    dropped = {"education", "fnlwgt", "capital-gain", "capital-loss"}
    assert not dropped & set(parts.X.columns)
    assert parts.X["workclass"].tolist()[1] == "?"
    assert set(parts.X["native-country"]) == {"other"}
    assert {"capital-gain", "capital-loss"} < set(adult(load, columns="mamo+capital").X.columns)


def compas(load, *rows, **options):
    common = {"sex": "Male", "race": "Hispanic", "days": -1, "degree": "F", "text": "Theft"}
    common |= {"recid": 0, "score": "Low", "y": 0}
    lines = [COMPAS_ROW.format(**(common | row)) for row in rows]
    return load("compas", "\n".join([COMPAS_HEADER, *lines, ""]), **options)


@pytest.mark.parametrize(
    "bad",
    [
        {"days": 31},
        {"days": -31},
        {"days": ""},
        {"degree": "O"},
        {"recid": -1},
        {"score": "N/A"},
        {"text": ""},
    ],
)
def test_compas_filter(load, bad):
    parts = compas(load, {"days": -30, "y": 1}, bad, {"days": 30})
    np.testing.assert_array_equal(parts.y, [1, 0])
    assert list(parts.X.index) == list(parts.sensitive.index) == [0, 1]


def test_compas_drops_people_and_leaks(load):
    parts = compas(load, {}, {"race": "Caucasian"}, include_sensitive=True, charge_description=True)
    known = {"age", "juv_fel_count", "juv_misd_count", "juv_other_count", "priors_count"}
    known |= {"age_cat", "c_charge_degree", "c_charge_desc", "race", "sex"}
    assert set(parts.X.columns) == known
    assert parts.X["priors_count"].tolist() == [2, 2]
    assert list(parts.sensitive.columns) == ["race", "sex"]


@pytest.mark.parametrize(
    ("race", "expected"),
    [
        ("binary", ["Other", "Caucasian", "Other"]),
        ("three", ["African-American", "Caucasian", "Other"]),
        ("all", ["African-American", "Caucasian", "Asian"]),
    ],
)
def test_compas_races(load, race, expected):
    rows = [{"race": name} for name in ("African-American", "Caucasian", "Asian")]
    assert compas(load, *rows, race=race).sensitive["race"].tolist() == expected


def test_german(load):
    parts = load("german", GERMAN)
    np.testing.assert_array_equal(parts.y, [1, 0])
    assert parts.sensitive.to_numpy().tolist() == [["over 25", "male"], ["up to 25", "female"]]
    assert parts.X.shape == (2, 18)
    assert "foreign_worker" in parts.X
    third = load("german", GERMAN, foreign_worker=True)
    assert third.sensitive["foreign_worker"].tolist() == ["yes", "no"]
    assert "foreign_worker" not in third.X
    whole = load("german", GERMAN, include_sensitive=True, foreign_worker=True)
    assert whole.X.shape == (2, 20)


def test_heart(load):
    parts = load("heart", HEART)
    np.testing.assert_array_equal(parts.y, [0, 1])
    assert parts.sensitive.to_numpy().tolist() == [
        ["55 and over", "male"],
        ["55 and over", "female"],
    ]
    assert parts.X.shape == (2, 11)
    assert parts.X["cp"].tolist() == ["1", "4"]
    everybody = load("heart", HEART, include_sensitive=True, rows="all")
    assert everybody.X.shape == (3, 13)
    assert everybody.X["thal"].isna().tolist() == [False, False, True]
    assert everybody.sensitive["age"].tolist()[2] == "under 55"


def test_celeba(load):
    parts = load("celeba", CELEBA)
    np.testing.assert_array_equal(parts.y, [1, 0, 0, 1])
    assert parts.X.columns.tolist() == ["Bald", "Blond_Hair", "Brown_Hair", "Gray_Hair"]
    assert parts.X["Bald"].tolist() == [-1, 1, -1, -1]
    assert parts.sensitive["Male"].tolist() == ["Male", "Not male", "Not male", "Not male"]
    assert parts.sensitive["Black_Hair"].tolist()[:2] == ["Black hair", "Other hair"]
    five = load("celeba", CELEBA, include_sensitive=True, hair="five", hide_hair=True)
    assert five.sensitive["hair"].tolist() == ["Black", "Gray", "Other", "Other"]
    assert five.X.columns.tolist() == ["Bald", "Male"]
