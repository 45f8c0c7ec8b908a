"""``to_onnx``: what onnxruntime computes from the columns is what the classifier says."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pandas as pd
import pytest
import torch
import xgboost
from sklearn.exceptions import NotFittedError
from tests.estimator.tables import FRESH, quick
from tests.persistence.saved import (
    CASES,
    MEMBERS,
    NEW,
    NUMBERS,
    SENSITIVE,
    TREES,
    X,
    Y,
    fit,
    fitted_case,
    production_trees,
)
from tests.test_readme import run_page
from torch import nn

from apfex.estimator import APFExClassifier
from apfex.models import JointModel
from apfex.persistence._onnx_graph import Graph
from apfex.persistence._onnx_modules import ModuleExport
from apfex.rules import RuleModel

EXACT, ROUNDED = 1e-9, 1e-4
"""Of networks in float64; of trees and of a user's modules, in float32."""


def session_of(path: Path) -> onnxruntime.InferenceSession:
    return onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])


def run(path: Path, table: Any, group: np.ndarray | None = None) -> dict[str, np.ndarray]:
    """Outputs by name; how the table is given is as docs/models.md says."""
    session = session_of(path)
    about = json.loads(session.get_modelmeta().custom_metadata_map["apfex"])
    table = table.to_pandas() if hasattr(table, "to_pandas") else table
    if not hasattr(table, "columns"):
        table = pd.DataFrame(table, columns=[f"x{j}" for j in range(table.shape[1])])
    feeds: dict[str, Any] = {}
    for one in about["inputs"]:
        if one["type"] == "text":
            column = table[[one["column"]]].astype(object)
            feeds[one["name"]] = column.where(column.notna(), one["missing"]).map(str).to_numpy()
        elif one["type"] == "group":
            feeds[one["name"]] = group
        else:
            columns = one["columns"] if one["type"] == "matrix" else [one["column"]]
            feeds[one["name"]] = table[columns].to_numpy(np.float64)
    names = [output.name for output in session.get_outputs()]
    found: list[Any] = list(session.run(names, feeds))
    return dict(zip(names, found, strict=True))


def assert_agrees(clf: APFExClassifier, path: Path, table: Any, groups: Any = None) -> None:
    """Scores and probabilities up to rounding, labels alike."""
    given = {} if groups is None else {"sensitive_features": groups}
    group = None if clf.fitted_.groups is None else clf.fitted_.groups.encode(groups)
    found = run(path, table, group)
    close = {"rtol": 0, "atol": ROUNDED if _counts_in_float32(clf) else EXACT}
    scores = clf.decision_function(table, **given)
    np.testing.assert_allclose(found["scores"], scores, **close)
    np.testing.assert_allclose(found["probabilities"], clf.predict_proba(table, **given), **close)
    clear = np.abs(scores) > 1e-5 if scores.ndim == 1 else np.ptp(scores, 1) > 1e-5
    assert (found["label"] == clf.predict(table, **given))[clear].all()
    assert found["scores"].shape == scores.shape
    assert found["scores"].dtype == scores.dtype


def _counts_in_float32(clf: APFExClassifier) -> bool:
    return clf.init is not None or callable(clf.model) or "boosting" in clf.model


@pytest.mark.parametrize("name", sorted(set(CASES) - {"a factory"}))
def test_every_kind_is_what_the_classifier_says(tmp_path, name):
    clf, new, groups = fitted_case(name)
    for place in {0, len(clf.front_) - 1}:
        point = clf.at(place)
        path = point.to_onnx(tmp_path / f"{place}.onnx")
        assert_agrees(point, path, new, groups.get("sensitive_features"))
        onnx.checker.check_model(onnx.load(path), full_check=True)


