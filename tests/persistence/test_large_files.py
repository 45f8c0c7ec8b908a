"""A file that there is no memory for is refused in a sentence, before any of it is held."""

import json
import shutil
import tracemalloc

import pytest
from tests.persistence.saved import fitted_case
from tests.persistence.test_bundle import sign

from apfex.estimator import load
from apfex.persistence import CheckpointError, open_checkpoint
from apfex.runs import load_run
from apfex.strict_json import read_strict_json

HUGE = 10**13
"""Bytes that no machine has; on disk a hole takes none of them."""
MODEST = 2**24


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    return fitted_case("rules")[0].save(tmp_path_factory.mktemp("saved") / "model")


def grow(path):
    with path.open("r+b") as file:
        file.truncate(HUGE)


def refused(action, kind=ValueError):
    tracemalloc.start()
    try:
        with pytest.raises(kind, match=r"must fit into memory, got 10.0 TB where .* are free"):
            action()
        assert tracemalloc.get_traced_memory()[1] < MODEST
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", ["arrays.safetensors", "content.json"])
def test_a_model_with_a_file_that_nobody_has_room_for_is_refused(saved, tmp_path, name):
    folder = shutil.copytree(saved, tmp_path / "model")
    grow(folder / name)
    sign(folder, {name: {"bytes": HUGE, "sha256": "0" * 64}})
    refused(lambda: load(folder))


def use(folder):
    run = load_run(folder)
    _ = run.audit
    run.report(folder / "again.html")


@pytest.mark.parametrize("name", ["run.json", "front.json", "audit.json"])
def test_a_run_with_a_file_that_nobody_has_room_for_is_refused(finished, tmp_path, name):
    folder = shutil.copytree(finished, tmp_path / "run")
    grow(folder / name)
    refused(lambda: use(folder))


@pytest.mark.parametrize("name", ["step.state", "checkpoint.json"])
def test_a_checkpoint_with_a_file_that_nobody_has_room_for_is_refused(tmp_path, name):
    def go_on():
        with open_checkpoint(tmp_path / "kept", {}) as kept:
            assert kept.read("step") is None
            kept.write("step", {"epochs": 3})

    go_on()
    grow(tmp_path / "kept" / name)
    refused(go_on, CheckpointError)


def test_a_file_with_another_sha256_is_not_held(saved, tmp_path):
    """It is read part by part until that is known."""
    folder, size = shutil.copytree(saved, tmp_path / "model"), 2**27
    with (folder / "arrays.safetensors").open("r+b") as file:
        file.truncate(size)
    sign(folder, {"arrays.safetensors": {"bytes": size, "sha256": "0" * 64}})
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match="its sha256 is not that of the manifest"):
            load(folder)
        assert tracemalloc.get_traced_memory()[1] < MODEST
    finally:
        tracemalloc.stop()


def test_json_whose_values_would_fill_a_memory_is_refused(monkeypatch):
    monkeypatch.setattr("apfex.memory.free_memory", lambda: 10**8)
    with pytest.raises(ValueError, match=r"its values take about 1[0-9.]+ MB of memory, and"):
        read_strict_json("[" + "[]," * 10**6 + "[]]")
    assert len(read_strict_json(json.dumps([0] * 10**5))) == 10**5
