"""``fit`` on a Dask DataFrame: the front of one machine, whatever the partitions are like."""

import itertools
import os
import signal
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import xgboost.dask
from dask import config
from tests.clusters.jobs import first_to
from xgboost.callback import TrainingCallback

from apfex import APFExClassifier, explore, load, make_biased
from apfex.clusters import _dask_work
from apfex.persistence import CheckpointError, FolderCheckpoint

SMALL = {
    "criteria": ("dp",),
    "max_gap": 1.0,
    "n_estimators": 6,
    "n_members": 6,
    "validation": "split",
    "validation_fraction": 0.34,
    "random_state": 0,
}
SENSITIVE = ["sex", "origin"]


def people(n: int = 900) -> Any:
    data = make_biased(n=n, random_state=0)
    return data.X.join(data.sensitive).assign(label=np.where(data.y == 1, "yes", "no"))


def split(frame: Any, *places: int) -> Any:
    """A Dask DataFrame with a partition up to each of these rows, and one of the others."""
    ends = [0, *places, len(frame)]
    parts = [frame.iloc[start:end] for start, end in itertools.pairwise(ends)]
    return dd.from_map(lambda place: parts[place], range(len(parts)), meta=frame.iloc[:0])


def fitted(frame: Any, **more: Any) -> APFExClassifier:
    clf = APFExClassifier(**SMALL | more)
    return clf.fit(frame, "label", sensitive_features=SENSITIVE)


@pytest.fixture
def client(time_limit: None) -> Iterator[Any]:
    """A worker in this process: what is said and counted does not depend on their number."""
    del time_limit
    from distributed import Client

    with Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=":0") as one:
        yield one


def test_a_front_is_fitted_stored_and_used_as_any_other(client, tmp_path):
    del client
    frame = people()
    clf = fitted(split(frame, 200, 500))
    assert len(clf.front_) >= 1
    assert list(clf.feature_names_in_) == [n for n in frame if n not in (*SENSITIVE, "label")]
    assert set(clf.predict(frame[clf.feature_names_in_])) <= {"yes", "no"}
    accuracy = (clf.predict(frame[clf.feature_names_in_]) == frame["label"]).mean()
    assert accuracy > frame["label"].value_counts(normalize=True).max()
    clf.save(tmp_path / "model")
    again = load(tmp_path / "model").predict_proba(frame[clf.feature_names_in_])
    np.testing.assert_array_equal(again, clf.predict_proba(frame[clf.feature_names_in_]))


def test_partitions_do_not_matter_empty_ones_or_those_without_some_group(client):
    del client
    frame = people()
    one = fitted(split(frame))
    several = fitted(split(frame, 0, 300, 300, 640, len(frame)))
    pd.testing.assert_frame_equal(several.front_.to_frame(), one.front_.to_frame())
    ordered = frame.sort_values(SENSITIVE, kind="stable", ignore_index=True)
    ends = np.flatnonzero((ordered[SENSITIVE] != ordered[SENSITIVE].shift()).any(axis=1))[1:]
    by_group = fitted(split(ordered, *map(int, ends)))  # each partition knows a single group
    assert list(by_group.classes_) == ["no", "yes"]
    pd.testing.assert_frame_equal(
        by_group.front_.to_frame(), fitted(split(ordered)).front_.to_frame()
    )


@pytest.mark.slow
def test_weights_count_and_rows_of_weight_zero_are_not_there(client):
    del client
    frame = people()
    frame["weight"] = np.where(np.arange(len(frame)) % 3, 2.0, 0.0)
    kept = frame[frame["weight"] > 0].reset_index(drop=True)
    clf, other = APFExClassifier(**SMALL), APFExClassifier(**SMALL)
    given: dict[str, Any] = {"sensitive_features": SENSITIVE, "sample_weight": "weight"}
    clf.fit(split(frame, 300), "label", **given)
    other.fit(split(kept, 300), "label", **given)
    pd.testing.assert_frame_equal(clf.front_.to_frame(), other.front_.to_frame())


@pytest.mark.slow
def test_a_fit_goes_on_from_its_checkpoint(client, tmp_path, monkeypatch):
    del client
    frame, given = people(), {"sensitive_features": SENSITIVE}
    whole, write, left = fitted(split(frame, 300)), FolderCheckpoint.write, [4]

    def counted(self, name, state):
        write(self, name, state)
        left[0] -= 1
        if not left[0]:
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(FolderCheckpoint, "write", counted)
        clf = APFExClassifier(**SMALL)
        with pytest.raises(KeyboardInterrupt), pytest.warns(UserWarning, match="Stopped"):
            clf.fit(split(frame, 300), "label", **given, checkpoint=tmp_path / "fit")
    kept = sorted(path.name for path in (tmp_path / "fit").glob("*.state"))
    assert len(kept) == 4
    clf = APFExClassifier(**SMALL)
    clf.fit(split(frame, 300), "label", **given, checkpoint=tmp_path / "fit")
    pd.testing.assert_frame_equal(clf.front_.to_frame(), whole.front_.to_frame())
    with pytest.raises(CheckpointError, match="same data to go on from, got other inputs"):
        clf.fit(split(frame[::-1], 300), "label", **given, checkpoint=tmp_path / "fit")


