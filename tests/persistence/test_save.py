"""``save`` and ``load``: every kind of classifier comes back exactly, or a sentence says why."""

import datetime
import json
import os
import pickle
import subprocess
import sys
import warnings
from dataclasses import fields
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from tests.estimator.tables import DATA, FRESH, quick
from tests.persistence.saved import CASES, NEW, NUMBERS, SENSITIVE, Net, X, Y, fit, fitted_case
from tests.persistence.test_bundle import forge
from torch import nn

import apfex
from apfex.estimator import APFExClassifier, load
from apfex.metrics import gap_inference
from apfex.persistence import CorruptModelError, _modules, pack
from apfex.tables import TableEncoder

ROOT = Path(__file__).parents[2]
UNSTORED = {"a factory", "a plain network", "own trees", "own booster of several classes"}
"""Cases with an argument that cannot be stored."""


def load_case(name: str, folder: Any) -> APFExClassifier:
    given = {"model": Net} if name == "a factory" else {}
    with warnings.catch_warnings(record=True, action="always") as caught:
        again = load(folder, **given)
    told = [str(one.message) for one in caught]
    assert bool(told) == (name in UNSTORED - {"a factory"}), told
    return again


def assert_same(clf: APFExClassifier, again: APFExClassifier, new: Any, groups: dict) -> None:
    """Every point says the same of new rows, bit by bit."""
    assert len(again.front_) == len(clf.front_)
    for place in range(len(clf.front_)):
        ours, theirs = clf.at(place), again.at(place)
        for method in ("decision_function", "predict_proba", "predict"):
            expected = getattr(ours, method)(new, **groups)
            found = getattr(theirs, method)(new, **groups)
            assert found.dtype == expected.dtype
            assert (found == expected).all()


@pytest.mark.parametrize("name", CASES)
def test_every_kind_comes_back_exactly(tmp_path, name):
    clf, new, groups = fitted_case(name)
    again = load_case(name, clf.save(tmp_path / "model"))
    assert_same(clf, again, new, groups)
    assert again.point_ == clf.point_
    assert (again.history_ is None) == (clf.history_ is None)
    if clf.history_ is not None and again.history_ is not None:
        assert again.history_.equals(clf.history_)
        assert again.history_.attrs == clf.history_.attrs
    assert again.front_.favorable_label == clf.front_.favorable_label
    assert again.classes_.dtype == clf.classes_.dtype
    assert again.classes_.tolist() == clf.classes_.tolist()
    assert again.n_features_in_ == clf.n_features_in_
    assert hasattr(again, "feature_names_in_") == hasattr(clf, "feature_names_in_")
    assert again.front_.to_frame().equals(clf.front_.to_frame())
    assert repr(again.front_) == repr(clf.front_)
    for ours, theirs in zip(clf.front_, again.front_, strict=True):
        assert theirs.gaps == ours.gaps
        for criterion in ours.gaps:
            for confidence in (0.5, 0.9):
                assert theirs.interval_at(criterion, confidence) == ours.interval_at(
                    criterion, confidence
                )
    second = again.save(tmp_path / "again")
    for path in (tmp_path / "model").iterdir():
        assert (second / path.name).read_bytes() == path.read_bytes()


def test_arguments_come_back_with_their_types(tmp_path):
    for name in set(CASES) - UNSTORED:
        clf = fitted_case(name)[0]
        again = load(clf.save(tmp_path / name))
        assert again.get_params() == clf.get_params()
        kinds = {key: type(value) for key, value in clf.get_params().items()}
        assert {key: type(value) for key, value in again.get_params().items()} == kinds


LOADER = """
import sys, warnings, numpy as np
from pathlib import Path
from apfex import load
from tests.persistence.saved import CASES, FRESH
warnings.simplefilter("ignore")
for folder in map(Path, sys.argv[1:]):
    clf = load(folder)
    new = CASES[folder.name][2]
    groups = {"sensitive_features": FRESH.sensitive.head(150)} if clf.group_thresholds else {}
    scores = [clf.at(p).decision_function(new, **groups) for p in range(len(clf.front_))]
    np.save(folder.parent / folder.name, scores)
"""


