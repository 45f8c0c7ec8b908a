"""``save`` and ``load``: every kind of classifier comes back exactly, or a sentence says why."""

import copy
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
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from tests.estimator.tables import DATA, FRESH, quick
from tests.persistence.saved import (
    CASES,
    NEW,
    NUMBERS,
    SENSITIVE,
    UNSTORED,
    X,
    Y,
    assert_same,
    fitted_case,
    load_case,
)

import apfex
from apfex.estimator import APFExClassifier, load
from apfex.strategies import AdaptiveSwitch, FixedWeights

ROOT = Path(__file__).parents[2]


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


def test_a_list_of_strategies_comes_back(tmp_path):
    clf = copy.copy(fitted_case(sorted(set(CASES) - UNSTORED)[0])[0])
    clf.strategy = ["switch", FixedWeights((1, 2)), AdaptiveSwitch(patience=2)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert load(clf.save(tmp_path / "model")).strategy == clf.strategy


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


def test_without_sensitive_features_there_is_a_single_plain_model(tmp_path):
    clf = quick(model="linear", epochs=1, n_members=2)
    with pytest.warns(UserWarning, match="fair to nobody"):
        clf.fit(NUMBERS, Y)
    again = load(clf.save(tmp_path / "model"))
    assert_same(clf, again, NUMBERS, {})
    assert again.front_[0].gaps == {}


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
