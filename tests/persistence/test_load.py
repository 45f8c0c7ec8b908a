"""What is no saved classifier is refused, with a sentence that says why."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.persistence.saved import X, fitted_case
from tests.persistence.test_bundle import forge

from apfex.estimator import load
from apfex.persistence import CorruptModelError, pack
from apfex.tables import TableEncoder


def test_another_format_is_refused(tmp_path):
    folder = fitted_case("array")[0].save(tmp_path / "model")
    forge(folder, format=6)
    with pytest.raises(ValueError, match="format 5 or older, got format 6: a newer version"):
        load(folder)
    forge(folder, format=4)
    with pytest.raises(ValueError, match="format 5 or newer, got format 4: an earlier version"):
        load(folder)
    forge(folder, format=4, kind="apfex.other")
    with pytest.raises(ValueError, match=r"must hold 'apfex\.APFExClassifier', got 'apfex\.other'"):
        load(folder)


def rewrite(folder: Path, name: str, change: Any) -> None:
    """Change a JSON file of a folder, and make the manifest agree."""
    content = json.loads((folder / name).read_text())
    change(content)
    (folder / name).write_text(json.dumps(content))
    forge(folder)


FORGERIES = {
    "no classes": lambda c: c.pop("classes"),
    "no such point": lambda c: c.update(point=99),
    "no such module": lambda c: c["points"][0].update(module=10**9),
    "a part that comes later": lambda c: c["modules"][0].update({"is": "rule", "joint": 5}),
    "no such array": lambda c: c["modules"][0]["arrays"].update(weight="../weight"),
    "another array": lambda c: c["modules"][0]["arrays"].update(
        weight=c["modules"][0]["arrays"]["bias"]
    ),
    "no such kind": lambda c: c["modules"][0].update({"is": "os.system"}),
    "no such layer": lambda c: c["modules"][0].update(type="Embedding"),
    "no such argument": lambda c: c["arguments"]["stored"].update(path="/etc"),
    "a broken argument": lambda c: c["arguments"]["stored"].update(epochs={"is": "x", "value": 1}),
    "no such encoder": lambda c: c["encoder"].update({"is": "pickle"}),
    "a broken encoder": lambda c: c["encoder"]["encoders"].update(networks="{}"),
    "a broken value": lambda c: c.update(classes={"is": "array", "value": ["O8", [1], [1]]}),
    "a single class": lambda c: c.update(classes=pack(np.array([1]), "classes")),
    "classes out of order": lambda c: c.update(classes=pack(np.array([1, 0]), "classes")),
    "a class too many": lambda c: c.update(classes=pack(np.array([0, 1, 2]), "classes")),
    "classes that are no list": lambda c: c.update(classes=2),
    "other columns": lambda c: c["features"].update(n=7, names=None),
    "names of other columns": lambda c: c["features"].update(n=7),
    "no encoder": lambda c: c["encoder"].update(encoders={}),
    "an encoder of nobody": lambda c: c["encoder"]["encoders"].update(
        forests=c["encoder"]["encoders"]["networks"]
    ),
    "an encoder of other inputs": lambda c: c["encoder"]["encoders"].update(
        networks=TableEncoder(min_count=10**6).fit(X).to_json()
    ),
    "a module from the end": lambda c: c["points"][0].update(module=-1),
    "a module that is no place": lambda c: c["points"][0].update(module=True),
    "a part from the end": lambda c: c["modules"][-1].update(joint=-1),
    "a point from the end": lambda c: c.update(point=-1),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_content_that_makes_no_classifier_is_refused(tmp_path, name):
    folder = fitted_case("rules")[0].save(tmp_path / "model")
    rewrite(folder, "content.json", FORGERIES[name])
    with pytest.raises(CorruptModelError, match=r" must .*, got ") as caught:
        load(folder)
    assert str(folder) in str(caught.value)


@pytest.mark.parametrize(
    "cells", [[], [[0, 9]], [[0, -1]], [[1, 0], [0, 0]], [[0, 0], [0, 0]], [0]]
)
def test_groups_of_other_cells_are_refused(tmp_path, cells):
    folder = fitted_case("group thresholds")[0].save(tmp_path / "model")
    rewrite(folder, "content.json", lambda c: c["groups"].update(cells=cells))
    with pytest.raises(CorruptModelError, match=r" must .*, got "):
        load(folder)


def test_modules_of_other_inputs_are_refused(tmp_path):
    folder = fitted_case("a plain network")[0].save(tmp_path / "model")
    rewrite(folder, "content.json", lambda c: c["features"].update(n=7, names=None))
    with pytest.raises(ValueError, match="point 0 does not take its inputs"):
        load(folder)
    folder = fitted_case("own trees")[0].save(tmp_path / "trees")
    rewrite(folder, "content.json", lambda c: c["encoder"]["names"].pop())
    with pytest.raises(ValueError, match="takes 2 columns, its features are 3"):
        load(folder)


def _first_tree(content: Any) -> Any:
    return content["learner"]["gradient_booster"]["model"]["trees"][0]


def _set(name: str, value: Any) -> Any:
    def change(content):
        _first_tree(content)[name][0] = value

    return change


FORGED_TREES = {
    "a child that is not there": _set("left_children", 10**6),
    "a circle": _set("left_children", 0),
    "a child of two": lambda c: _first_tree(c).update(
        right_children=_first_tree(c)["left_children"]
    ),
    "a feature that is not there": _set("split_indices", 10**6),
    "an output that is not there": lambda c: c["learner"]["gradient_booster"]["model"][
        "tree_info"
    ].__setitem__(0, 7),
    "too few numbers": lambda c: _first_tree(c)["split_conditions"].pop(),
    "categories of nobody": lambda c: _first_tree(c).update(
        categories_nodes=[0], categories_segments=[10**9], categories_sizes=[1]
    ),
    "no trees": lambda c: c.pop("learner"),
    "text": _set("left_children", "x"),
    "another parent": lambda c: _first_tree(c)["parents"].__setitem__(1, 10**6),
    "a tree twice": lambda c: _first_tree(c).update(id=1),
    "a strange width": lambda c: _first_tree(c)["tree_param"].update(size_leaf_vector="-1"),
    "another model": lambda c: c["learner"]["gradient_booster"].update(name="gblinear"),
    "no rounds": lambda c: c["learner"]["gradient_booster"]["model"].update(iteration_indptr=[0]),
}


@pytest.mark.parametrize("name", FORGED_TREES)
def test_trees_that_lead_nowhere_never_reach_xgboost(tmp_path, name):
    """It would follow them blindly, out of its memory."""
    folder = fitted_case("trees with gaps in the table")[0].save(tmp_path / "model")
    rewrite(folder, "trees-0.json", FORGED_TREES[name])
    with pytest.raises(ValueError, match="data must be a booster in XGBoost's JSON, got"):
        load(folder)
