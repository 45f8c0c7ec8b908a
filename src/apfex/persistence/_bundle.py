"""A folder of JSON, arrays and other files, with a list of what must be in it."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

from apfex.arguments import as_path
from apfex.persistence._exchange import read_steadily
from apfex.persistence._files import new_folder, write_synced
from apfex.persistence._json import check_room, parse_json, read_bytes

if TYPE_CHECKING:
    from torch import Tensor

MANIFEST, CONTENT, ARRAYS = "manifest.json", "content.json", "arrays.safetensors"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*(\.[A-Za-z0-9_-]+)*", re.ASCII)
_LARGEST_MANIFEST = 2**24


@final
@dataclass(frozen=True, eq=False)
class Bundle:
    """What a folder holds.

    Attributes
    ----------
    content : JSON value
        See :func:`pack` for what JSON has no word for.
    arrays : mapping from names to tensors
        Of any type and shape, stored bit by bit.
    files : mapping from file names to bytes
        Whatever has a form of its own.

    Examples
    --------
    >>> Bundle({"threshold": 0.5}).arrays
    {}
    """

    content: Any
    arrays: Mapping[str, Tensor] = field(default_factory=dict)
    files: Mapping[str, bytes] = field(default_factory=dict)


def write_bundle(
    folder: str | os.PathLike[str],
    bundle: Bundle,
    *,
    kind: str,
    format: int,
    overwrite: bool = False,
) -> Path:
    """Write a folder, whole or not at all.

    Parameters
    ----------
    folder : str or path
        Folders above it are made.
    bundle : Bundle
    kind : str
        What it is; :func:`read_bundle` wants to be told.
    format : int
        Number of the form of the content, to be raised when old readers would misread it.
    overwrite : bool
        Whether a folder that is there, and holds a bundle of this kind and nothing else, is
        replaced. It is kept until the new one is whole.

    Returns
    -------
    Path
        Of the folder.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as place:
    ...     folder = write_bundle(f"{place}/new", Bundle([1, 2]), kind="numbers", format=1)
    ...     read_bundle(folder, kind="numbers", format=1).content
    [1, 2]
    """
    files = {CONTENT: json.dumps(bundle.content, allow_nan=False).encode(), **bundle.files}
    if bundle.arrays:
        files[ARRAYS] = _save_arrays(bundle.arrays)
    for name in bundle.files:
        if not _NAME.fullmatch(name) or name.lower() in (MANIFEST, CONTENT, ARRAYS):
            raise ValueError(f"files must have plain names of their own, got {name!r}.")
    listed = {name: _describe(data) for name, data in sorted(files.items())}
    manifest = {"kind": kind, "format": format, "files": listed}
    manifest["sha256"] = _digest_of_manifest(manifest)
    files[MANIFEST] = json.dumps(manifest, indent=2).encode()
    target = as_path("folder", folder).resolve()
    belonging = partial(_files_of, kind=kind) if overwrite else None
    with new_folder(target, belonging) as draft:
        for name, data in files.items():
            write_synced(draft / name, data)
    return target


def read_bundle(
    folder: str | os.PathLike[str], *, kind: str, format: int, oldest: int = 0
) -> Bundle:
    """Read a folder that :func:`write_bundle` has made; nothing in it is executed.

    Parameters
    ----------
    folder : str or path
    kind : str
        What it must be.
    format, oldest : int
        The newest and the oldest that the caller understands.

    Returns
    -------
    Bundle

    Raises
    ------
    FileNotFoundError, NotADirectoryError
        Where the folder, or a file of it, is not there.
    ValueError
        For another kind or format, or a damaged file.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as place:
    ...     folder = write_bundle(f"{place}/new", Bundle([1, 2]), kind="numbers", format=2)
    ...     try:
    ...         read_bundle(folder, kind="numbers", format=1)
    ...     except ValueError as error:
    ...         print(str(error).split(" must ")[1][:45])
    be of format 1 or older, got format 2: a newe
    """
    place = as_path("folder", folder)
    return read_steadily(place, lambda found: _read_bundle(found, kind, format, oldest))


def _read_bundle(place: Path, kind: str, format: int, oldest: int) -> Bundle:
    manifest = _read_manifest(place)
    if manifest.get("kind") != kind:
        raise ValueError(
            f"{str(place)!r} must hold {kind!r}, got {manifest.get('kind')!r}; choose a folder of "
            "that kind."
        )
    found = manifest.get("format")
    if type(found) is not int or found > format:
        raise ValueError(
            f"{str(place)!r} must be of format {format} or older, got format {found!r}: a newer "
            "version of the package has written it. Update the package to read it."
        )
    if found < oldest:
        raise ValueError(
            f"{str(place)!r} must be of format {oldest} or newer, got format {found}: an earlier "
            "version of the package has written it, and this one does not read it. Fit and save "
            "the model again."
        )
    if manifest.get("sha256") != _digest_of_manifest(manifest):
        raise _damaged(place / MANIFEST, "its contents do not match the sha256 that it names")
    check_room(place, sum(_size_of(known) for _, known in _listed(place, manifest)))
    files = {name: _read_listed(place / name, known) for name, known in _listed(place, manifest)}
    arrays = _load_arrays(files.pop(ARRAYS), place / ARRAYS) if ARRAYS in files else {}
    if CONTENT not in files:
        raise _damaged(place / MANIFEST, f"it does not list {CONTENT}")
    return Bundle(parse_json(files.pop(CONTENT), place / CONTENT), arrays, files)


def _read_manifest(folder: Path) -> dict[str, Any]:
    if not folder.is_dir():
        kind = NotADirectoryError if folder.exists() else FileNotFoundError
        what = "a file" if folder.exists() else "nothing of this name"
        raise kind(f"{str(folder)!r} must be a folder that was saved, got {what}.")
    path = folder / MANIFEST
    _refuse_link(path)
    if not path.is_file():
        raise FileNotFoundError(
            f"{str(folder)!r} must be a folder that was saved, got one without {MANIFEST}; choose "
            "another, or copy it again."
        )
    if path.stat().st_size > _LARGEST_MANIFEST:
        raise _damaged(path, f"it has {path.stat().st_size:,} bytes, more than any manifest")
    manifest = parse_json(read_bytes(path, follow=False), path)
    if not isinstance(manifest, dict):
        raise _damaged(path, "it is no JSON object")
    return manifest


def _listed(folder: Path, manifest: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """Names and what is known of the files; nothing outside of the folder can be named."""
    files = manifest.get("files")
    if not isinstance(files, dict) or not all(isinstance(known, dict) for known in files.values()):
        raise _damaged(folder / MANIFEST, "it lists no files")
    strange = [name for name in files if not _NAME.fullmatch(name) or name == MANIFEST]
    if strange:
        raise _damaged(folder / MANIFEST, f"it lists {strange[0]!r}, which is no plain file name")
    return list(files.items())


def _size_of(known: Mapping[str, Any]) -> int:
    """What the manifest says of a file's size; it is compared with the file when that is read."""
    return known["bytes"] if type(known.get("bytes")) is int and known["bytes"] > 0 else 0


