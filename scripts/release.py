"""Is this tree ready to be released?

``make release-check`` (or ``python scripts/release.py``) refuses a changelog that says nothing of
the version, a CITATION.cff of another version, changes that are not committed, and sources whose
GPU tests nobody has recorded. Then it builds wheel and sdist, sees that the sdist holds all that
the repository holds, that its tests can be collected, and that it builds the same wheel, installs
the wheel into a clean environment of every Python from 3.11 on that is here, and runs
``scripts/smoke.py`` there. It publishes nothing. What it built is in ``dist``.

On a machine with a GPU ``python scripts/release.py --record-gpu`` runs the GPU tests and writes
``benchmarks/results/gpu-tests.json``, which is committed with the release.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import xml.etree.ElementTree as ElementTree
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zipfile import ZipFile

ROOT = Path(__file__).parents[1]
GPU_RECORD = ROOT / "benchmarks" / "results" / "gpu-tests.json"
MINORS = range(11, 20)


class NotReadyError(Exception):
    """Why this tree is not to be released."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pythons", nargs="+", help="such as 3.11; by default all that are here")
    parser.add_argument("--without-gpu", action="store_true", help="do not ask for a GPU record")
    parser.add_argument("--uncommitted", action="store_true", help="allow changes not committed")
    parser.add_argument("--record-gpu", action="store_true", help="run the GPU tests and record it")
    given = parser.parse_args()
    try:
        if given.record_gpu:
            record_gpu_tests()
        else:
            check(given.pythons, gpu=not given.without_gpu, clean=not given.uncommitted)
    except NotReadyError as reason:
        raise SystemExit(f"Not ready: {reason}") from None


def check(pythons: list[str] | None, *, gpu: bool, clean: bool) -> None:
    version = version_of((ROOT / "src" / "apfex" / "__init__.py").read_text())
    check_changelog((ROOT / "CHANGELOG.md").read_text(), version)
    check_citation((ROOT / "CITATION.cff").read_text(), version)
    print(f"Version {version}: the changelog and CITATION.cff know it.")
    if clean:
        check_committed()
    print(
        gpu_line(GPU_RECORD, version, digests(ROOT / "src"))
        if gpu
        else "GPU tests: not asked for (--without-gpu)."
    )
    wheel = build(ROOT / "dist")
    for name, python in choose(available_pythons(), pythons).items():
        smoke(name, python, wheel)
    print(f"Ready: {wheel.name} and its sdist are in {wheel.parent}. Nothing was published.")


# What is written down


def version_of(source: str) -> str:
    found = re.search(r'^__version__ = "(.+)"$', source, re.M)
    if found is None:
        raise NotReadyError("src/apfex/__init__.py has no __version__; set it.")
    return found[1]


def check_changelog(text: str, version: str) -> None:
    """A final version has its section, all of what was unreleased; any other something to tell."""
    parts = re.split(r"^## (.+)$", text, flags=re.M)
    sections = {
        title.split()[0].strip("[]"): body.strip()
        for title, body in zip(parts[1::2], parts[2::2], strict=True)
    }
    if re.fullmatch(r"\d+\.\d+\.\d+", version):
        if not sections.get(version):
            raise NotReadyError(
                f"CHANGELOG.md says nothing of version {version}; make its 'Unreleased' section "
                f"'## {version} - YYYY-MM-DD'."
            )
        if sections.get("Unreleased"):
            raise NotReadyError(
                f"CHANGELOG.md has changes under 'Unreleased' that version {version} would ship; "
                "move them into its section."
            )
    elif not sections.get("Unreleased"):
        raise NotReadyError(
            "CHANGELOG.md has nothing under 'Unreleased'; say what a user will notice."
        )


def check_citation(text: str, version: str) -> None:
    found = re.search(r"^version: (.+)$", text, re.M)
    if found is None or found[1].strip("\"'") != version:
        told = "none" if found is None else found[1]
        raise NotReadyError(f"CITATION.cff must have version {version}, got {told}.")


