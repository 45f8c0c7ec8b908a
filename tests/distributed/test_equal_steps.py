"""N workers with B / N rows take the step of one worker with B rows, to rounding."""

import pytest
import torch
from tests.distributed.loops import (
    COMPILED,
    KINDS,
    LOOPS,
    STRATEGIES,
    TOLERANCES,
    resumed,
    scales,
    single,
    train,
)
from tests.distributed.workers import WAYS, alone, as_it_is


def distance(a, b):
    """Largest difference; NaN where only one has one."""
    assert a.keys() == b.keys()
    return max(
        0.0 if torch.equal(a[key], b[key]) else float((a[key] - b[key]).abs().max()) for key in a
    )


@pytest.mark.parametrize("name", LOOPS)
def test_several_workers_take_the_steps_of_one(found, name):
    expected = LOOPS[name](alone, as_it_is)
    compared = 0
    for rank, results in enumerate(found):
        for (loop, size, way), result in ((k, v) for k, v in results.items() if k[0] == name):
            assert distance(result, expected) <= TOLERANCES.get(name, 1e-11), (
                rank,
                loop,
                size,
                way,
            )
            assert distance(result, found[0][loop, size, way]) == 0, "Copies drift apart."
            compared += 1
    assert compared == sum(size * len(ways) for size, ways in WAYS.items())


@pytest.mark.parametrize("name", ["default", "unused", "static", "views"])
def test_any_options_of_ddp_do(found, name):
    expected = train(alone, as_it_is, STRATEGIES["pcp"], outputs=name != "default")
    for results in found:
        assert distance(results[name], expected) <= 1e-11


def test_a_run_goes_on_with_another_number_of_workers(found):
    expected = resumed([alone] * 3, as_it_is)
    for results in found:
        assert distance(results["resumed"], expected) <= 1e-11


def test_a_single_loss_is_right_through_the_wrapper_alone(found):
    expected = single(alone, as_it_is)
    for results in found:
        assert distance(results["single"], expected) <= 1e-12


def test_an_overflow_on_one_worker_skips_the_step_of_all(found):
    for results in found:
        assert results["overflow on one"]["scale"] == 2.0**63
        assert results["overflow on one"]["moved"] == 0
        assert results["no overflow"]["scale"] == 2.0**64
        assert results["no overflow"]["moved"] > 0


def test_scales_are_those_of_whole_batches(found):
    expected = {kind: scales(alone, kind) for kind in KINDS}
    for results in found:
        assert distance(results["scales"], expected) <= 1e-12


@pytest.mark.slow
@pytest.mark.parametrize("name", COMPILED)
def test_compiled_models(heavy, name):
    expected = COMPILED["compiled"](alone, as_it_is)
    for results in heavy.found:
        for way in ("even", "wrapped"):
            assert distance(results[name, way], expected) <= 1e-11


@pytest.mark.slow
@pytest.mark.parametrize("name", ["aw", "pss", "pcp", "aw in part", "pcp in part"])
def test_sharded_parameters(heavy, name):
    """What a step does to parameters is not measured there, so nothing falls back."""
    strategy = name.split()[0]
    space = "prediction" if strategy == "pcp" else "auto"
    outputs = strategy == "pcp"
    clips = "part" not in name
    expected = train(
        alone, as_it_is, STRATEGIES[strategy], outputs=outputs, space=space, clips=clips
    )
    for results in heavy.found:
        compared = results[name] | {"harmful": expected["harmful"]}
        assert distance(compared, expected) <= 1e-11
