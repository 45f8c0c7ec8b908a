"""The shortened course keeps what it says: strategies in full, means of what was measured."""

import numpy as np
import pytest

from apfex_reproduction.experiments import shortened

WINDOWS = 50
RNG = np.random.default_rng(0)
TRACE = {
    "step": list(range(10, 510, 10)),
    "strategy": ["AW"] * 20 + ["PCP"] * 29 + ["PSS"],
    **{name: RNG.random(WINDOWS).tolist() for name in ("norm", "omega", "aligned")},
    **{
        name: {one: RNG.random(WINDOWS).tolist() for one in ("cross-entropy", "dp sex")}
        for name in ("losses", "weights", "norms")
    },
}


def test_strategies_are_kept_in_full():
    assert shortened(TRACE)["strategies"] == "AW 20, PCP 29, PSS 1"
    assert shortened(TRACE)["windows"] == WINDOWS


@pytest.mark.parametrize("stretches", [1, 6, 12, 50, 80])
def test_stretches_are_means_of_all_windows(stretches):
    short = shortened(TRACE, stretches)
    count = min(stretches, WINDOWS)
    sizes = [len(part) for part in np.array_split(np.arange(WINDOWS), count)]
    for name in ("norm", "omega", "aligned"):
        assert len(short[name]) == count
        assert np.average(short[name], weights=sizes) == pytest.approx(
            np.mean(TRACE[name]), rel=5e-3
        )
    assert short["ends"] == [TRACE["omega"][0], TRACE["omega"][-1]]


def test_objectives_may_be_left_out():
    assert set(shortened(TRACE)["weights"]) == {"cross-entropy", "dp sex"}
    assert not {"losses", "weights", "norms"} & set(shortened(TRACE, objectives=False))
