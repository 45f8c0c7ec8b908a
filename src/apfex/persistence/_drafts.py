"""Drafts: held while they are filled, so that those of a process that was killed can be told."""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import shutil
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from apfex.files import hold

_LONGEST = 100
"""Bytes of a name that its drafts have; of a longer one they have a hash, too."""
_ENDINGS = ("tmp", "old", "draft")


def beside(path: Path, ending: str) -> Path:
    """A name that nobody uses, in the same folder and so on the same disk."""
    return path.with_name(f".{_stem(path.name)}.{secrets.token_hex(4)}.{ending}")


def _stem(name: str) -> str:
    """What drafts of a file or folder are called by; no two names share one."""
    encoded = os.fsencode(name)
    if len(encoded) <= _LONGEST:
        return name
    start = encoded[:_LONGEST].decode(errors="ignore")
    return f"{start}~{hashlib.sha256(encoded).hexdigest()[:16]}"


@contextmanager
def new_draft(make: Callable[[], Path]) -> Iterator[Path]:
    """A draft that is there, and held by this process until the block ends, or the process does.

    Parameters
    ----------
    make : callable
        Makes a file or folder of a new name.
    """
    draft = make()
    descriptor = hold(draft, wait=True)
    while descriptor is None and not draft.exists():  # cleaned up before it was held
        draft = make()
        descriptor = hold(draft, wait=True)
    try:
        yield draft
    finally:
        if descriptor is not None:
            os.close(descriptor)


def clean_up(target: Path) -> list[Path]:
    """Remove drafts of a file or folder that processes have left which are gone, and say so.

    What was moved aside, and not replaced yet, gets its name back.

    Examples
    --------
    >>> clean_up(Path("nowhere/run"))
    []
    """
    gone = [draft for draft in _drafts_of(target) if _cleaned(draft, target)]
    if gone:
        names = ", ".join(one.name for one in gone)
        warnings.warn(
            f"A process that was stopped has left {names} in {str(target.parent)!r}, which nobody "
            "needs; it is removed.",
            stacklevel=4,
        )
    return gone


def standing(target: Path) -> Path:
    """The folder, or what was moved aside by a process that was stopped before it replaced it."""
    if target.exists():
        return target
    return next((draft for draft in _drafts_of(target) if draft.suffix == ".old"), target)


def _drafts_of(target: Path) -> list[Path]:
    endings = "|".join(_ENDINGS)
    name = re.compile(rf"\.{re.escape(_stem(target.name))}\.[0-9a-f]{{8}}\.({endings})")
    with suppress(OSError):
        return sorted(path for path in target.parent.iterdir() if name.fullmatch(path.name))
    return []


def _cleaned(draft: Path, target: Path) -> bool:
    """Whether a draft is removed; one that somebody holds, or may hold, is left alone."""
    descriptor = hold(draft, wait=False)
    if descriptor is None:
        return False
    try:
        with suppress(OSError):
            if draft.suffix == ".old" and not target.exists():
                draft.rename(target)
                return False
            if draft.is_dir():
                shutil.rmtree(draft)
            else:
                draft.unlink()
        return not draft.exists()
    finally:
        os.close(descriptor)
