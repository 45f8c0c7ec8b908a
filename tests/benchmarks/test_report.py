# pyright: reportMissingImports=false
import pytest
from front.plan import plan
from front.records import Run
from front.report import report


def keyed(records):
    return {Run(r["table"], r["seed"], r["method"]): r for r in records}


def printed(*records, own=("APFEx", "APFEx, trees"), asked=()):
    return report(keyed(records), ["heart", "adult"], own, asked)


def cells(text, *start):
    """Cells of the first line that starts so."""
    lines = ([c.strip() for c in line.strip("|").split("|")] for line in text.splitlines())
    return next(line for line in lines if line[: len(start)] == list(start))


@pytest.fixture
def records(make_record):
    """Two seeds of ours, of a blind rival, of one that reads the attribute, and of LinearPost."""
    given = {
        "APFEx": (0.4, False),
        "APFEx, trees": (0.45, False),
        "blind": (0.2, False),
        "seeing": (0.5, True),
        "LinearPost + our q": (0.1, False),
    }
    return [
        make_record(name, seed, scores={"dp": score, "tpr": score / 2}, needs_attribute=reads)
        for name, (score, reads) in given.items()
        for seed in (0, 1)
    ]


def test_the_default_form_is_compared_with_three_rivals(records):
    found = cells(printed(*records), "heart", "2", "dp", "APFEx")
    assert found[4:] == [
        *("0.4000", "blind 0.2000", "2.000 [2.000, 2.000]", "4.000 [4.000, 4.000]"),
        *("seeing 0.5000", "0.800 [0.800, 0.800]"),
    ]


def test_other_forms_come_below(records):
    text = printed(*records)
    default, others = text.split("## Other forms")
    assert "APFEx, trees" not in default
    assert cells(others, "heart", "2", "tpr", "APFEx, trees")[6].startswith("2.250")
    assert cells(others, "heart", "2", "dp", "APFEx, trees")[7] == "-"


def test_a_rival_that_lacks_a_seed_does_not_count_and_is_told(records, make_record):
    lucky = make_record("lucky", 0, scores={"dp": 0.9})
    text = printed(*records, lucky, asked=[Run("heart", seed, "lucky") for seed in (0, 1)])
    assert cells(text, "heart", "2", "dp", "APFEx")[8] == "seeing 0.5000"
    assert "- Did not run: lucky (seeds [1])" in text


def test_a_rival_that_failed_on_a_seed_does_not_count_and_is_told(records, make_record):
    lucky = make_record("lucky", 0, scores={"dp": 0.9})
    failed = make_record("lucky", 1, error="Stopped after 300 seconds.")
    text = printed(*records, lucky, failed)
    assert cells(text, "heart", "2", "dp", "APFEx")[8] == "seeing 0.5000"
    assert "- Could not run: lucky: Stopped after 300 seconds. (seeds [1])" in text
    assert cells(text, "lucky", "1")[2:4] == ["0.9000", "-"]


def test_all_methods_are_sorted_and_marked(records):
    section = printed(*records).split("## heart")[1]
    names = [
        line.split("|")[1].strip()
        for line in section.splitlines()
        if line[:2] == "| " and line[2] != "-"
    ]
    assert names[1:] == [
        *("seeing *", "APFEx, trees (o)", "APFEx (o)", "blind", "LinearPost + our q"),
    ]
    assert "4 groups, 3 of which count for true positive rates and 4 for false ones" in section
    assert section.endswith("Machine: a machine.")


def test_bounds_are_means_with_standard_errors(make_record):
    given = [{"0.02": [0.2, 0.04]}, {"0.02": [0.4, 0.02]}]
    records = [
        make_record("APFEx", seed, scores={"dp": 0.4}, within=within)
        for seed, within in enumerate(given)
    ]
    text = printed(*records).split("Asked for a bound, dp")[1]
    found = cells(text, "APFEx (o)")
    assert found[1:] == ["0.3000 +- 0.1000, 0.0300 +- 0.0100", "-", "-"]


def test_scores_of_made_tables_are_shares_of_the_best(make_record):
    record = make_record("APFEx", scores={"dp": 0.4})
    record["problems"]["dp"]["best"] = 0.5
    text = printed(record)
    assert cells(text, "heart", "1", "dp", "APFEx")[4] == "0.8000"
    assert "shares of the best" in text


def test_a_table_on_which_all_failed_is_still_told(make_record):
    assert "Could not run: APFEx: No." in printed(make_record("APFEx", error="No."))


def test_the_plan_multiplies_what_one_run_took_by_runs_and_folds(make_record):
    known = keyed([make_record("APFEx", 100, seconds=2.0)])
    wanted = [Run("heart", seed, method) for seed in range(3) for method in ("APFEx", "b")]
    lines = plan(known, wanted).splitlines()
    assert lines[:2] == ["heart | APFEx | 3 runs | 30 s", "heart | b | 3 runs | not known"]
    assert lines[2].startswith("30 core seconds")
