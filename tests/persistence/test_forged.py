"""A few bytes that ask for a memory are refused before it is taken; so is what no fit has made."""

import json
import sys
import tracemalloc
from importlib.resources import files
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors.torch import load, save
from tests.persistence.saved import fitted_case
from tests.persistence.test_bundle import forge
from tests.persistence.test_load import rewrite

from apfex.estimator import load as load_classifier
from apfex.persistence import CorruptModelError, pack, unpack

MODEST = 2**26
"""Bytes that a refusal may take; most bombs ask for a hundred times as many."""


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


def array(dtype: Any, shape: Any, items: Any) -> dict:
    return {"is": "array", "value": [dtype, shape, items]}


BOMBS = {
    "text of 500 million characters": array("<U500000000", [1], ["a"]),
    "nothing of 500 million characters": array("<U500000000", [0], []),
    "bytes of a billion": array("S1000000000", [1], [{"is": "bytes", "value": "00"}]),
    "an array of arrays": array("(100000000,)f8", [1], [1.0]),
    "a record": array("f8,f8", [1], [1.0]),
    "a type that is no text": array({"a": 1}, [1], [1.0]),
    "a shape of none": array("<f8", [10**9], []),
    "a shape from the end": array("<f8", [-1], [1.0]),
    "an index of wide text": {"is": "index", "value": ["U500000000", ["a"]]},
    "many levels": nested(5_000),
    "tuples in tuples": json.loads('{"is":"tuple","value":[' * 400 + "1" + "]}" * 400),
}


def peak_of(action: Any) -> int:
    tracemalloc.start()
    try:
        action()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.fixture