def check_committed() -> None:
    changed = output("git", "status", "--porcelain")
    if changed:
        raise NotReadyError(
            f"{len(changed.splitlines())} files are not committed, the first is "
            f"{changed.splitlines()[0][3:]}; commit them, or try with --uncommitted."
        )


# GPU tests, which a person runs


def digests(sources: Path) -> dict[str, str]:
    """A digest of every room of the package, by its name: of the paths and bytes of its files."""
    rooms: dict[str, Any] = {}
    package = sources / "apfex"
    for path in sorted(package.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            name = path.relative_to(package)
            found = rooms.setdefault(name.parts[0].removesuffix(".py"), hashlib.sha256())
            data = path.read_bytes()
            found.update(f"{name.as_posix()} {len(data)}\n".encode() + data)
    return {room: found.hexdigest()[:16] for room, found in rooms.items()}


def gpu_line(path: Path, version: str, sources: dict[str, str]) -> str:
    """What the record says; refused where it is of other sources or has failures."""
    remedy = "run python scripts/release.py --record-gpu on a GPU machine, or say --without-gpu"
    if not path.exists():
        raise NotReadyError(f"nobody has recorded the GPU tests of version {version}; {remedy}.")
    record = json.loads(path.read_text())
    if record["version"] != version:
        told = f"the GPU tests were recorded for version {record['version']}"
        raise NotReadyError(f"{told}, not for {version}; {remedy}.")
    known = record.get("sources", {})
    changed = sorted(room for room in known | sources if known.get(room) != sources.get(room))
    if changed:
        raise NotReadyError(
            f"src/apfex has changed since the GPU tests were recorded, in {', '.join(changed)}; "
            f"{remedy}."
        )
    if record["failed"] or not record["passed"]:
        raise NotReadyError(
            f"of the GPU tests {record['passed']} passed and {record['failed']} failed; mend them."
        )
    return (
        f"GPU tests: {record['passed']} passed on {record['machine']}, {record['date']}, at commit "
        f"{record['commit'][:10]}."
    )


def record_gpu_tests() -> None:
    import torch

    if not torch.cuda.is_available():
        raise NotReadyError("this machine has no CUDA device that torch can use.")
    check_committed()
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        tests = [sys.executable, "-m", "pytest", "-q", "-m", "gpu", f"--junitxml={report}"]
        subprocess.run(tests, cwd=ROOT, check=False)
        suite = next(ElementTree.parse(report).getroot().iter("testsuite"))
    tests, failed, skipped = (int(suite.get(key, 0)) for key in ("tests", "failures", "skipped"))
    failed += int(suite.get("errors", 0))
    record = {
        "version": version_of((ROOT / "src" / "apfex" / "__init__.py").read_text()),
        "commit": output("git", "rev-parse", "HEAD"),
        "date": datetime.now(UTC).date().isoformat(),
        "machine": f"{torch.cuda.get_device_name(0)}, torch {torch.__version__}",
        "passed": tests - failed - skipped,
        "failed": failed,
        "skipped": skipped,
        "sources": digests(ROOT / "src"),
    }
    GPU_RECORD.write_text(json.dumps(record, indent=1) + "\n")
    print(f"{GPU_RECORD.relative_to(ROOT)}: {record['passed']} passed, {failed} failed.")


# Building and installing


def build(folder: Path) -> Path:
    """Wheel and sdist in an empty folder; the sdist must build the same wheel."""
    shutil.rmtree(folder, ignore_errors=True)
    hatch = [sys.executable, "-m", "hatchling", "build", "-d"]
    run([*hatch, str(folder), "-t", "wheel", "-t", "sdist"], ROOT)
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    with tempfile.TemporaryDirectory() as place:
        with tarfile.open(sdist) as archive:
            archive.extractall(place, filter="data")
        (source,) = Path(place).iterdir()
        check_sdist(files_below(source), output("git", "ls-files", "-z").split("\0"))
        collect = [sys.executable, "-m", "pytest", "-q", "--collect-only", "tests"]
        run(collect, source, PYTHONPATH=os.pathsep.join([str(source / "src"), str(source)]))
        run([*hatch, place, "-t", "wheel"], source)
        (again,) = Path(place).glob("*.whl")
        if contents(again) != contents(wheel):
            raise NotReadyError("the sdist builds another wheel than the tree does.")
    print(f"Built {wheel.name} and {sdist.name}; the sdist is whole and builds the same wheel.")
    return wheel


def files_below(folder: Path) -> list[str]:
    return [one.relative_to(folder).as_posix() for one in folder.rglob("*") if one.is_file()]


def check_sdist(there: list[str], tracked: list[str]) -> None:
    """It holds what the repository holds, so that its tests can run, and nothing else."""
    wanted, found = {name for name in tracked if name}, set(there) - {"PKG-INFO"}
    if found != wanted:
        missing, more = sorted(wanted - found), sorted(found - wanted)
        raise NotReadyError(
            f"the sdist lacks {missing[:5]} and has {more[:5]} beside what git tracks; change "
            "tool.hatch.build.targets.sdist in pyproject.toml."
        )


def contents(wheel: Path) -> dict[str, int]:
    """Checksums of the files of a wheel."""
    return {one.filename: one.CRC for one in ZipFile(wheel).infolist()}


def available_pythons() -> dict[str, str]:
    """Interpreters from 3.11 on, by their version: on the path, or below those of pyenv."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    found = {}
    for name in (f"3.{minor}" for minor in MINORS):
        paths = [shutil.which(f"python{name}"), *sorted(pyenv.glob(f"{name}.*/bin/python"))]
        usable = [str(path) for path in paths if path and runs_as(str(path), name)]
        if usable:
            found[name] = usable[0]
    return found


def runs_as(python: str, name: str) -> bool:
    """Whether it is there: what stands on the path may be a stand-in for nothing."""
    done = subprocess.run([python, "--version"], capture_output=True, text=True, check=False)
    return done.returncode == 0 and done.stdout.startswith(f"Python {name}.")


def choose(found: dict[str, str], wanted: list[str] | None) -> dict[str, str]:
    missing = sorted(set(wanted or ()) - set(found))
    if missing or not found:
        raise NotReadyError(
            f"no Python {', '.join(missing) or '3.11 or newer'} is here; there are "
            f"{', '.join(found) or 'none'}."
        )
    return {name: path for name, path in found.items() if wanted is None or name in wanted}


def smoke(name: str, python: str, wheel: Path) -> None:
    """Install the wheel where nothing else is, and use it there."""
    with tempfile.TemporaryDirectory() as place:
        run([python, "-m", "venv", f"{place}/venv"], ROOT)
        own, install = f"{place}/venv/bin/python", ["-m", "pip", "install", "--quiet"]
        run([own, *install, "--constraint", str(ROOT / "constraints.txt"), str(wheel)], Path(place))
        run([own, "-m", "pip", "check"], Path(place))
        shutil.copy(ROOT / "scripts" / "smoke.py", place)
        print(f"Python {name}: {run([own, 'smoke.py'], Path(place)).strip()}", flush=True)


def run(command: list[str], place: Path, **more: str) -> str:
    """What a command says; its own words where it fails."""
    quiet = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    quiet.pop("PYTHONPATH", None)
    quiet |= more
    done = subprocess.run(
        command, cwd=place, env=quiet, capture_output=True, text=True, timeout=3600, check=False
    )
    if done.returncode:
        raise NotReadyError(f"{' '.join(command)} failed:\n{(done.stdout + done.stderr)[-3000:]}")
    return done.stdout


def output(*command: str) -> str:
    return run(list(command), ROOT).strip()


if __name__ == "__main__":
    main()
