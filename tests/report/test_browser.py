"""The page in a real browser: it does what it says, and nothing that its data say."""

import json
import unicodedata
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.report.conftest import HOSTILE, make_history, make_people

from apfex import audit
from apfex.plain import printable
from apfex.report import write_audit_page, write_front_page


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("pages")


@pytest.fixture(scope="module")
def report(front, folder):
    return write_front_page(front.described, folder / "report.html")


@pytest.fixture(scope="module")
def audit_page(folder):
    """Four hundred cells, hostile names, scores, and an attribute more."""
    people = make_people(3000, 2)
    draw = np.random.default_rng(3)
    sensitive = people.sensitive.assign(band=draw.integers(0, 23, 3000))
    score = people.X["u"].to_numpy()
    result = audit(people.y, (score > 0.5).astype(int), sensitive_features=sensitive, y_score=score)
    assert result.n_groups > 400
    return write_audit_page(result, folder / "audit.html", title="Audit <b>", source="a.csv")


@pytest.fixture
def open_page(browser):
    """Opens pages; in the end nothing was complained of, asked for or run that should not be."""
    contexts, wrong = [], []

    def request(asked):
        if not asked.url.startswith("file://"):
            wrong.append(f"request: {asked.url}")

    def dialog(shown):
        wrong.append(f"dialog: {shown.message}")
        shown.dismiss()

    def opened(path, **settings):
        settings = {"viewport": {"width": 1280, "height": 900}} | settings
        context = browser.new_context(**settings)
        contexts.append(context)
        page = context.new_page()
        page.on(
            "console", lambda m: wrong.append(m.text) if m.type in ("error", "warning") else None
        )
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("request", request)
        page.on("dialog", dialog)
        page.set_default_timeout(10_000)
        page.goto(path.as_uri())
        page.wait_for_selector("html[data-ready=true]")
        return page

    yield opened
    for context in contexts:
        context.close()
    assert wrong == []


def percent(value):
    return f"{100 * value:.1f}%"


def shown_point(page):
    return page.locator("#now-title").inner_text().split()[1]


def expect_point(page, point):
    """Every panel tells of this point."""
    assert shown_point(page) == str(point["point"])
    assert f"wrong for {percent(point['error'])}" in page.locator("#headline").inner_text()
    assert percent(point["error"]) in page.locator("#cards").inner_text()
    assert f"Gaps of point {point['point']} " in page.locator("#gaps caption").text_content()
    for gap in point["gaps"]:
        assert gap["verdict"] in page.locator("#gaps-table").inner_text()
    assert page.locator("#points tr.here th").inner_text() == str(point["point"])
    assert page.locator("#plot [aria-checked=true]").get_attribute("data-point") == str(
        point["point"]
    )


def test_clicking_a_point_changes_the_panels(open_page, report, front):
    page, points = open_page(report), front.described["points"]
    expect_point(page, points[front.described["chosen"]])
    for place in (len(points) - 1, 0):
        for _ in points:  # of points that lie upon each other, each click takes the next
            page.locator(f"#plot [data-point='{place}'] .target").click(force=True)
            if shown_point(page) == str(place):
                break
        expect_point(page, points[place])
    page.locator("#points button", has_text="1").first.click()
    expect_point(page, points[1])
    changes = points[1]["changes"][front.described["groupings"][-1]["by"]]
    about = page.locator("#changes-about").inner_text()
    assert f"{sum(changes['gained'])} people get" in about
    assert f"{sum(changes['lost'])} no longer do" in about


def test_arrow_keys_move_along_the_front(open_page, report, front):
    page, points = open_page(report), front.described["points"]
    page.locator("#plot [aria-checked=true]").focus()
    page.keyboard.press("Home")
    expect_point(page, points[0])
    page.keyboard.press("ArrowLeft")  # there is none before the first
    page.keyboard.press("ArrowRight")
    expect_point(page, points[1])
    page.keyboard.press("End")
    expect_point(page, points[-1])
    page.keyboard.press("ArrowUp")
    expect_point(page, points[-2])
    assert page.evaluate("document.activeElement.getAttribute('role')") == "radio"
    page.get_by_role("button", name="Next point").click()
    expect_point(page, points[-1])


