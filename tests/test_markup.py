"""Names in Markdown: neither markup, nor what sites make of the text that is left."""

import re

import pytest

from apfex.markup import code_in_markdown, in_markdown

LINKS = (
    *("@octocat", "a@b.org", "me/it#12", "#12", "GH-12", "https://evil.example/x", "HTTP://e.org"),
    *("www.evil.example", "WWW.e.org", "mailto:a@b.org", "a :smile: b", "ftp://e.org"),
)
MADE = re.compile(r"@\w|#\d|GH-\d|://|www\.|mailto:|:\w+:", re.IGNORECASE)
"""What GitHub links, or shows as a picture, in text that is rendered already."""


@pytest.mark.parametrize("name", LINKS)
def test_no_link_is_made_of_a_name(name):
    assert MADE.search(name)
    written = in_markdown(name)
    parts = re.sub(r"\\(?=[#_])", "", written).split("<!-- -->")
    assert "".join(parts) == name
    assert not any(map(MADE.search, parts))


def test_what_is_no_link_stays_as_it_is():
    for name in ("a@ b", "sex=F", "10:30", "C# 7", "www", "50% of a/b"):
        assert in_markdown(name).replace("\\#", "#") == name


@pytest.mark.parametrize("text", ["a`b", "``", "`a` | @all"])
def test_code_ends_where_it_should(text):
    written = code_in_markdown(text)
    fence = "`" * (len(written) - len(written.lstrip("`")))
    assert written == f"{fence} {text} {fence}"
    assert fence not in text
