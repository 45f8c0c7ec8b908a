"""Gaps and intervals of a point follow from its confusion counts."""

import numpy as np
import pytest

from apfex.metrics import gap_inference


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("rate", ["dp", "tpr", "ppv", "accuracy"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_intervals_from_counts_are_those_from_rows(rate, n_classes, weighted):
    from apfex.front._point import gap_of
    from apfex.groups import make_groups
    from apfex.rates import count_rows

    rng = np.random.default_rng(0)
    y, decided = rng.integers(0, n_classes, (2, 300))
    weight = rng.random(300) + 0.5 if weighted else None
    crossing = make_groups({"a": rng.integers(0, 2, 300), "b": rng.integers(0, 4, 300)})
    counts = count_rows(y, decided, crossing, weight, classes=range(n_classes))
    for confidence in (0.8, 0.95):
        found = gap_inference(
            y,
            decided,
            rate=rate,
            sensitive_features=crossing,
            grouping="attributes",
            sample_weight=weight,
            confidence=confidence,
        )
        largest = max(found.values(), key=lambda one: one.gap)
        assert gap_of(counts, rate, [("a",), ("b",)], confidence) == largest
