"""``apfex rerun``: a run again, and whether it comes out the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from apfex.cli._errors import CommandError
from apfex.cli._exploring import explore
from apfex.cli._files import open_table
from apfex.cli._record import read_record, versions
from apfex.cli._screen import Screen
from apfex.cli._settings import ExploreSettings


def repeat(run: Path, data: Path | None, out: Path | None, screen: Screen) -> dict[str, Any]:
    """Repeat ``explore`` on the same data into a new folder, and compare."""
    folder, record = read_record(run, "explore")
    settings = ExploreSettings.from_dict(record["settings"])
    settings = replace(settings, source=_source(record, data))
    _check_data(record, settings)
    again = explore(settings, out, screen)
    differences = compare(record["results"], again["results"])
    changed = {
        name: [old, versions().get(name)]
        for name, old in record["versions"].items()
        if versions().get(name) != old
    }
    screen.say()
    if not differences:
        screen.say(f"The same as {folder}: all errors and gaps of all points, to the last digit.")
    else:
        more = f" and {len(differences) - 4} more" if len(differences) > 4 else ""
        screen.say(f"Not the same as {folder}: {', '.join(differences[:4])}{more}.")
        if changed:
            said = ", ".join(f"{name} {old} -> {new}" for name, (old, new) in changed.items())
            screen.say(f"Versions differ: {said}.")
    return again | {
        "repeats": str(folder),
        "same": not differences,
        "differences": differences,
        "versions_changed": changed,
    }


def compare(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """What differs between two runs, in words; nothing where all is the same."""
    old, new = before["points"], after["points"]
    if len(old) != len(new):
        return [f"{len(old)} points before, {len(new)} now"]
    found = []
    for name in old[0]:
        pairs = [(p.get(name), q.get(name)) for p, q in zip(old, new, strict=True)]
        moved = [abs(p - q) for p, q in pairs if p is not None and q is not None]
        if any((p is None) != (q is None) for p, q in pairs):
            found.append(f"{name} is known of other points")
        elif max(moved, default=0.0):
            found.append(f"{name} by up to {max(moved):.2g}")
    if before["point"] != after["point"]:
        found.append(f"point {before['point']} was chosen, now {after['point']}")
    return found


def _source(record: Mapping[str, Any], data: Path | None) -> str:
    stored = record["data"]["path"]
    if stored is None:
        if data is not None:
            raise CommandError(f"--data is for files; the run is of {record['data']['name']}.")
        return record["settings"]["source"]
    path = Path(stored) if data is None else data
    if not path.exists():
        raise CommandError(f"The data of the run, {path}, is not there; say where: --data FILE")
    return str(path)


def _check_data(record: Mapping[str, Any], settings: ExploreSettings) -> None:
    """A run on other data is another run. Data sets by name are checked when they are loaded."""
    if record["data"]["path"] is None:
        return
    found = open_table(Path(settings.source), settings.encoding).sha256()
    wanted = record["data"]["sha256"]
    if found != wanted:
        raise CommandError(
            f"{settings.source} is not the file of the run: sha256 must be {wanted[:12]}..., got "
            f"{found[:12]}...; find the old file (--data), or explore the new one."
        )
