"""Networks that several workers train are those of one, to rounding."""

import pytest
import torch
from tests.distributed.populations import FRONTS, POPULATIONS, front


@pytest.mark.parametrize("name", POPULATIONS)
def test_members_learn_as_with_one_worker(found, name):
    expected = POPULATIONS[name]()
    for results in found:
        for key, value in expected.items():
            torch.testing.assert_close(results[name][key], value, rtol=0, atol=1e-10)
            assert torch.equal(results[name][key], found[0][name][key])


@pytest.mark.slow
@pytest.mark.parametrize("name", FRONTS)
def test_fronts_are_those_of_one_worker(heavy, name):
    """In single precision; what rules and trees are made of is computed by every worker alike."""
    expected = front(**FRONTS[name])
    for results in heavy.found:
        for key, value in expected.items():
            assert torch.equal(results[name][key], heavy.found[0][name][key])
            if name == "trees":
                assert torch.equal(results[name][key], value)
        best = results[name]["error"].min() - expected["error"].min()
        assert abs(float(best)) <= 0.02
        if name == "rules":
            torch.testing.assert_close(
                results[name]["scores"], expected["scores"], rtol=0, atol=2e-3
            )


@pytest.mark.slow
def test_the_first_worker_writes(heavy):
    assert [bool(one["folder"]["written"]) for one in heavy.found] == [True, False]
