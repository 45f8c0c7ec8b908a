"""What a review board does with the page: read, choose, sign, print, take tables away."""

import csv
import json

import numpy as np
import pandas as pd
import pytest
from tests.report.conftest import HOSTILE
from tests.report.test_browser import (  # noqa: F401 - fixtures
    audit_page,
    folder,
    open_page,
    percent,
    report,
    shown_point,
)

from apfex import audit
from apfex.report import write_audit_page, write_front_page


def changed(front, **parts):
    return json.loads(json.dumps(front.described)) | parts


def saved(page, button):
    with page.expect_download() as download:
        button.click()
    return download.value


def rows_of(page, section, nth=0):
    """The rows of a table, as a spreadsheet reads them."""
    button = page.locator(f"{section} button.csv").nth(nth)
    text = saved(page, button).path().read_text(encoding="utf-8-sig")
    return list(csv.reader(text.splitlines()))


def test_the_first_screen_is_the_summary(open_page, report, front):  # noqa: F811
    page = open_page(report)
    point = front.described["points"][front.described["chosen"]]
    headline = page.locator("#headline")
    assert headline.inner_text() == point["summary"]["headline"]
    assert headline.bounding_box()["y"] < 300
    titles = [one["title"] for one in point["summary"]["parts"]]
    assert page.locator("#summary dt").all_inner_texts() == titles
    assert "What was decided" in titles
    tops = [
        page.locator(f"#{name}").bounding_box()["y"]
        for name in ("now", "front", "gaps", "points", "sign", "history")
    ]
    assert tops == sorted(tops)  # training curves last


def test_nothing_stands_against_it_never_beside_a_violation(open_page, front, folder):  # noqa: F811
    """Even if somebody has taken the caveats out."""
    described = changed(front)
    ends = {"within tolerance": (0.0, 0.0), "violation": (0.9, 1.0), "inconclusive": (0.0, 1.0)}
    for place, point in enumerate(described["points"]):
        point["caveats"] = []
        for number, gap in enumerate(point["gaps"]):
            others = {1: "violation", 2: "inconclusive"} if number == 0 else {}
            gap["verdict"] = others.get(place, "within tolerance")
            gap["lower"], gap["upper"] = ends[gap["verdict"]]
    page = open_page(write_front_page(described, folder / "bare.html"))
    said = []
    for place in ("0", "1", "2"):
        page.select_option("#point", place)
        said.append(page.locator("#caveats").inner_text())
    assert "Nothing stands against it" in said[0]
    assert "Nothing" not in said[1]
    assert "A gap exceeds the limit" in said[1]
    assert "Nothing" not in said[2]
    assert "too little data to tell" in said[2]


def test_a_front_that_is_of_no_use_is_proposed_nowhere(open_page, front, folder):  # noqa: F811
    page = open_page(write_front_page(changed(front, trivial=True), folder / "trivial.html"))
    assert "not usable" in page.locator("#now-title").inner_text()
    assert "violation" in page.locator("#headline").get_attribute("class")
    text = "No usable model: every model is constant."
    conclusion = {"code": "no_usable_model", "text": text}
    described = changed(front, trivial=True, conclusion=conclusion)
    page = open_page(write_front_page(described, folder / "conclusion.html"))
    assert page.locator("#headline").inner_text() == text


def test_caveats_of_the_data_are_in_the_list(open_page, front, folder):  # noqa: F811
    leak = {"code": "leak", "level": "warning", "text": "note gives it away.", "data": {}}
    described = changed(front)
    for point in described["points"]:
        point["caveats"].append(leak)
    page = open_page(write_front_page(described, folder / "leak.html"))
    assert page.locator("#caveats").inner_text().count("note gives it away.") == 1


def test_the_constant_decision_is_in_tables_and_plot(open_page, report, front):  # noqa: F811
    page, constant = open_page(report), front.described["constant"]
    name = f"“{constant['label']}” for everybody"
    last = page.locator("#points tbody tr").last.inner_text().split("\t")
    assert last[0] == name
    assert percent(constant["error"]) in last
    assert name in page.locator("#compare-table thead").inner_text()
    assert name in page.locator("#gaps-table thead").inner_text()
    assert name in page.locator("#plot .constant-mark title").text_content()
    point = front.described["points"][0]
    assert f"{100 * point['gain']:+.1f} pts" in page.locator("#points tbody tr").first.inner_text()


def test_axes_are_those_of_the_plot_of_a_front(open_page, report):  # noqa: F811
    labels = open_page(report).locator("#plot .axes .label").all_text_contents()
    assert labels == ["gap in selection rate", "error on the test rows"]