WILD = pd.DataFrame(
    {
        "merit_1": [1e300, -1e300, np.nan, 0.0, 3.5],
        "merit_2": [0.0, np.nan, 1e-300, -7.0, 1e9],
        "town": ["Atlantis", None, "Dover", "", "<missing>"],
        "noise_1": [np.nan, np.nan, 0.0, 1e30, -1e30],
        "noise_2": [None, "low", "no such", "middle", "high"],
    }
)


@pytest.mark.parametrize(
    "name",
    [
        "rules with gaps in the table",
        "bins",
        "trees with gaps in the table",
        "both",
        "tree members",
    ],
)
def test_wild_values_new_levels_and_missing_ones_are_read_alike(tmp_path, name):
    clf = fitted_case(name)[0]
    path = clf.to_onnx(tmp_path / "point.onnx")
    known = WILD.drop(index=4)  # the text that stands for a missing one
    assert_agrees(clf, path, known)
    for row in range(len(known)):
        assert_agrees(clf, path, known.iloc[[row]])
    none = run(path, known[:0])
    assert none["label"].shape == none["scores"].shape == (0,)
    assert none["probabilities"].shape == (0, 2)


def test_a_group_that_fit_has_not_seen_is_read_alike(tmp_path):
    clf = fitted_case("group thresholds")[0]
    path = clf.to_onnx(tmp_path / "point.onnx")
    group = np.array([-1, 0, 1, 2, 3, -1])
    table = NEW.head(6)
    names = FRESH.sensitive.head(6).assign(sex="other")
    with pytest.warns(UserWarning, match="6 of 6 rows fall into a group"):
        unknown = clf.decision_function(table, sensitive_features=names)
    found = run(path, table, group)["scores"]
    np.testing.assert_allclose(found[[0, 5]], unknown[[0, 5]], atol=EXACT)
    about = json.loads(session_of(path).get_modelmeta().custom_metadata_map["apfex"])
    assert clf.fitted_.groups is not None
    assert about["inputs"][-1] == {
        "name": "group",
        "type": "group",
        "groups": list(clf.fitted_.groups.names),
    }


LABELS = {
    "whole numbers": (lambda y: y + 3, np.int64),
    "small": (lambda y: y.astype(np.int8), np.int64),
    "floats": (lambda y: y.astype(np.float32), np.float64),
    "bool": (lambda y: y == 1, np.bool_),
    "text": (lambda y: np.where(y == 1, "çà", "no"), object),
    "objects": (lambda y: pd.Series(np.where(y == 1, "yes", "no"), dtype=object), object),
    "days": (lambda y: np.datetime64("2020-01-01") + y, np.int64),
}


@pytest.mark.parametrize("name", LABELS)
def test_labels_are_those_of_the_classifier(tmp_path, name):
    make, dtype = LABELS[name]
    clf = quick(model="linear", epochs=2, n_members=2)
    clf.fit(NUMBERS, make(Y), sensitive_features=SENSITIVE)
    path = clf.to_onnx(tmp_path / "point.onnx")
    label = run(path, NUMBERS)["label"]
    assert label.dtype == dtype
    about = json.loads(session_of(path).get_modelmeta().custom_metadata_map["apfex"])
    if name == "days":
        assert about["label_is"] == "place among classes"
        label = clf.classes_[label]
    assert (label == clf.predict(NUMBERS)).all()
    assert about["classes"] == [str(one) for one in clf.classes_.tolist()]


def test_columns_may_be_called_anything(tmp_path):
    names = {"merit_1": "label", "merit_2": "", "town": "apfex.0", "noise_1": "X", "noise_2": "é="}
    table, new = X.rename(columns=names), NEW.rename(columns=names)
    for changes in ({"model": "linear", "epochs": 2}, TREES):
        clf = quick(**{"n_members": 2, **changes})
        clf.fit(table, Y, sensitive_features=SENSITIVE)
        path = clf.to_onnx(tmp_path / "point.onnx", overwrite=True)
        assert_agrees(clf, path, new)
        inputs = [value.name for value in session_of(path).get_inputs()]
        assert len(set(inputs)) == len(inputs) == 5
        assert {"X", "é="} <= set(inputs)


