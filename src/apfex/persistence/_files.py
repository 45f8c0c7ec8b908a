"""A file or a folder, whole or not at all."""

from __future__ import annotations

import errno
import os
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from apfex.arguments import as_path
from apfex.persistence._drafts import beside, clean_up, new_draft
from apfex.persistence._exchange import exchange

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def write_text_atomically(path: str | os.PathLike[str], text: str) -> Path:
    """Write text as UTF-8, so that readers see what was there before, or all of the new.

    Parameters
    ----------
    path : str or path
        In a folder that exists; a file that is there is replaced, and its permissions are kept.
    text : str
        Written as it is, line ends included.

    Returns
    -------
    Path
        Of the file.

    Notes
    -----
    A draft beside the file is written, flushed to the disk and renamed. If that fails, as on a full
    disk, the draft is removed and the error says so.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write_text_atomically(Path(folder) / "note.txt", "hello").read_text()
    'hello'
    """
    try:
        data = text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(
            f"text must be such that UTF-8 can hold it, got {text[error.start]!r} at place "
            f"{error.start}; replace it."
        ) from error
    return write_bytes_atomically(path, data)


def write_bytes_atomically(path: str | os.PathLike[str], data: bytes) -> Path:
    """Write bytes as :func:`write_text_atomically` writes text.

    Parameters
    ----------
    path : str or path
    data : bytes

    Returns
    -------
    Path
        Of the file.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     list(write_bytes_atomically(Path(folder) / "numbers", bytes([1, 2])).read_bytes())
    [1, 2]
    """
    with new_file(path) as draft, draft.open("rb+") as file:
        file.write(data)
    return as_path("path", path).resolve()


@contextmanager
def new_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A draft to write in parts, which becomes the file at the end, and goes where that fails.

    A process that is killed on the way leaves the draft, a hidden file beside, and what was there;
    the next one that writes the file removes it.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     with new_file(Path(folder) / "note.txt") as draft:
    ...         _ = draft.write_text("hello")
    ...     (Path(folder) / "note.txt").read_text()
    'hello'
    """
    target = as_path("path", path).resolve()  # a link stays one
    with _telling(target):
        if target.is_dir():
            raise IsADirectoryError("there is a folder of this name")
        if target.exists() and not target.is_file():  # its name would go to an ordinary file
            raise ValueError(
                f"path must be a file, got a device or a pipe, {str(target)!r}; write to a file, "
                "and copy that there."
            )
        clean_up(target)
        with new_draft(lambda: _new_file(target)) as draft:
            try:
                yield draft
                with draft.open("rb+") as file:
                    os.fsync(file.fileno())
                if target.exists():
                    draft.chmod(stat.S_IMODE(target.stat().st_mode))
                draft.replace(target)
            except BaseException:
                with suppress(OSError):
                    draft.unlink(missing_ok=True)
                raise
        _sync_folder(target.parent)


def _new_file(target: Path) -> Path:
    draft = beside(target, "tmp")
    draft.open("xb").close()
    return draft


def write_synced(path: Path, data: bytes) -> None:
    """Write a file that was not there, down to the disk."""
    with path.open("xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    """Flush names of files to the disk, where the system can do that for folders."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def _telling(path: Path) -> Iterator[None]:
    """Turn an error of the system into one sentence of the same class."""
    try:
        yield
    except OSError as error:
        remedy = "make room, or choose" if error.errno in _FULL else "choose"
        told = type(error)(
            f"{str(path)!r} could not be written: {error.strerror or error}. What was there before "
            f"is unchanged; {remedy} another place."
        )
        told.errno = error.errno
        raise told from error


@contextmanager
def new_folder(target: Path, belonging: Callable[[Path], set[str]] | None = None) -> Iterator[Path]:
    """A draft to fill, which becomes the folder at the end, and goes where that fails.

    ``belonging`` names the files that may be there already and are replaced, given the folder;
    without it, a folder that exists is refused.
    """
    clean_up(target)
    _check_free(target, belonging)
    with _telling(target):
        above = next(folder for folder in target.parents if folder.exists())
        if not above.is_dir():
            raise NotADirectoryError(f"{str(above)!r} is a file")
        target.parent.mkdir(parents=True, exist_ok=True)
        with new_draft(lambda: _new_folder(target)) as draft:
            try:
                yield draft
                _sync_folder(draft)
                _put(draft, target)
            except BaseException:
                shutil.rmtree(draft, ignore_errors=True)
                raise
        _sync_folder(target.parent)


def _new_folder(target: Path) -> Path:
    draft = beside(target, "tmp")
    draft.mkdir()
    return draft


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
    """Rename the draft; what was there is removed only when it has gone well.

    Both change names at once where the system can do that. Where it cannot, there is a moment in
    which what was there has no name but ``.NAME.*.old``: readers know that one, too, and the next
    writer gives it its name back.
    """
    if not target.exists():
        draft.rename(target)
        return
    if exchange(draft, target):
        shutil.rmtree(draft, ignore_errors=True)
        return
    aside = beside(target, "old")
    target.rename(aside)
    try:
        draft.rename(target)
    except BaseException:
        aside.rename(target)
        raise
    shutil.rmtree(aside, ignore_errors=True)
