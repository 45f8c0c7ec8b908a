"""A folder that keeps what is finished of a fit, so that another process goes on from there."""

from __future__ import annotations

import hashlib
import json
import os
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn, TypeVar, final

import torch
from torch import Tensor

from apfex.distributed import Workers, chosen_workers
from apfex.models import NOWHERE, Checkpoint, as_it_is
from apfex.persistence._files import write_bytes_atomically
from apfex.persistence._json import read_bytes, read_json, write_json
from apfex.persistence._save import versions
from apfex.persistence._states import read_state, write_state

KIND, FORMAT = "apfex.checkpoint", 1
_MANIFEST, _LOCK, _ENDING = "checkpoint.json", ".lock", ".state"
SEED = "seed"
"""Name of the state that is kept before anything is finished."""
_PACKAGES = ("apfex", "numpy", "scikit-learn", "torch", "xgboost", "xgboost-cpu")
"""That decide which bits come out."""
_SECONDS = 10.0
"""At least so long passes until the state of a training is kept again."""
_TIMES = 50.0
"""And at least so many times as long as the last time has taken."""
_SHOWN = 60
_MOST_SAID = 500
"""Characters of an error that is about what somebody else has written."""
_T = TypeVar("_T")


class CheckpointError(ValueError):
    """A checkpoint that this fit cannot go on from.

    Attributes
    ----------
    folder : Path or None

    Examples
    --------
    >>> issubclass(CheckpointError, ValueError)
    True
    """

    def __init__(self, text: str, folder: Path | None = None) -> None:
        super().__init__(text)
        self.folder = folder


@final
class FolderCheckpoint:
    """States in files of a folder, each whole or not there; made by :func:`open_checkpoint`.

    Parameters
    ----------
    folder : Path
    manifest : dict
        What the folder says of itself.
    remedy : str
        What to do where the checkpoint is of something else.
    prefix : str
        Of all names.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as place, open_checkpoint(f"{place}/fit", {}) as checkpoint:
    ...     checkpoint.write("step", {"epochs": 3})
    ...     checkpoint.read("step"), checkpoint.read("other")
    ({'epochs': 3}, None)
    """

    def __init__(
        self, folder: Path, manifest: dict[str, Any], remedy: str, prefix: str = ""
    ) -> None:
        self.folder, self._manifest, self._remedy = folder, manifest, remedy
        self._prefix, self._last, self._cost = prefix, time.monotonic(), 0.0

    @property
    def n_finished(self) -> int:
        """How many parts of the fit are kept."""
        return sum(path.name != f"{SEED}{_ENDING}" for path in self.folder.glob(f"*{_ENDING}"))

    def discard(self) -> None:
        """Remove it: all is done, or nothing was."""
        _discard(self.folder)

    def read(self, name: str, take: Callable[[Any], _T] = as_it_is) -> _T | None:
        """Return what ``take`` makes of the state of this name; None where there is none."""
        data = self.read_bytes(name)
        return None if data is None else self.decode(name, data, take)

    def read_bytes(self, name: str) -> bytes | None:
        """Return the file of a state; None where there is none."""
        path = self._path(name)
        try:
            return read_bytes(path) if path.exists() else None
        except ValueError as error:
            raise CheckpointError(str(error), self.folder) from error

    def decode(self, name: str, data: bytes, take: Callable[[Any], _T]) -> _T:
        """Return what is made of the state that a file holds."""
        try:
            return take(read_state(data, self._path(name)))
        except (CheckpointError, ImportError):
            raise
        except Exception as error:  # whoever has written it may make any of them
            why = str(error) if isinstance(error, ValueError) else repr(error)
            raise CheckpointError(
                f"{str(self._path(name))!r} is damaged ({why[:_MOST_SAID]}); remove this file, and "
                "what it held is computed again.",
                self.folder,
            ) from error

    def write(self, name: str, state: Any) -> None:
        """Keep a state, whole or not at all, in place of an earlier one of this name."""
        started = time.monotonic()
        try:
            data = write_state(state)
        except (TypeError, ImportError) as error:
            warnings.warn(
                f"The checkpoint {str(self.folder)!r} does not keep models that cannot be stored "
                f"without pickle ({error}); a fit that goes on from there makes them again.",
                stacklevel=2,
            )
            return
        write_bytes_atomically(self._path(name), data)
        self._last = time.monotonic()
        self._cost = self._last - started

    def is_due(self, *, finished: bool) -> bool:
        """Whether a training that is under way, or finished, is to be kept now."""
        waited = time.monotonic() - self._last
        return finished or waited >= max(_SECONDS, _TIMES * self._cost)

    def match(self, facts: Callable[[], Mapping[str, Any]]) -> None:
        """Refuse a checkpoint that was made with other data; a new one notes these."""
        given = facts()
        own = {name: _digest(value) for name, value in given.items()}
        known = self._manifest.setdefault("data", {})
        differing = [name for name, value in own.items() if known.get(name, value) != value]
        if differing:
            told = [
                f"{name} {known[name]} instead of {own[name]}"
                if isinstance(given[name], int)
                else f"other {name}"
                for name in differing
            ]
            _refuse(self.folder, "data", ", ".join(told), "the same data", self._remedy)
        if own.keys() - known.keys():
            known |= own
            write_json(self.folder / _MANIFEST, self._manifest)

    def part(self, name: str) -> FolderCheckpoint:
        """Return the same folder, where all names begin with this one."""
        return FolderCheckpoint(self.folder, self._manifest, self._remedy, f"{self._prefix}{name}-")

    def _path(self, name: str) -> Path:
        return self.folder / f"{self._prefix}{name}{_ENDING}"


