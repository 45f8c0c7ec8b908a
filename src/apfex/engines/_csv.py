"""CSV files for an engine: every cell is text, types are those that all values have."""

from __future__ import annotations

import re
from collections.abc import Sequence

from apfex.engines._names import alike_names
from apfex.files import NO_VALUE, Header, read_header
from apfex.plain import listed

LEFT_OUT = "apfex_left_out_"
"""How names of columns begin that nobody can ask for."""


def check_headers(files: Sequence[str], columns: Sequence[str]) -> None:
    """Refuse files that lack a column: its cells would all be missing."""
    for path in files:
        own = read_header(path).columns
        for name in columns:
            if name not in own:
                raise ValueError(
                    f"{path} has no column {name!r}, which other files have; it has {listed(own)}. "
                    "Leave the file out, or write the column."
                )


def where_and_why(said: str, files: Sequence[str]) -> tuple[str, str] | None:
    """The file that an error of DuckDB is about, with line and reason; None of any other error.

    What the row holds is left out: it may be about people.
    """
    line = re.search(r"CSV Error on Line: (\d+)", said)
    about, mark, settings = said.rpartition("\nPossible fixes:")
    file = next((file for file in files if f"\n  file = {file}\n" in settings), None)
    if line is None or not mark or file is None:
        return None
    return file, f"line {line[1]}: {about.strip().splitlines()[-1].rstrip('.')}"


def csv_query(files: Sequence[str], headers: Sequence[Header]) -> str:
    """A query for DuckDB over files; a column may stand elsewhere in another file."""
    by_header: dict[Header, list[str]] = {}
    for path, header in zip(files, headers, strict=True):
        by_header.setdefault(header, []).append(path)
    return " UNION ALL BY NAME ".join(
        f"(SELECT * FROM read_csv({files_sql(paths)}, delim={quoted(header.separator)}, "
        f"header=true, auto_detect=false, columns={_columns(header)}, quote='\"', escape='\"', "
        f"nullstr={listed_sql(NO_VALUE)}, allow_quoted_nulls=true, strict_mode=true))"
        for header, paths in by_header.items()
    )


def _columns(header: Header) -> str:
    """Columns by names that DuckDB tells apart; by its place where it would take two for one."""
    alike = {name for names in alike_names(header.columns) for name in names}
    named = [
        f"{LEFT_OUT}{place}" if name in alike else name for place, name in enumerate(header.columns)
    ]
    return "{" + ", ".join(f"{quoted(name)}: 'VARCHAR'" for name in named) + "}"


def quoted(text: str) -> str:
    """Text as SQL writes it."""
    return "'" + text.replace("'", "''") + "'"


def listed_sql(texts: Sequence[str]) -> str:
    """A list of text as SQL writes it."""
    return "[" + ", ".join(map(quoted, texts)) + "]"


def files_sql(paths: Sequence[str]) -> str:
    """Files that are meant by their very names: DuckDB takes marks in them for a pattern.

    Examples
    --------
    >>> files_sql(["scores[1].csv"])
    "['scores[[]1].csv']"
    """
    return listed_sql([re.sub(r"[*?\[]", r"[\g<0>]", path) for path in paths])
