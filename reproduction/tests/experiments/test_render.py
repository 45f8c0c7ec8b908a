"""Tables as people see them: whole, aligned, and names from data only ever text."""

import re
from html.parser import HTMLParser

import pytest
from reproduction.tests.experiments.invented import record, result
from rich.cells import cell_len

from apfex_reproduction.experiments._compare import compare_front
from apfex_reproduction.experiments._grid import number, plain
from apfex_reproduction.experiments._html import to_html
from apfex_reproduction.experiments._labels import COLUMNS
from apfex_reproduction.experiments._latex import to_latex
from apfex_reproduction.experiments._layouts import comparison_grid, runs_grid, whole_grid
from apfex_reproduction.experiments._markdown import to_markdown
from apfex_reproduction.experiments._tables import make_table
from apfex_reproduction.experiments._text import to_text

HOSTILE = [
    "<script>alert(1)</script>",
    "a|b\\|c",
    "\\input{/etc/passwd} $x_1^2$ 50% #1 & ~",
    "[0pt] *",
    "line\nbreak\x1b[31m",
    "\" onload='x'",
    "\u202eright-to-left שלום 字",
    "`code` _under_ {brace}",
]


def small():
    """Two runs of a model, two of a constant."""
    pair = [(0.8, 0.1, 0.3), (0.9, 0.2, None)]
    return [
        *(record("plain", seed, {"chosen": result(*one)}) for seed, one in enumerate(pair)),
        *(record("always-1", s, {"chosen": result(0.46, 0, 0, constant=True)}) for s in (0, 1)),
    ]


def hostile():
    attributes = (HOSTILE[0], HOSTILE[2])
    return [
        record(method, 0, {"nearest": result(attributes=attributes)}, attributes=attributes)
        for method in ("plain", *HOSTILE)
    ]


def full(number=1):
    methods = ("always-0", "always-1", *COLUMNS[number], "mmamo-1-published")
    return [
        record(m, s, {"nearest": result(constant=m == "apfex-1")})
        for m in methods
        for s in range(10)
    ]


TABLES = {
    "small": make_table(small(), 2, "heart"),
    "hostile": make_table(hostile(), 1, "heart"),
    "full": make_table(full(), 1, "heart"),
}
GRIDS = [
    *TABLES.values(),
    *map(runs_grid, TABLES.values()),
    comparison_grid(compare_front(hostile())),
]


def test_a_small_table_in_markdown():
    table = make_table(small(), 2, "heart", methods=["always-1", "plain", "apfex-multi"])
    title, _, *rows = to_markdown(table).splitlines()[:9]
    assert title == (
        "**Table 2 on heart: split 70/15/15 (207 training / 45 validation / 45 test rows), model "
        "chosen by 'nearest'; Attr1 is age, Attr2 is sex.**"
    )
    gaps = "age DDP | age DEO | sex DDP | sex DEO | age x sex DDP | age x sex DEO"
    zero = " | ".join([".000 ± .000"] * 6)
    half = " | ".join([".150 ± .050 | .300 ± .000 (1)"] * 3)
    empty = " |" + "  |" * 13
    assert rows == [
        f"| Method | Acc | {gaps} | Bal | Pos | Worst | Seeds | Flag | Paper: Acc / DDP / DEO |",
        "| --- |" + " ---: |" * 13,
        f"| *Constant predictors*{empty}",
        f"| Always 1 | .460 ± .000 | {zero} | .460 ± .000 | .400 ± .000 | .460 ± .000 | 2 | "
        "CONST 2/2 |  |",
        f"| *The paper's columns*{empty}",
        f"| Baseline | .850 ± .050 | {half} | .850 ± .050 | .400 ± .000 | "
        ".850 ± .050 | 2 | 0/2 | .8219 ± .0560 / .2589 ± .0772 / .2292 ± .1042 (E5) |",
        f"| APFEx (Multi, L\\_DP &amp; L\\_TPR) |{' – |' * 10} 0 of 2 | not run | "  # noqa: RUF001
        ".7541 ± .0573 / .2042 ± .1747 / .5355 ± .4183 |",
    ]


IN_A_TERMINAL = """
                                   Attr1       Attr2      crossing
Method                      Acc   DDP   DEO   DDP   DEO   DDP   DEO   Bal   Pos Worst Seeds CONST
-------------------------------------------------------------------------------------------------
Constant predictors
Always 1                   .460  .000  .000  .000  .000  .000  .000  .460  .400  .460     2 CONST
                          ±.000 ±.000 ±.000 ±.000 ±.000 ±.000 ±.000 ±.000 ±.000 ±.000         2/2

The paper's columns
Baseline                   .850  .150  .300  .150  .300  .150  .300  .850  .400  .850     2   0/2
  paper .8219/.2589/.2292 ±.050 ±.050 ±.000 ±.050 ±.000 ±.050 ±.000 ±.050 ±.000 ±.050
  (E5)                                  (1)         (1)         (1)
"""


def test_a_small_table_in_a_terminal():
    table = make_table(small(), 2, "heart", methods=["always-1", "plain"])
    assert IN_A_TERMINAL in to_text(table)


