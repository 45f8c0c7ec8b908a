"""Quotes of a CSV file: every program must find the same cells, or the file is refused."""

from __future__ import annotations

import csv
import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import IO, Any, final

import numpy as np

_PART = 1 << 22
_QUOTE = ord('"')


@final
class EncodingError(ValueError):
    """A file is not text of its encoding; ``likely`` is the one that it may have."""

    def __init__(self, path: Path, encoding: str, likely: str) -> None:
        self.path: Path = path
        self.likely: str = likely
        self.encoding: str = encoding.upper().removesuffix("-SIG")
        super().__init__(f"{path} is not {self.encoding} text; save it as UTF-8 or Parquet.")


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
        return (
            "a quote that is never closed, or one with text or blanks after it (a quote within a "
            "cell is written twice)"
        )
    return f"a row that is no CSV ({said})"


@contextmanager
def open_text(path: Path, encoding: str, newline: str | None = "") -> Iterator[IO[str]]:
    """The file as text, unpacked if it is gzipped; an error says what to do about it."""
    opened = gzip.open if path.suffix.lower() == ".gz" else open
    with opened(path, "rt", encoding=encoding, newline=newline) as stream:
        try:
            yield stream
        except UnicodeError as error:
            raise EncodingError(path, encoding, "cp1252") from error
        except (EOFError, OSError, zlib.error) as error:
            raise ValueError(f"{path} cannot be read: {error}.") from error


def check_quotes(path: Path, encoding: str, separator: str) -> None:
    """Refuse quotes that programs understand in different ways, such as one that is never closed.

    A file in which each quote opens a cell, closes one or stands twice within one is understood by
    all. Of any other the rows are read one by one: a quote within a cell without quotes is text.
    """
    if _is_plain(_bytes_of(path, encoding), ord(separator)):
        return
    with open_text(path, encoding, newline=None) as stream:
        try:
            for _ in csv.reader(stream, delimiter=separator, strict=True):
                pass
        except csv.Error as error:
            raise ValueError(f"{path} has {told_csv_error(error)}.") from error


def _is_plain(parts: Iterator[bytes], separator: int) -> bool:
    """Whether every quote opens or closes a cell, or is one of two beside each other within one."""
    ends = np.zeros(256, bool)
    ends[[separator, ord("\n"), ord("\r"), _QUOTE]] = True
    count, held = 0, b"\n"
    for part in chain(parts, (b"\n",)):
        found = np.frombuffer(held + part, np.uint8)
        held = found[-2:].tobytes()
        places = np.flatnonzero(found[1:-1] == _QUOTE) + 1
        opening, closing = places[count % 2 :: 2], places[1 - count % 2 :: 2]
        if not (ends[found[opening - 1]].all() and ends[found[closing + 1]].all()):
            return False
        count += len(places)
    return count % 2 == 0


def _bytes_of(path: Path, encoding: str) -> Iterator[bytes]:
    """The file part by part as UTF-8 without a mark; of another encoding it is read as text."""
    if encoding not in ("utf-8", "utf-8-sig"):
        with open_text(path, encoding) as stream:
            while text := stream.read(_PART):
                yield text.encode("utf-8", "surrogatepass")
        return
    opened: Any = gzip.open if path.suffix.lower() == ".gz" else open
    with opened(path, "rb") as stream:
        part = stream.read(_PART).removeprefix(b"\xef\xbb\xbf")
        while part:
            yield part
            part = stream.read(_PART)
