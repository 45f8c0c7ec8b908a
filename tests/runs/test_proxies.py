"""A feature that reproduces a sensitive attribute is found and said; other features are not."""

import numpy as np
import pandas as pd
import pytest
from tests.people import COLUMNS, TRAINING, people

from apfex import explore
from apfex.groups import make_groups
from apfex.persistence import read_json
from apfex.runs import RunWarning, load_run
from apfex.runs._data_checks import find_proxies

N = 2000
RNG = np.random.default_rng(0)
SEX = RNG.choice(["woman", "man"], N)
RACE = RNG.choice(["white", "black", "asian"], N, p=[0.7, 0.2, 0.1])
AGE = RNG.integers(18, 80, N)
RANGES = pd.cut(AGE, [0, 25, 60, 99], right=False, labels=["under 25", "25 up to 60", "60 on"])
GROUPS = make_groups({"sex": SEX, "race": RACE, "age": RANGES})

PROXIES = {
    "a copy": (SEX, "sex"),
    "a code": ((SEX == "woman").astype(int), "sex"),
    "a code with errors": (np.where(RNG.random(N) < 0.02, 1, SEX == "woman"), "sex"),
    "in capitals": (np.char.upper(RACE), "race"),
    "a number for each": (pd.factorize(RACE)[0] * 3.5, "race"),
    "one level": (RACE == "asian", "race"),
    "a flag": ((AGE >= 60).astype(int), "age"),
    "years": (AGE, "age"),
    "a role": (np.where((SEX == "man") & (RNG.random(N) < 0.7), "husband", "other"), "sex"),
}


@pytest.mark.parametrize("name", PROXIES)
def test_what_reproduces_an_attribute_is_found(name):
    column, attribute = PROXIES[name]
    X = pd.DataFrame({"noise": RNG.normal(size=N), "proxy": column})
    found = find_proxies(X, GROUPS)
    assert [(proxy.feature, proxy.attribute) for proxy in found] == [("proxy", attribute)]


def test_other_features_are_not():
    X = pd.DataFrame(
        {
            "noise": RNG.normal(size=N),
            "height": 175 + 10 * (SEX == "man") + RNG.normal(0, 8, N),
            "town": RNG.choice([f"t{i}" for i in range(300)], N),
            "id": [f"{i:05}" for i in range(N)],
            "constant": "x",
            "empty": np.nan,
            "pay": RNG.lognormal(10, 0.5, N) * (1 + 0.2 * (SEX == "man")),
            "job": np.where(RNG.random(N) < 0.7, "a", np.where(SEX == "man", "b", "c")),
        }
    )
    assert find_proxies(X, GROUPS) == []


def test_what_all_rows_have_in_common_is_told_by_nothing():
    X = pd.DataFrame({"noise": RNG.normal(size=N), "word": RNG.choice(["a", "b"], N)})
    assert find_proxies(X, make_groups({"sex": ["woman"] * N})) == []


def test_that_a_form_was_left_empty_is_no_proxy():
    sex = pd.Series(SEX, dtype=object).mask(RNG.random(N) < 0.1, None)
    X = pd.DataFrame({"also_empty": pd.Series("given", sex.index).mask(sex.isna(), None)})
    assert [p.level for p in find_proxies(X, make_groups({"sex": sex}))] == []


def test_a_wide_table_is_looked_at_in_part(monkeypatch):
    monkeypatch.setattr("apfex.runs._data_checks._MOST_CELLS", 10)
    monkeypatch.setattr("apfex.runs._data_checks._ENOUGH_ROWS", 200)
    (proxy, *_) = find_proxies(pd.DataFrame({"SEX": SEX}), GROUPS)
    assert 50 < proxy.rows <= 200


def test_it_is_warned_of_recorded_and_handed_to_the_page(tmp_path):
    frame = people()
    frame["SEX"] = np.where(frame["sex"] == "male", "M", "F")
    with pytest.warns(RunWarning, match="SEX reproduces sex") as caught:
        run = explore(frame, **COLUMNS, **TRAINING, max_gap=1, out=tmp_path / "run")
    (warning,) = (w.message for w in caught)
    assert isinstance(warning, RunWarning)
    assert str(warning).endswith("If it should not know, leave it out: drop=['SEX']")
    (told,) = run.data.proxies
    assert warning.found == told
    assert (told.feature, told.attribute, told.wrong) == ("SEX", "sex", 0)
    record = read_json(tmp_path / "run/run.json")
    assert record["proxies"] == ["SEX"]
    (caveat,) = [c for c in record["caveats"] if c["code"] == "proxy"]
    for point in run.described["points"]:
        assert point["caveats"].count(caveat) == 1
    assert (caveat["level"], caveat["data"]) == ("warning", {"features": ["SEX"]})
    assert caveat["text"] in [one.text for one in load_run(tmp_path / "run").caveats]
    assert load_run(tmp_path / "run").data == run.data


def test_columns_that_are_meant_to_be_inputs_are_no_news():
    run = explore(people(), **COLUMNS, **TRAINING, max_gap=1, include_sensitive=True)
    assert run.data.proxies == ()
    assert {"sex", "origin"} <= set(run.data.features)
    assert "proxy" not in [one.code for one in run.caveats]
