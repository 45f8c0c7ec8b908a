"""``run.json``: what was done, on which data, with which versions, and what came out."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from apfex.cli._errors import CommandError
from apfex.cli._folder import RUN
from apfex.cli._shape import check_shape

KIND, SCHEMA_VERSION = "apfex.run", 1
_PACKAGES = ("apfex", "numpy", "pandas", "pyarrow", "scikit-learn", "scipy", "torch")
_TREES = ("xgboost", "xgboost-cpu")


def new_record(
    command: str, settings: Mapping[str, Any], data: Mapping[str, Any]
) -> dict[str, Any]:
    """The parts that every run has."""
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
    found = {
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
    }
    for name in (*_PACKAGES, *_TREES):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def read_record(
    path: Path, command: str | None = None, *, finished: bool = True
) -> tuple[Path, dict[str, Any]]:
    """The folder of a run and its record, if it has the shape of one.

    Parameters
    ----------
    path : Path
        Of the folder, or of the file.
    command : str, optional
        Which the run must be of.
    finished : bool
        Whether a run that was stopped with its model whole, but nothing measured, is refused.
    """
    from apfex.persistence import read_json

    file = path / RUN if path.is_dir() else path
    if not path.exists():
        raise CommandError(f"There is no run {path}.")
    if not file.exists():
        raise CommandError(f"{path} is no run of apfex: it has no {RUN}, so it was not finished.")
    record = read_json(file)
    if not isinstance(record, dict) or record.get("kind") != KIND:
        raise CommandError(f"{file} is no record of a run of apfex.")
    if record.get("schema_version") != SCHEMA_VERSION:
        raise CommandError(
            f"{file} has schema_version {record.get('schema_version')!r}, this apfex reads "
            f"{SCHEMA_VERSION}; use the version that wrote it ({_writer(record)})."
        )
    if command is not None and record.get("command") != command:
        raise CommandError(
            f"{file} is of `apfex {record.get('command')}`, not of `apfex {command}`."
        )
    check_shape(record, file)
    if finished and not is_finished(record):
        folder = file.parent
        raise CommandError(
            f"{folder} was stopped before its points were measured: it has no figures and no "
            f"report, only the model, with which `apfex predict {folder} FILE` works. Run `apfex "
            "explore` again for the rest."
        )
    return file.parent, record


def is_finished(record: Mapping[str, Any]) -> bool:
    """Whether all that the run was to write is there."""
    return record.get("finished", True)


def results_of(described: Mapping[str, Any]) -> dict[str, Any]:
    """What a repeated run must find again: figures of every point, where chosen and held back.

    Parameters
    ----------
    described : mapping
        From :func:`apfex.report.describe_front`.
    """
    return {
        "point": described["chosen"],
        "points": [
            {
                "error": point["error"],
                **{f"{gap['criterion']} by {gap['by']}": gap["gap"] for gap in point["gaps"]},
                "error when chosen": point["validation"]["error"],
                **{
                    f"{name} when chosen": gap["gap"]
                    for name, gap in point["validation"]["gaps"].items()
                },
            }
            for point in described["points"]
        ],
    }


def _writer(record: Mapping[str, Any]) -> str:
    found = record.get("versions")
    return f"apfex {found.get('apfex', 'unknown') if isinstance(found, dict) else 'unknown'}"
