"""Packed files: how large they are unpacked is known before anything is held in memory."""

from __future__ import annotations

import gzip
import io
import zipfile
import zlib
from os import PathLike
from pathlib import Path

MOST_TIMES = 100
"""By which a packed file may grow; tables and sheets grow some 5 to 30 times."""
_SPARE = 2**26
"""Bytes that any file may take unpacked."""
_PART, _TRAILER = 2**20, 4
"""Bytes that are unpacked at a time, and those at the end of a gzipped file that tell its size."""
_USUAL_TIMES = 5
"""By which tables grow at least, mostly."""


def check_gzip(path: str | PathLike[str]) -> None:
    """Refuse a gzipped file that grows beyond measure, which is how few bytes fill a memory.

    It is unpacked part by part, and nothing of it is kept.
    """
    most = _most(Path(path).stat().st_size)
    found = 0
    try:
        with gzip.open(path) as stream:
            while found <= most and (part := stream.read(_PART)):
                found += len(part)
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError(f"{path} cannot be read: {error}.") from error
    if found > most:
        raise ValueError(
            f"{path} must not grow more than {MOST_TIMES} times when it is unpacked, got one that "
            f"does. If you know who made it, unpack it first (gunzip)."
        )


def unpacked_size(path: str | PathLike[str]) -> int:
    """Bytes of a file, if it is gzipped about those that it has unpacked, without unpacking it.

    Its last four bytes tell them, but not of how many times 4 GiB there are more, nor of parts that
    were packed before the last one: as much as tables mostly grow is taken for the least.
    """
    size = Path(path).stat().st_size
    if Path(path).suffix.lower() != ".gz" or size < _TRAILER:
        return size
    with Path(path).open("rb") as stream:
        stream.seek(-_TRAILER, io.SEEK_END)
        told = int.from_bytes(stream.read(_TRAILER), "little")
    return max(told, _USUAL_TIMES * size)


def check_zip(path: str | PathLike[str], data: bytes | None = None) -> None:
    """The same of a zip archive, by what it says of its parts: more than that is never read.

    ``data``: what the file holds, where it was read. What is no archive is left to its reader.
    """
    size = Path(path).stat().st_size if data is None else len(data)
    try:
        with zipfile.ZipFile(path if data is None else io.BytesIO(data)) as archive:
            found = sum(part.file_size for part in archive.infolist())
    except (OSError, zipfile.BadZipFile, ValueError, NotImplementedError):
        return
    if found > _most(size):
        raise ValueError(
            f"{path} must not grow more than {MOST_TIMES} times when it is unpacked, got "
            f"{found:,} bytes in {size:,}."
        )


def _most(size: int) -> int:
    return max(_SPARE, MOST_TIMES * size)
