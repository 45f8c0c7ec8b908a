"""Metrics of scores and of a user's own: values by oracles, intervals by simulation."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import t as student
from sklearn.metrics import brier_score_loss, f1_score, precision_score, roc_auc_score
from sklearn.metrics import log_loss as sklearn_log_loss

from apfex.metrics import of_scores, read_measures


def rows(n: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < 0.4).astype(int)
    y[:2] = 0, 1
    score = np.round(rng.random(n) * 0.6 + 0.3 * y, 1)  # with ties
    return y, score, rng.integers(1, 4, n).astype(float)


def quick_f1(y, decided):
    return 2 * (y & decided).sum() / max(1, y.sum() + decided.sum())


@given(n=st.integers(5, 60), seed=st.integers(0, 10_000))
def test_values_are_those_of_scikit_learn_also_with_weights(n, seed):
    y, score, weight = rows(n, seed)
    oracles = {"auc": roc_auc_score, "brier": brier_score_loss, "log_loss": sklearn_log_loss}
    for name, oracle in oracles.items():
        measure = read_measures(name)[0]
        assert measure.value(y, score, weight) == pytest.approx(
            oracle(y, score, sample_weight=weight)
        )
        assert measure.value(y, score, None) == pytest.approx(oracle(y, score))


@settings(max_examples=10)
@given(seed=st.integers(0, 10_000))
def test_the_order_of_rows_has_no_say(seed):
    y, score, _ = rows(40, seed)
    order = np.random.default_rng(seed).permutation(40)
    metrics = {"auc": "auc", "f1": f1_score, "jackknifed": partial(roc_auc_score, max_fpr=0.5)}
    for measure in read_measures(metrics):
        given_ = score if measure.of_scores else (score > 0.5).astype(int)
        ends = measure.interval(y, given_, None, 0.95)
        again = measure.interval(y[order], given_[order], None, 0.95)
        assert ends == pytest.approx(again, nan_ok=True)


@pytest.mark.parametrize("n", [30, 150])
@pytest.mark.parametrize("metric", ["auc", "brier", "calibration", "log_loss", quick_f1])
def test_intervals_cover_the_truth(metric, n):
    """At 95%; the margin is that of 200 tables, and of the means of very skewed losses."""
    rng = np.random.default_rng(5)

    def draw(size):
        y = (rng.random(size) < 0.3).astype(int)
        return y, 1 / (1 + np.exp(-(rng.normal(0, 1.2, size) + 1.5 * y - 1)))

    (measure,) = read_measures({"metric": metric})

    def seen(score):
        return score if measure.of_scores else (score > 0.5).astype(int)

    y, score = draw(200_000)
    truth, covered = measure.value(y, seen(score), None), []
    for _ in range(200):
        y, score = draw(n)
        low, high = measure.interval(y, seen(score), None, 0.95)
        covered += [low <= truth <= high] if low == low else []
    assert np.mean(covered) > 0.89


def test_a_perfect_order_of_few_rows_is_not_certain():
    y, score = np.array([0] * 6 + [1] * 6), np.arange(12.0)
    low, high = read_measures({"auc": roc_auc_score})[0].interval(y, score, None, 0.95)
    assert low < 0.8
    assert high == 1


@pytest.mark.parametrize(("n", "parts"), [(200, 20), (9, 9)])
def test_leaving_out_parts_has_one_degree_of_freedom_less_than_parts(n, parts):
    y, score, _ = rows(n, 3)
    decided = (score > 0.3).astype(int)
    (measure,) = read_measures({"precision": precision_score})
    halves = [np.diff(one) for one in measure.intervals(y, decided, None, (0.5, 0.99))]
    expected = student.ppf(0.995, parts - 1) / student.ppf(0.75, parts - 1)
    assert halves[1] / halves[0] == pytest.approx(expected)


def test_what_rows_do_not_tell_is_not_a_number():
    y, decided = np.ones(12, dtype=int), np.ones(12, dtype=int)
    auc, precision = read_measures({"auc": roc_auc_score, "precision": precision_score})
    assert np.isnan(auc.value(y, y * 0.5, None))
    assert np.isnan(auc.interval(y, y * 0.5, None, 0.95)).all()
    assert np.isnan(precision.interval(y, decided, None, 0.95)).all()  # nothing moves


def test_scores_go_to_metrics_of_scores():
    def own(_, given):
        return float(np.mean(given))

    measures = read_measures({"a": own, "b": of_scores(own), "c": "auc", "d": roc_auc_score})
    assert [measure.of_scores for measure in measures] == [False, True, True, True]


@pytest.mark.parametrize("metrics", ["nonsense", ["auc", "nonsense"], {"mine": 3}])
def test_unknown_metrics_are_refused(metrics):
    with pytest.raises(ValueError, match="metrics must") as caught:
        read_measures(metrics)
    assert all(name in str(caught.value) for name in ("auc", "brier", "log_loss"))


def test_rates_are_known_by_many_names():
    y, decided = np.array([0, 1, 1, 0, 1]), np.array([1, 1, 0, 0, 1])
    names = ("precision", "recall", "selection_rate", "accuracy_score", "false_positive_rate")
    found = read_measures(names)
    assert [one.rate for one in found] == ["ppv", "tpr", "dp", "accuracy", "fpr"]
    values = [one.value(y, decided, None) for one in found]
    assert values == pytest.approx([2 / 3, 2 / 3, 3 / 5, 3 / 5, 1 / 2])
    assert read_measures({"mine": "roc_auc"})[0].of_scores
    assert read_measures("f1")[0].value(y, decided, None) == pytest.approx(2 / 3)
    with pytest.raises(TypeError, match="metrics must be names, or map names to functions"):
        read_measures([len])  # pyright: ignore[reportArgumentType]
