"""One folder, whole or not at all."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from apfex.storage._files import beside, sync_folder, telling


@contextmanager
def new_folder(target: Path, belonging: Callable[[Path], set[str]] | None = None) -> Iterator[Path]:
    """A draft to fill, which becomes the folder at the end, and goes where that fails.

    ``belonging`` names the files that may be there already and are replaced, given the folder;
    without it, a folder that exists is refused.
    """
    _check_free(target, belonging)
    draft = beside(target, "tmp")
    with telling(target):
        above = next(folder for folder in target.parents if folder.exists())
        if not above.is_dir():
            raise NotADirectoryError(f"{str(above)!r} is a file")
        target.parent.mkdir(parents=True, exist_ok=True)
        draft.mkdir()
        try:
            yield draft
            sync_folder(draft)
            _put(draft, target)
        except BaseException:
            shutil.rmtree(draft, ignore_errors=True)
            raise
        sync_folder(target.parent)


def _check_free(target: Path, belonging: Callable[[Path], set[str]] | None) -> None:
    if not target.exists():
        return
    if not target.is_dir():
        raise FileExistsError(
            f"{str(target)!r} must be a folder to write, got a file of this name; choose another."
        )
    if belonging is None:
        raise FileExistsError(
            f"{str(target)!r} must not be there yet, got a folder of this name; choose another, or "
            "pass overwrite=True."
        )
    there = {path.name for path in target.iterdir()}
    try:
        others = sorted(there - belonging(target)) if there else []
    except (OSError, ValueError):
        others = sorted(there)
    if others:
        raise FileExistsError(
            f"{str(target)!r} must hold nothing but what was saved there to be overwritten, got "
            f"{others[:3]}; move that away, or choose another folder."
        )


def _put(draft: Path, target: Path) -> None:
    """Rename the draft; what was there is removed only when it has gone well."""
    if not target.exists():
        draft.rename(target)
        return
    aside = beside(target, "old")
    target.rename(aside)
    try:
        draft.rename(target)
    except BaseException:
        aside.rename(target)
        raise
    shutil.rmtree(aside, ignore_errors=True)