def deep():
    """Python as others may have set it: a library of the process decides how deep it goes."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(100_000)
    yield
    sys.setrecursionlimit(before)


@pytest.mark.usefixtures("deep")
@pytest.mark.parametrize("name", BOMBS)
def test_values_that_ask_for_more_than_they_hold_are_refused(name):
    def refuse() -> None:
        with pytest.raises(ValueError, match="stored must be what pack has made, got"):
            unpack(BOMBS[name])

    assert peak_of(refuse) < MODEST


@pytest.mark.parametrize("form", ["dateutil/{}", "{}", "dateutil/../..{}"])
def test_a_time_zone_reads_no_file(tmp_path, form):
    """Pandas takes ``dateutil/`` and a path for the file that it names."""
    zone = files("tzdata.zoneinfo.Europe").joinpath("Zurich")
    (tmp_path / "zone").write_bytes(zone.read_bytes())
    name = form.format(tmp_path / "zone")
    moment = pack(np.datetime64(0, "ns"))
    for forged in (
        {"is": "timestamp", "value": [moment, name]},
        {"is": "index", "value": [f"datetime64[ns, {name}]", [moment]]},
    ):
        with pytest.raises(ValueError, match=r"no time zone|no type of an index"):
            unpack(forged)


def test_zones_that_are_none_of_a_file_come_back():
    for zone in ("Europe/Zurich", "UTC", "Asia/Kolkata"):
        moment = pd.Timestamp("2024-05-01 12:00", tz=zone)
        assert unpack(json.loads(json.dumps(pack(moment)))) == moment
        index = pd.DatetimeIndex([moment])
        assert unpack(json.loads(json.dumps(pack(index)))).equals(index)


def test_what_would_not_be_read_is_not_written():
    with pytest.raises(TypeError, match="value must have at most 12 lists within each other"):
        pack(nested(40))
    endless: list = []
    endless.append(endless)
    with pytest.raises(TypeError, match="lists within each other"):
        pack(endless)
    with pytest.raises(TypeError, match="about as wide as its words"):
        pack(np.zeros(1, "U5000000"))
    assert unpack(json.loads(json.dumps(pack(nested(12))))) == nested(12)


def _unused_layer(c: Any) -> None:
    given = {"in_features": 20_000, "out_features": 20_000, "bias": True}
    c["modules"].append({"is": "layer", "type": "Linear", "given": given, "arrays": {}})


def _doubled(c: Any) -> None:
    """Sixty sequences, each of the one before, twice."""
    point = c["points"][0]
    for level in range(60):
        before = point["module"] if level == 0 else len(c["modules"]) - 1
        parts = [["a", before], ["b", before]]
        c["modules"].append({"is": "sequence", "parts": parts})
    point["module"] = len(c["modules"]) - 1


def _chained(c: Any) -> None:
    """Three thousand sequences, each of the one before."""
    point = c["points"][0]
    for _ in range(3_000):
        c["modules"].append({"is": "sequence", "parts": [["a", len(c["modules"]) - 1]]})
    point["module"] = len(c["modules"]) - 1


def _many_classes(c: Any) -> None:
    joint = next(one for one in c["modules"] if one["is"] == "joint model")
    joint["shape"] = [1, 10**9]


def _wide_classes(c: Any) -> None:
    c["classes"] = array("<U500000000", [2], ["a", "b"])


def _odd_weights(c: Any) -> None:
    joint = next(one for one in c["modules"] if one["is"] == "joint model")
    joint["weights"] = [-1.0] * len(joint["weights"])


def _odd_encoder(name: str, value: Any) -> Any:
    def change(c: Any) -> None:
        encoder = json.loads(c["encoder"]["encoders"]["networks"])
        column = next(one for one in encoder["columns"] if one["kind"] == "number")
        column[name] = value
        c["encoder"]["encoders"]["networks"] = json.dumps(encoder)

    return change


def _long_name(c: Any) -> None:
    """A name of 100,000 characters in each of 10,000 inputs."""
    encoder = json.loads(c["encoder"]["encoders"]["networks"])
    column = next(one for one in encoder["columns"] if one["kind"] == "level")
    column |= {"name": "x" * 10**5, "levels": [str(level) for level in range(10**4)]}
    c["encoder"]["encoders"]["networks"] = json.dumps(encoder)


def _shared_array(c: Any) -> None:
    """A thousand rules, which scale the same array, each for itself."""
    rule = next(one for one in c["modules"] if one["is"] == "rule")
    c["modules"] += [rule] * 1_000


CONTENTS = {
    "a long name in many inputs": _long_name,
    "an array of a thousand parts": _shared_array,
    "a layer that nobody uses": _unused_layer,
    "sixty doubled sequences": _doubled,
    "three thousand sequences": _chained,
    "a billion columns": lambda c: c["features"].update(n=10**9, names=None),
    "a billion classes": _many_classes,
    "classes of 500 million characters": _wide_classes,
    "shares below zero": _odd_weights,
    "a point of words": lambda c: c["points"][0]["figures"].update(error="low"),
    "groupings of words": lambda c: c["points"][0]["figures"].update(groupings="sex"),
    "counts below zero": lambda c: c["points"][0]["counts"]["value"][0].__setitem__(1, -1),
    "a mean that is none": _odd_encoder("mean", float("nan")),
    "a scale that is none": _odd_encoder("scale", float("inf")),
    "a scale of nothing": _odd_encoder("scale", 0),
    "a mean in words": _odd_encoder("mean", "12"),
    "edges out of order": _odd_encoder("edges", [1.0, 0.0]),
    "names that are numbers": lambda c: c["features"].update(
        names=pack(np.arange(c["features"]["n"]), "names")
    ),
}


@pytest.mark.parametrize("name", CONTENTS)
def test_a_content_that_asks_for_too_much_is_refused(tmp_path, name):
    folder = fitted_case("rules")[0].save(tmp_path / "model")
    rewrite(folder, "content.json", CONTENTS[name])

    def refuse() -> None:
        with pytest.raises(ValueError, match=r"must .*, got ") as caught:
            load_classifier(folder)
        assert str(folder) in str(caught.value)

    assert peak_of(refuse) < MODEST


@pytest.mark.parametrize("levels", [70, 3_000, 10**6])
def test_a_content_of_many_levels_is_refused(tmp_path, levels):
    folder = fitted_case("rules")[0].save(tmp_path / "model")
    file = folder / "content.json"
    deep = b'"epochs": ' + b"[" * levels + b"]" * levels + b', "_": '
    file.write_bytes(file.read_bytes().replace(b'"epochs": ', deep, 1))
    forge(folder)
    with pytest.raises(ValueError, match="nested deeper than 64 levels"):
        load_classifier(folder)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_numbers_that_no_model_learns_are_refused(tmp_path, value):
    folder = fitted_case("rules")[0].save(tmp_path / "model")
    file = folder / "arrays.safetensors"
    arrays = load(file.read_bytes())
    name = next(name for name, one in arrays.items() if name.endswith("weight"))
    arrays[name].view(-1)[0] = value
    file.write_bytes(save(arrays))
    forge(folder)
    with pytest.raises(CorruptModelError, match="weight of a model must be finite"):
        load_classifier(folder)


def test_a_link_within_a_folder_is_not_followed(tmp_path):
    folder = fitted_case("rules")[0].save(tmp_path / "model")
    for name in ("content.json", "manifest.json", "arrays.safetensors"):
        (folder / name).rename(tmp_path / name)
        (folder / name).symlink_to(tmp_path / name)
        with pytest.raises(ValueError, match=rf"{name}' must be a file of the folder itself, got"):
            load_classifier(folder)
        (folder / name).unlink()
        (tmp_path / name).rename(folder / name)
    (tmp_path / "latest").symlink_to(folder)  # the user's own
    load_classifier(tmp_path / "latest")


def test_what_is_of_another_kind_is_never_overwritten(tmp_path):
    clf, place = fitted_case("rules")[0], tmp_path / "place"
    place.mkdir()
    (place / "letter").write_text("mine")
    listed = {"bytes": 4, "sha256": "0"}
    manifest = {"kind": "a tool of others", "format": 1, "files": {"letter": listed}}
    (place / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(FileExistsError, match="must hold nothing but what was saved there"):
        clf.save(place, overwrite=True)
    assert (place / "letter").read_text() == "mine"


def test_a_folder_that_a_manifest_lists_as_a_file_is_kept(tmp_path):
    clf = fitted_case("rules")[0]
    folder = clf.save(tmp_path / "model")
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "photos").mkdir()
    (folder / "photos" / "one").write_text("mine")
    manifest["files"]["photos"] = {"bytes": 4, "sha256": "0"}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(FileExistsError, match="got \\['photos'\\]"):
        clf.save(folder, overwrite=True)
    assert (folder / "photos" / "one").read_text() == "mine"


def test_arrays_of_other_types_make_no_model(tmp_path):
    folder = fitted_case("rules")[0].save(tmp_path / "model")
    file = folder / "arrays.safetensors"
    arrays = {name: one.to(torch.int64) for name, one in load(file.read_bytes()).items()}
    file.write_bytes(save(arrays))
    forge(folder)
    with pytest.raises(CorruptModelError, match="must hold a whole classifier"):
        load_classifier(folder)


def test_a_file_of_trees_is_read_once(tmp_path):
    folder = fitted_case("trees")[0].save(tmp_path / "model")
    trees = {"is": "trees", "file": "trees-0.json"}
    rewrite(folder, "content.json", lambda c: c["modules"].extend([trees] * 1_000))
    with pytest.raises(CorruptModelError, match=r"trees-0.json' must be of one part of a model"):
        load_classifier(folder)


TREES = {
    "a child that is not there": (
        lambda tree: tree["left_children"].__setitem__(0, 10**6),
        "range",
    ),
    "no children": (lambda tree: tree.pop("left_children"), "without 'left_children'"),
    "text for children": (lambda tree: tree.update(left_children="x"), "whole numbers are missing"),
}


@pytest.mark.parametrize("name", TREES)
def test_bad_trees_are_told_with_the_folder_and_their_own_file(tmp_path, name):
    folder = fitted_case("own trees")[0].save(tmp_path / "model")
    change, told = TREES[name]

    def forged(content):
        change(content["learner"]["gradient_booster"]["model"]["trees"][0])

    rewrite(folder, "trees-0.json", forged)
    with pytest.raises(CorruptModelError) as caught:
        load_classifier(folder)
    said = str(caught.value)
    assert said.startswith(f"{str(folder)!r} must hold a whole classifier, got one that cannot be ")
    assert "the trees in trees-0.json cannot be read" in said
    assert told in said
    assert "content.json" not in said


def test_what_a_description_lacks_is_told_in_words(tmp_path):
    folder = fitted_case("rules")[0].save(tmp_path / "model")
    rewrite(folder, "content.json", lambda content: content.pop("classes"))
    with pytest.raises(CorruptModelError, match="together: its description lacks 'classes'; save"):
        load_classifier(folder)
    folder = fitted_case("own trees")[0].save(tmp_path / "trees")
    rewrite(folder, "content.json", lambda content: content["modules"][0].update(file="x.json"))
    with pytest.raises(CorruptModelError, match="got one that cannot be put together: its trees "):
        load_classifier(folder)
