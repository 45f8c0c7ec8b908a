"""Jobs on other processes: all of them, once, whichever worker dies; or an end that says why."""

import os
import signal
import sys
import threading
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from joblib import Parallel, delayed
from sklearn.metrics import accuracy_score
from sklearn.model_selection import GridSearchCV, cross_val_score
from tests.clusters.jobs import die, first_to, pid, say_and_wait, square_or_die

from apfex import APFExClassifier, make_biased
from apfex.clusters import _dask_client, use_backend


class KillsOnce:
    """A scorer whose worker dies in the middle of the first score."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __call__(self, clf: Any, X: Any, y: Any) -> float:
        if first_to(self.mark):
            os.kill(os.getpid(), signal.SIGKILL)
        return float(accuracy_score(y, clf.predict(X)))


def table() -> tuple[Any, Any, list[str]]:
    data = make_biased(n=300, random_state=0)
    return data.X.join(data.sensitive), data.y, list(data.sensitive)


def fit_and_predict(seed: int) -> np.ndarray:
    X, y, sensitive = table()
    clf = APFExClassifier(model="linear", sensitive=sensitive, random_state=seed, max_gap=1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return clf.fit(X, y).predict_proba(X)


def test_jobs_of_a_worker_that_dies_run_again_and_count_once(two_workers, tmp_path):
    before = set(two_workers.run(os.getpid).values())
    with use_backend("dask"):
        jobs = (delayed(square_or_die)(number, tmp_path / "died") for number in range(12))
        assert Parallel()(jobs) == [number**2 for number in range(12)]
    assert (tmp_path / "died").exists()
    assert set(two_workers.run(os.getpid).values()) != before


@pytest.mark.slow
def test_a_job_that_kills_every_worker_ends_with_an_error(time_limit):
    del time_limit
    from dask import config
    from distributed import KilledWorker

    with (
        config.set({"distributed.scheduler.allowed-failures": 0}),
        use_backend("dask", n_jobs=2),
        pytest.raises(KilledWorker),
    ):
        Parallel()(delayed(die)(number) for number in range(2))


@pytest.mark.slow
def test_where_no_worker_is_left_the_work_ends_with_an_error(two_workers, tmp_path, monkeypatch):
    monkeypatch.setattr(_dask_client, "LONGEST_WAIT", 1)
    started, never = tmp_path / "started", tmp_path / "never"
    for path in (started, never):
        os.mkfifo(path)

    def end_all() -> None:
        with started.open():  # a job is at work
            two_workers.cluster.scale(0)

    ending = threading.Thread(target=end_all)
    ending.start()
    with use_backend("dask"), pytest.raises(Exception, match="no worker for 1 seconds"):
        Parallel()(delayed(say_and_wait)(started, never) for _ in range(2))
    ending.join()


def test_jobs_go_to_a_cluster_of_one_worker_too(time_limit):
    del time_limit
    with use_backend("dask", n_jobs=1):
        found = Parallel()(delayed(pid)(number) for number in range(3))
    assert len(set(found)) == 1
    assert os.getpid() not in found


def test_what_cannot_be_sent_is_an_error(two_workers):
    del two_workers
    with use_backend("dask"), pytest.raises(ValueError, match="can be pickled, got TypeError"):
        Parallel()(delayed(str)(threading.Lock()) for _ in range(2))


@pytest.mark.slow
def test_cross_validation_and_searches_survive_a_worker(two_workers, tmp_path):
    del two_workers
    X, y, sensitive = table()
    clf = APFExClassifier(model="linear", sensitive=sensitive, random_state=0, max_gap=1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        here = cross_val_score(clf, X, y, cv=4, n_jobs=1)
        with use_backend("dask"):
            there = cross_val_score(clf, X, y, cv=4, scoring=KillsOnce(tmp_path / "cv"))
            grid = {"epochs": [2, 30]}
            searching = GridSearchCV(clf, grid, cv=2, scoring=KillsOnce(tmp_path / "grid"))
            searching.fit(X, y)
        found = GridSearchCV(clf, grid, cv=2, n_jobs=1).fit(X, y)
    assert (tmp_path / "cv").exists()
    assert (tmp_path / "grid").exists()
    np.testing.assert_array_equal(there, here)
    for name in ("split0_test_score", "split1_test_score"):
        np.testing.assert_array_equal(searching.cv_results_[name], found.cv_results_[name])


@pytest.mark.slow
def test_seeds_give_the_same_models_there_as_here(two_workers):
    del two_workers
    with use_backend("dask"):
        there = Parallel()(delayed(fit_and_predict)(seed) for seed in range(3))
    for seed, found in enumerate(there):
        np.testing.assert_array_equal(found, fit_and_predict(seed))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"backend": "spark"}, "backend must be one of loky, dask, ray, got 'spark'"),
        ({"n_jobs": 0}, "n_jobs must be a number of processes, or -1 for one a core, got 0"),
        ({"scheduler": "tcp://a:1"}, "scheduler must be given with the backend dask or ray"),
        (
            {"backend": "dask", "scheduler": "tcp://a:1", "n_jobs": 2},
            "n_jobs must be -1 on the cluster at tcp://a:1, .* got 2",
        ),
    ],
)
def test_what_means_nothing_is_refused(given, message):
    with pytest.raises(ValueError, match=message), use_backend(**given):
        pass


def test_a_scheduler_that_does_not_answer_is_named(time_limit):
    del time_limit
    from dask import config

    with (
        config.set({"distributed.comm.timeouts.connect": "100ms"}),
        pytest.raises(
            ValueError, match=r"a Dask scheduler that answers, .* got 'tcp://127.0.0.1:9"
        ),
        use_backend("dask", scheduler="tcp://127.0.0.1:9"),
    ):
        pass


@pytest.mark.parametrize("backend", ["dask", "ray"])
def test_a_missing_extra_is_named_in_a_line(backend, monkeypatch):
    package = {"dask": "distributed", "ray": "ray"}[backend]
    monkeypatch.setitem(sys.modules, package, None)
    with (
        pytest.raises(ImportError, match=rf"^The backend {backend} needs the package {package}: "),
        use_backend(backend),
    ):
        pass