def test_gaps_say_how_many_groups_are_compared(open_page, report, front):  # noqa: F811
    page = open_page(report)
    gaps = front.described["points"][front.described["chosen"]]["gaps"]
    found = {row[7] for row in map(list, rows_of(page, "#gaps-table")[1:])}
    _, *rows = rows_of(page, "#gaps-table")
    head = rows_of(page, "#gaps-table")[0]
    place = head.index("Groups compared")
    assert found
    assert {row[place] for row in rows} == {
        f"{gap['groups_compared']} of {gap['groups']}" for gap in gaps
    }
    sizes = [float(row[head.index("Gap")]) for row in rows]
    ranks = ["violation", "inconclusive", "not estimable", "within tolerance"]
    verdicts = [ranks.index(row[head.index("Verdict")]) for row in rows]
    assert list(zip(verdicts, [-size for size in sizes], strict=True)) == sorted(
        zip(verdicts, [-size for size in sizes], strict=True)
    )


def test_a_table_is_saved_whole_and_no_spreadsheet_runs_it(open_page, audit_page):  # noqa: F811
    page = open_page(audit_page)
    assert page.locator("#groups tbody tr").count() == 12
    head, *rows = rows_of(page, "#groups-table")
    assert head[:3] == ["<i>kind</i>", "sex", "band"]
    assert head[head.index("Rate") + 1 :][:2] == ["Interval from", "Interval to"]
    assert len(rows) > 400
    assert all(len(row) == len(head) for row in rows)
    kinds = {row[0].removesuffix("†").removesuffix(" few rows") for row in rows}
    assert HOSTILE[-1] in {kind.split("▼")[0].split("▲")[0].strip() for kind in kinds}
    cells = [cell for row in rows for cell in row]
    assert not any(cell[:1] in ("=", "@", "\t", "\r") for cell in cells)
    signed = [cell for cell in cells if cell[:1] in ("+", "-")]
    assert signed
    assert all(np.isfinite(float(cell)) for cell in signed if cell != "-")
    assert any(cell.startswith("“=HYPERLINK") for cell in cells)
    for nth in range(page.locator("button.csv").locator("visible=true").count()):
        button = page.locator("button.csv").locator("visible=true").nth(nth)
        assert saved(page, button).suggested_filename.endswith(".csv")


def test_formulas_get_an_apostrophe(open_page, folder):  # noqa: F811
    people = pd.DataFrame({"group": ["=1+1"] * 60 + ["-2+3"] * 60 + ["@SUM(A1)"] * 60})
    result = audit(None, [0, 1, 1] * 60, sensitive_features=people, criteria="dp")
    page = open_page(write_audit_page(result, folder / "formula.html"))
    names = {row[0].split(" ")[0] for row in rows_of(page, "#groups-table")[1:]}
    assert names <= {"“=1+1”", "'-2+3", "'@SUM(A1)"}
    assert "'-2+3" in names


def test_names_are_whole(open_page, report):  # noqa: F811
    page = open_page(report)
    cut = page.evaluate(
        """() => [...document.querySelectorAll(".name")].filter((node) => {
          const { textOverflow, webkitLineClamp } = getComputedStyle(node);
          return textOverflow === "ellipsis" || webkitLineClamp !== "none" ||
            node.scrollWidth > node.clientWidth + 1 && getComputedStyle(node).display !== "inline";
        }).map((node) => node.textContent)"""
    )
    assert cut == []
    heads = page.locator("#groups thead th:visible").all_inner_texts()
    assert heads[:2] == ["<i>kind</i>", "sex"]
    assert "…" not in page.locator("body").inner_text()


@pytest.mark.parametrize("name", ["report", "audit_page"])
def test_paper_shows_all_groups_and_fits(open_page, name, request):  # noqa: F811
    page = open_page(request.getfixturevalue(name), viewport={"width": 703, "height": 1000})
    before = page.locator("#groups tbody tr").count()
    page.emulate_media(media="print")
    page.wait_for_function(
        "before => document.querySelectorAll('#groups tbody tr').length > before", arg=before
    )
    assert page.locator("#groups tbody tr").count() == page.evaluate("crossing.groups.length")
    assert page.evaluate("document.documentElement.scrollWidth") <= 703
    assert page.locator("#sign-paper").is_visible()
    page.emulate_media(media="screen")
    page.wait_for_function(
        "before => document.querySelectorAll('#groups tbody tr').length === before", arg=before
    )


