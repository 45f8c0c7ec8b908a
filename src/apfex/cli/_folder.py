"""Run folders: made beside their place under another name, and whole when they appear."""

from __future__ import annotations

import os
import shlex
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from apfex.cli._errors import CommandError
from apfex.cli._screen import Screen

MODEL, FRONT, AUDIT, REPORT, RUN = "model", "front.json", "audit.json", "report.html", "run.json"


def free_place(out: Path | None, name: str) -> Path:
    """Where a run goes: where the user says, if nothing is there, or ``apfex-NAME`` with a number.

    Nothing is ever replaced.
    """
    if out is None:
        stem = f"apfex-{_simple(name)}"
        numbered = (Path(stem if n == 1 else f"{stem}-{n}") for n in count(1))
        return next(place for place in numbered if not place.exists())
    if out.is_dir() and not any(out.iterdir()):
        return out
    if out.exists() or out.is_symlink():
        raise CommandError(f"{out} exists already; name another folder with --out, or remove it.")
    return out


@contextmanager
def new_folder(place: Path, screen: Screen) -> Iterator[Path]:
    """A folder to write into, which gets its name only when all went well.

    After an error or Ctrl-C a model that was finished is kept in ``NAME.incomplete``, with the
    record that ``apfex predict`` needs; anything else is removed.
    """
    draft = _draft(place)
    try:
        yield draft
        _publish(draft, place)
    except BaseException as error:
        if (draft / MODEL).is_dir():
            kept = _kept(draft, place)
            screen.warn(
                "Not finished: there is no report, but the model is whole: apfex predict "
                f"{shlex.quote(str(kept))} FILE"
            )
        else:
            shutil.rmtree(draft, ignore_errors=True)
            if isinstance(error, KeyboardInterrupt):
                screen.warn("Not finished: nothing is kept.")
        raise


def _draft(place: Path) -> Path:
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(dir=place.parent, prefix=f".{place.name}.", suffix=".draft"))
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise CommandError(
            f"{place} cannot be made: {reason}; name another folder with --out."
        ) from error
    draft.chmod(0o777 & ~_umask())
    return draft


def _publish(draft: Path, place: Path) -> None:
    try:
        draft.rename(place)
    except OSError as error:
        raise CommandError(
            f"{place} has come to exist in the meantime: {error.strerror}."
        ) from error


def _kept(draft: Path, place: Path) -> Path:
    names = (f"{place.name}.incomplete" + (f"-{n}" if n > 1 else "") for n in count(1))
    kept = next(p for p in map(place.with_name, names) if not p.exists())
    draft.rename(kept)
    return kept


def _simple(name: str) -> str:
    """Letters, digits and dashes of a file's stem."""
    stem = Path(name).stem
    simple = "".join(mark if mark.isalnum() or mark in "-_" else "-" for mark in stem)
    return simple.strip("-")[:60] or "run"


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
