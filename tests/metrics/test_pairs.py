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
