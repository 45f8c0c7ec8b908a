"""Records on disk: one file a run, written whole or not at all, by one sweep at a time."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, final

from apfex.persistence import write_text_atomically
from apfex_reproduction.experiments._run import FORMAT, Record

_NEEDED = ("format", "apfex", "dataset", "split", "seed", "method", "results", "settings")
_NAME = re.compile(r".+-\d{3,}\.json|.+\.jsonl")
"""A run, or a pack; any other file, as a result that somebody saved beside them, is no record."""
Key = tuple[str, str, str, int]
"""Data set, split, method and seed: what a record is found by."""


def key_of(record: Record) -> Key:
    """What a record is found by: data set, split, method and seed.

    Examples
    --------
    >>> key_of({"dataset": "heart", "split": "70/15/15", "method": "plain", "seed": 3})
    ('heart', '70/15/15', 'plain', 3)
    """
    return record["dataset"], record["split"], record["method"], record["seed"]


@final
class RecordFolder:
    """A folder of records: ``<dataset>/<split>/<method>-<seed>.json``, and packs ``*.jsonl``.

    Parameters
    ----------
    path : path
        Made when the first record is written.

    Examples
    --------
    >>> import tempfile
    >>> folder = RecordFolder(tempfile.mkdtemp())
    >>> list(folder.read())
    []
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        if self.path.exists() and not self.path.is_dir():
            raise ValueError(f"The folder of records must be a folder, got the file {self.path}.")

    def read(self) -> Iterator[Record]:
        """All records, each key once.

        One of another format, a damaged one, and two that contradict each other are refused.
        """
        seen: dict[Key, Any] = {}
        for path in sorted(self.path.rglob("*.json*")):
            if not _NAME.fullmatch(path.name):
                continue
            for record in _read_file(path):
                key = key_of(record)
                if key not in seen:
                    seen[key] = record["results"]
                    yield record
                elif seen[key] != record["results"]:
                    raise ValueError(
                        f"{self.path} must hold one record of a run, got two that differ of {key}, "
                        f"one in {path}; move one of them away."
                    )

    def write(self, record: Record) -> Path:
        """Write one record, at once and whole."""
        dataset, split, method, seed = key_of(record)
        path = self.path / dataset / split.replace("/", "-") / f"{method}-{seed:03d}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text_atomically(path, _as_line(record))
        return path

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other sweeps out; a lock of a process that is gone does not count."""
        from filelock import FileLock, Timeout

        self.path.mkdir(parents=True, exist_ok=True)
        lock = FileLock(self.path / ".lock", timeout=0)
        try:
            lock.acquire()
        except Timeout:
            raise ValueError(
                f"Another sweep is writing into {self.path}; wait for it, or choose another folder."
            ) from None
        try:
            yield
        finally:
            lock.release()


def write_pack(records: Iterable[Record], path: str | Path) -> Path:
    """Write records as lines of one file, in the order of their keys: what is committed.

    Examples
    --------
    >>> import tempfile
    >>> write_pack([], Path(tempfile.mkdtemp()) / "heart.jsonl").read_text()
    ''
    """
    path = Path(path)
    lines = [_as_line(record) for record in sorted(records, key=key_of)]
    write_text_atomically(path, "".join(lines))
    return path


def _as_line(record: Record) -> str:
    return json.dumps(record, separators=(",", ":"), allow_nan=False) + "\n"


def _read_file(path: Path) -> Iterator[Record]:
    """The record of a run, or those of a pack, one a line."""
    data = path.read_bytes()
    if path.suffix == ".json":
        yield _parse(data, str(path))
        return
    for number, line in enumerate(data.splitlines(), start=1):
        yield _parse(line, f"Line {number} of {path}")


def _parse(data: bytes, what: str) -> Record:
    try:
        record: Any = json.loads(data)
    except ValueError as error:  # no JSON, or no text
        raise ValueError(
            f"{what} is not a whole record ({error}); remove it, and its run is repeated."
        ) from None
    found = record.get("format") if isinstance(record, dict) else None
    if found is None:
        raise ValueError(f"{what} must be a record of a run, got something else; move it away.")
    if found != FORMAT:
        raise ValueError(
            f"{what} must be a record of format {FORMAT}, got {found!r}; it was written by another "
            "version of apfex. Choose another folder, or move the old records away."
        )
    missing = [name for name in _NEEDED if name not in record]
    if missing:
        raise ValueError(f"{what} must be a whole record, got one without {', '.join(missing)}.")
    return record
