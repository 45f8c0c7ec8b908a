"""Who gains and who loses, for decisions that can be checked by hand."""

from itertools import product

import numpy as np
import pytest
from scipy.stats import binomtest


def make_rows(pairs):
    """Groups in which so many rows gain, and lose, the label 0; one row more changes nothing."""
    before, after, groups = [], [], []
    for place, (gained, lost) in enumerate(pairs):
        before += [1] * gained + [0] * lost + [0]
        after += [0] * gained + [1] * lost + [0]
        groups += [place] * (gained + lost + 1)
    return [before, after], {"group": groups}


@pytest.mark.parametrize("confidence", [0.9, 0.95])
def test_a_direction_is_clear_where_the_sign_test_says_so(decide, confidence):
    pairs = list(product(range(12), repeat=2))
    decided, people = make_rows(pairs)
    y = np.arange(len(decided[0])) % 2
    point = decide(decided, y, people, confidence=confidence)["points"][1]
    own = point["changes"]["group"]
    assert list(zip(own["gained"], own["lost"], strict=True)) == pairs
    for (gained, lost), told in zip(pairs, own["direction"], strict=True):
        changed = gained + lost
        clear = changed and binomtest(gained, changed).pvalue <= 1 - confidence
        assert told == (np.sign(gained - lost) if clear else 0)
    assert own["net_share"] == pytest.approx([(g - l) / (g + l + 1) for g, l in pairs])  # noqa: E741
    counted = [own["direction"].count(sign) for sign in (1, -1, 0)]
    assert [point["tally"][f"groups_{name}"] for name in ("gain", "lose", "same")] == counted
    assert point["tally"]["gained"] == sum(gained for gained, _ in pairs)
    assert point["levelled_down"] == []  # some gain


@pytest.mark.parametrize(
    ("pairs", "levelled"),
    [
        ([(0, 9), (1, 0), (0, 2)], ["group=0"]),  # one that gains is no clear gain
        ([(0, 9), (9, 0), (0, 2)], []),
        ([(0, 9), (0, 0), (1, 12)], ["group=0", "group=2"]),
        ([(0, 2), (0, 0), (0, 3)], []),
    ],
)
def test_levelled_down_means_that_nobody_clearly_gains(decide, pairs, levelled):
    decided, people = make_rows(pairs)
    y = np.arange(len(decided[0])) % 2
    point = decide(decided, y, people)["points"][1]
    assert point["levelled_down"] == levelled
    told = [one["data"]["groups"] for one in point["caveats"] if "against point 0" in one["text"]]
    assert told == ([levelled] if levelled else [])


def test_changes_are_counted_by_every_grouping(decide):
    people = {"sex": ["F", "F", "M", "M", "M"], "race": ["A", "B", "A", "B", "B"]}
    before, after = [1, 0, 0, 1, 0], [0, 1, 0, 0, 0]
    changes = decide([before, after], [0, 1, 0, 1, 0], people)["points"][1]["changes"]
    assert changes["sex"]["gained"] == [1, 1]
    assert changes["race"]["lost"] == [0, 1]
    assert changes["sex x race"]["gained"] == [1, 0, 0, 1]
    assert changes["sex x race"]["net_share"] == [1, -1, 0, 0.5]
