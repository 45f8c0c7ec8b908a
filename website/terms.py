"""Where a page first uses a word of the glossary, the word leads there and explains itself."""

import re
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

from markdown import Markdown
from markdown.extensions import Extension
from markdown.treeprocessors import Treeprocessor

GLOSSARY = Path(__file__).parents[1] / "docs" / "glossary.md"
PLACE = "/glossary.md"
ENTRY = re.compile(r"^### (.+?) \{ #([\w-]+) \}\n\n(.+?)(?=\n\n|\Z)", flags=re.M | re.S)
UNTOUCHED = ("glossary", "api/", "changelog", "decisions/")
EVERYDAY = {"aim", "aims", "archive", "cell", "cells", "limit", "member", "members"}
"""Words of the glossary that pages also use in another sense: explained there, and never linked."""
SKIPPED = {"a", "abbr", "code", "pre", "h1", "h2", "h3", "h4", "h5", "th", "summary", "script"}


def read_terms(text: str) -> dict[str, tuple[str, str]]:
    """Anchor and first sentence of every word of the glossary."""
    return {
        word: (anchor, re.split(r"(?<=\.)\s", _plain(explained))[0])
        for words, anchor, explained in ENTRY.findall(text)
        for word in words.split(", ")
    }


def read_abbreviations(text: str) -> dict[str, str]:
    """What every abbreviation of the glossary stands for."""
    table = text.split("## Abbreviations")[1]
    return dict(re.findall(r"^\| ([A-Z]+) \| (.+) \|$", table, flags=re.M))


def _plain(markdown: str) -> str:
    return re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", " ".join(markdown.split())).replace("*", "")


def on_config(config: Any) -> Any:
    """Take part in the rendering of every page."""
    config.markdown_extensions.append(_Terms())
    return config


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """The glossary does not lead to itself, nor do the reference and the project's records."""
    _Linker.active = not page.file.src_uri.startswith(UNTOUCHED)
    if not _Linker.active:
        return markdown
    shorts = read_abbreviations(GLOSSARY.read_text(encoding="utf-8"))
    return "\n".join([markdown, "", *(f"*[{short}]: {long}" for short, long in shorts.items())])


class _Terms(Extension):
    def extendMarkdown(self, md: Markdown) -> None:
        md.treeprocessors.register(_Linker(md), "glossary", 1)  # before links are resolved


class _Linker(Treeprocessor):
    active = True

    def run(self, root: Element) -> None:
        if not self.active:
            return
        terms = read_terms(GLOSSARY.read_text(encoding="utf-8"))
        self.open = {word: entry for word, entry in terms.items() if word not in EVERYDAY}
        for element in root:
            self._walk(element)

    def _walk(self, element: Element) -> None:
        if element.tag in SKIPPED or "arithmatex" in (element.get("class") or ""):
            return
        children = list(element)
        element.text = self._link(element, element.text, 0)
        for child in children:
            self._walk(child)
            child.tail = self._link(element, child.tail, list(element).index(child) + 1)

    def _link(self, parent: Element, text: str | None, place: int) -> str | None:
        """Put links into ``parent`` from ``place`` on; hand out the text before the first."""
        if not text or not self.open:
            return text
        words = sorted(self.open, key=len, reverse=True)
        found = re.search(rf"\b({'|'.join(map(re.escape, words))})\b", text)
        if found is None:
            return text
        anchor, sentence = self.open[found[1]]
        self.open = {w: entry for w, entry in self.open.items() if entry[0] != anchor}
        link = Element("a", {"href": f"{PLACE}#{anchor}", "class": "term", "title": sentence})
        link.text = found[1]
        parent.insert(place, link)
        link.tail = self._link(parent, text[found.end() :], place + 1)
        return text[: found.start()]
