"""What people see: never a wall, and names from data are only ever text."""

from functools import cache
from html.parser import HTMLParser

import numpy as np
import pytest
from tests.auditing.rows import audit, counts, rows

from apfex.plain import printable

NASTY = [
    "<script>alert(1)</script>",
    "\" onload='x'",
    "a|b\\|c",
    "👩‍🚀 émoji",
    "\u202eright-to-left",
    "שלום",
    "=SUM(A1)",
    "line\nbreak\x1b[31m",
    "$x_1$ *bold* `code`",
]


@cache
def nasty():
    decided = np.append(np.tile([0, 1, 1], 20 * len(NASTY)), np.ones(60, dtype=int))
    names = np.repeat([*NASTY, "better off"], 60)
    return audit(None, decided, sensitive_features={"g<b>| $\\frac$": names}, criteria="dp")


@cache
def many():
    generator = np.random.default_rng(0)
    table = {name: generator.integers(0, 6, 3000) for name in "abcde"}
    y, decided = generator.integers(0, 2, (2, 3000))
    return audit(y, decided, sensitive_features=table)


class Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.text, self.open = [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def parse(html):
    parser = Tags()
    parser.feed(html)
    assert not parser.open
    return parser


def test_a_terminal_gets_a_screenful():
    text = str(many())
    lines = text.splitlines()
    assert len(lines) <= 30
    assert max(map(len, lines[:23])) <= 140
    assert "24 more in .gaps" in text
    assert "more in .groups" in text


def test_the_worst_rows_come_first():
    y, decided, table, _ = rows(2000)
    decided = np.where(table["sex"] == "F", 0, decided)
    found = audit(y, decided, sensitive_features=table, criteria="dp")
    lines = str(found).splitlines()
    first = lines.index("Gaps") + 2
    verdicts = [line.split("  ")[-1].strip() for line in lines[first : first + 3]]
    assert verdicts == ["violation", "violation", "inconclusive"]


def test_groups_without_weight_are_not_said_to_fare_alike():
    given = {"sensitive_features": {"sex": ["F", "M"] * 50}, "criteria": "dp"}
    decided = [0, 1] * 50
    found = audit(None, decided, sample_weight=[0.0, 1.0] * 50, **given)
    assert "none, as far as groups have rows with weight" in str(found)
    assert "none, all fare alike" in str(audit(None, [0, 0, 1, 1] * 25, **given))


def test_names_are_never_cut_into_the_same():
    long = "a very long name of a level that goes on and on for far too long, "
    decided, names = np.tile([0, 0, 1, 1], 60), np.repeat([long + "one", long + "two", "c"], 80)
    decided[-80:] = 1
    for other in ("x", "y"):
        table = {"g": names, other: np.tile(["m", "n"], 120)}
        text = str(audit(None, decided, sensitive_features=table, criteria="dp"))
        assert long + "one" in text
        assert long + "two" in text
    alone = np.where(names == long + "two", "c", names)
    text = str(audit(None, decided, sensitive_features={"g": alone}, criteria="dp"))
    assert f"{long[:39]}…" in text


def test_control_characters_do_not_reach_the_terminal():
    text = str(nasty())
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert printable("a\nb\x1b[0m\u202e") == "a\\nb\\x1b[0m\\u202e"
    assert printable("👩‍🚀") == "👩‍🚀"
    assert printable("x" * 50, 10) == "x" * 9 + "…"


def test_wide_letters_keep_columns_in_line():
    decided, names = np.tile([0, 1, 1, 1], 60), np.repeat(["日本", "e\u0301", "👩‍🚀", "best"], 60)
    decided[-60:] = 1
    found = audit(None, decided, sensitive_features={"g": names}, criteria="dp")
    head, *lines = str(found).splitlines()[-4:]
    # Letters of two columns, marks of none, and three marks that make two columns.
    extra = {"日本": 2, "e\u0301": -1, "👩‍🚀": 1}
    for line in lines:
        name = line.split()[0].removeprefix("g=")
        assert line.index("60") + 2 + extra[name] == head.index("rows") + 4


def test_names_are_escaped_in_html():
    found = nasty()
    for html in (found.to_html(), found._repr_html_()):
        parsed = parse(html)
        known = {"section", "p", "table", "caption", "thead", "tbody", "tr", "th", "td", "bdi"}
        assert {tag for tag, _ in parsed.tags} <= known | {"ul", "li"}
        assert all(set(attrs) <= {"class", "scope", "data-verdict"} for _, attrs in parsed.tags)
        assert any("<script>alert(1)</script>" in text for text in parsed.text)
        assert any("שלום" in text for text in parsed.text)


def test_html_says_what_it_leaves_out():
    assert "24 more in .gaps" not in many().to_html()
    assert "22 more in .gaps" in many().to_html(max_rows=10)
    parsed = parse(many()._repr_html_())
    assert sum(tag == "tr" for tag, _ in parsed.tags) == 10 + 10 + 2


def test_markdown_keeps_names_in_their_cells():
    lines = [line for line in nasty().to_markdown(max_rows=20).splitlines() if line[:1] == "|"]
    tables = {8: [], 6: []}
    for line in lines:
        bars = sum(
            mark == "|" and (len(line[:at]) - len(line[:at].rstrip("\\"))) % 2 == 0
            for at, mark in enumerate(line)
        )
        tables[bars - 1].append(line)
    assert [len(rows) for rows in tables.values()] == [2 + 1, 2 + len(NASTY)]
    assert "<script>" not in "".join(lines)
    assert "\\`code\\`" in "".join(lines)


def test_frames_are_copies():
    y, decided, table, _ = rows()
    found = audit(y, decided, sensitive_features=table)
    frame = found.to_frame()
    assert frame.equals(found.gaps)
    frame.loc[0, "gap"] = 7
    assert found.gaps["gap"][0] != 7
    assert found.to_frame("groups").equals(found.groups)
    with pytest.raises(ValueError, match="table must be 'gaps' or 'groups', got 'rates'"):
        found.to_frame("rates")  # pyright: ignore[reportArgumentType]


def test_the_plot_has_labelled_axes():
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    ax = many().plot(max_rows=6)
    assert ax.get_xlabel()
    assert ax.get_ylabel()
    assert len(ax.get_yticklabels()) == 6
    labels = {text.get_text() for text in ax.get_legend().get_texts()}
    assert {"noise floor", "tolerance"} <= labels
    own = plt.subplots()[1]
    assert nasty().plot(own) is own
    own.figure.canvas.draw()  # a name is no formula
    plt.close("all")


def test_plot_says_what_is_missing(monkeypatch):
    decided, table = counts([50, 50], [10, 20])
    found = audit(None, decided, sensitive_features=table, criteria="dp")
    monkeypatch.setitem(__import__("sys").modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r'pip install "apfex\[plot\]"'):
        found.plot()
