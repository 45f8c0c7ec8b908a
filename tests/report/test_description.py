"""A damaged description is refused by the name of the part, and the old page stays."""

import json
from copy import deepcopy

import pytest

from apfex import audit
from apfex.report import write_front_page

DAMAGE = [
    (("points", 0, "rates"), 5, r"points\[0\].rates must be a mapping, got 5"),
    (("points", 1, "gaps"), [], r"points\[1\].gaps must have 'dp' by"),
    (("points", 1, "gaps", 0, "verdict"), "fair", r"points\[1\].gaps\[0\].verdict must be one of"),
    (("points", 0, "gaps", 0, "ends"), [{"group": "a", "rate": 0.5}], "ends must name two groups"),
    (("points", 0, "error"), "low", r"points\[0\].error must be a number or null, got 'low'"),
    (("points", 2, "point"), 7, r"points\[2\].point must be 2, got 7"),
    (("points", 0, "caveats"), [{}], r"points\[0\].caveats\[0\].code must be there, got nothing"),
    (
        ("points", 0, "caveats"),
        [{"code": "a", "level": "note", "text": "b", "data": {"groups": [3]}}],
        r"points\[0\].caveats\[0\].data.groups\[0\] must be text, got 3",
    ),
    (("points", 0, "tally"), {}, r"points\[0\].tally.gained must be there"),
    (("points", 0, "changes", "sex", "direction"), [2, 0], "direction must be -1, 0 or 1"),
    (("points", 0, "changes", "sex", "lost"), [2], r"changes.sex.lost must have 2 numbers"),
    (("points", 0, "rates", "favored", "groupings", "sex", "rate"), [], "rate must have 2 numbers"),
    (("points", 0, "rates", "favored", "groupings"), {}, r"rates.favored.groupings.*must be there"),
    (("points", 0, "validation", "gaps"), {"dp": 3}, "validation.gaps.dp must be a mapping"),
    (("points",), [], "points must not be empty"),
    (("points",), None, "points must be a list, got None"),
    (("groupings",), [], "groupings must not be empty"),
    (("criteria",), [], "criteria must not be empty"),
    (("settings",), {}, "settings.tolerance must be there"),
    (("settings", "tolerance"), None, "settings.tolerance must be a number, got None"),
    (("chosen",), 99, "chosen must be the place of a point, got 99"),
    (("names",), {"a": 3}, "names.a must be text, got 3"),
    (("history",), {"objectives": []}, "history.members must be there"),
]


def damaged(described, path, value):
    again = deepcopy(described)
    *way, last = path
    part = again
    for step in way:
        part = part[step]
    part[last] = value
    return again


@pytest.mark.parametrize(("path", "value", "message"), DAMAGE)
def test_damage_is_named_and_nothing_is_replaced(front, tmp_path, path, value, message):
    page = tmp_path / "report.html"
    page.write_text("the good page")
    with pytest.raises(ValueError, match=message):
        write_front_page(damaged(front.described, path, value), page)
    assert page.read_text() == "the good page"
    assert list(tmp_path.iterdir()) == [page]


@pytest.mark.parametrize("part", ["title", "favorable", "rates", "groupings", "points", "baseline"])
def test_no_part_may_be_missing(front, tmp_path, part):
    left = {name: value for name, value in front.described.items() if name != part}
    with pytest.raises(ValueError, match=f"whole.* {part} must be there, got nothing"):
        write_front_page(left, tmp_path / "report.html")


def test_the_data_of_a_page_make_it_again(front, audit_data, tmp_path):
    page = tmp_path / "report.html"
    assert write_front_page(json.loads(json.dumps(front.described)), page).exists()
    result = audit([0, 1] * 60, [0, 1, 1] * 40, sensitive_features={"sex": ["F", "M"] * 60})
    described = audit_data(result)
    assert write_front_page(described, page).exists()
    del described["points"][0]["worst"]
    with pytest.raises(ValueError, match="worst must be there"):
        write_front_page(described, page)


def test_a_description_of_an_older_version_is_still_shown(front, tmp_path):
    old = {name: part for name, part in front.described.items() if name != "names"}
    assert write_front_page(old, tmp_path / "report.html").exists()
