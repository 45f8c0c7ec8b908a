"""The first row of a CSV file, and what stands for no value: the same for all who read one."""

from __future__ import annotations

import csv
import gzip
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, final

from apfex.files._packed import check_gzip

NO_VALUE = ("", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "NULL", "null", "<NA>")
"""What stands for no value in CSV. "None" does not: it can be the name of a group."""
_MOST_LINES = 200
_SEPARATORS = (",", ";", "\t", "|")


@final
@dataclass(frozen=True)
class Header:
    """The first row of a file: its separator and the names of its columns."""

    separator: str
    columns: tuple[str, ...]


def separator_of(lines: Sequence[str]) -> str:
    """The one of comma, semicolon, tab and bar that parts the names of columns most.

    Parameters
    ----------
    lines : sequence of str
        From the first on; a name in quotes may have several.

    Examples
    --------
    >>> separator_of(["sex;race;age, in years"])
    ';'
    """
    return max(_SEPARATORS, key=lambda mark: _count_names(lines, mark))


def _count_names(lines: Sequence[str], separator: str) -> int:
    """How many names there are; one where so many letters are in one that Python reads none."""
    try:
        return len(next(csv.reader(lines, delimiter=separator)))
    except csv.Error:
        return 1


def told_csv_error(error: csv.Error) -> str:
    """What is wrong with a row that Python does not read as CSV.

    Examples
    --------
    >>> told_csv_error(csv.Error("unexpected end of data"))
    'a quote that is never closed'
    """
    said = str(error)
    if "field limit" in said:
        most = csv.field_size_limit()
        return f"a quote that is never closed, or a cell of more than {most:,} characters"
    if "unexpected end of data" in said:
        return "a quote that is never closed"
    if "expected after" in said:
        return "a quote that is never closed, or one within a cell that is not written twice"
    return f"a row that is no CSV ({said})"


def read_header(path: str) -> Header:
    """Look at the first row of a file, and refuse one that names no columns, or one twice."""
    if path.endswith(".gz"):
        check_gzip(path)
    opened: Any = gzip.open if path.endswith(".gz") else open
    try:
        with opened(path, "rt", encoding="utf-8-sig", newline="") as stream:
            lines = list(islice(stream, _MOST_LINES))
    except UnicodeError as error:
        raise ValueError(f"{path} is not UTF-8 text; save it as UTF-8 or Parquet.") from error
    except (OSError, EOFError) as error:
        raise ValueError(f"{path} cannot be read: {error}.") from error
    if not "".join(lines[:1]).strip():
        raise ValueError(f"{path} must begin with a row of column names, got an empty line.")
    try:
        separator = separator_of(lines)
        rows = csv.reader(lines, delimiter=separator, strict=True)
        names = next(rows)
    except csv.Error as error:
        raise ValueError(
            f"{path} must begin with names of columns, got {told_csv_error(error)}."
        ) from error
    ends = {line.endswith("\r\n") for line in lines[: rows.line_num]}
    if len(ends) > 1:  # DuckDB would find no row after it
        raise ValueError(
            f"{path} must have the same line ends within names of columns as after rows, got a "
            "name with others; rename the column, or save the file as Parquet."
        )
    columns = tuple(name or f"column {place}" for place, name in enumerate(names, start=1))
    repeated = sorted(name for name, n in Counter(columns).items() if n > 1)
    if repeated:
        raise ValueError(f"{path} has two columns named '{repeated[0]}'; rename one.")
    return Header(separator, columns)