def test_another_process_predicts_the_same(tmp_path):
    names = ["rules", "both", "tree members", "own trees", "group thresholds of trees", "array"]
    folders = [fitted_case(name)[0].save(tmp_path / name) for name in names]
    places = str(ROOT), str(Path(apfex.__file__).parents[1])
    paths = {**os.environ, "PYTHONPATH": os.pathsep.join(places)}
    subprocess.run([sys.executable, "-c", LOADER, *folders], check=True, cwd=tmp_path, env=paths)
    for name in names:
        clf, new, groups = fitted_case(name)
        expected = [clf.at(p).decision_function(new, **groups) for p in range(len(clf.front_))]
        assert (np.load(tmp_path / f"{name}.npy") == expected).all()


def test_all_that_a_fitted_classifier_does_is_there_after_loading(tmp_path):
    clf = fitted_case("rules")[0]
    again = apfex.load(clf.save(tmp_path / "model"))
    given: dict[str, Any] = {"sensitive_features": FRESH.sensitive}
    audits = [one.audit(FRESH.X, FRESH.y, **given).gaps for one in (clf, again)]
    assert audits[0].equals(audits[1])
    for confidence in (None, 0.8):
        bound = max(point.bounded("dp", confidence) for point in clf.front_)
        chosen = [one.select(bound, confidence=confidence).point_ for one in (clf, again)]
        assert chosen[0] == chosen[1]
    assert again.compare(0, -1, FRESH.X, **given).equals(clf.compare(0, -1, FRESH.X, **given))
    assert again.score(FRESH.X, FRESH.y) == clf.score(FRESH.X, FRESH.y)
    fresh: Any = clone(again)
    assert len(fresh.fit(X, Y, sensitive_features=SENSITIVE).front_) == len(clf.front_)
    pickle.loads(pickle.dumps(again)).predict(NEW)


def test_points_share_what_they_shared(tmp_path):
    again = load(fitted_case("rules")[0].save(tmp_path / "model"))
    assert len({id(point.module.joint) for point in again.front_}) == 1
    assert all(not point.module.training for point in again.front_)


def test_the_folder_holds_no_pickle_and_nobodys_rows(tmp_path):
    clf = fitted_case("group thresholds of trees")[0]
    folder = clf.save(tmp_path / "model")
    kinds = {path.suffix for path in folder.iterdir()}
    assert kinds == {".json", ".safetensors"}
    content = json.loads((folder / "content.json").read_text())

    def longest(value):
        parts = value.values() if isinstance(value, dict) else value
        if not isinstance(value, dict | list):
            return 0
        return max([len(value), *map(longest, parts)])

    assert longest(content) < len(Y) / 4
    assert clf.fitted_.groups is not None
    assert len(clf.fitted_.groups.codes) == 0
    data = pickle.dumps(clf)
    assert DATA.y[: len(Y)].astype(np.int64).tobytes() not in data


@pytest.mark.parametrize("name", ["rules", "both", "tree members", "a factory"])
def test_dumps_of_joblib_still_work(tmp_path, name):
    clf, new, groups = fitted_case(name)
    joblib.dump(clf, tmp_path / "clf.joblib")
    assert_same(clf, joblib.load(tmp_path / "clf.joblib"), new, groups)


# What a classifier can be made from


def test_a_factory_must_be_given_again(tmp_path):
    clf, new, _ = fitted_case("a factory")
    folder = clf.save(tmp_path / "model")
    with pytest.raises(ValueError, match=r"model must be given .* tests.persistence.saved.Net"):
        load(folder)
    again = load(folder, model=Net)
    assert again.model is Net
    fresh: Any = clone(again)
    assert fresh.fit(X, Y, sensitive_features=SENSITIVE).predict(new).shape == (len(new),)
    d = again.fitted_.encoder.transform(new).shape[1]
    with pytest.warns(UserWarning, match=r"model \(tests.persistence.saved.Net\)"):
        like_it = load(folder, model=Net(d, 1))
    assert_same(clf, like_it, new, {})


