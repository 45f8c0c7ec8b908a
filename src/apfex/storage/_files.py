"""One file, whole or not at all."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

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
    target = Path(path).resolve()  # a link stays one
    with telling(target):
        if target.is_dir():
            raise IsADirectoryError("there is a folder of this name")
        draft = beside(target, "tmp")
        try:
            write_synced(draft, data)
            if target.exists():
                draft.chmod(stat.S_IMODE(target.stat().st_mode))
            draft.replace(target)
        except BaseException:
            with suppress(OSError):
                draft.unlink(missing_ok=True)
            raise
        sync_folder(target.parent)
    return target


def write_synced(path: Path, data: bytes) -> None:
    """Write a file that was not there, down to the disk."""
    with path.open("xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Flush names of files to the disk, where the system can do that for folders."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def beside(path: Path, ending: str) -> Path:
    """A name that nobody uses, in the same folder and so on the same disk."""
    return path.with_name(f".{path.name[:100]}.{secrets.token_hex(4)}.{ending}")


@contextmanager
def telling(path: Path) -> Iterator[None]:
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
