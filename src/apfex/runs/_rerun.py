"""A run again, on the same data, and whether it comes out the same."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, final

from apfex.clusters import is_dask_frame
from apfex.runs._explore import Progress, explore_with
from apfex.runs._folder import check_finished, read_record, versions
from apfex.runs._run import Run
from apfex.runs._settings import ExploreSettings
from apfex.runs._stream_data import hash_of_files
from apfex.sources import RunError, hint, open_table, stored_frame


@final
@dataclass(frozen=True)
class Rerun:
    """A run that was repeated.

    Attributes
    ----------
    run : Run
        The new one.
    repeats : Path
        Folder of the old one.
    differences : tuple of str
        What came out differently, in words; empty where all errors and gaps of all points are the
        same, to the last digit.
    versions_changed : mapping from package to its version then and now
    """

    run: Run
    repeats: Path
    differences: tuple[str, ...]
    versions_changed: Mapping[str, tuple[str, str | None]]

    @property
    def same(self) -> bool:
        """Whether it came out the same."""
        return not self.differences


def rerun(
    folder: str | os.PathLike[str],
    *,
    data: Any = None,
    out: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
    verbose: bool = False,
) -> Rerun:
    """Repeat a run with its settings and seed on the same data, and compare.

    Parameters
    ----------
    folder : path
        Of the run, or of its ``run.json``.
    data : file or frame, optional
        Where the data are now; the file of the run by default. They must have its sha256.
    out, progress, verbose
        As for :func:`explore`.

    Returns
    -------
    Rerun

    Examples
    --------
    >>> rerun("nowhere")
    Traceback (most recent call last):
    apfex.sources._errors.RunError: There is no run nowhere.
    """
    home, record = read_record(folder, "explore")
    check_finished(record, home)
    settings = ExploreSettings.from_dict(record["settings"])
    source = _data_of(record, settings, data)
    run = explore_with(replace(settings, source=source), source, out, progress, verbose)
    now = versions()
    changed = {n: (old, now.get(n)) for n, old in record["versions"].items() if now.get(n) != old}
    differences = compare(record["results"], run.record["results"])
    return Rerun(run, home, tuple(differences), changed)


def compare(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """What differs between two runs, in words; nothing where all is the same."""
    old, new = before["points"], after["points"]
    if len(old) != len(new):
        return [f"{len(old)} models before, {len(new)} now"]
    found = []
    for name in old[0]:
        pairs = [(p.get(name), q.get(name)) for p, q in zip(old, new, strict=True)]
        moved = [abs(p - q) for p, q in pairs if p is not None and q is not None]
        if any((p is None) != (q is None) for p, q in pairs):
            found.append(f"{name} is measured for other models")
        elif max(moved, default=0.0):
            found.append(f"{name} by up to {max(moved):.2g}")
    if before["point"] != after["point"]:
        found.append(f"point {before['point']} was chosen, now {after['point']}")
    return found


def _data_of(record: Mapping[str, Any], settings: ExploreSettings, data: Any) -> Any:
    """The data of a run, wherever they are now. A run on other data is another run."""
    stored, name = record["data"]["path"], record["data"]["name"]
    if stored is None and settings.source is not None:
        if data is not None:
            raise RunError(f"{hint('data')} is for files; the run is of {name}.")
        return settings.source  # checked when it is loaded
    if stored is None and data is None:
        raise RunError(f"The run is of a frame; hand it over again: {hint('data')}")
    source = stored if data is None else data
    if settings.stream and is_dask_frame(source):
        with stored_frame(source) as folder:
            _check_hash("the Dask DataFrame", hash_of_files(str(folder)), record)
        return source
    if settings.stream and not isinstance(source, str | os.PathLike):
        raise RunError(
            f"{hint('data')} must be what the run read, files or a Dask DataFrame with the same "
            f"partitions, got {type(source).__name__}."
        )
    if settings.stream:
        _check_hash(str(source), hash_of_files(str(source)), record)
        return source
    if data is None and not Path(str(source)).exists():
        raise RunError(
            f"The data of the run, {source}, is not there; say where: {hint('data')}", found=source
        )
    table = open_table(source, settings.encoding, settings.sheet)
    _check_hash(table.name, table.sha256(), record)
    return source


def _check_hash(name: str, found: str, record: Mapping[str, Any]) -> None:
    """Refuse other data than those of the run."""
    wanted = record["data"]["sha256"]
    if found != wanted:
        raise RunError(
            f"{name} is not that of the run: sha256 must be {wanted[:12]}..., got "
            f"{found[:12]}...; find the old one ({hint('data')}), or explore the new one.",
            found=found[:12],
        )