def test_two_points_side_by_side(open_page, report, front):
    page, points = open_page(report), front.described["points"]
    page.select_option("#compare-a", "0")
    page.select_option("#compare-b", "2")
    table = page.locator("#compare-table")
    assert table.locator("thead").inner_text().split("\t")[1:3] == ["Point 0", "Point 2"]
    errors = table.locator("tbody tr").first.inner_text().split("\t")
    assert errors[1:3] == [percent(points[0]["error"]), percent(points[2]["error"])]
    verdicts = [point["gaps"][-1]["verdict"] for point in (points[0], points[2])]
    assert all(verdict in table.inner_text() for verdict in verdicts)


def test_this_one_gives_the_command(open_page, report):
    page = open_page(report, permissions=["clipboard-read", "clipboard-write"])
    page.select_option("#point", "2")
    assert page.locator("#command").is_hidden()
    page.get_by_label("This one").check()
    assert page.locator("#command-text").inner_text() == "apfex predict RUN FILE --point 2"
    page.get_by_role("button", name="Copy").click()
    page.get_by_text("Copied.").wait_for()
    assert page.evaluate("navigator.clipboard.readText()") == "apfex predict RUN FILE --point 2"
    page.get_by_role("button", name="Previous point").click()
    assert page.locator("#command").is_hidden()
    page.get_by_role("button", name="Next point").click()
    assert page.get_by_label("This one").is_checked()


@pytest.mark.parametrize("name", ["report", "audit_page"])
def test_names_from_data_are_only_text(open_page, name, request):
    page = open_page(request.getfixturevalue(name))
    assert page.title() in ("Audit <b>", "Report of <script>document.title='hacked'</script>")
    assert page.locator("img, iframe, i, b").count() == 0
    assert page.locator("script").count() == 2
    text = page.locator("#heat").inner_text()
    assert all(part in text for part in ("<img src=x onerror=", "</script><script>", "=HYPERLINK"))
    assert "turned\\u202egnp.exe" in text  # what would turn a name round is shown
    assert "line\\u2028end" in text
    long = page.locator("#heat tbody .name", has_text="nnnn").first
    assert long.get_attribute("title") == HOSTILE[-1]
    assert long.bounding_box()["width"] < 200


@pytest.mark.parametrize("part", ["title", "name", "level", "source"])
def test_no_mark_of_a_name_is_obeyed_or_hidden(browser, tmp_path, part):
    """One that turns the direction, and ones that nobody sees."""
    odd = "in\u00advoice\u202egnp\u061c.csv"
    given: Any = {"title": f"Audit of {odd}"} if part == "title" else {}
    given |= {"source": odd} if part == "source" else {}
    name, level = (odd if part == one else one for one in ("name", "level"))
    found = audit(None, [0, 1] * 200, sensitive_features={name: ["a", level] * 200}, criteria="dp")
    page = browser.new_page()
    page.goto(write_audit_page(found, tmp_path / "audit.html", **given).as_uri())
    text = page.evaluate(
        """() => {
          document.querySelectorAll("script").forEach((one) => one.remove());
          return document.documentElement.textContent + document.title;
        }"""
    )
    for mark in "\u00ad\u202e\u061c":
        assert mark not in text
    assert r"in\xadvoice\u202egnp\u061c.csv" in text
    page.close()


def test_pages_and_terminals_show_names_by_one_rule(open_page, audit_page):
    page, before = (
        open_page(audit_page),
        ("a", "\u2764", "\u2764\ufe0f", "\u0915", "\u6771", "\u1820"),
    )
    known = [
        chr(code)
        for code in range(0x110000)
        if unicodedata.category(chr(code)) != "Cn" and not 0xD800 <= code < 0xE000
    ]
    signs = [mark for mark in known if unicodedata.category(mark) not in ("Co", "Lo", "So")]
    signs += ["\u115f", "\u1160", "\u3164", "\uffa0", "\u2800", "\ue000", "\U000f0000", "é"]
    for start in before:
        names = [f"{start}{mark}b" for mark in signs]
        shown = page.evaluate("(names) => names.map(visible)", names)
        assert [
            pair for pair in zip(shown, map(printable, names), strict=True) if len({*pair}) > 1
        ] == []


