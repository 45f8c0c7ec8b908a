"""From records to rows: nothing lost, nothing averaged away."""

import json
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reproduction.tests.experiments.invented import SPLIT, record, result

from apfex_reproduction.experiments._labels import COLUMNS, CONSTANTS
from apfex_reproduction.experiments._layouts import compact_grid, runs_grid, whole_grid
from apfex_reproduction.experiments._rows import Cell, grouping_at, groupings_of
from apfex_reproduction.experiments._tables import make_table

SHARES = st.floats(0, 1).map(lambda value: round(value, 6))


def everything(seeds=3, dataset="heart", number=1):
    """Records of every method of a table, and of some that it does not know."""
    draw = random.Random(0)

    def some(constant=False):
        return result(draw.random(), draw.random(), draw.random(), constant=constant)

    methods = (*CONSTANTS, *COLUMNS[number], "mmamo-1-published", "apfex-inter+alone", "new")
    return [
        record(
            method,
            seed,
            {"chosen": some(method in CONSTANTS)}
            if method in (*CONSTANTS, "plain") or method.startswith("searchfair")
            else {rule: some() for rule in ("nearest", "fairest", "last")},
            dataset,
        )
        for method in methods
        for seed in range(seeds)
    ]


@given(st.lists(SHARES, min_size=1, max_size=12))
def test_mean_and_spread_are_numpys(values):
    records = [
        record("plain", seed, {"chosen": result(value, value)}) for seed, value in enumerate(values)
    ]
    row = make_table(records, 1, "heart").row("plain")
    for cell in (row.cell("accuracy"), row.cell("dp", "age x sex")):
        assert cell.values == tuple(values)
        assert cell.mean == pytest.approx(np.mean(values))
        assert cell.spread == pytest.approx(np.std(values, ddof=0), abs=1e-12)


@given(st.randoms(use_true_random=False))
def test_the_order_of_records_does_not_matter(shuffle):
    records = everything()
    mixed = list(records)
    shuffle.shuffle(mixed)
    assert make_table(mixed, 1, "heart") == make_table(records, 1, "heart")


def test_records_read_back_from_json_give_the_same_table():
    records = everything()
    assert make_table(json.loads(json.dumps(records)), 1, "heart") == make_table(
        records, 1, "heart"
    )


@pytest.mark.parametrize("number", [1, 2])
def test_every_method_with_records_appears_once_and_the_papers_in_its_order(number):
    table = make_table(everything(number=number), number, "heart")
    methods = [row.method for row in table.rows]
    assert len(set(methods)) == len(methods)
    assert tuple(methods[:2]) == CONSTANTS
    assert tuple(row.method for row in table.rows if row.part == "paper") == COLUMNS[number]
    strangers = {row.method for row in table.rows if row.part == "variants"}
    assert strangers == {"new", "mmamo-1-published" if number == 1 else "apfex-inter+alone"}


@pytest.mark.parametrize("number", [1, 2])
def test_every_row_has_a_flag_in_every_layout(number):
    table = make_table(everything(number=number)[4:], number, "heart")
    for layout in (whole_grid, compact_grid, runs_grid):
        grid = layout(table)
        names = [column.name for column in grid.columns]
        at = names.index("CONST" if "CONST" in names else "Flag")
        lines = [line for _, lines in grid.sections for line in lines]
        assert len(lines) == len(table.rows)
        assert all(line.cells[at] for line in lines)
        assert all(len(line.cells) == len(grid.columns) for line in lines)


def test_a_flag_counts_constant_runs():
    runs = [record("apfex-1", seed, {"nearest": result(constant=seed < 3)}) for seed in range(10)]
    table = make_table([*runs, record("plain")], 1, "heart")
    assert table.row("apfex-1").flag == "CONST 3/10"
    assert table.row("plain").flag == "0/1"
    assert table.row("mmamo-1").flag == "not run"


def test_nothing_is_bold():
    from apfex_reproduction.experiments._html import to_html
    from apfex_reproduction.experiments._latex import to_latex
    from apfex_reproduction.experiments._markdown import to_markdown

    table = make_table(everything(), 1, "heart")
    assert to_markdown(table).count("**") == 2  # the title's
    assert "textbf" not in to_latex(table)
    assert "<b>" not in to_html(table)
    assert "<strong>" not in to_html(table)


def test_missing_seeds_and_methods_are_shown_as_such():
    records = [record("plain", seed) for seed in range(10)]
    records += [record("apfex-2", seed, {"nearest": result()}) for seed in range(7)]
    table = make_table(records, 1, "heart")
    seeds = {
        line.cells[0]: line.cells[-3] for _, some in whole_grid(table).sections for line in some
    }
    assert seeds["Baseline"] == "10"
    assert seeds["APFEx (Attr2, L_DP & L_TPR)"] == "7 of 10"
    assert seeds["APFEx (Attr1, L_DP & L_TPR)"] == "0 of 10"


