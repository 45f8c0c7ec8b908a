"""Where files lie on this computer, and how they get there: checked, and whole or not at all."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from apfex.datasets._sources import DataFile


class SourceError(Exception):
    """A source did not give a file; the next one is tried."""


def cache_folder() -> Path:
    """Return the user's cache, where fetched files are kept."""
    from platformdirs import user_cache_dir

    return Path(user_cache_dir("apfex", appauthor=False))


def find_file(dataset: str, file: DataFile) -> Path | None:
    """Return the file, or its stand-in, from ``APFEX_DATA`` or the cache.

    A wrong checksum under ``APFEX_DATA`` is an error, since the user put the file there; in the
    cache it means that the file is damaged, and it is fetched again.
    """
    candidates = [file] if file.stand_in is None else [file, file.stand_in]
    own = os.environ.get("APFEX_DATA")
    for candidate in candidates if own else ():
        path = Path(str(own)) / dataset / candidate.name
        if path.is_file():
            _check_own_file(path, candidate)
            return path
    for candidate in candidates:
        path = cache_folder() / dataset / candidate.name
        if path.is_file() and _sha256(path.read_bytes()) == candidate.sha256:
            return path
    return None


def save_file(dataset: str, file: DataFile, content: bytes) -> Path:
    """Check the content and write it into the cache, whole or not at all."""
    from apfex.persistence import write_bytes_atomically

    found = _sha256(content)
    if found != file.sha256:
        raise SourceError(
            f"{file.name} is damaged or was changed: sha256 must be {file.sha256}, got {found} "
            f"({len(content)} bytes, {file.size} expected)"
        )
    path = cache_folder() / dataset / file.name
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_bytes_atomically(path, content)
    except OSError as error:
        raise OSError(
            f"Cannot write {path}: {error}. Free some space or make the folder writable, or put "
            f"the file yourself into {dataset}/ under the folder named by APFEX_DATA."
        ) from error
    return path


def _check_own_file(path: Path, file: DataFile) -> None:
    found = _sha256(path.read_bytes())
    if found != file.sha256:
        raise ValueError(
            f"{path} must be the published file with sha256 {file.sha256}, got {found}; replace "
            "it, or remove it to have it fetched."
        )


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
