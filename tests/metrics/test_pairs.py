"""What two groups say of the difference of their rates."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.metrics.by_hand import counts, slow_ends

from apfex.metrics import _pairs, lower_of_pairs, upper_of_pairs


def test_ends_do_not_depend_on_blocks_of_pairs(monkeypatch):
    generator = np.random.default_rng(1)
    for k in (2, 3, 40):
        n = generator.integers(1, 300, k)
        x = generator.binomial(n, generator.uniform(0, 1, k))
        lower, upper = slow_ends(x.tolist(), n.tolist(), 0.7)
        for block in (1, 50, 2**21):
            monkeypatch.setattr(_pairs, "_BLOCK", block)
            assert _pairs.upper_end(x, n, 0.05) == pytest.approx(upper, abs=1e-12)
            assert _pairs.lower_end(x, n, 0.7, 0.05, k) == pytest.approx(lower, abs=1e-12)


@given(counts(), st.integers(2, 200))
def test_more_groups_and_a_stricter_level_lower_the_lower_bound(data, n_groups):
    (x, n) = map(np.array, data)
    high, low = (x[:, None], n[:, None]), (x, n)
    options: dict[str, Any] = {"critical": 1.4, "alpha": 0.05, "n_groups": n_groups}
    bound = lower_of_pairs(high, low, **options)
    others: list[dict[str, Any]] = [{"n_groups": n_groups + 1}, {"alpha": 0.01}, {"critical": 1.5}]
    for other in others:
        assert (lower_of_pairs(high, low, **options | other) <= bound + 1e-12).all()
    assert (bound <= x[:, None] / n[:, None] - x / n + 1e-12).all()
    assert (upper_of_pairs(high, low, alpha=0.05) >= bound).all()


def test_the_surest_pair_is_that_of_the_lower_end():
    generator = np.random.default_rng(1)
    for _ in range(50):
        k = int(generator.integers(2, 8))
        n = generator.integers(1, 60, k)
        x = generator.binomial(n, generator.random(k))
        bound, low, high = _pairs.surest_pair(x, n, critical=0.7, alpha=0.05)
        assert max(bound, 0) == pytest.approx(_pairs.lower_end(x, n, 0.7, 0.05, k))
        pair = (x[[high]], n[[high]]), (x[[low]], n[[low]])
        own = _pairs.lower_of_pairs(*pair, critical=0.7, alpha=0.05, n_groups=k)
        assert own[0] == pytest.approx(bound)


def test_intervals_of_groups_join_to_that_of_a_gap():
    generator = np.random.default_rng(2)
    for _ in range(50):
        k = int(generator.integers(2, 30))
        v, down, up = generator.random((3, k))
        joint, own = (v - 0.3 * down, v + 0.3 * up), (v - 0.2 * down, v + 0.2 * up)
        pairs = [(i, j) for i in range(k) for j in range(k) if i != j]
        least = [v[i] - v[j] - np.hypot(0.3 * down[i], 0.3 * up[j]) for i, j in pairs]
        most = [v[i] - v[j] + np.hypot(0.2 * up[i], 0.2 * down[j]) for i, j in pairs]
        lower, upper = _pairs.gap_of_limits(v, joint, own)
        assert lower == pytest.approx(max(0, *least))
        assert upper == pytest.approx(max(most))


def test_a_group_without_limits_leaves_the_lower_end_to_others():
    v = np.array([0.1, 0.5, 0.9])
    half = np.array([0.05, 0.05, np.nan])
    limits = v - half, v + half
    lower, upper = _pairs.gap_of_limits(v, limits, limits)
    assert lower == pytest.approx(0.4 - np.hypot(0.05, 0.05))
    assert np.isnan(upper)
    alone = v[1:], (limits[0][1:], limits[1][1:])
    assert _pairs.gap_of_limits(alone[0], alone[1], alone[1])[0] == 0
