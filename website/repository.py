"""Pages of the repository that live outside ``docs``, and links that leave it."""

import re
from pathlib import Path
from posixpath import dirname, normpath, relpath
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
BROUGHT_IN = {
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "README.md": "index.md",
    "reproduction/README.md": "study.md",
}
"""Where pages from elsewhere stand on the site, which has a front page of its own for README."""
RECORDS = ("reproduction/", "decisions/", "changelog")
"""Pages for those who know what they look for: the search shows others first."""
LINK = re.compile(r"\[([^\]]+)\]\(([^)\s#]+)(#[^)\s]*)?\)")


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that are brought in."""
    for source, place in BROUGHT_IN.items():
        if place != "index.md":
            text = (ROOT / source).read_text(encoding="utf-8")
            files.append(File.generated(config, place, content=relink(text, source, place)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Make links that leave ``docs`` lead to where their target stands on the site."""
    place = page.file.src_uri
    if place.startswith(RECORDS):
        page.meta.setdefault("search", {"boost": 0.2})
    if place in BROUGHT_IN.values() and place != "index.md":
        return markdown
    return relink(markdown, f"docs/{place}", place)


def relink(markdown: str, source: str, place: str) -> str:
    """Links of a file of the repository, for where the file stands on the site.

    What is no part of the site is named by its path in the repository instead.
    """

    def replaced(match: re.Match) -> str:
        text, target, anchor = match[1], match[2], match[3] or ""
        if "://" in target or target.startswith(("/", "mailto:")):
            return match[0]
        wanted = normpath(f"{dirname(source)}/{target}".lstrip("/"))
        inside = wanted.removeprefix("docs/") if wanted.startswith("docs/") else None
        on_site = BROUGHT_IN.get(wanted, inside)
        if on_site is not None and on_site.endswith(".ipynb"):
            on_site = on_site.replace(".ipynb", ".md")  # the page that the notebook becomes
        if on_site is not None and not (ROOT / "docs" / on_site).is_dir():
            return f"[{text}]({relpath(on_site, dirname(place) or '.')}{anchor})"
        return text if f"`{wanted}`" == text else f"{text} (`{wanted}`)"

    return LINK.sub(replaced, markdown)
