"""The page is one file, allows only itself, and keeps data apart from markup."""

import base64
import hashlib
import json
import re
from importlib.resources import files

import pytest

from apfex import audit
from apfex.report import write_audit_page, write_front_page

PARTS = [part for part in files("apfex.report").joinpath("page").iterdir() if part.is_file()]
SOURCE = "\n".join(part.read_text(encoding="utf-8") for part in PARTS)


@pytest.fixture(scope="module")
def page(front, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "report.html"
    assert write_front_page(front.described, path) == path
    return path.read_text(encoding="utf-8")


def rounded(value):
    """Numbers with five digits."""
    if isinstance(value, dict):
        return {key: rounded(part) for key, part in value.items()}
    if isinstance(value, list):
        return [rounded(part) for part in value]
    return float(f"{value:.5g}") if isinstance(value, float) else value


def sha256(text):
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def test_the_policy_allows_the_two_inline_blocks_and_nothing_else(page):
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    (style,) = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    (script,) = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    assert policy is not None
    assert dict(part.strip().split(" ", 1) for part in policy[1].split(";")) == {
        "default-src": "'none'",
        "script-src": f"'sha256-{sha256(script)}'",
        "style-src": f"'sha256-{sha256(style)}'",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    assert page.index("Content-Security-Policy") < page.index("<style>")


def test_data_cannot_leave_its_block(page, front):
    (data,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page)
    assert data.isascii()
    assert not set(data) & set("<>&\u2028\u2029")
    assert json.loads(data) == rounded(front.described)
    names = [group["name"] for group in json.loads(data)["groupings"][-1]["groups"]]
    assert any("</script>" in name for name in names)  # the worst is there, as text


def test_the_way_through_json_changes_nothing(front, page, tmp_path):
    again = json.loads(json.dumps(front.described))
    assert write_front_page(again, tmp_path / "again.html").read_text(encoding="utf-8") == page


def test_it_is_small_and_asks_for_nothing(page):
    assert len(page.encode()) < 500_000
    addresses = set(re.findall(r"https?://[^\s\"'\\)]+", page))
    assert addresses <= {"http://www.w3.org/2000/svg", "http://example.invalid"}  # a group's name
    assert not re.search(r"<(link|img|iframe|object|embed|base)\b", page)


def test_markup_has_no_inline_style_or_handler():
    markup = files("apfex.report").joinpath("page", "page.html").read_text(encoding="utf-8")
    assert not re.search(r"\sstyle=|\son[a-z]+=|javascript:", markup)
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(", SOURCE)
    assert "@import" not in SOURCE
    assert "url(" not in SOURCE


def test_every_part_is_used(page):
    for part in PARTS:
        text = part.read_text(encoding="utf-8")
        assert part.name == "page.html" or page.count(text) == 1, part.name


def test_a_placeholder_in_a_title_is_text(front, tmp_path):
    described = front.described | {"title": "{{DATA}} {{SCRIPT}}"}
    page = write_front_page(described, tmp_path / "p.html").read_text(encoding="utf-8")
    assert "<title>{{DATA}} {{SCRIPT}}</title>" in page
    assert len(re.findall(r'id="data"', page)) == 1


def test_a_page_is_of_a_description_or_an_audit(tmp_path):
    with pytest.raises(
        ValueError, match=r"described must come from describe_front.*got \(None, None"
    ):
        write_front_page({}, tmp_path / "p.html")
    with pytest.raises(ValueError, match="schema_version 2"):
        write_front_page({"kind": "apfex.front", "schema_version": 1}, tmp_path / "p.html")
    with pytest.raises(TypeError, match="audit must be an Audit, got dict"):
        write_audit_page({}, tmp_path / "p.html")  # pyright: ignore[reportArgumentType]
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_written_leaves_everything_as_it_was(front, tmp_path):
    kept = tmp_path / "report.html" / "kept.txt"  # a folder where the page is to go
    kept.parent.mkdir()
    kept.write_text("old")
    with pytest.raises(OSError, match=r"report\.html"):
        write_front_page(front.described, kept.parent)
    with pytest.raises(FileNotFoundError):
        write_front_page(front.described, tmp_path / "no such folder" / "report.html")
    assert kept.read_text() == "old"
    assert list(tmp_path.iterdir()) == [kept.parent]


def test_an_unknown_number_is_null_on_the_page(front, tmp_path):
    described = front.described | {"rows": float("nan")}
    page = write_front_page(described, tmp_path / "p.html").read_text(encoding="utf-8")
    assert json.loads(re.findall(r'id="data">(.*?)</script>', page)[0])["rows"] is None


def test_the_same_page_for_an_audit(tmp_path):
    people = {"sex": ["F", "M"] * 60}
    result = audit([0, 1] * 60, [0, 1, 1] * 40, sensitive_features=people)
    path = write_audit_page(result, tmp_path / "audit.html", title="Quarter 3", source="a.csv")
    page = path.read_text(encoding="utf-8")
    assert "<title>Quarter 3</title>" in page
    data = json.loads(re.findall(r'id="data">(.*?)</script>', page)[0])
    assert (data["kind"], data["rows"], data["source"]) == ("apfex.audit-page", 120, "a.csv")
