"""Run folders: whole when they appear, with a record of what was done on which data, and how."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import shutil
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from apfex.arguments import as_path
from apfex.plain import jsonable, printable
from apfex.runs._columns import FeatureType
from apfex.runs._settings import fits
from apfex.sources import RunError, RunWarning, hint, path_of

if TYPE_CHECKING:
    from apfex.auditing import Audit
    from apfex.persistence import FolderCheckpoint

MODEL, FRONT, AUDIT, REPORT, RUN = "model", "front.json", "audit.json", "report.html", "run.json"
DECISION = "decision.json"
KIND, SCHEMA_VERSION = "apfex.run", 2
_SHA256 = re.compile("[0-9a-f]{64}")
_PACKAGES = ("apfex", "numpy", "pandas", "pyarrow", "scikit-learn", "scipy", "torch")
_TREES = ("xgboost", "xgboost-cpu")


def free_folder(out: str | os.PathLike[str] | None, name: str = "run") -> Path:
    """Where a run goes, as an absolute path; nothing is ever replaced.

    Parameters
    ----------
    out : path, optional
        Where the user says, if nothing is there. By default ``apfex-NAME``, with a number where
        there is one, beside the file.
    name : str
        Of the file, or of the data set.

    Examples
    --------
    >>> free_folder(None, "some/where/people.csv").name.startswith("apfex-people")
    True
    """
    if out is None:
        there = path_of("source", name)
        beside = there.parent if there.is_file() else Path()
        return _unused((beside / f"apfex-{_simple(name)}").absolute())
    folder = path_of("out", out).absolute()
    is_empty = folder.is_dir() and not any(folder.iterdir())
    if (folder.exists() or folder.is_symlink()) and not is_empty:
        is_own = folder.is_dir() or folder.is_file() or folder.is_symlink()
        rest = ", or remove it." if is_own else "."  # nobody should remove /dev/null
        raise RunError(
            f"{folder} exists already; name another folder ({hint('out')}){rest}", found=folder
        )
    return folder


@contextmanager
def new_folder(folder: Path, checkpoint: FolderCheckpoint | None = None) -> Iterator[Path]:
    """A draft to write into, which gets the name of the folder only when all went well.

    After an error or Ctrl-C a model that was finished is kept in ``NAME.incomplete``, with the
    record that predicting needs; anything else is removed. A warning says so; where a checkpoint
    has finished parts, the one who has opened it says that.
    """
    from apfex.persistence import clean_up, new_draft

    clean_up(folder)
    with (
        new_draft(lambda: _make_draft(folder)) as draft,
        _kept_if_whole(draft, folder, checkpoint),
    ):
        yield draft
        _publish(draft, folder)


def _make_draft(folder: Path) -> Path:
    from apfex.persistence import beside

    draft = beside(folder, "draft")
    try:
        draft.mkdir(parents=True)
    except (OSError, ValueError) as error:
        raise RunError(
            f"{folder} cannot be made: {getattr(error, 'strerror', None) or error}; name another "
            f"folder ({hint('out')}).",
            found=folder,
        ) from error
    return draft


@contextmanager
def _kept_if_whole(
    draft: Path, folder: Path, checkpoint: FolderCheckpoint | None
) -> Iterator[None]:
    """After an error keep a draft with a model that is whole; remove any other."""
    try:
        yield
    except BaseException as error:
        if (draft / MODEL).is_dir():
            kept = draft.rename(_unused(folder.with_name(f"{folder.name}.incomplete")))
            said = (
                f"Not finished: there is no report, but the models are complete: {hint('predict')}"
            )
            warnings.warn(RunWarning(said, predict=kept, found=kept), stacklevel=2)
        else:
            shutil.rmtree(draft, ignore_errors=True)
            goes_on = checkpoint is not None and checkpoint.n_finished > 0
            if isinstance(error, KeyboardInterrupt) and not goes_on:
                warnings.warn(RunWarning("Not finished: nothing is kept."), stacklevel=2)
        raise


def _publish(draft: Path, folder: Path) -> None:
    try:
        draft.rename(folder)
    except OSError as error:
        raise RunError(
            f"{folder} was made by somebody else in the meantime: {error.strerror}.", found=folder
        ) from error


def _unused(path: Path) -> Path:
    """The path, with a number where it exists."""
    numbered = (path.with_name(f"{path.name}-{n}") for n in count(2))
    return next(place for place in chain([path], numbered) if not place.exists())


def _simple(name: str) -> str:
    """Letters, digits and dashes of a file's stem."""
    stem = Path(name).stem
    simple = "".join(mark if mark.isalnum() or mark in "-_" else "-" for mark in stem)
    return simple.strip("-")[:60] or "run"


