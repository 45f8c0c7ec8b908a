"""Text, names and files as the SQL of DuckDB writes them."""

from __future__ import annotations

import re
from collections.abc import Sequence


def column_sql(name: str) -> str:
    """A name of a column.

    Examples
    --------
    >>> column_sql('5" pipe')
    '"5"" pipe"'
    """
    return '"' + name.replace('"', '""') + '"'


def listed_sql(texts: Sequence[str]) -> str:
    """A list of text.

    Examples
    --------
    >>> listed_sql(["a", "it's"])
    "['a', 'it''s']"
    """
    return "[" + ", ".join("'" + text.replace("'", "''") + "'" for text in texts) + "]"


def files_sql(paths: Sequence[str]) -> str:
    """Files: those elsewhere as they stand, others by their very names.

    DuckDB takes marks in them for a pattern, which the name of a file is not.

    Examples
    --------
    >>> files_sql(["scores[1].csv"])
    "['scores[[]1].csv']"
    """
    is_url = "://" in paths[0]
    return listed_sql([p if is_url else re.sub(r"[*?\[]", r"[\g<0>]", p) for p in paths])
