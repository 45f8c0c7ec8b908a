"""The site has no dead link, asks nothing of any other host, and leaves no page or module out."""

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
import yaml
from tests.test_public_api import MODULES

ROOT = Path(__file__).parents[2]


class Page(HTMLParser):
    """Anchors, links, what is loaded, and pictures of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.without_words: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        values = {name: value or "" for name, value in attrs}
        self.anchors |= {values[name] for name in ("id", "name") if values.get(name)}
        if tag == "a" and values.get("href"):
            self.links.append(values["href"])
        elif tag == "link" and values.get("rel") in ("stylesheet", "icon", "preload"):
            self.loads.append(values["href"])
        elif values.get("src"):
            self.loads.append(values["src"])
            if tag == "img" and not values.get("alt"):
                self.without_words.append(values["src"])


@pytest.fixture(scope="session")
def pages(site):
    return {path: Page(path.read_text(encoding="utf-8")) for path in site.rglob("*.html")}


def test_every_link_leads_to_a_page_and_a_place_on_it(site, pages):
    dead = []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc or path.name == "404.html":
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            anchors = pages[target].anchors if target in pages else set()
            there = target.is_file() and (not parts.fragment or unquote(parts.fragment) in anchors)
            if not there:
                dead.append(f"{path.relative_to(site)}: {link}")
    assert not dead


def test_nothing_is_loaded_from_elsewhere(site, pages):
    for path, page in pages.items():
        outside = [one for one in page.loads if urlsplit(one).scheme not in ("", "data")]
        assert not outside, path
    sheets = [path.read_text(encoding="utf-8") for path in site.rglob("*.css")]
    assert not [sheet for sheet in sheets if "url(http" in sheet or "@import" in sheet]


def test_every_picture_is_told_in_words(site, pages):
    silent = {str(path.relative_to(site)): page.without_words for path, page in pages.items()}
    assert not {name: found for name, found in silent.items() if found}


def test_every_module_has_its_place_in_the_reference():
    told = [
        line.removeprefix("::: ")
        for page in (ROOT / "docs" / "api").glob("*.md")
        for line in page.read_text(encoding="utf-8").splitlines()
        if line.startswith("::: ")
    ]
    rooms = "arguments boosters chunks engines extras files markup memory plain rules sources"
    inner = {f"apfex.{room}" for room in [*rooms.split(), "strict_json"]}
    assert sorted(told) == sorted(set(MODULES) - inner)


def test_equations_are_there_without_a_script(site):
    page = (site / "method.html").read_text(encoding="utf-8")
    assert page.count("<math") >= 5
    assert "arithmatex" not in page


def test_words_and_abbreviations_of_the_glossary_explain_themselves(site):
    page = (site / "choosing.html").read_text(encoding="utf-8")
    assert page.count("glossary.html#gap") == 1
    assert 'class="term"' in page
    assert '<abbr title="Karush' in (site / "method.html").read_text(encoding="utf-8")


EVERYBODY_KNOWS = {"AI", "AMD", "COMPAS", "CSV", "EC", "EPYC", "EU", "GPU", "JSON", "MB", "MIT"}
EVERYBODY_KNOWS |= {"HTML", "URL", "US", "UTF", "VII"}
RECORDS = {"benchmarks.md", "reproduction.md", "scaling.md"}  # for readers of the paper


def test_no_abbreviation_goes_unexplained():
    from website.terms import GLOSSARY, read_abbreviations

    explained = read_abbreviations(GLOSSARY.read_text(encoding="utf-8"))
    for page in [*(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "tutorials").glob("*.py")]:
        if page.name not in RECORDS:
            used = set(re.findall(r"\b([A-Z]{2,6})s?\b", prose(page)))
            assert used <= {*explained, *EVERYBODY_KNOWS}, page.name


def prose(page: Path) -> str:
    """What a page says, without code, formulas, addresses and sources."""
    text = page.read_text(encoding="utf-8")
    if page.suffix == ".py":
        text = "\n".join(line for line in text.splitlines() if line.startswith("#"))
    text = re.sub(r"```.*?```|`[^`]*`|\$\$.*?\$\$|\\\(.*?\\\)", "", text, flags=re.S)
    return re.sub(r"\]\([^)]*\)|^\[\^.*$", "]", text, flags=re.M)


def test_no_markup_is_left_on_a_page(site):
    """A line that begins with ``#12`` would be a heading, and a role of Sphinx stays as it is.

    So does a list without an empty line before it, and what equations do not know.
    """
    for path in [*site.glob("*.html"), *site.glob("api/*.html"), *site.glob("tutorials/*.html")]:
        text = re.sub(r"<(code|pre|script)\b.*?</\1>", "", path.read_text("utf-8"), flags=re.S)
        assert text.count("<h1") == 1, path.name
        assert not re.search(r"\]\(https?:|:(func|class|mod|meth):", text), path.name
        assert not re.findall(r"^(?:- |\d+\. ).*", text, flags=re.M), path.name
        assert not re.findall(r"<m[a-z]+[^>]*>\\\w+", text), path.name


def test_every_entry_of_the_glossary_is_a_sentence():
    from website.terms import EVERYDAY, GLOSSARY, read_terms

    terms = read_terms(GLOSSARY.read_text(encoding="utf-8"))
    assert len({anchor for anchor, _ in terms.values()}) >= 40
    assert all(sentence.endswith(".") for _, sentence in terms.values())
    headings = re.findall(r"^### ", GLOSSARY.read_text(encoding="utf-8"), flags=re.M)
    assert len(headings) == len({anchor for anchor, _ in terms.values()})
    assert terms.keys() >= EVERYDAY


def test_words_of_everyday_are_not_linked(site):
    """A limit of memory is no tolerance, and a cell of a notebook no group of people."""
    from website.terms import EVERYDAY

    pages = [path.read_text("utf-8") for path in site.rglob("*.html")]
    found = {word for page in pages for word in re.findall(r'<a class="term"[^>]*>([^<]+)<', page)}
    assert found
    assert not found & EVERYDAY


def test_numbered_steps_keep_their_numbers(site):
    """Cells of code between the steps of a tutorial do not begin the count anew."""
    page = (site / "tutorials" / "cells.html").read_text("utf-8")
    assert re.findall(r'<ol start="(\d)"', page) == ["2", "3"]
    assert 'border="1"' not in page


def test_the_build_is_the_one_of_make_docs():
    config = yaml.unsafe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    assert config["strict"]
    assert "mkdocs build --strict" in (ROOT / "Makefile").read_text(encoding="utf-8")
