"""Columns that name rows are found; amounts, ages and categories are not."""

import numpy as np
import pandas as pd
import pytest
from tests.cli.conftest import COLUMNS, TRAINING, people

from apfex.cli._features import kinds_of
from apfex.cli._identifiers import find_identifiers
from apfex.persistence import read_json

N = 400
RNG = np.random.default_rng(0)
NAMING = {
    "from 0": np.arange(N),
    "from 1, mixed": RNG.permutation(N) + 1,
    "with rows left out": np.delete(np.arange(2 * N), RNG.choice(2 * N, N, replace=False)),
    "rising with gaps": np.cumsum(RNG.integers(1, 1000, N)),
    "as floats with a gap": np.where(np.arange(N) == 7, np.nan, np.arange(N)),
    "customer_id": RNG.choice(10**9, N, replace=False),
    "customerID": RNG.choice(10**9, N, replace=False),
    "text": [f"K{code:06}" for code in RNG.choice(10**6, N, replace=False)],
    "names, few of them twice": [f"N{code}" for code in (*range(N - 8), *range(8))],
}
OTHER = {
    "amounts": RNG.choice(10**7, N, replace=False),
    "measured": RNG.normal(size=N),
    "sorted": np.sort(RNG.normal(size=N)),
    "ages": RNG.integers(18, 90, N),
    "towns": RNG.choice(["a", "b", *(f"t{i}" for i in range(200))], N),
    "paid": RNG.choice(10**7, N, replace=False),
    "yes or no": RNG.random(N) < 0.5,
    "constant": "x",
    "empty": np.nan,
    "group_id": RNG.integers(0, 20, N),
}


@pytest.mark.parametrize("name", NAMING)
def test_columns_that_name_rows_are_found(name):
    X = pd.DataFrame({"merit": RNG.normal(size=N), name: NAMING[name]})
    assert find_identifiers(X, kinds_of(X)) == [name]


def test_other_columns_are_not():
    X = pd.DataFrame(OTHER)
    assert find_identifiers(X, kinds_of(X)) == []
    few = pd.DataFrame({"place": np.arange(20)})
    assert find_identifiers(few, kinds_of(few)) == []


def test_explore_warns_with_the_option_that_leaves_them_out(apfex, tmp_path):
    frame = people().assign(row=np.arange(300), **{"the name": [f"n{i}" for i in range(300)]})
    frame.to_csv(tmp_path / "p.csv", index=False)
    said = apfex("explore", tmp_path / "p.csv", *COLUMNS, *TRAINING, "--out", tmp_path / "run")
    assert said.code == 0
    assert "a value of its own in row, the name" in said.err
    assert "--drop row --drop 'the name'" in said.err
    assert read_json(tmp_path / "run/run.json")["identifiers"] == ["row", "the name"]


def test_rows_without_them_get_no_warning(finished):
    assert read_json(finished / "run.json")["identifiers"] == []
