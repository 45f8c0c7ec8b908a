# pyright: reportMissingImports=false
import pytest
from front.choose import choose
from front.records import Run


def told(records, bounds, gap="dp"):
    keyed = {Run(r["table"], r["seed"], r["method"], r["encoding"]): r for r in records}
    lines = choose(keyed, "heart", gap, bounds, {"ours"}).splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[4:]]


def point(validation, test):
    return {"name": str(validation), "validation": validation, "test": test}


@pytest.fixture
def records(make_record):
    first = [point([0.1, 0.3, 0.2], [0.2, 0.4, 0.1]), point([0.3, 0.1, 0.4], [0.4, 0.2, 0.3])]
    second = [point([0.1, 0.3, 0.2], [0.4, 0.2, 0.1]), point([0.2, 0.1, 0.4], [0.6, 0.0, 0.3])]
    return [make_record(points=first), make_record(seed=1, points=second)]


def test_validation_rows_choose_and_test_rows_measure(records):
    ((name, inputs, seeds, loose, tight),) = told(records, [0.3, 0.2])
    assert (name, inputs, seeds) == ("ours (o)", "plain", "2")
    assert loose == "0.3000 +- 0.1000, 0.3000 +- 0.1000"
    assert tight == "0.5000 +- 0.1000, 0.1000 +- 0.1000"


def test_the_other_gap_and_a_bound_that_nobody_meets(records):
    ((*_, cell),) = told(records, [0.0], gap="tpr")
    assert cell == "0.3000 +- 0.1000, 0.1000 +- 0.0000"


def test_rivals_that_read_the_attribute_are_marked(records, make_record):
    rival = {**records[0], "method": "seeing", "needs_attribute": True}
    assert [row[0] for row in told([*records, rival], [0.3])] == ["ours (o)", "seeing *"]
    assert told([make_record(error="No.")], [0.3]) == []