@pytest.mark.slow
def test_few_rows_are_fitted_in_memory(client):
    del client
    frame = people(400)
    settings: dict[str, Any] = {"model": "boosting", "validation": "auto"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        clf = fitted(split(frame, 100), **settings)
        features = [name for name in frame if name not in (*SENSITIVE, "label")]
        here = APFExClassifier(**SMALL | settings).fit(
            frame[features], frame["label"], sensitive_features=frame[SENSITIVE]
        )
    pd.testing.assert_frame_equal(clf.front_.to_frame(), here.front_.to_frame())


def broken(frame: pd.DataFrame, change: Any) -> Any:
    """A Dask DataFrame whose second partition is another than it says."""
    parts = [frame.iloc[:300], change(frame.iloc[300:600]), frame.iloc[600:]]
    return dd.from_map(lambda place: parts[place], range(3), meta=frame.iloc[:0])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda part: part.drop(columns="score").assign(points=1),
            r"got partition 1 with other ones: missing \['score'\], unknown \['points'\]",
        ),
        (
            lambda part: pd.concat([part, part[["score"]]], axis=1),
            r"missing none, unknown none, twice \['score'\]",
        ),
        (
            lambda part: part.assign(score=np.inf),
            r"^In rows 0 to 299 of partition 1 of X: Column 'score' of X must be finite",
        ),
        (
            lambda part: part.assign(label=None),
            r"y must not have missing values, got 300 in 900 rows",
        ),
        (
            lambda part: part.assign(score=part["score"].astype(str) + " points"),
            r"From partition 1 of X on: Column 'score' of X must hold values of one kind",
        ),
    ],
)
def test_a_partition_with_another_schema_is_named(client, change, message):
    del client
    frame = people()
    number = next(name for name in frame if pd.api.types.is_float_dtype(frame[name]))
    frame = frame.rename(columns={number: "score"})
    with pytest.raises((TypeError, ValueError), match=message):
        fitted(broken(frame, change))


@pytest.mark.parametrize("within", [False, True], ids=["two partitions", "one partition"])
@pytest.mark.parametrize(("column", "argument"), [("sex", "sensitive_features"), ("label", "y")])
def test_truths_beside_ones_are_refused_and_not_merged(client, column, argument, within):
    del client
    frame = people()
    ones = (frame[column] == frame.loc[0, column]).astype(int)
    mixed = ones.astype(object)
    mixed[300:302] = [True, False]
    parts = mixed if within else ones

    def change(part: pd.DataFrame) -> pd.DataFrame:
        return part if within else part.assign(**{column: part[column] == 1})

    message = f"{argument} must have levels that differ as text, got (True and 1|False and 0) in"
    as_they_are = config.set({"dataframe.convert-string": False})  # else objects are text
    with as_they_are, pytest.raises(ValueError, match=message):
        fitted(broken(frame.assign(**{column: parts}), change))


def test_columns_of_a_partition_may_stand_in_another_order(client):
    del client
    frame = people()
    turned = fitted(broken(frame, lambda part: part[part.columns[::-1]]))
    same = fitted(broken(frame, lambda part: part))
    pd.testing.assert_frame_equal(turned.front_.to_frame(), same.front_.to_frame())


@pytest.mark.parametrize(
    ("differs", "message"),
    [("labels", "same rows whenever it is computed"), ("rows", "same rows in the same order")],
)
def test_rows_that_are_others_the_second_time_are_refused(client, differs, message, tmp_path):
    del client
    frame = people()

    def changing(place: int) -> Any:
        part = frame.iloc[300 * place : 300 * (place + 1)]
        if first_to(tmp_path / str(place)):
            return part
        return part.assign(label=part["label"].iloc[0]) if differs == "labels" else part.iloc[1:]

    table = dd.from_map(changing, range(3), meta=frame.iloc[:0])
    with pytest.raises(ValueError, match=rf"In partition \d of X: X must give the {message}"):
        fitted(table)


@pytest.mark.parametrize(
    ("arguments", "more", "error", "message"),
    [
        (("income",), {}, ValueError, r"y must name columns of the stream, got \['income'\]"),
        ((None,), {}, ValueError, "y must name the column of the stream that holds the labels"),
        (("label",), {"model": "mlp"}, ValueError, "model must be 'boosting' or 'auto' where X is"),
        (("label",), {"validation": "cross"}, ValueError, "validation must be 'auto' or 'split'"),
        (("label",), {"search": "inprocess"}, ValueError, "search must be 'auto' or 'postprocess'"),
    ],
)
def test_what_workers_cannot_do_is_refused(client, arguments, more, error, message):
    del client
    with pytest.raises(error, match=message):
        APFExClassifier(**SMALL | more).fit(
            split(people(50)), *arguments, sensitive_features=SENSITIVE
        )