@final
class SharedCheckpoint:
    """The checkpoint of the first of several workers, from which all of them go on.

    Parameters
    ----------
    team : Workers
    own : FolderCheckpoint or None
        That of the first worker, which alone reads and writes; None there: nothing is kept.
    """

    def __init__(self, team: Workers, own: FolderCheckpoint | None) -> None:
        self._team, self._own = team, own

    def read(self, name: str, take: Callable[[Any], _T] = as_it_is) -> _T | None:
        """Return what the first worker has; all of them must ask in the same order."""
        data = None if self._own is None else self._own.read_bytes(name)
        size = -1 if data is None else len(data)
        size = int(self._team.first(torch.tensor([size]))[0])
        if size < 0:
            return None
        sent = torch.zeros(size, dtype=torch.uint8)
        if data is not None:
            sent = torch.frombuffer(bytearray(data), dtype=torch.uint8)
        received = self._team.first(sent).numpy().tobytes()
        if self._own is not None:
            return self._own.decode(name, received, take)
        return take(read_state(received, Path(name)))

    def write(self, name: str, state: Any) -> None:
        """Let the first worker keep a state."""
        if self._own is not None:
            self._own.write(name, state)

    def is_due(self, *, finished: bool) -> bool:
        """Whether the first worker is to keep the state of a training."""
        return self._own is not None and self._own.is_due(finished=finished)

    def match(self, facts: Callable[[], Mapping[str, Any]]) -> None:
        """Let the first worker compare; the others stop when it does."""
        if self._own is not None:
            self._own.match(facts)

    def part(self, name: str) -> SharedCheckpoint:
        """Return the same, where all names begin with this one."""
        return SharedCheckpoint(self._team, None if self._own is None else self._own.part(name))


def shared(own: FolderCheckpoint | None) -> Checkpoint:
    """A checkpoint as a fit takes it, of one process or of several that share batches."""
    team = chosen_workers()
    if team is not None:
        return SharedCheckpoint(team, own)
    return NOWHERE if own is None else own


@contextmanager
def open_checkpoint(
    folder: str | os.PathLike[str],
    settings: Mapping[str, Any],
    *,
    spell: Callable[[str, Any], str] = lambda name, value: f"{name}={value!r}",
    remedy: str = "choose another folder, or remove this one to start anew",
) -> Iterator[FolderCheckpoint]:
    """Make a checkpoint, or go on with one, while no other process does.

    Parameters
    ----------
    folder : str or path
        One that is not there yet, an empty one, or a checkpoint.
    settings : mapping of JSON values
        What the fit was asked for; it must be the same when it goes on.
    spell : callable
        How a setting is shown.
    remedy : str
        What to do where the checkpoint is of something else.

    Yields
    ------
    FolderCheckpoint
    """
    if not os.fspath(folder):
        raise ValueError("checkpoint must name a folder, got an empty text.")
    place = Path(folder).absolute()
    with ExitStack() as until_closed:
        if place.is_dir() or place.is_symlink():  # what is refused stays as it is, without a lock
            _refuse_links(place)
            _manifest_of(place, remedy)
        _make(place)
        until_closed.enter_context(_locked(place))
        manifest = _manifest_of(place, remedy)
        plain = json.loads(json.dumps(dict(settings), allow_nan=False))
        own = {"kind": KIND, "format": FORMAT, "versions": _versions(), "settings": plain}
        if manifest is None:
            write_json(place / _MANIFEST, own)
            manifest = own
        _check_versions(place, manifest, own["versions"], remedy)
        _check_settings(place, manifest, own["settings"], spell, remedy)
        yield FolderCheckpoint(place, manifest, remedy)


def read_checkpoint(folder: Path) -> dict[str, Any]:
    """What a checkpoint says of itself: kind, versions, settings and data; nothing is changed."""
    _refuse_links(folder)
    manifest = _manifest_of(folder, "name another folder") if folder.is_dir() else None
    if manifest is None:
        raise CheckpointError(f"{str(folder)!r} is no checkpoint; name another folder.", folder)
    return {"data": {}} | manifest


def remove_checkpoint(folder: Path) -> None:
    """Remove a checkpoint and nothing else; one that another process uses is refused."""
    if not folder.exists():
        return
    _refuse_links(folder)
    with _locked(folder):
        if _manifest_of(folder, "remove it yourself if it is of no use") is not None:
            _discard(folder)


