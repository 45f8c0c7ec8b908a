"""Names and tables in HTML and Markdown: whatever comes from data is text there.

Nothing heavy is imported, as the command line prints its help with it.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence

from apfex.plain import printable

__all__: list[str] = []

_NOTHING = "<!-- -->"
_MADE_A_LINK = re.compile(
    r"@(?=\w)|#(?=\d)|:(?=//|[\w+\\-]+:)|\bwww(?=\.)|\bGH(?=-\d)|\b(?:mailto|xmpp)(?=:)",
    re.IGNORECASE,
)
"""What sites make something of in text, after which they do not see it if it is parted."""


def in_markdown(text: object) -> str:
    r"""A name from data for Markdown, also for a cell of a table: it is text, whatever it holds.

    Where GitHub and others would make a link of the text that is left, of an address, a mention or
    a number of an issue, or a picture of a word between colons, an empty comment parts it.

    Examples
    --------
    >>> print(in_markdown("a|b <b>*c*"))
    a\|b &lt;b&gt;\*c\*
    >>> print(in_markdown("by @all on https://a.b"))
    by @<!-- -->all on https:<!-- -->//a.b
    """
    safe = html.escape(printable(text), quote=False)
    safe = "".join(f"\\{mark}" if mark in "\\|`*_[]~#$" else mark for mark in safe)
    return _MADE_A_LINK.sub(rf"\g<0>{_NOTHING}", safe)


def code_in_markdown(text: object) -> str:
    """The same in the letters of code, between more backticks than it has.

    Examples
    --------
    >>> print(code_in_markdown("dp_gap > 0.1"), code_in_markdown("a`b"))
    `dp_gap > 0.1` `` a`b ``
    """
    safe = printable(text)
    longest = max(map(len, re.findall("`+", safe)), default=0)
    return f"`{safe}`" if not longest else f"{'`' * (longest + 1)} {safe} {'`' * (longest + 1)}"


def in_html(text: object) -> str:
    """A name from data for HTML: markup and quotes are text, and its direction ends with it.

    Examples
    --------
    >>> in_html('<b title="x">')
    '<bdi>&lt;b title=&quot;x&quot;&gt;</bdi>'
    """
    return f"<bdi>{html.escape(printable(text), quote=True)}</bdi>"


def html_table(
    caption: str, columns: Sequence[str], rows: Iterable[Sequence[str]], marked: str = ""
) -> str:
    """A table of HTML, without colours, so that it is read on light and on dark pages.

    Parameters
    ----------
    caption : str
    columns : names
        Text or HTML, as are the cells and the caption: whatever comes from data was escaped.
    rows : cells
    marked : str
        Name of an attribute of a row that holds its last cell; none by default.

    Examples
    --------
    >>> print(html_table("Sizes", ["group", "rows"], [[in_html("<a>"), "3"]]))
    <table>
    <caption>Sizes</caption>
    <thead><tr><th scope="col">group</th><th scope="col">rows</th></tr></thead>
    <tbody>
    <tr><td><bdi>&lt;a&gt;</bdi></td><td>3</td></tr>
    </tbody>
    </table>
    """
    head = "".join(f'<th scope="col">{name}</th>' for name in columns)
    body = "\n".join(
        f"<tr{f' {marked}={chr(34)}{row[-1]}{chr(34)}' if marked else ''}>"
        f"{''.join(f'<td>{cell}</td>' for cell in row)}</tr>"
        for row in rows
    )
    return (
        f"<table>\n<caption>{caption}</caption>\n<thead><tr>{head}</tr></thead>\n"
        f"<tbody>\n{body}\n</tbody>\n</table>"
    )


def html_section(name: str, *parts: str) -> str:
    r"""Parts of HTML as one section; text without markup becomes a paragraph.

    Examples
    --------
    >>> html_section("apfex-front", "3 points", "")
    '<section class="apfex-front">\n<p>3 points</p>\n</section>'
    """
    shown = [part if part.startswith("<") else f"<p>{part}</p>" for part in parts if part]
    return "\n".join([f'<section class="{name}">', *shown, "</section>"])