def test_of_many_groups_rules_know_levels_of_them(client):
    """68 groups, of which workers grow trees of the levels of three attributes, and of bands."""
    del client
    table = people(3_000).assign(area=np.random.default_rng(7).integers(0, 17, 3_000))
    clf = APFExClassifier(**SMALL).fit(
        split(table), "label", sensitive_features=[*SENSITIVE, "area"]
    )
    assert len(clf.front_[0].counts.groups) == 68
    assert clf.front_[0].error < 0.4


def test_without_a_client_a_sentence_says_how_to_start_one():
    with pytest.raises(ValueError, match=r"a Dask client in use .*, got none; start one: from dis"):
        fitted(split(people(50)))


def test_a_run_says_what_it_reads_instead(client):
    del client
    with pytest.raises(ValueError, match="A file or a frame in memory is needed here, got a Dask"):
        explore(split(people(50)), label="label", positive="yes", sensitive=SENSITIVE, stream=False)


def test_no_rows_are_refused(client):
    del client
    with pytest.raises(ValueError, match="X must have rows, got a stream of 0 rows"):
        fitted(split(people(50).iloc[:0]))


def test_dask_is_not_imported_for_others():
    assert "dask" in sys.modules  # by this file
    assert not _dask_work.is_dask_frame(people(50))
    assert not _dask_work.is_dask_frame(split(people(50))["label"])


# Two worker processes.
FULL: dict[str, Any] = {"model": "boosting", "criteria": ("dp",), "max_gap": 1.0}


def values_on(clf: APFExClassifier, test: Any) -> tuple[float, float, float]:
    """Least error, least gap, and volume of the front on test rows."""
    from apfex.front import hypervolume
    from apfex.metrics import dp_gap

    decided = clf.decide_all(test[clf.feature_names_in_])
    found = [
        (
            float((decision != test["label"]).mean()),
            dp_gap(test["label"] == "yes", decision == "yes", sensitive_features=test[SENSITIVE]),
        )
        for decision in np.asarray(decided)
    ]
    errors, gaps = zip(*found, strict=True)
    return min(errors), min(gaps), hypervolume(np.array(found), [0.5, 0.5])


class Kills(TrainingCallback):
    """Kills the first worker that has grown three trees."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
        del model, evals_log
        if epoch == 3 and first_to(self.mark):
            os.kill(os.getpid(), signal.SIGKILL)
        return False


def kill_while_trees_grow(monkeypatch: pytest.MonkeyPatch, *marks: Path) -> None:
    """In the first ensemble, and the next ones, as many as there are marks."""
    train, left = xgboost.dask.train, iter(marks)

    def deadly(*args: Any, **given: Any) -> Any:
        mark = next(left, None)
        return train(*args, **given, callbacks=None if mark is None else [Kills(mark)])

    monkeypatch.setattr(xgboost.dask, "train", deadly)


@pytest.mark.slow
@pytest.mark.parametrize("killed", [False, True])
def test_the_front_is_that_of_one_machine_also_where_a_worker_is_killed(
    two_workers, killed, monkeypatch, tmp_path
):
    del two_workers
    n = 6_000
    frame = people(3 * n)
    training, test = frame[:n], frame[n:].reset_index(drop=True)
    if killed:
        kill_while_trees_grow(monkeypatch, tmp_path / "killed")
    there = values_on(fitted_whole(dd.from_pandas(training, npartitions=5)), test)
    assert (tmp_path / "killed").exists() == killed
    features = [name for name in frame if name not in (*SENSITIVE, "label")]
    here = [
        values_on(
            APFExClassifier(**FULL, random_state=seed).fit(
                training[features], training["label"], sensitive_features=training[SENSITIVE]
            ),
            test,
        )
        for seed in range(3)
    ]
    low, high = np.min(here, axis=0), np.max(here, axis=0)
    slack = np.maximum(high - low, 0.01)  # three seeds seldom show the whole spread
    assert (there >= low - slack).all(), (there, here)
    assert (there <= high + slack).all(), (there, here)


def fitted_whole(frame: Any) -> APFExClassifier:
    return APFExClassifier(**FULL, random_state=0).fit(frame, "label", sensitive_features=SENSITIVE)


@pytest.mark.slow
def test_workers_that_are_killed_twice_are_a_clear_end(two_workers, monkeypatch, tmp_path):
    kill_while_trees_grow(monkeypatch, tmp_path / "first", tmp_path / "second")
    with pytest.raises(RuntimeError, match=r"were lost twice while trees were grown on all of t"):
        fitted(split(people(), 450))
    monkeypatch.undo()
    assert len(fitted(split(people(), 450)).front_)  # the cluster is of use again
    assert len(two_workers.scheduler_info()["workers"]) >= 1


@pytest.mark.slow
def test_where_no_worker_is_left_fit_ends_with_a_sentence(two_workers, monkeypatch):
    monkeypatch.setattr(_dask_work, "LONGEST_WAIT", 1)
    two_workers.cluster.scale(0)
    with pytest.raises(RuntimeError, match=r"must have a worker, got none for 1 seconds; start"):
        fitted(split(people(), 450))