class Other(Net):
    """The same parameters, another function."""

    def forward(self, x):
        return super().forward(-x)


def fails(*_):
    raise KeyError("no idea")


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (Other, "what the stored tests.persistence.saved.Net did, got one with the same par"),
        (nn.Linear, r"like the stored .*, got one whose 'bias' has shape \[1\] where None is stor"),
        (lambda d, c: Net(d + 1, c), r"'body.0.weight' has shape \[5, \d+\] where \[5, \d+\] is s"),
        (lambda *_: 3, r"model must make an nn.Module of \(\d+, 1\), got one that fails"),
        (fails, r"model must make an nn.Module of \(\d+, 1\), got one that fails \('no idea'\)"),
    ],
    ids=["other function", "other class", "other shape", "no module", "failing"],
)
def test_another_factory_is_refused(tmp_path, model, message):
    folder = fitted_case("a factory")[0].save(tmp_path / "model")
    with pytest.raises(ValueError, match=message):
        load(folder, model=model)
    with pytest.raises(TypeError, match=r"model must be a factory .*, got str"):
        load(folder, model="mlp")


class Embedded(nn.Module):
    """One that takes only what fit has seen, and says so."""

    def __init__(self, d, c):
        super().__init__()
        self.linear = nn.Linear(d, c)

    def forward(self, x):
        if (x[:, -1] == 1).any() and x.shape[0] == 4:
            raise IndexError("no such town")
        return self.linear(x)


def test_a_module_that_cannot_be_asked_is_stored_all_the_same(tmp_path):
    clf = fit(quick(model=Embedded, epochs=2, n_members=2))
    again = load(clf.save(tmp_path / "model"), model=Embedded)
    assert_same(clf, again, NUMBERS, {})


def test_a_factory_of_torchs_own_layers_need_not_be_given(tmp_path):
    clf = fit(quick(model=nn.Linear, epochs=2, n_members=2))
    folder = clf.save(tmp_path / "model")
    with pytest.warns(UserWarning, match=r"Not stored .* model \(torch.*Linear\)"):
        assert_same(clf, load(folder), NUMBERS, {})
    assert load(folder, model=nn.Linear).model is nn.Linear


def test_what_was_not_stored_is_told_and_asked_for_at_fit(tmp_path):
    clf, new, _ = fitted_case("a plain network")
    fresh: Any = clone(clf)
    clf = fresh.set_params(random_state=np.random.RandomState(0), max_gap=1.0)
    fit(clf)
    with pytest.warns(
        UserWarning,
        match=r"Not stored with the classifier: init \(torch.*Sequential\), random_state "
        r"\(numpy.random.*RandomState\). It predicts, .* set_params\(init=..., random_state=...\)",
    ):
        again = load(clf.save(tmp_path / "model"))
    assert_same(clf, again, new, {})
    assert "not stored: torch" in repr(again.init)
    with pytest.raises(ValueError, match=r"init must be given again, .* set_params\(init=...\)"):
        again.fit(NUMBERS, Y, sensitive_features=SENSITIVE)
    assert_same(clf, again, new, {})
    second = again.save(tmp_path / "again")
    with pytest.warns(UserWarning, match="random_state"):
        assert_same(clf, load(second), new, {})


def test_layers_that_are_not_what_they_seem_are_a_users_own():
    plain = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
    assert _modules.is_known(plain)
    changed: Any = nn.Linear(2, 1)
    changed.forward = lambda x: x
    hooked, extended = nn.Linear(2, 1), nn.Linear(2, 1)
    hooked.register_forward_hook(lambda *_: None)
    extended.extra = nn.Linear(1, 1)
    scaled = nn.utils.parametrizations.weight_norm(nn.Linear(2, 1))
    for odd in (changed, hooked, extended, scaled, Net(2, 1), nn.Conv1d(1, 1, 1)):
        assert not _modules.is_known(odd)
        assert not _modules.is_known(nn.Sequential(nn.ReLU(), odd))