def _discard(folder: Path) -> None:
    """Remove the files of a checkpoint, and the folder if nothing else is in it."""
    for path in [*folder.glob(f"*{_ENDING}"), folder / _MANIFEST, folder / _LOCK]:
        with suppress(OSError):
            path.unlink(missing_ok=True)
    with suppress(OSError):
        folder.rmdir()


def _refuse_links(place: Path) -> None:
    """Refuse a folder that is a link or holds one: what is written there would land elsewhere."""
    inside = place.iterdir() if place.is_dir() else ()
    link = next((path for path in (place, *inside) if path.is_symlink()), None)
    if link is not None:
        raise CheckpointError(
            f"The checkpoint {str(place)!r} must hold plain files, got the link {link.name!r}; "
            "choose another folder.",
            place,
        )


def _make(place: Path) -> None:
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        told = type(error)(
            f"The checkpoint {str(place)!r} cannot be made: {error.strerror or error}; choose "
            "another folder."
        )
        told.errno = error.errno
        raise told from error


@contextmanager
def _locked(place: Path) -> Iterator[None]:
    """Keep other processes out; the lock of one that is gone does not count."""
    from filelock import FileLock, Timeout

    lock = FileLock(place / _LOCK, timeout=0)
    try:
        lock.acquire()
    except Timeout:
        raise CheckpointError(
            f"The checkpoint {str(place)!r} must be used by one process at a time, got one that "
            "another process is writing; wait for that, or choose another folder.",
            place,
        ) from None
    except OSError as error:
        told = type(error)(
            f"The checkpoint {str(place)!r} cannot be written: {error.strerror or error}; choose "
            "another folder."
        )
        told.errno = error.errno
        raise told from error
    try:
        yield
    finally:
        lock.release()


def _manifest_of(place: Path, remedy: str) -> dict[str, Any] | None:
    """What a folder says of itself; None for an empty one."""
    path = place / _MANIFEST
    if not path.exists():
        others = sorted(one.name for one in place.iterdir() if not one.name.startswith("."))
        if others:
            raise CheckpointError(
                f"{str(place)!r} must be empty, or a checkpoint, got a folder with {others[:3]}; "
                "choose another.",
                place,
            )
        return None
    try:
        manifest = read_json(path)
    except ValueError as error:
        raise CheckpointError(f"{error} The checkpoint cannot be read; {remedy}.", place) from error
    is_one = isinstance(manifest, dict) and manifest.get("kind") == KIND
    parts = {"data": {}} | manifest if is_one else {}
    if not all(isinstance(parts.get(name), dict) for name in ("versions", "settings", "data")):
        raise CheckpointError(f"{str(path)!r} is no record of a checkpoint; {remedy}.", place)
    if manifest.get("format") != FORMAT:
        _refuse(
            place,
            "version of apfex",
            f"format {manifest.get('format')!r} instead of {FORMAT}",
            "that version",
            remedy,
        )
    return manifest


def _versions() -> dict[str, str]:
    found = versions(_PACKAGES)
    return {name: found[name] for name in _PACKAGES if name in found}


def _check_versions(
    place: Path, manifest: Mapping[str, Any], own: Mapping[str, str], remedy: str
) -> None:
    known = manifest["versions"]
    differing = [
        f"{name} {known.get(name, 'not there')} instead of {own.get(name, 'not there')}"
        for name in dict.fromkeys([*known, *own])
        if known.get(name) != own.get(name)
    ]
    if differing:
        _refuse(place, "versions", ", ".join(differing), "those versions", remedy)


def _check_settings(
    place: Path,
    manifest: Mapping[str, Any],
    own: Mapping[str, Any],
    spell: Callable[[str, Any], str],
    remedy: str,
) -> None:
    known = manifest["settings"]
    differing = [name for name in dict.fromkeys([*known, *own]) if known.get(name) != own.get(name)]
    if differing:
        told = ", ".join(
            f"{spell(name, known.get(name))[:_SHOWN]} instead of "
            f"{spell(name, own.get(name))[:_SHOWN]}"
            for name in differing
        )
        _refuse(place, "settings", told, "the same settings", remedy)


def _refuse(place: Path, what: str, found: str, same: str, remedy: str) -> NoReturn:
    raise CheckpointError(
        f"The checkpoint {str(place)!r} must be of the same {what} to go on from, got {found}; use "
        f"{same}, {remedy}.",
        place,
    )


def _digest(value: Any) -> Any:
    """Numbers and text as they are; of tensors a checksum of all that they hold."""
    if isinstance(value, int | str):
        return value
    digest = hashlib.blake2b(digest_size=16)
    for part in [value] if isinstance(value, Tensor) else value:
        if isinstance(part, Tensor):
            digest.update(f"{part.dtype}{list(part.shape)}".encode())
            digest.update(part.detach().cpu().contiguous().numpy().data)
        else:
            digest.update(str(_digest(part)).encode())
    return digest.hexdigest()