def test_a_changed_address_is_followed_and_a_choice_survives_a_reload(open_page, report):  # noqa: F811
    page = open_page(report)
    page.evaluate("location.hash = '#point-2'")
    page.wait_for_function("state.point === 2")
    assert shown_point(page) == "2"
    page.get_by_label("This one").check()
    page.select_option("#point", "1")
    page.reload()
    page.wait_for_selector("html[data-ready=true]")
    assert shown_point(page) == "1"
    page.select_option("#point", "2")
    assert page.get_by_label("This one").is_checked()
    page.evaluate("location.hash = '#point-99'")  # there is none
    assert shown_point(page) == "2"


def test_a_decision_is_signed_into_a_file_and_shown_again(open_page, front, folder):  # noqa: F811
    described = changed(front, run={"run_id": "d" * 64, "data": {"sha256": "c" * 64}})
    page = open_page(write_front_page(described, folder / "sign.html"))
    page.select_option("#point", "1")
    page.get_by_role("button", name="Save decision.json").click()
    assert "Fill in: name, reason." in page.locator("#sign-said").inner_text()
    page.fill("#sign-name", "R. <b>Meier</b>")
    page.fill("#sign-reason", "Smallest gap.\nAt no loss.")
    page.fill("#sign-date", "2999-01-01")
    page.get_by_role("button", name="Save decision.json").click()
    assert "in the future" in page.locator("#sign-said").inner_text()
    page.fill("#sign-date", "2026-03-02")
    download = saved(page, page.get_by_role("button", name="Save decision.json"))
    assert download.suggested_filename == "decision.json"
    decision = json.loads(download.path().read_text(encoding="utf-8"))
    assert {name: decision[name] for name in ("point", "name", "date", "reason")} == {
        "point": 1,
        "name": "R. <b>Meier</b>",
        "date": "2026-03-02",
        "reason": "Smallest gap.\nAt no loss.",
    }
    assert decision["data_sha256"] == "c" * 64
    assert decision["run_id"] == "d" * 64
    page.reload()
    page.wait_for_selector("html[data-ready=true]")
    assert page.locator("#sign-name").input_value() == "R. <b>Meier</b>"
    signed = open_page(write_front_page(described | {"decision": decision}, folder / "s.html"))
    text = signed.locator("#signed").inner_text()
    assert text == (
        "Decided: point 1 by R. <b>Meier</b> on 2026-03-02. Reason: Smallest gap.\nAt no loss."
    )
    signed.emulate_media(media="print")
    assert signed.locator("#signed").is_visible()
    assert "R. <b>Meier</b>" in signed.locator("#sign-paper").inner_text()


def test_how_it_was_made_is_told(open_page, front, folder):  # noqa: F811
    run = {
        "versions": {"apfex": "9.9"},
        "date": "2026-03-01T10:00:00+00:00",
        "data": {"name": "<b>a.csv", "sha256": "c" * 64, "rows": 700},
        "features": {"u": "number", "v": "number"},
        "settings": {"max_gap": {"dp": 0.05}, "seed": 3},
    }
    page = open_page(write_front_page(changed(front, run=run), folder / "made.html"))
    text = page.locator("#made").inner_text()
    for part in ("2026-03-01T10:00:00+00:00", "c" * 64, "700", "dp 0.05", "9.9", "<b>a.csv"):
        assert part in text
    assert text.index("2026-03-01") < text.index("9.9")


def test_driven_by_needs_a_second_attribute(open_page, audit_page, folder):  # noqa: F811
    people = pd.DataFrame({"group": ["a"] * 60 + ["b"] * 60})
    decided = [0] * 40 + [1] * 20 + [0] * 10 + [1] * 50
    result = audit(None, decided, sensitive_features=people, criteria="dp")
    page = open_page(write_audit_page(result, folder / "one.html"))
    assert "Driven by" not in page.locator("#worst thead").inner_text()
    assert "Driven by" in open_page(audit_page).locator("#worst thead").inner_text()


def test_worst_off_groups_come_by_what_is_shown(open_page, audit_page):  # noqa: F811
    head, *rows = rows_of(open_page(audit_page), "#worst-table")
    sure, rate = head.index("Clearly worse off"), head.index("Favored")
    shown = [(row[sure] != "yes", float(row[rate].rstrip("%"))) for row in rows]
    assert len(shown) == 50
    assert shown == sorted(shown)


def test_probabilities_have_a_curve(open_page, report, front):  # noqa: F811
    page = open_page(report)
    bins = front.described["calibration"]["bins"]
    assert page.locator("#calibration-plot circle").count() == len(bins)
    brier = front.described["calibration"]["measures"]["brier"]["value"]
    assert f"{brier:.3f}" in page.locator("#calibration-tables").inner_text()