def new_record(
    command: str, settings: Mapping[str, Any], data: Mapping[str, Any]
) -> dict[str, Any]:
    """The parts of ``run.json`` that every run has."""
    return {
        "kind": KIND,
        "schema_version": SCHEMA_VERSION,
        "command": command,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "finished": True,
        "versions": versions(),
        "settings": dict(settings),
        "data": dict(data),
    }


def versions() -> dict[str, str]:
    """Of all that results depend on."""
    from apfex.persistence import versions as installed

    found = installed((*_PACKAGES, *_TREES))
    return found | {"platform": f"{platform.system()} {platform.machine()}"}


def part_of(folder: Path, name: str) -> Path:
    """A file of a run, or its model; a link is refused, whoever made it chose where it leads."""
    part = folder / name
    if part.is_symlink():
        raise RunError(
            f"{part} is a link to another place, which a run has none of; copy the folder with "
            "what its links lead to (cp -rL).",
            found=part,
        )
    return part


def read_front(folder: Path) -> dict[str, Any]:
    """The description of a front that a folder holds, if a page can show it."""
    from apfex.persistence import read_json
    from apfex.report import Caveat, check_described
    from apfex.runs._conclusion import Conclusion

    file = part_of(folder, FRONT)
    found = read_json(file, follow=False)
    try:
        check_described(found, is_front=True)
        Conclusion(**found["conclusion"])
        for point in found["points"]:
            _ = [Caveat(**caveat) for caveat in point["caveats"]]
    except Exception as error:  # whoever has written it may make any of them
        raise RunError(
            f"{file} is damaged ({error}); take it from a copy, or do the run again.", found=file
        ) from error
    return found


def read_audit(folder: Path) -> Audit:
    """The audit that a folder holds."""
    from apfex.auditing import Audit
    from apfex.persistence import read_bytes

    file = part_of(folder, AUDIT)
    try:
        return Audit.from_json(read_bytes(file, follow=False).decode())
    except (OSError, ValueError) as error:
        raise RunError(
            f"{file} is damaged or missing ({error}); take it from a copy, or do the run again.",
            found=file,
        ) from error


def keep_decision(
    decision: str | os.PathLike[str], folder: Path, n_points: int | None, sha256: str | None
) -> None:
    """Store a decision in the folder of the run that it is on, once it is checked."""
    from apfex.persistence import write_json
    from apfex.report import read_decision

    if not path_of("decision", decision).is_file():
        raise RunError(f"{hint('decision')} must be a file, got {decision}.", found=decision)
    run = _identity(read_record(folder)[1])
    found = read_decision(decision, n_points=n_points, sha256=sha256, run=run)
    write_json(part_of(folder, DECISION), found)


def decision_in(
    folder: Path | None, n_points: int | None, sha256: str | None
) -> dict[str, Any] | None:
    """The decision that a folder holds, or None; one on another run is refused."""
    from apfex.report import read_decision

    if folder is None or not (folder / DECISION).exists():
        return None
    run = _identity(read_record(folder)[1])
    return read_decision(
        part_of(folder, DECISION), n_points=n_points, sha256=sha256, run=run, follow=False
    )


