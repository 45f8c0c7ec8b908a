"""What gives the label away, or only names rows, is found; other columns are not."""

import numpy as np
import pandas as pd
import pytest

from apfex import make_biased
from apfex.runs._columns import feature_types
from apfex.runs._data_checks import find_identifiers, find_leaks


def labels(n, share, seed=0):
    rng = np.random.default_rng(seed)
    return (rng.random(n) < share).astype(int), rng


LEAKS = {
    "a copy": lambda y, _: y,
    "a copy in words": lambda y, _: np.where(y == 1, "welcome", "sorry"),
    "a few errors": lambda y, rng: np.where(rng.random(len(y)) < 0.002, 1 - y, y),
    "only there for one label": lambda y, rng: np.where(
        y == 1, rng.choice(list("abc"), len(y)), None
    ),
    "a number only there for one label": lambda y, rng: np.where(
        y == 1, rng.random(len(y)), np.nan
    ),
    "a later measurement": lambda y, rng: y + rng.normal(0, 0.1, len(y)),
    "half of the cases": lambda y, rng: np.where(
        (y == 1) & (rng.random(len(y)) < 0.5), "done", "open"
    ),
    "long codes": lambda y, _: 200_100_101 + y,
    "a number beyond float32": lambda y, rng: np.where(y == 1, 1e300, 1.0) * rng.random(len(y)),
    "many codes": lambda y, rng: [f"c{code}" for code in 2 * rng.integers(0, 50, len(y)) + y],
}


@pytest.mark.parametrize("name", LEAKS)
@pytest.mark.parametrize(("n", "share"), [(4000, 0.5), (4000, 0.1), (400, 0.4)])
def test_what_gives_the_label_away_is_found(name, n, share):
    y, rng = labels(n, share)
    X = pd.DataFrame({"noise": rng.normal(size=n), "leak": LEAKS[name](y, rng)})
    if name == "many codes" and n == 400:
        pytest.skip("two rows per code tell nothing of other rows")
    assert [leak.feature for leak in find_leaks(X, y)] == ["leak"]


@pytest.mark.parametrize("share", [0.5, 0.1, 0.01, 0.99])
def test_noise_identifiers_and_strong_features_are_not(share):
    y, rng = labels(3000, share)
    X = pd.DataFrame(
        {
            "id": [f"{i:05}" for i in range(3000)],
            "row": np.arange(3000),
            "noise": rng.normal(size=3000),
            "rare": rng.choice(["a", "b", *(f"r{i}" for i in range(200))], 3000),
            "constant": "x",
            "empty": np.nan,
            "strong": y + rng.normal(0, 0.5, 3000),
        }
    )
    assert find_leaks(X, y) == []


def test_our_own_tables_have_none():
    data = make_biased(2000, random_state=0)
    assert find_leaks(pd.concat([data.X, data.sensitive], axis=1), data.y) == []


def test_categories_and_booleans_are_looked_at_too():
    y, _ = labels(500, 0.5)
    X = pd.DataFrame({"b": y == 1, "c": pd.Categorical(np.where(y == 1, "u", "v"))})
    leaks = find_leaks(X, y)
    assert [leak.feature for leak in leaks] == ["b", "c"]


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
    assert find_identifiers(X, feature_types(X)) == [name]


def test_other_columns_are_not():
    X = pd.DataFrame(OTHER)
    assert find_identifiers(X, feature_types(X)) == []
    few = pd.DataFrame({"place": np.arange(20)})
    assert find_identifiers(few, feature_types(few)) == []