def test_the_policy_is_at_work(browser, report):
    """What a name that got through could do: nothing."""
    page = browser.new_page()
    page.goto(report.as_uri())
    page.evaluate(
        """() => {
          const script = document.createElement("script");
          script.textContent = "window.ran = true";
          const image = document.createElement("img");
          image.src = "http://example.invalid/x.png";
          const text = document.createElement("p");
          text.id = "styled";
          text.setAttribute("style", "color: rgb(1, 2, 3)");
          document.body.append(script, image, text);
        }"""
    )
    assert page.evaluate("window.ran") is None
    assert page.evaluate("getComputedStyle(styled).color") != "rgb(1, 2, 3)"
    page.close()


def test_heat_map_shows_any_rate_of_two_attributes(open_page, report, front):
    page = open_page(report)
    grouping = front.described["groupings"][-1]
    point = front.described["points"][front.described["chosen"]]
    page.select_option("#rate", "tpr")
    rates = point["rates"]["tpr"]["groupings"][grouping["by"]]["rate"]
    cells = page.locator("#heat td.heat .value").all_inner_texts()
    assert sorted(cell.rstrip("†") for cell in cells) == sorted(map(percent, rates))
    assert page.locator("#groups-rate").input_value() == "tpr"
    page.select_option("#heat-rows", "sex")
    page.select_option("#heat-columns", "<i>kind</i>")
    assert page.locator("#heat tbody tr").count() == 2
    page.select_option("#heat-columns", "sex")  # one attribute against itself: its own rates
    own = point["rates"]["tpr"]["groupings"]["sex"]["rate"]
    assert page.locator("#heat td.heat .value").all_inner_texts() == list(map(percent, own))


def test_hundreds_of_groups_stay_usable(open_page, audit_page):
    page = open_page(audit_page)
    rows = page.locator("#groups tbody tr")
    assert rows.count() == 12
    page.get_by_role("button", name="more of").click()
    assert rows.count() == 62
    page.fill("#groups-filter", "BAND=22")
    texts = rows.locator("th.narrow-cell").all_text_contents()
    assert texts
    assert all("band=22" in text for text in texts)
    assert set(rows.locator("th.wide:nth-child(4)").all_inner_texts()) == {"22"}
    page.fill("#groups-filter", "nobody")
    assert "No group has such a name" in page.locator("#groups-table").inner_text()


def test_an_audit_page_has_thresholds_worst_groups_and_a_plan(open_page, audit_page):
    page = open_page(audit_page)
    assert (
        page.locator("#front, #changes, #compare, #history, #points")
        .locator("visible=true")
        .count()
        == 0
    )
    assert page.locator("#worst tbody tr").locator("visible=true").count() == 10
    page.locator("#worst").get_by_role("button", name="more").click()
    assert page.locator("#worst tbody tr").count() == 50
    before = page.locator("#thresholds-plot path").get_attribute("d")
    page.select_option("#thresholds-by", "sex")
    assert page.locator("#thresholds-plot path").get_attribute("d") != before
    assert page.locator("#plan tbody tr").count() > 0


@pytest.mark.parametrize("name", ["report", "audit_page"])
def test_it_fits_a_phone_in_the_dark_and_paper(open_page, name, request):
    narrow = {"viewport": {"width": 360, "height": 740}, "color_scheme": "dark"}
    page = open_page(request.getfixturevalue(name), **narrow)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    colour = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(colour)
    page.get_by_role("button", name="Theme").click()
    light = page.evaluate(colour)
    assert dark != light
    page.get_by_role("button", name="Theme").click()
    assert page.evaluate(colour) == dark
    page.emulate_media(media="print")
    assert page.evaluate(colour) == "rgb(255, 255, 255)"
    assert page.locator("select, button, input").locator("visible=true").count() == 0
    assert page.locator("#gaps table").is_visible()
    assert page.locator("#headline").is_visible()


@pytest.mark.parametrize("name", ["report", "audit_page"])
def test_every_part_has_a_name_for_screen_readers(open_page, name, request):
    page = open_page(request.getfixturevalue(name))
    unnamed = page.evaluate(
        """() => [...document.querySelectorAll("main *")].filter((node) => {
          if (!node.checkVisibility()) return false;
          const named = node.getAttribute("aria-label") || node.getAttribute("aria-labelledby");
          switch (node.tagName.toLowerCase()) {
            case "table": return !node.caption || !node.querySelector("th[scope=col]");
            case "section": return !named;
            case "select": case "input": return !node.labels.length && !named;
            case "button": return !named && !node.textContent.trim();
            case "svg": return !named && node.getAttribute("aria-hidden") !== "true";
            default: return false;
          }
        }).map((node) => node.outerHTML.slice(0, 90))"""
    )
    assert unnamed == []
    assert page.locator("[role=status][aria-live=polite]").first.is_visible()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the result"