def test_asked_seeds_count_as_missing_and_others_are_passed_over():
    records = [record("plain", seed, {"chosen": result(seed / 10)}) for seed in (1, 2, 9)]
    table = make_table(records, 1, "heart", seeds=range(3))
    assert table.seeds == (0, 1, 2)
    assert table.row("plain").cell("accuracy").values == (0.1, 0.2)
    with pytest.raises(ValueError, match=r"and seeds \[5\]"):
        make_table(records, 1, "heart", seeds=[5])


def test_rows_can_be_named_in_any_order_with_records_or_without():
    wanted = ["plain", "apfex-inter+alone", "always-1", "front"]
    table = make_table(everything(number=2), 2, "heart", methods=wanted)
    assert [row.method for row in table.rows] == wanted
    assert [row.part for row in table.rows] == ["paper", "variants", "constants", "front"]


@pytest.mark.parametrize(
    ("rules", "asked", "shown"),
    [
        (("nearest", "fairest", "last"), "fairest", "fairest"),
        (("nearest", "fairest", "last"), "last", "last"),
        (("chosen",), "last", "chosen"),
        (("nearest", "fairest"), "last", "nearest"),
        (("nearest", "chosen"), "fairest", "chosen"),
    ],
)
def test_a_rule_falls_back_to_the_one_model_then_to_the_nearest(rules, asked, shown):
    results = {rule: result(at / 10) for at, rule in enumerate(rules, start=1)}
    row = make_table([record("mmamo-1", 0, results)], 1, "heart", rule=asked).row("mmamo-1")
    assert row.rules == (shown,)
    assert row.cell("accuracy").mean == results[shown]["accuracy"]


def test_a_fallback_is_noted_unless_there_is_one_model_only():
    records = [record("roc", 0, {"nearest": result()}), record("plain")]
    notes = whole_grid(make_table(records, 1, "heart", rule="last")).notes
    told = [note for note in notes if note.startswith("Without a model")]
    shown = "ROC (post-processing, NSGA-II), Attr1"
    assert told == [f"Without a model chosen by 'last', shown at 'nearest': {shown}."]


def test_gaps_that_cannot_be_estimated_are_left_out_and_counted():
    records = [
        record("plain", seed, {"chosen": result(tpr=tpr)})
        for seed, tpr in enumerate([0.1, None, 0.3])
    ]
    table = make_table(records, 1, "heart")
    cell = table.row("plain").cell("tpr", "sex")
    assert (cell.mean, cell.spread) == (pytest.approx(0.2), pytest.approx(0.1))
    assert cell.values == (0.1, None, 0.3)
    line = whole_grid(table).sections[1][1][0]
    assert ".200 ± .100 (2)" in line.cells
    assert "– .300" not in line.cells  # noqa: RUF001
    assert Cell((None, None)).mean is None


def test_groups_left_out_are_told_by_test_set_not_by_method():
    left = {"left_out": {"age x sex": {"tpr": 1}}}
    records = [
        record(method, seed, {"chosen": result(**(left if seed < 2 else {}))})
        for method in ("plain", "always-0")
        for seed in range(5)
    ]
    table = make_table(records, 1, "heart")
    assert table.left_out == {("tpr", "age x sex"): 2}
    notes = " ".join(whole_grid(table).notes)
    assert "DEO on age x sex: in 2 of 5 test sets a group has no rows" in notes


def test_our_front_has_a_part_of_its_own():
    results = {"nearest": result(0.60), "fairest": result(0.70)}
    found = [record("front", 0, results), record("plain")]
    rows = {rule: make_table(found, 2, "heart", rule=rule).row("front") for rule in RULES}
    assert rows["nearest"].cell("accuracy").mean == 0.60
    assert rows["fairest"].cell("accuracy").mean == 0.70
    assert rows["last"].rules == ("nearest",)
    assert rows["nearest"].label == "This library's front"
    assert rows["nearest"].part == "front"


RULES = ("nearest", "fairest", "last")


def test_the_papers_numbers_stand_beside_with_their_marks():
    table = make_table([record("plain")], 1, "heart")
    lines = {line.cells[0]: line.cells[-1] for line in whole_grid(table).sections[1][1]}
    baseline = ".8219 ± .0560 / .2589 ± .0772 / .2292 ± .1042 (E5)"
    assert lines["Baseline"] == baseline
    one = ".5838 ± .0727 / .0556 ± .0724 / .0241 ± .1667 (F7a)"
    assert lines["APFEx (Attr1, L_DP & L_TPR)"] == one
    assert lines["ROC (post-processing, NSGA-II), Attr1"].endswith("± .1376 (F6a)")
    notes = whole_grid(table).notes
    for mark in ("E5: ", "F4 (all", "F6a: ", "F7a: "):
        assert sum(note.startswith(mark) for note in notes) == 1
    assert not any(note.startswith("F1:") for note in notes)  # no row of Table 1 has it


