"""The first line of a CSV file, and what stands for no value: the same for all who read one."""

from __future__ import annotations

import csv
import gzip
from collections import Counter
from dataclasses import dataclass
from typing import Any, final

from apfex.files._packed import check_gzip

NO_VALUE = ("", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "NULL", "null", "<NA>")
"""What stands for no value in CSV. "None" does not: it can be the name of a group."""
_SEPARATORS = (",", ";", "\t", "|")


@final
@dataclass(frozen=True)
class Header:
    """The first line of a file: its separator and the names of its columns."""

    separator: str
    columns: tuple[str, ...]


def separator_of(line: str) -> str:
    """The one of comma, semicolon, tab and bar that parts the first line most.

    Examples
    --------
    >>> separator_of("sex;race;age, in years")
    ';'
    """
    return max(_SEPARATORS, key=lambda mark: len(next(csv.reader([line], delimiter=mark))))


def read_header(path: str) -> Header:
    """Look at the first line of a file, and refuse one that names no columns, or one twice."""
    if path.endswith(".gz"):
        check_gzip(path)
    opened: Any = gzip.open if path.endswith(".gz") else open
    try:
        with opened(path, "rt", encoding="utf-8-sig", newline="") as stream:
            line = stream.readline()
    except UnicodeError as error:
        raise ValueError(f"{path} is not UTF-8 text; save it as UTF-8 or Parquet.") from error
    except (OSError, EOFError) as error:
        raise ValueError(f"{path} cannot be read: {error}.") from error
    if not line.strip():
        raise ValueError(f"{path} must begin with a row of column names, got an empty line.")
    try:
        separator = separator_of(line)
        names = next(csv.reader([line], delimiter=separator))
    except csv.Error as error:
        raise ValueError(f"{path} must begin with names of columns, got none: {error}.") from error
    columns = tuple(name or f"column {place}" for place, name in enumerate(names, start=1))
    repeated = sorted(name for name, n in Counter(columns).items() if n > 1)
    if repeated:
        raise ValueError(f"{path} has two columns named '{repeated[0]}'; rename one.")
    return Header(separator, columns)