def test_the_text_for_missing_ones_is_no_level(tmp_path):
    table = X.assign(town=X["town"].replace({"Dover": "<missing>", "Corby": "<missing>_"}))
    table.loc[table.index[::5], "town"] = None
    clf = quick(model="linear", epochs=2, n_members=2)
    clf.fit(table, Y, sensitive_features=SENSITIVE)
    path = clf.to_onnx(tmp_path / "point.onnx")
    about = json.loads(session_of(path).get_modelmeta().custom_metadata_map["apfex"])
    assert {one["column"]: one.get("missing") for one in about["inputs"]} == {
        "merit_1": None,
        "merit_2": None,
        "town": "<missing>__",
        "noise_1": None,
        "noise_2": "<missing>",
    }
    assert_agrees(clf, path, table)


@pytest.mark.parametrize("levels", [[3, 1, 2, 0], ["b", "a", "d", "c"]], ids=["ints", "texts"])
def test_categories_of_own_trees_may_be_of_any_kind(tmp_path, levels):
    towns = ["Ashford", "Bexley", "Corby", "Dover"]
    table = pd.DataFrame(X[["merit_1"]])
    table["town"] = pd.Categorical.from_codes(list(map(towns.index, X["town"])), levels)
    table.loc[table.index[::7], "town"] = None
    clf = quick(**{**TREES, **MEMBERS, "init": production_trees(table), "n_members": 2})
    clf.fit(table, Y, sensitive_features=SENSITIVE)
    assert_agrees(clf, clf.to_onnx(tmp_path / "point.onnx"), table)


@pytest.mark.parametrize(
    "parameters",
    [
        {"booster": "dart", "rate_drop": 0.5, "learning_rate": 0.7},
        {"num_parallel_tree": 3, "subsample": 0.5},
        {"objective": "binary:logitraw", "base_score": 0.3},
        {"max_depth": 0, "max_leaves": 9, "grow_policy": "lossguide", "gamma": 0.2},
        {"max_depth": 1, "gamma": 1e9},
    ],
    ids=["dart", "forest", "raw", "leaves", "stumps"],
)
def test_own_trees_of_many_kinds(tmp_path, parameters):
    data = xgboost.DMatrix(NUMBERS, Y)
    given = {"objective": "binary:logistic", "max_depth": 3, "nthread": 1, **parameters}
    init = xgboost.train(given, data, 5)
    clf = quick(**{**TREES, **MEMBERS, "init": init, "n_members": 2})
    clf.fit(NUMBERS, Y, sensitive_features=SENSITIVE)
    start = [place for place, point in enumerate(clf.front_) if point.epoch == 0]
    for place in {0, *start}:
        path = clf.at(place).to_onnx(tmp_path / "point.onnx", overwrite=True)
        assert_agrees(clf.at(place), path, NUMBERS)


@pytest.mark.parametrize("c", [2, 3])
def test_scores_of_rules_are_exact_from_end_to_end(tmp_path, c):
    """Also where the logit is cut off, and where a bend of several classes nearly vanishes."""
    torch.manual_seed(0)
    joint = JointModel([nn.Linear(2, 2 * c).double()], [1.0], (2, c))
    rule = torch.ones(1 if c == 2 else c, 2, c, dtype=torch.float64)
    rule[0] = -1.0
    module, graph = RuleModel(joint, rule), Graph(("scores",))
    x = graph.input("x", np.float64, 2)
    scores = ModuleExport(graph, np.float64).scores(module, x)
    path = tmp_path / "rule.onnx"
    path.write_bytes(graph.model({"scores": (scores, np.float64, ["n", len(rule)])}, {}))
    rows = np.random.default_rng(0).normal(size=(50, 2)) * 10
    found: Any = session_of(path).run(["scores"], {"x": rows})[0]
    expected = module(torch.from_numpy(rows)).detach().numpy()
    assert expected.min() < -13  # where 1 + exp(x) is 1
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