def test_what_the_authors_of_rivals_print_is_told_beneath():
    adult = whole_grid(make_table([record("plain", dataset="adult")], 1, "adult")).notes
    assert (
        "The authors of MAMO print for S-MAMO (Attr1, L_DP): accuracy .8179 ± .0053, DDP .0885 ± "
        in (" ".join(adult))
    )


def test_the_gaps_that_a_method_works_on_are_marked():
    records = [record("smamo-2-tpr", 0, {"nearest": result()}), record("plain")]
    table = make_table(records, 1, "heart")
    lines = {line.cells[0]: line for line in whole_grid(table).sections[1][1]}
    names = [f"{column.group} {column.name}" for column in whole_grid(table).columns]
    assert [names[at] for at in lines["S-MAMO (Attr2, L_TPR)"].marked] == ["sex DEO"]
    assert not lines["Baseline"].marked
    assert not lines["M-MAMO (Attr1, L_DP & L_TPR)"].marked  # not run


def test_per_run_values_show_two_kinds_of_runs():
    accuracies = [0.539, 0.85, 0.539]
    records = [
        record("apfex-1", seed, {"nearest": result(value, constant=value < 0.6)})
        for seed, value in enumerate(accuracies)
    ]
    grid = runs_grid(make_table([*records, record("plain", 3)], 1, "heart"))
    label = "APFEx (Attr1, L_DP & L_TPR)"
    line = next(line for line in grid.sections[1][1] if line.cells[0] == label)
    assert line.cells == (label, ".539C", ".850", ".539C", "", ".643", "2/3")


def test_per_run_gaps_are_the_crossings_unless_named():
    each = zip(groupings_of("as"), (0.1, 0.2, 0.3), strict=True)
    gaps = {by: {"dp": value, "tpr": None} for by, value in each}
    records = [record("plain", 0, {"chosen": result(gaps=gaps)}, attributes=tuple("as"))]
    table = make_table(records, 1, "heart")
    assert runs_grid(table, "dp").sections[1][1][0].cells[1] == ".300"
    assert runs_grid(table, "dp", "s").sections[1][1][0].cells[1] == ".200"
    with pytest.raises(ValueError, match="by must be one of a, s, a x s, got 'z'"):
        runs_grid(table, "dp", "z")
    with pytest.raises(ValueError, match=r"name must be one of accuracy, .* got 'auc'"):
        runs_grid(table, "auc")


def test_places_are_found_with_one_attribute_and_with_three():
    assert groupings_of(["sex"]) == ("sex",)
    assert grouping_at("second", ["sex"]) == "sex"
    assert groupings_of(["a", "b", "c"]) == ("a", "b", "c", "a x b x c")
    assert grouping_at("crossing", ["a", "b", "c"]) == "a x b x c"
    table = make_table([record("plain", attributes=("a", "b", "c"))], 1, "heart")
    groups = [column.group for column in compact_grid(table).columns if column.name == "DDP"]
    assert groups == ["Attr1", "Attr2", "Attr3", "crossing"]
    alone = compact_grid(make_table([record("plain", attributes=("a",))], 1, "heart"))
    assert [column.group for column in alone.columns if column.name == "DDP"] == ["Attr1"]


def test_other_data_sets_and_splits_are_passed_over():
    records = [record("plain"), record("plain", dataset="german"), record("plain", split="mamo")]
    assert len(make_table(records, 1, "heart", split="mamo").row("plain").seeds) == 1
    with pytest.raises(ValueError, match=r"No records of dataset 'adult'.*german \(70/15/15\)"):
        make_table(records, 1, "adult")
    with pytest.raises(ValueError, match="there are records of nothing"):
        make_table([], 1, "adult")


def test_two_records_of_one_run_must_agree():
    one = record("plain")
    again = one | {"cpu_seconds": 5.0}
    assert make_table([one, again], 1, "heart").row("plain").seeds == (0,)
    other = record("plain", results={"chosen": result(0.1)})
    with pytest.raises(ValueError, match=f"'plain' on 'heart', split '{SPLIT}', seed 0; keep one"):
        make_table([one, other], 1, "heart")


def test_bad_questions_are_answered_with_what_there_is():
    with pytest.raises(ValueError, match=r"number must be one of \[1, 2\], got 3"):
        make_table([record("plain")], 3, "heart")
    with pytest.raises(ValueError, match=r"no result for rule 'nearest', only for \['last'\]"):
        make_table([record("plain", results={"last": result()})], 1, "heart")
    mixed = [record("plain"), record("plain", 1, attributes=("race",))]
    with pytest.raises(ValueError, match="differ in their attributes"):
        make_table(mixed, 1, "heart")
    with pytest.raises(KeyError, match="no row 'nobody'"):
        make_table([record("plain")], 1, "heart").row("nobody")
