# pyright: reportMissingImports=false
import math

import pytest
from front.rows import make_row, ratio


def test_ratio_of_identical_scores_is_one():
    scores = {0: 0.3, 1: 0.5, 2: 0.4}
    assert ratio(scores, scores) == "1.000 [1.000, 1.000]"


def test_ratio_is_paired_over_common_seeds():
    assert ratio({0: 0.2, 1: 0.4, 7: 9.0}, {0: 0.1, 1: 0.2, 8: 9.0}) == "2.000 [2.000, 2.000]"
    assert ratio({0: 0.3}, {0: 0.2, 1: 0.1}) == "1.500"


def test_interval_by_hand():
    # Logarithms 0, a, 2a: mean a, standard error a / sqrt(3); t of two degrees is 4.3027.
    a = math.log(1.1)
    found = ratio({0: 0.1, 1: 0.11, 2: 0.121}, dict.fromkeys(range(3), 0.1))
    low, high = (math.exp(a * (1 + sign * 4.3027 / math.sqrt(3))) for sign in (-1, 1))
    assert found == f"1.100 [{low:.3f}, {high:.3f}]"


@pytest.mark.parametrize("other", [{0: 0.0}, {1: 0.5}])
def test_no_ratio_without_volume_or_common_seed(other):
    assert ratio({0: 0.5}, other) == "-"


def test_the_better_encoding_counts_for_each_gap(make_record):
    records = [
        make_record(hypervolume=(0.4, 0.2), seconds=1.0),
        make_record(hypervolume=(0.3, 0.3), seconds=3.0, encoding="tree"),
    ]
    row = make_row("ours", records, "name")
    assert row.encoding == {"dp": "plain", "tpr": "tree"}
    assert row.scores == {"dp": {0: 0.4}, "tpr": {0: 0.3}}
    assert row.cost("seconds") == "1.0/3.0"
    assert row.left_out == []


def test_an_encoding_with_fewer_seeds_is_left_out_and_told(make_record):
    records = [
        make_record(seed=0, hypervolume=(0.4, 0.2)),
        make_record(seed=1, hypervolume=(0.2, 0.2)),
        make_record(seed=0, hypervolume=(0.5, 0.1), encoding="tree"),
    ]
    row = make_row("ours", records, "name")
    assert set(row.encoding.values()) == {"plain"}
    assert row.left_out == [
        "encoding tree: only seeds [0], hypervolume dp/tpr mean 0.5000/0.1000 beside "
        "0.4000/0.2000 of plain on the same seeds: better for dp, but left out"
    ]


def test_seeds_that_the_other_encoding_lacks_are_told(make_record):
    records = [
        *(make_record(seed=seed, hypervolume=(0.1 * seed, 0.2)) for seed in (1, 2, 3)),
        make_record(seed=3, hypervolume=(0.5, 0.1), encoding="tree"),
        make_record(seed=4, hypervolume=(0.9, 0.9), encoding="tree"),
    ]
    row = make_row("ours", records, "name")
    assert row.left_out == [
        "encoding tree: only seeds [3, 4], hypervolume dp/tpr mean 0.5000/0.1000 beside "
        "0.3000/0.2000 of plain on seeds [3]: better for dp, but left out"
    ]
    row = make_row("ours", [r for r in records if r["seed"] in (1, 2, 4)], "name")
    assert row.left_out == ["encoding tree: only seeds [4], none of which plain has"]


def test_pooling_by_bound_is_the_second_figure(make_record):
    records = [make_record(hypervolume_by_bound={"dp": 0.11, "tpr": 0.12})]
    assert make_row("ours", records, "bound").mean("dp") == 0.11
    assert make_row("ours", records, "name").mean("dp") == 0.4


def test_nothing_ran_no_row(make_record):
    assert make_row("ours", [make_record(error="No.")], "name") is None
