"""Sizes that no machine has are refused before memory is taken, by the name of the argument."""

import tracemalloc
from typing import Any

import pytest

from apfex import APFExClassifier, make_biased

HUGE, ENDLESS = 10**9, 10**20
DATA = make_biased(n=160, random_state=0)
SIZES: list[tuple[dict[str, Any], str]] = [
    (
        {"hidden": (HUGE,)},
        r"hidden must .* memory, got \(1000000000,\): 5 networks of .* take .*TB",
    ),
    ({"hidden": HUGE}, r"hidden must .* use narrower layers, or fewer networks"),
    (
        {"hidden": (10**6, 10**6)},
        r"hidden must be such that all networks fit into memory, got \(10",
    ),
    ({"hidden": (ENDLESS,)}, "hidden must be at most 1,000 widths of at most 2,147,483,647, got 1"),
    ({"hidden": (2,) * 10**6}, "hidden must be at most 1,000 widths .*, got 1,000,000 up to 2"),
    ({"hidden": (HUGE,), "search": "inprocess"}, "hidden must .* GB are free; use narrower layers"),
    ({"n_members": HUGE}, "n_members must .* got 1,000,000,000: .* TB, and .* fewer members"),
    ({"n_members": HUGE, "model": "boosting"}, "n_members must be such that their scores fit"),
    ({"n_members": HUGE, "search": "inprocess"}, "n_members must be such that their scores fit"),
    *(
        ({name: ENDLESS}, rf"{name} must be at most 2,147,483,647, got 1000")
        for name in ("n_points", "n_members", "batch_size", "epochs", "n_estimators", "max_depth")
    ),
    ({"patience": ENDLESS, "search": "inprocess"}, "patience must be at most 2,147,483,647"),
    ({"n_jobs": HUGE}, "n_jobs must be at most 4,096 threads, or -1 for all, got 1000000000"),
    ({"n_jobs": -ENDLESS}, "n_jobs must be at most 4,096 threads, or -1 for all, got -1000"),
    ({"random_state": ENDLESS}, r"random_state must be None, a whole number from 0 to 2\*\*32 - 1"),
]


@pytest.mark.parametrize(("given", "told"), SIZES)
def test_a_size_that_no_machine_has_is_refused(given, told):
    clf = APFExClassifier(**({"model": "mlp", "max_gap": 1.0} | given))
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=told):
            clf.fit(DATA.X, DATA.y, sensitive_features=DATA.sensitive)
        assert tracemalloc.get_traced_memory()[1] < 2**26
    finally:
        tracemalloc.stop()