def says_where_it_is_accurate(page):
    text = page.locator("body").inner_text()
    there = text.count("on the validation rows it is the most accurate there")
    said = text.count("most accurate on the validation rows")
    return text.count("most accurate") == said + there and said > 0


def test_the_starting_point_is_called_accurate_only_where_it_was(open_page, report, front):
    """Others may be more accurate on fresh rows."""
    page, base = open_page(report), front.described["baseline"]
    page.select_option("#point", str(base))
    assert says_where_it_is_accurate(page)
    assert page.locator("#now-title .tag", has_text="starting point").is_visible()
    page.select_option("#point", str(len(front.described["points"]) - 1))
    assert says_where_it_is_accurate(page)
    assert f"against point {base}" in page.locator("#cards").inner_text()
    assert f"(point {base}), " in page.locator("#summary").inner_text()


def test_gaps_of_the_validation_rows_say_which_groups_count(open_page, front, folder):
    described = json.loads(json.dumps(front.described))
    described["chosen"] = 0
    gaps = described["points"][0]["validation"]["gaps"]
    gaps["dp"] |= {"gap": 0.647, "compared": 0.301}
    gaps["tpr"] |= {"gap": 0.512, "compared": None}
    page = open_page(write_front_page(described, folder / "validation.html"))
    cards = page.locator("#cards").inner_text()
    assert "rows: 0.301 (0.647 with groups of fewer than 10 rows, as it was chosen)" in cards
    assert "rows: 0.512, with groups of fewer than 10 rows: not to be compared" in cards
    row = page.locator("#points tbody tr").first.inner_text().split("\t")
    assert "0.301" in row
    assert "0.512‡" in row


def test_a_gap_that_grew_is_told_beside_the_point(open_page, front, folder):
    described = json.loads(json.dumps(front.described))
    text = "The gap in true positive rate is larger than at point 0: ..."
    described["points"][1]["caveats"] = [
        {"code": "gap_grew", "level": "warning", "text": text, "data": {}}
    ]
    page = open_page(write_front_page(described, folder / "grew.html"))
    page.select_option("#point", "1")
    assert text in page.locator("#caveats").inner_text()
    assert "a gap grew" in page.locator("#points tbody tr").nth(1).inner_text()


def test_lowest_first_is_the_lowest_rate(open_page, audit_page):
    page = open_page(audit_page)
    page.select_option("#groups-by", "band")
    for order, sign in (("lowest rate first", 1), ("highest rate first", -1)):
        page.select_option("#groups-order", label=order)
        cells = page.locator("#groups tbody tr:not(.few) td.strong").all_inner_texts()
        rates = [sign * float(cell.split("%")[0]) for cell in cells]
        assert len(rates) > 5
        assert rates == sorted(rates)


@pytest.mark.parametrize("name", ["report", "audit_page"])
def test_names_are_shown_without_quotes(open_page, name, request):
    page = open_page(request.getfixturevalue(name))
    shown = page.locator("#groups-table .name").all_text_contents()
    page.fill("#groups-filter", "<i>kind</i>=<img src")
    found = page.locator("#groups-table .name").all_text_contents()
    assert found == []  # it has an equals sign, and is quoted
    page.fill("#groups-filter", "<i>kind</i>=“<img src=x")
    assert page.locator("#groups-table .name").count() > 0
    page.fill("#groups-filter", "<i>kind</i>=<!-- <script>, sex")
    found = page.locator("#groups-table .name").all_text_contents()
    assert found
    assert not any("</i>='" in text for text in [*shown, *found])


def test_an_audit_has_no_history(open_page, audit_page):
    page = open_page(audit_page)
    assert page.locator("#history").count() == 0 or page.locator("#history").is_hidden()