def run_id(record: Mapping[str, Any]) -> str:
    """Tell a run of ``explore`` from all others: a sha256 of what went in and what came out.

    It is over the data, the settings (sensitive columns and seed among them), the features, the
    labels, and the figures of all points. A run that is repeated, and comes out the same to the
    last digit, has the same.
    """
    parts = {name: record.get(name) for name in ("classes", "favorable", "features", "results")}
    parts["data"] = record["data"]["sha256"]
    parts["settings"] = {k: v for k, v in record["settings"].items() if k != "source"}
    text = json.dumps(jsonable(parts), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _identity(record: Mapping[str, Any]) -> dict[str, Any]:
    """By what a decision is known to be on this run, by the names that the page writes."""
    if record["command"] == "explore":
        return {"run_id": run_id(record)}
    return {"run_date": record.get("created"), "run_settings": record["settings"]}


def read_record(
    run: str | os.PathLike[str], command: str | None = None
) -> tuple[Path, dict[str, Any]]:
    """The folder of a run and its record, if it has the shape of one.

    Parameters
    ----------
    run : path
        Of the folder, or of the file.
    command : str, optional
        Which the run must be of.
    """
    from apfex.persistence import read_json

    path = as_path("run", run)
    file = part_of(path, RUN) if path.is_dir() else path
    if not path.exists():
        raise RunError(f"There is no run {path}.")
    if path.is_file() and path.suffix.lower() != ".json":
        raise RunError(
            f"{path} is no run of apfex: name the folder that `apfex explore` or `apfex audit` has "
            f"written, or its {RUN}.",
            found=path,
        )
    if not file.exists():
        raise RunError(f"{path} is no run of apfex: it has no {RUN}, so it was not finished.")
    record = read_json(file, follow=not path.is_dir())
    if not isinstance(record, dict) or record.get("kind") != KIND:
        raise RunError(f"{file} is no record of a run of apfex.")
    if record.get("schema_version") != SCHEMA_VERSION:
        raise RunError(
            f"{file} has schema_version {record.get('schema_version')!r}, this apfex reads "
            f"{SCHEMA_VERSION}; use the version that wrote it (apfex {_writer(record)}).",
            found=record.get("schema_version"),
        )
    if command is not None and record.get("command") != command:
        raise RunError(
            f"{file} is of `apfex {record.get('command')}`, not of `apfex {command}`.",
            found=record.get("command"),
        )
    _check_shape(record, file)
    return file.parent, record


def report_path(folder: Path | None, path: str | os.PathLike[str] | None) -> Path:
    """Where a page is written: where the user says, or in the folder of the run."""
    if path is not None:
        return as_path("path", path)
    if folder is None:
        raise RunError(
            f"{hint('path')} must name a file, as this run is not stored in a folder; save "
            "makes one."
        )
    return part_of(folder, REPORT)


def is_finished(record: Mapping[str, Any]) -> bool:
    """Whether points were measured; a record that does not say so is whole."""
    return record.get("finished", True) in (True, None)


def check_finished(record: Mapping[str, Any], folder: Path) -> None:
    """Refuse a run that was stopped with its model whole, but nothing measured."""
    if not is_finished(record):
        raise RunError(
            f"{folder} was stopped before its models were measured on the test rows: it has no "
            "figures and no report, only the model, with which this works: "
            f"{hint('predict')}. Explore "
            "the data again for the rest.",
            predict=folder,
        )


def _writer(record: Mapping[str, Any]) -> str:
    found = record.get("versions")
    return found.get("apfex", "unknown") if isinstance(found, dict) else "unknown"


def _check_shape(record: Mapping[str, Any], file: Path) -> None:
    """Refuse a record that lacks parts, or has others, with the first that is wrong."""
    is_front = record.get("command") == "explore"
    rules = dict(_EVERY)
    if is_front:
        rules |= _EXPLORE | (_FINISHED if is_finished(record) else {})
    for part, (kind, wanted) in rules.items():
        value: Any = record
        for name in part.split("."):
            value = value.get(name) if isinstance(value, dict) else None
        if not fits(value, kind) or (value in ([], {}) and part in _NOT_EMPTY):
            raise RunError(
                f"{file} is damaged: {part} must be {wanted}, got {printable(repr(value), 40)}; "
                "take it from a copy, or do the run again.",
                found=value,
            )
    if not _SHA256.fullmatch(record["data"]["sha256"]):
        raise RunError(
            f"{file} is damaged: data.sha256 must be a checksum of 64 digits, got "
            f"{printable(repr(record['data']['sha256']), 40)}; take it from a copy, or do the run "
            "again.",
            found=record["data"]["sha256"],
        )
    for part in ("classes", "words") if is_front else ():
        pair = record[part]
        if len(pair) != 2 or pair[0] == pair[1] or type(pair[0]) is not type(pair[1]):
            raise RunError(
                f"{file} is damaged: {part} must be two labels, got {pair!r}.", found=pair
            )


_EVERY: dict[str, tuple[Any, str]] = {
    "command": (Literal["explore", "audit"], "explore or audit"),
    "created": (str, "a date and a time"),
    "versions": (Mapping[str, str], "names of packages and their versions"),
    "settings": (dict, "the options of the run"),
    "data.name": (str, "the name of the data"),
    "data.path": (str | None, "a file, or null"),
    "data.sha256": (str, "a checksum"),
    "data.rows": (int, "a number of rows"),
    "finished": (bool | None, "true or false"),
}
_EXPLORE: dict[str, tuple[Any, str]] = {
    "classes": (Sequence[str | int], "two labels"),
    "words": (Sequence[str], "the words for two labels"),
    "features": (Mapping[str, FeatureType], "columns, each number, text, boolean or date"),
}
_FINISHED: dict[str, tuple[Any, str]] = {
    "data.test_rows": (int, "a number of rows"),
    "conclusion": (dict | None, "what came out, or null"),
    "results.point": (int, "the number of a point"),
    "results.points": (Sequence[Mapping[str, float | None]], "the figures of every point"),
}
_NOT_EMPTY = ("features", "results.points")
