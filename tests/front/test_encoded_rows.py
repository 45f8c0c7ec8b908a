import tracemalloc

import numpy as np
import pandas as pd
import pytest
import torch

from apfex import APFExClassifier, make_biased
from apfex.front._encoded_rows import EncodedRows
from apfex.tables import TableEncoder, read_table

TOWNS = np.array([f"town{place}" for place in range(25)])


def people(n, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {"age": rng.normal(40, 9, n), "town": rng.choice(TOWNS, n), "n": rng.integers(0, 9, n)}
    )


@pytest.fixture(scope="module")
def fitted():
    data = make_biased(n=400, random_state=0)
    X = people(400).assign(score=data.y)
    clf = APFExClassifier(model="linear", epochs=2, max_gap=1.0, random_state=0)
    return clf.fit(X, data.y, sensitive_features=data.sensitive)


@pytest.fixture(scope="module")
def new():
    return people(60_000, seed=1).assign(score=0.5)


def test_predict_never_makes_the_whole_matrix(fitted, new):
    matrix = fitted.fitted_.encode(new)
    tracemalloc.start()
    fitted.predict(new)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < matrix.nbytes / 2, f"{peak} bytes for a matrix of {matrix.nbytes}"


def test_chunks_give_what_the_whole_matrix_gives_to_the_last_bit(fitted, new):
    front, x = fitted.front_, fitted.fitted_.encode(new)
    assert np.array_equal(front.scores(fitted.point_, x), fitted.decision_function(new))
    assert np.array_equal(front.probabilities(fitted.point_, x), fitted.predict_proba(new))
    assert np.array_equal(fitted.classes_[front.decide(x)], fitted.decide_all(new))


@pytest.mark.parametrize("categories", ["one-hot", "codes"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_inputs_are_rounded_to_float32_whatever_models_count_in(categories, dtype):
    X = people(100).assign(age=lambda frame: frame.age / 3)
    X.loc[3, "age"], X.loc[4, "town"] = np.nan, None
    bins = "quantile" if categories == "one-hot" else None
    encoder = TableEncoder(categories=categories, bins=bins, min_count=2).fit(X)
    rows = EncodedRows(100, [(encoder.fill(read_table(X)), encoder.n_features_out_)])
    parts = list(rows.to(dtype).split(7))
    assert {part.dtype for part in parts} == {dtype}
    expected = torch.from_numpy(encoder.transform(X)).to(dtype)
    assert torch.equal(torch.cat(parts).nan_to_num(-7), expected.nan_to_num(-7))
    assert np.array_equal(rows.transform(), encoder.transform(X), equal_nan=True)


def test_no_rows_are_one_part_without_rows(fitted, new):
    assert fitted.predict(new[:0]).shape == (0,)
    assert fitted.decide_all(new[:0]).shape == (len(fitted.front_), 0)


def test_wrong_columns_are_refused_before_any_model_runs(fitted, new):
    with pytest.raises(ValueError, match="unseen at fit time"):
        fitted.predict(new.rename(columns={"age": "years"}))
    mixed = new[:20_000].astype({"n": object})
    mixed.loc[19_999, "n"] = "many"
    with pytest.raises(TypeError, match="a mixture of int, str in column 'n'"):
        fitted.predict(mixed)