def test_a_file_tells_which_point_it_is(tmp_path):
    clf = fitted_case("rules")[0].at(2)
    session = session_of(clf.to_onnx(tmp_path / "point.onnx"))
    about = json.loads(session.get_modelmeta().custom_metadata_map["apfex"])
    point = clf.front_[2]
    assert (about["kind"], about["format"], about["point"]) == ("apfex.onnx", 1, 2)
    assert about["error"] == point.error
    assert about["gaps"] == {name: gap.gap for name, gap in point.gaps.items()}
    outputs = {value.name: value.type for value in session.get_outputs()}
    assert outputs == {
        "label": "tensor(int64)",
        "probabilities": "tensor(double)",
        "scores": "tensor(double)",
    }
    again = clf.to_onnx(tmp_path / "again.onnx")
    assert again.read_bytes() == (tmp_path / "point.onnx").read_bytes()


def test_the_page_about_it_runs_as_printed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    names = run_page("docs/models.md")
    assert names["flips"]["changed"].sum() > 0
    chosen, X = names["clf"].select(max_gap=0.2), names["data"].X
    assert (names["label"] == chosen.predict(X)).all()
    np.testing.assert_allclose(names["scores"], chosen.decision_function(X), rtol=0, atol=ROUNDED)


# What is refused


def test_a_module_of_a_users_own_class_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"got Net; export front_\[point\].module with torch.onnx"):
        fitted_case("a factory")[0].to_onnx(tmp_path / "point.onnx")
    without = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2, track_running_stats=False))
    network = nn.Sequential(*without, nn.Linear(2, 1))
    clf = fit(quick(init=network, epochs=1, n_members=2, **MEMBERS))
    with pytest.raises(ValueError, match="BatchNorm1d with running statistics, got one without"):
        clf.to_onnx(tmp_path / "point.onnx")
    assert os.listdir(tmp_path) == []


@pytest.mark.filterwarnings("ignore:Only models that are nearly constant")
def test_rules_around_a_network_are_refused_and_members_from_it_are_not(tmp_path):
    network = nn.Sequential(nn.Linear(3, 2), nn.ReLU(), nn.Linear(2, 1))
    rules = fit(quick(init=network, n_members=2))
    with pytest.raises(
        ValueError, match=r"got one around a model of yours \(Sequential\); use save"
    ):
        rules.to_onnx(tmp_path / "point.onnx")
    assert os.listdir(tmp_path) == []
    members = fit(quick(init=network, epochs=1, n_members=2, **MEMBERS))
    assert members.to_onnx(tmp_path / "point.onnx").exists()


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    clf = fitted_case("array")[0]
    with pytest.raises(IsADirectoryError, match="could not be written: there is a folder"):
        clf.to_onnx(tmp_path)
    with pytest.raises(FileNotFoundError, match="could not be written: No such file or directory"):
        clf.to_onnx(tmp_path / "none" / "point.onnx")
    with pytest.raises(NotFittedError, match="not fitted yet"):
        quick().to_onnx(tmp_path / "point.onnx")


def test_a_file_that_is_there_is_kept_unless_told_otherwise(tmp_path):
    clf = fitted_case("array")[0]
    path = tmp_path / "point.onnx"
    path.write_bytes(b"precious")
    with pytest.raises(FileExistsError, match=r"must not be there yet.*overwrite=True"):
        clf.to_onnx(path)
    assert path.read_bytes() == b"precious"
    assert_agrees(clf, clf.to_onnx(path, overwrite=True), fitted_case("array")[1])


def test_a_missing_package_is_named_with_its_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(
        ImportError, match=r'^ONNX export needs the package onnx: pip install "apfex\[onnx\]".$'
    ):
        fitted_case("array")[0].to_onnx(tmp_path / "point.onnx")
