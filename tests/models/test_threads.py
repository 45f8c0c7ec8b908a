"""Threads: one for small work, no more than the process may have, and put back afterwards."""

import subprocess
import sys
import threading

import pytest
import torch

from apfex import APFExClassifier, make_biased
from apfex.models import beside, thread_count, use_threads


def test_small_work_runs_on_one_thread():
    with use_threads(3):
        assert thread_count(None, 9_999) == 1
        assert thread_count(None, 10_000) == min(3, thread_count(-1, 1))
    assert thread_count(5, 10) == 5
    assert thread_count(-1, 10) >= 1


def test_a_limit_on_processors_is_honoured():
    program = (
        "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}); "
        "from apfex.models import thread_count; import torch; torch.set_num_threads(4); "
        "print(thread_count(None, 10**6), thread_count(-1, 10**6))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.split() == ["1", "1"]


def test_the_setting_is_put_back_in_every_thread():
    before, entered, leave = torch.get_num_threads(), threading.Barrier(3), threading.Event()
    seen = []

    def work(n):
        with use_threads(n):
            seen.append(torch.get_num_threads())
            entered.wait()
            leave.wait()
        seen.append(torch.get_num_threads())

    workers = [threading.Thread(target=work, args=(n,)) for n in (2, 3)]
    for worker in workers:
        worker.start()
    entered.wait()
    leave.set()
    for worker in workers:
        worker.join()
    assert sorted(seen[:2]) == [2, 3]
    assert seen[2:] == [before, before]
    assert torch.get_num_threads() == before
    with pytest.raises(RuntimeError), use_threads(2):
        raise RuntimeError
    assert torch.get_num_threads() == before


def test_a_setting_within_a_setting_ends_before_it():
    before = torch.get_num_threads()
    with use_threads(3):
        with use_threads(1):
            pass
        assert torch.get_num_threads() == 3
    assert torch.get_num_threads() == before


@pytest.mark.parametrize("model", ["linear", "boosting"])
def test_fit_uses_what_it_is_told_and_the_front_is_the_same(model, monkeypatch):
    data, used = make_biased(n=300, random_state=0), []
    monkeypatch.setattr(torch, "set_num_threads", used.append)
    fronts = []
    for n_jobs in (None, 2):
        used.clear()
        clf = APFExClassifier(model=model, max_gap=1.0, epochs=2, n_jobs=n_jobs, random_state=0)
        clf.fit(data.X, data.y, sensitive_features=data.sensitive).predict(data.X)
        assert used[0] == used[2] == (1 if n_jobs is None else 2)
        fronts.append(clf.front_.to_frame())
    assert fronts[0].equals(fronts[1])


@pytest.mark.parametrize("n", [1, 3])
def test_work_beside_other_work_has_as_many_threads_and_is_done_once(n):
    done = []

    def work():
        done.append((torch.get_num_threads(), threading.current_thread() is here))
        return len(done)

    here = threading.current_thread()
    with use_threads(n):
        result = beside(work)
        assert result() == result() == 1
    assert done == [(n, n == 1)]


def test_what_goes_wrong_beside_other_work_is_told_where_the_result_is_asked_for():
    with use_threads(2):
        result = beside(lambda: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        result()
