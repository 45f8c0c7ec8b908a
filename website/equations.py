"""Equations become MathML when the site is built: browsers show it without a script."""

import html
import re

from latex2mathml.converter import convert

EQUATION = re.compile(
    r'<(?:span|div) class="arithmatex">\\([(\[])(.*?)\\[)\]]</(?:span|div)>', flags=re.DOTALL
)


def on_page_content(content: str, **_: object) -> str:
    """Replace what arithmatex has marked."""
    return EQUATION.sub(_mathml, content)


def _mathml(match: re.Match) -> str:
    block = match[1] == "["
    shown = convert(html.unescape(match[2]).strip(), display="block" if block else "inline")
    return f'<div class="equation">{shown}</div>' if block else shown
