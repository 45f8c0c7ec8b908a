# pyright: reportMissingImports=false
import os
import time

import pytest
from front.records import Run
from front.runner import Limits, run_all
from rivals.common import Handed, mark


@mark()
def truth(_rows, test, _seed):
    yield "dp", Handed([test.y], {0.02: test.y})
    yield "tpr", Handed([test.y])


@mark(needs_attribute=True, encoding="numbers")
def by_group(_rows, test, _seed):
    yield "dp", Handed([test.group == 0])


@mark()
def raises(_rows, _test, _seed):
    raise RuntimeError("not today")
    yield


@mark()
def dies(_rows, _test, _seed):
    os._exit(3)
    yield


@mark()
def sleeps(_rows, _test, _seed):
    time.sleep(60)
    yield


METHODS = {f.__name__: f for f in (truth, by_group, raises, dies, sleeps)}


def results(names, table="tiny", **limits):
    runs = [Run(table, 0, name) for name in names]
    return {record["method"]: record for record in run_all(runs, METHODS, Limits(**limits))}


# Later Pythons warn of forking a process with threads; the children use none of them.
pytestmark = [
    pytest.mark.usefixtures("tiny"),
    pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning"),
]


@pytest.mark.parametrize("table", ["tiny", "tiny-one"])
def test_a_run_leaves_a_whole_record(table):
    found = results(["truth", "by_group"], table)
    problems = found["truth"]["problems"]
    assert [*problems] == ["dp", "tpr"]
    assert problems["tpr"]["hypervolume"] == 1
    assert problems["dp"]["within"]["0.02"][0] == 0
    assert found["by_group"]["problems"]["dp"]["hypervolume"] == 0  # all of one group: the gap is 1
    assert [found[name]["needs_attribute"] for name in ("truth", "by_group")] == [False, True]
    assert all({"machine", "seconds", "groups"} <= set(r) for r in found.values())


def test_a_method_that_raises_or_dies_is_listed_and_others_go_on():
    found = results(["raises", "dies", "truth"], jobs=2)
    assert found["raises"]["error"] == "RuntimeError: not today"
    assert found["dies"]["error"] == "The process ended with code 3."
    assert "error" not in found["truth"]


def test_a_late_method_is_stopped():
    assert results(["sleeps"], seconds=0.2)["sleeps"]["error"] == "Stopped after 0.2 seconds."


def test_no_jobs_are_refused():
    with pytest.raises(ValueError, match="jobs must be at least 1, got 0"):
        Limits(jobs=0)
