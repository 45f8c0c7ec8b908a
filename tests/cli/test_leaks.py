"""What gives the label away is found, in rows not used to find it; strong features are not."""

import numpy as np
import pandas as pd
import pytest

from apfex import make_biased
from apfex.cli._leaks import find_leaks


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
    assert "b gives the label away" in leaks[0].describe("yes")
    assert leaks[0].remedy == "--drop b"
