"""The committed report is what the committed records come to."""

import re

import pytest
from reproduction import pages

from apfex_reproduction.experiments import RecordFolder, results_hold, write_pack
from apfex_reproduction.experiments._whole import _SECONDS

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


ALLOWED = {"2509.13908", "0.02", "0.52", "1.0", "95%"}
"""Numbers that are settings or names, not results."""


def test_every_result_on_the_page_is_in_a_generated_part():
    """Outside of them there are no shares, decimals or percentages but settings."""
    prose = re.sub(r"<!-- (.+?) -->.*?<!-- end of \1 -->", "", PAGE, flags=re.DOTALL)
    prose = re.sub(r"```.*?```", "", prose, flags=re.DOTALL)
    found = set(re.findall(r"\d*\.\d+|\d+%|\d+ of (?:\d+|ten)|\d+ runs", prose))
    assert found <= ALLOWED


def test_the_page_opens_with_findings_and_ends_with_appendices():
    heads = re.findall(r"^## (.+)$", PAGE, flags=re.M)
    assert heads[:2] == ["What we found", "The claims of the paper"]
    assert PAGE.index("## Appendix") > PAGE.index("## Legend")


def test_each_of_the_17_claims_has_a_verdict():
    (block,) = re.findall(r"<!-- claims -->(.*?)<!-- end of claims -->", PAGE, flags=re.DOTALL)
    rows = [line.split(" | ") for line in block.splitlines() if re.match(r"\| \d+\. ", line)]
    assert [int(row[0].removeprefix("| ").split(".")[0]) for row in rows] == list(range(1, 18))
    words = {"holds", "holds in part", "does not hold", "cannot be told"}
    assert {row[1] for row in rows} <= words
    assert all(len(row[2]) > 40 for row in rows)  # and says why


def test_no_result_is_older_than_its_method():
    assert not {r["method"] for r in RECORDS if not results_hold(r)}


def test_omega_norms_and_strategies_of_every_column_are_on_record():
    """Of the columns and of all ablations."""
    for record in RECORDS:
        method = record["method"]
        if not method.startswith(("apfex", "mmamo-multi")) or method.endswith("-published"):
            continue
        assert record["course"]["omega"], method
        assert record["course"]["strategies"]
        assert record["constraints"] == 0


def test_planned_seconds_are_those_of_the_records():
    found = pages.mean_seconds(RECORDS)
    assert found.keys() == _SECONDS.keys()
    for kind, expected in _SECONDS.items():
        assert found[kind] == pytest.approx(expected, rel=0.15, abs=0.05), kind


def test_packing_keeps_what_still_holds_and_drops_what_does_not(tmp_path, monkeypatch):
    old = {"format": 1, "apfex": "0", "dataset": "heart", "split": "70/15/15", "seed": 0}
    old |= {"results": {}, "settings": {}}
    methods = ("always-0", "apfex-inter+pcp", "plain", "apfex-multi+pcp")
    packs, sweep = tmp_path / "packs", RecordFolder(tmp_path / "sweep")
    packs.mkdir()
    write_pack([old | {"method": method} for method in methods], packs / "tables-heart.jsonl")
    sweep.write(old | {"method": "apfex-multi+pcp", "revision": 3})
    monkeypatch.setattr(pages, "RECORDS", packs)
    pages.pack(sweep.path)
    kept = {r["method"]: r.get("revision", 1) for r in RecordFolder(packs).read()}
    assert kept == {"always-0": 1, "apfex-multi+pcp": 3}


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
