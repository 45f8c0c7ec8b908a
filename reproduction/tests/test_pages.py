"""The committed report is what the committed records come to."""

import re

import pytest
from reproduction import pages

RECORDS = pages.read()
PAGE = pages.PAGE.read_text(encoding="utf-8")


def test_all_runs_are_on_record():
    found = {(r["dataset"], r["split"], r["method"], r["seed"]) for r in RECORDS}
    assert not set(pages.expected_keys()) - found
    assert {r["seed"] for r in RECORDS} == set(range(10))


def test_every_result_has_its_flag():
    for record in RECORDS:
        assert record["results"], record["method"]
        assert all(isinstance(r["constant"], bool) for r in record["results"].values())


def test_no_gap_of_the_crossing_is_below_that_of_an_attribute():
    """Rates of a group are means of the rates of its cells, if none of them is left out."""
    for record in RECORDS:
        for result in record["results"].values():
            *single, crossing = result["gaps"].values()
            for criterion in ("dp", "tpr"):
                if "left_out" not in result:
                    most = max(gaps[criterion] for gaps in single)
                    assert crossing[criterion] >= most - 2e-6


def test_generated_parts_of_the_page_are_up_to_date():
    assert pages.filled(PAGE, pages.blocks(RECORDS)) == PAGE


@pytest.mark.slow
def test_generated_files_are_up_to_date():
    for name, text in pages.files(RECORDS).items():
        path = pages.PAGE.parent / name
        assert path.read_text(encoding="utf-8") == text, name


def test_a_page_without_a_part_is_refused():
    with pytest.raises(ValueError, match="must have a part between <!-- x -->"):
        pages.filled("nothing", {"x": "text"})


def test_links_of_the_page_lead_somewhere():
    for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", PAGE):
        assert (pages.PAGE.parent / target).exists(), target


def test_the_plain_accuracies_are_near_those_of_the_paper():
    """Adult by its best epoch, COMPAS by its last: within 0.01, as the page says."""
    for dataset, rule, printed in (("adult", "chosen", 0.8330), ("compas", "last", 0.6512)):
        runs = [
            record["results"][rule]["accuracy"]
            for record in RECORDS
            if (record["dataset"], record["split"], record["method"])
            == (dataset, "70/15/15", "plain")
        ]
        assert abs(sum(runs) / len(runs) - printed) < 0.01
