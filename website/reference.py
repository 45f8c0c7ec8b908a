"""Roles of Sphinx in docstrings, as ``:func:`` before a name, become links of the reference."""

import re

ROLE = re.compile(r":(?:attr|class|data|exc|func|meth|mod):<code>~?([\w.]+)</code>")


def on_page_content(content: str, **_: object) -> str:
    """Link names that say their module; others are code."""
    return ROLE.sub(_linked, content)


def _linked(match: re.Match) -> str:
    name, code = match[1], f"<code>{match[1].removeprefix('apfex.')}</code>"
    return f'<autoref identifier="{name}" optional>{code}</autoref>' if "." in name else code