def _refuse_link(path: Path) -> None:
    """Refuse a link within a folder: whoever made it chose a file of the reader's computer."""
    if path.is_symlink():
        raise ValueError(
            f"{str(path)!r} must be a file of the folder itself, got a link to another place; copy "
            "the folder with the files that its links lead to (cp -rL)."
        )


def _read_listed(path: Path, known: Mapping[str, Any]) -> bytes:
    _refuse_link(path)
    if not path.is_file():
        raise FileNotFoundError(
            f"{str(path)!r} is missing, so the folder is incomplete; copy or save it again."
        )
    size = path.stat().st_size
    if size != known.get("bytes"):
        raise _damaged(path, f"it has {size} bytes where the manifest says {known.get('bytes')}")
    if set(known) != {"bytes", "sha256"} or not isinstance(known["sha256"], str):
        raise _damaged(path, "the manifest does not name its sha256")
    return read_bytes(path, known["sha256"], follow=False)


def _files_of(folder: Path, kind: str) -> set[str]:
    """Names of the files that belong to a bundle of this kind; what is another is not ours."""
    manifest = _read_manifest(folder)
    if manifest.get("kind") != kind:
        return set()
    names = {MANIFEST, *(name for name, _ in _listed(folder, manifest))}
    return {name for name in names if (folder / name).is_file()}  # a folder may hold anything


def _describe(data: bytes) -> dict[str, Any]:
    return {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}


def _digest_of_manifest(manifest: Mapping[str, Any]) -> str:
    rest = {name: part for name, part in manifest.items() if name != "sha256"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()


def _damaged(path: Path, reason: str) -> ValueError:
    return ValueError(f"{str(path)!r} is damaged: {reason}; copy or save the folder again.")


def _save_arrays(arrays: Mapping[str, Tensor]) -> bytes:
    from safetensors.torch import save

    try:
        # copies: what shares its memory with others is refused there
        return save({name: one.detach().cpu().contiguous().clone() for name, one in arrays.items()})
    except (KeyError, RuntimeError, ValueError) as error:
        types = sorted({f"{array.dtype} ({array.layout})" for array in arrays.values()})
        raise TypeError(
            f"arrays must be such that safetensors can hold them, got {types}: {error}."
        ) from error


def _load_arrays(data: bytes, path: Path) -> dict[str, Tensor]:
    from safetensors import SafetensorError
    from safetensors.torch import load

    try:
        # copies: views of the file would lie at odd addresses, where sums round differently
        return {name: array.clone() for name, array in load(data).items()}
    except (SafetensorError, KeyError, ValueError, RuntimeError) as error:
        raise _damaged(path, f"safetensors cannot read it ({error})") from error