def test_the_history_is_that_of_the_point(open_page, report):
    page = open_page(report)
    assert page.locator("#history").is_visible()
    assert page.locator("#history-plot svg").count() == 3
    assert "the band is the strategy at work" in page.locator("#history-about").inner_text()
    page.select_option("#point", "0")
    first = page.locator("#history-plot").inner_html()
    page.select_option("#point", "1")
    assert page.locator("#history-plot").inner_html() != first


def test_the_history_marks_where_the_point_was_archived(open_page, front, report):
    page = open_page(report)
    page.select_option("#point", "1")
    point = front.clf.front_[1]
    assert page.locator("#history-plot .archived").count() == 3
    said = page.locator("#history-about").inner_text()
    assert f"Shown is member {point.member}, from which the point comes" in said
    assert f"archived, after step {point.epoch}: what comes later is not its history" in said


def test_a_model_that_was_given_has_no_training_curves(open_page, front, folder):
    described = json.loads(json.dumps(front.described))
    described["points"][0]["validation"] |= {"member": -1, "epoch": 0}
    page = open_page(write_front_page(described, folder / "given.html"))
    page.select_option("#point", "0")
    assert "no training curves here" in page.locator("#history-about").inner_text()
    assert page.locator("#history-plot svg").count() == 0
    page.select_option("#point", "1")
    assert page.locator("#history-plot svg").count() == 3


def test_worst_off_groups_are_below_all_rows(open_page, folder):
    people = pd.DataFrame({"group": ["a"] * 30 + ["b"] * 30 + ["c"] * 30})
    decided = [0] * 16 + [1] * 14 + ([0, 1] * 15) + [0] * 14 + [1] * 16
    result = audit(None, decided, sensitive_features=people, criteria="dp")
    page = open_page(write_audit_page(result, folder / "even.html"))
    assert page.locator("#worst tbody th.wide").all_inner_texts() == ["a"]
    assert "None of these is clearly worse off" in page.locator("#worst").inner_text()


def test_history_a_single_point_and_one_attribute(open_page, front, folder):
    """The odd ends of what a front may be."""
    described = json.loads(json.dumps(front.described))
    described["points"] = described["points"][:1]
    described["chosen"] = described["baseline"] = 0
    described["groupings"] = described["groupings"][:1]
    alone = described["groupings"][0]["by"]
    gaps = described["points"][0]["gaps"]
    described["points"][0]["gaps"] = [gap for gap in gaps if gap["by"] == alone]
    described["command"] = None
    own = front.measured.describe(history=make_history(40), objectives=["task", "<u>dp</u>"])
    described["history"] = own["history"]
    page = open_page(write_front_page(described, folder / "odd.html"))
    assert page.locator("#history-plot svg").count() == 3
    assert page.locator("#history-plot .band").count() > 3
    assert "<u>dp</u>" in page.locator("#history-legend").inner_text()
    assert page.locator("#compare").is_hidden()
    page.get_by_label("This one").check()
    assert page.locator("#command-text").inner_text() == "clf.at(0).predict(X)"


def test_an_audit_of_decisions_without_labels_or_enough_rows(open_page, folder):
    people = pd.DataFrame({"group": ["a"] * 30 + ["b"] * 3})
    result = audit(None, [0, 1, 1] * 11, sensitive_features=people, criteria="dp")
    page = open_page(write_audit_page(result, folder / "small.html"))
    assert "not estimable" in page.locator("#gaps-table").inner_text()
    assert "fewer than 10 rows" in page.locator("#caveats").inner_text()


def test_a_card_shows_the_grouping_with_the_worst_verdict(open_page, folder):
    sex = ["F", "M"] * 300
    part = [place // 2 % 60 for place in range(600)]
    decided = [int(place % 10 < 4 or place % 2) for place in range(600)]
    people = pd.DataFrame({"sex": sex, "part": part})
    result = audit(None, decided, sensitive_features=people, criteria="dp", favorable_label=0)
    verdicts = dict(zip(result.gaps["by"], result.gaps["verdict"], strict=True))
    assert verdicts["sex x part"] != "violation"
    page = open_page(write_audit_page(result, folder / "hidden.html"))
    card = page.locator("#cards .card").first.inner_text()
    assert "violation" in card
    assert "between groups of sex, the most alarming grouping" in card
    assert "sex=M" in page.locator("#cards .card").last.inner_text()
    assert "Larger groups that are clearly worse off: sex=M (0.0%)" in (
        page.locator("#worst-about").inner_text()
    )