@pytest.mark.parametrize("width", [100, 120])
@pytest.mark.parametrize("number", [1, 2])
def test_a_whole_table_is_readable_in_a_terminal(number, width):
    table = make_table(full(number), number, "heart")
    for text in (to_text(table, width), to_text(runs_grid(table), width)):
        assert max(map(cell_len, text.splitlines())) <= width


def test_text_is_never_cut():
    table = TABLES["full"]
    text = " ".join(to_text(table, 40).split())
    for note in whole_grid(table).notes[1:]:
        assert note in text


@pytest.mark.parametrize("grid", GRIDS)
def test_markdown_is_well_formed(grid):
    lines = to_markdown(grid).splitlines()
    body = [line for line in lines if line.startswith("|")]
    columns = len(re.split(r"(?<!\\)\|", body[0])) - 2
    assert all(len(re.split(r"(?<!\\)\|", line)) - 2 == columns for line in body)
    assert set(body[1]) <= set("|-: ")
    others = [line for line in lines if line and line not in body]
    assert others[0].startswith("**")
    assert all(line.startswith("- ") for line in others[1:])
    assert lines.index(body[-1]) - lines.index(body[0]) == len(body) - 1  # one block


def test_names_cannot_leave_their_cell_in_markdown():
    text = to_markdown(TABLES["hostile"])
    assert "<script" not in text
    assert "&lt;script&gt;" in text
    assert r"a\|b\\\|c" in text
    assert r"\`code\` \_under\_" in text


class Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.attributes, self.open = set(), set(), []

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.mark.parametrize("grid", GRIDS)
def test_html_is_whole_and_only_a_table(grid):
    parser = Tags()
    parser.feed(to_html(grid))
    assert not parser.open
    known = "section table caption thead tbody tr th td ul li em"
    assert parser.tags <= set(known.split())
    assert parser.attributes <= {"class", "scope", "colspan"}


@pytest.mark.parametrize("grid", GRIDS)
def test_html_rows_are_equally_wide(grid):
    page = to_html(grid)
    rows = re.findall(r"<tr.*?</tr>", page, flags=re.DOTALL)
    spans = [
        sum(int(span or 1) for span in re.findall(r'<t[hd](?: colspan="(\d+)")?[ >]', row))
        for row in rows
    ]
    assert len(set(spans)) == 1


def without_escapes(text):
    return re.sub(r"\\[{}\\$&#%_]", "", text)


@pytest.mark.parametrize("grid", GRIDS)
def test_latex_is_balanced(grid):
    text = to_latex(grid)
    bare = without_escapes(text)
    depth = 0
    for mark in bare:
        depth += (mark == "{") - (mark == "}")
        assert depth >= 0
    assert depth == 0
    assert bare.count("$") % 2 == 0
    begun = re.findall(r"\\begin\{(.*?)\}", text)
    assert begun == re.findall(r"\\end\{(.*?)\}", text)[::-1] == ["table*", "tabular"]
    assert not re.search(r"[#%^~_]", bare)
    assert all(mark <= "\xff" for mark in text)


@pytest.mark.parametrize("grid", GRIDS)
def test_latex_rows_are_equally_wide(grid):
    lines = to_latex(grid).splitlines()
    columns = len(re.findall(r"\{tabular\}\{(lr*)\}", "\n".join(lines))[0])
    for line in lines[lines.index(r"\toprule") + 1 : lines.index(r"\bottomrule")]:
        if line.startswith((r"\midrule", r"\cmidrule")):
            continue
        assert line.endswith(r" \\")
        cells = re.split(r"(?<!\\)&", line)
        wide = sum(int((re.findall(r"\\multicolumn\{(\d+)\}", cell) or [1])[0]) for cell in cells)
        assert wide == columns
        assert not line.startswith(("[", "*"))  # an argument of the line before


def test_latex_obeys_no_command_in_a_name():
    text = to_latex(TABLES["hostile"])
    commands = set(re.findall(r"\\([a-zA-Z]+)", text))
    assert "input" not in commands
    assert r"\textbackslash{}input\{/etc/passwd\}" in text
    assert "U+5B57" in text


@pytest.mark.parametrize("grid", GRIDS)
def test_a_terminal_obeys_no_name(grid):
    text = to_text(grid)
    assert all(mark.isprintable() or mark == "\n" for mark in text)
    assert r"\x1b" in plain("\x1b[31m")


def test_columns_stay_aligned_with_wide_letters():
    records = [record(name, 0, {"nearest": result()}) for name in ("字字字", "abc")]
    lines = to_text(make_table(records, 1, "heart")).splitlines()
    found = [line for line in lines if line.startswith(("字", "abc"))]
    assert len({cell_len(line) for line in found}) == 1


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.8, ".800"), (1.0, "1.000"), (0.0, ".000"), (-0.0001, ".000"), (-0.057, "-.057")],
)
def test_numbers_are_short(value, text):
    assert number(value) == text
    assert number(None) == "–"  # noqa: RUF001