# Values of every kind


LABELS = {
    "text": lambda y: np.where(y == 1, "yes", "no"),
    "objects": lambda y: pd.Series(np.where(y == 1, "yes", "no"), dtype=object),
    "bool": lambda y: y == 1,
    "small ints": lambda y: y.astype(np.int8) - 1,
    "floats": lambda y: y.astype(np.float32),
    "pandas text": lambda y: pd.Series(np.where(y == 1, "é", "no"), dtype="string"),
}


@pytest.mark.parametrize("name", LABELS)
def test_labels_keep_their_types(tmp_path, name):
    y = LABELS[name](Y)
    favorable = np.unique(np.asarray(y))[0]
    clf = quick(model="linear", epochs=1, n_members=2, favorable_label=favorable)
    clf.fit(NUMBERS, y, sensitive_features=SENSITIVE)
    again = load(clf.save(tmp_path / "model"))
    assert again.classes_.dtype == clf.classes_.dtype
    assert list(map(type, again.classes_.tolist())) == list(map(type, clf.classes_.tolist()))
    assert_same(clf, again, NUMBERS, {})
    assert type(again.favorable_label) is type(favorable)


def _half(first: Any, second: Any) -> list:
    return [first if one == "male" else second for one in SENSITIVE["sex"]]


COLUMNS = {
    "text and missing": _half("m", None),
    "numbers": _half(1.5, 2.5),
    "whole numbers": _half(np.int64(1), np.int64(2)),
    "whole floats and missing": _half(1.0, np.nan),
    "bool": _half(True, False),
    "mixed": _half(1, "one"),
    "days": pd.Series(_half(pd.Timestamp("2020-01-01"), pd.Timestamp("2021-01-01"))),
    "plain days": _half(datetime.date(2020, 1, 1), datetime.date(2021, 1, 1)),
    "zones": pd.Series(pd.to_datetime(_half("2020-01-01", "2021-01-01")).tz_localize("UTC")),
    "bands": pd.cut(pd.Series(_half(10, 50)), [0, 18, 65]),
    "categories": pd.Series(_half("b", "a"), dtype=pd.CategoricalDtype(["c", "b", "a"])),
    "nullable": pd.Series(_half(1, None), dtype="Int64"),
    "pyarrow": pd.Series(_half("a", None), dtype="string[pyarrow]"),
    "bytes": np.array(_half(b"a", b"b")),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_levels_of_groups_keep_their_types(tmp_path, name):
    groups = {"sex": COLUMNS[name], "origin": SENSITIVE["origin"]}
    clf = quick(model="linear", epochs=1, n_members=2, group_thresholds=True)
    clf.fit(NUMBERS, Y, sensitive_features=groups)
    again = load(clf.save(tmp_path / "model"))
    known, kept = clf.fitted_.groups, again.fitted_.groups
    assert known is not None
    assert kept is not None
    assert kept.names == known.names
    assert [level.dtype for level in kept.levels] == [level.dtype for level in known.levels]
    assert kept.encode(groups).tolist() == known.encode(groups).tolist()
    assert_same(clf, again, NUMBERS, {"sensitive_features": groups})


class Sex:
    """A level of the user's own."""

    def __init__(self, name):
        self.name = name

    def __lt__(self, other):
        return self.name < other.name


def test_what_would_not_come_back_is_refused_before_anything_is_written(tmp_path):
    own = _half(Sex("m"), Sex("f"))
    clf = quick(model="linear", epochs=1, n_members=2, group_thresholds=True)
    clf.fit(NUMBERS, Y, sensitive_features={"sex": own})
    with pytest.raises(TypeError, match=r"levels of 'sex' must be of a plain type .* got .*Sex"):
        clf.save(tmp_path / "model")
    fitted = pickle.loads(pickle.dumps(fitted_case("array")[0]))
    fitted.favorable_label = Sex("m")
    with pytest.raises(TypeError, match=r"favorable_label must be of a plain type"):
        fitted.save(tmp_path / "model")
    assert os.listdir(tmp_path) == []


def test_columns_may_have_names_that_are_no_text(tmp_path):
    table = NUMBERS.set_axis(range(NUMBERS.shape[1]), axis=1)
    clf = quick(model="linear", epochs=1, n_members=2)
    clf.fit(table, Y, sensitive_features=SENSITIVE)
    assert_same(clf, load(clf.save(tmp_path / "model")), table, {})


def test_without_sensitive_features_there_is_a_single_plain_model(tmp_path):
    clf = quick(model="linear", epochs=1, n_members=2)
    with pytest.warns(UserWarning, match="fair to nobody"):
        clf.fit(NUMBERS, Y)
    again = load(clf.save(tmp_path / "model"))
    assert_same(clf, again, NUMBERS, {})
    assert again.front_[0].gaps == {}


# What is refused


def test_only_what_is_fitted_can_be_saved(tmp_path):
    with pytest.raises(NotFittedError, match="This APFExClassifier instance is not fitted yet"):
        quick().save(tmp_path / "model")

    class Mine(APFExClassifier):
        pass

    mine = Mine(**quick(model="linear", epochs=1).get_params())
    mine.fit(NUMBERS, Y, sensitive_features=SENSITIVE)
    with pytest.raises(TypeError, match="save knows APFExClassifier alone, got its subclass Mine"):
        mine.save(tmp_path / "model")
    assert os.listdir(tmp_path) == []


def test_a_folder_that_is_there_is_kept_unless_told_otherwise(tmp_path):
    first, second = fitted_case("array")[0], fitted_case("rules")[0]
    folder = first.save(tmp_path / "model")
    with pytest.raises(FileExistsError, match=r"must not be there yet.*overwrite=True"):
        second.save(folder)
    assert len(load(folder).front_) == len(first.front_)
    assert second.save(str(folder), overwrite=True) == folder
    assert len(load(folder).front_) == len(second.front_)
    with pytest.raises(FileNotFoundError, match="must be a folder that was saved, got nothing"):
        load(tmp_path / "none")


def test_another_format_is_refused(tmp_path):
    folder = fitted_case("array")[0].save(tmp_path / "model")
    forge(folder, format=5)
    with pytest.raises(ValueError, match="format 4 or older, got format 5: a newer version"):
        load(folder)
    forge(folder, format=3)
    with pytest.raises(ValueError, match="format 4 or newer, got format 3: an earlier version"):
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


# Intervals


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


def test_all_figures_of_a_point_are_stored(tmp_path):
    clf = fitted_case("weights")[0]
    again = load(clf.save(tmp_path / "model"))
    for ours, theirs in zip(clf.front_, again.front_, strict=True):
        for field in fields(ours):
            if field.name not in ("module", "counts"):
                assert getattr(theirs, field.name) == getattr(ours, field.name)
                assert type(getattr(theirs, field.name)) is type(getattr(ours, field.name))
        assert theirs.counts.names == ours.counts.names
        for name in ("rows", "sums", "squares"):
            assert np.array_equal(getattr(theirs.counts, name), getattr(ours.counts, name))


def test_modules_on_a_disk_keep_their_types(tmp_path):
    """Ours count in float64, a user's own in what they were made of."""
    for name, dtype in (("rules", torch.float64), ("a plain network", torch.float32)):
        again = load_case(name, fitted_case(name)[0].save(tmp_path / name))
        floats = {p.dtype for point in again.front_ for p in point.module.parameters()}
        assert floats == {dtype}
