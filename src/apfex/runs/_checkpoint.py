"""What is finished of a run that is under way, beside the folder that it will have."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from apfex.runs._data import RunData
from apfex.runs._folder import read_record
from apfex.runs._settings import ExploreSettings
from apfex.sources import RunError, RunWarning, hint

if TYPE_CHECKING:
    from apfex.persistence import FolderCheckpoint

_ENDING = ".checkpoint"
_WITHOUT_EFFECT = ("source", "threads", "tolerance", "confidence", "encoding", "sheet")
"""On what is trained; of the source its sha256 counts."""


@contextmanager
def checkpoint_of(
    folder: Path, settings: ExploreSettings, about: RunData, *, fresh: bool
) -> Iterator[FolderCheckpoint]:
    """The checkpoint of a run: ``NAME.checkpoint``, until the run is whole.

    After an error, Ctrl-C or a kill it stays if anything is finished, and the same run goes on from
    there.
    """
    from apfex.persistence import CheckpointError, open_checkpoint, remove_checkpoint

    place = folder.with_name(folder.name + _ENDING)
    try:
        _remove_those_of_whole_runs(folder.parent)
        if fresh:
            remove_checkpoint(place)
        with open_checkpoint(
            place,
            _trained_with(settings.to_dict()),
            spell=_spell,
            remedy=f"name another folder ({hint('out')}), or start anew ({hint('fresh')})",
        ) as checkpoint:
            checkpoint.match(lambda: {"data": about.sha256})
            try:
                yield checkpoint
            except BaseException:
                _tell_or_remove(checkpoint)
                raise
            checkpoint.discard()
    except CheckpointError as error:
        raise RunError(str(error), found=error.folder, fresh=True) from error


def _tell_or_remove(checkpoint: FolderCheckpoint) -> None:
    if not checkpoint.n_finished:
        checkpoint.discard()
        return
    said = (
        f"What is finished of the training is kept in {checkpoint.folder}; the same command goes "
        "on from there."
    )
    warnings.warn(RunWarning(said, found=checkpoint.folder), stacklevel=5)


def _remove_those_of_whole_runs(parent: Path) -> None:
    """Of a run that was killed when it was whole, but before its checkpoint was removed.

    Whatever else has such a name stays, as the checkpoint of somebody's ``fit``; and what cannot be
    read or removed stops no other run.
    """
    from apfex.persistence import read_checkpoint, remove_checkpoint

    for place in parent.glob(f"*{_ENDING}"):
        with suppress(OSError, ValueError):
            record = read_record(place.with_name(place.name.removesuffix(_ENDING)), "explore")[1]
            found = read_checkpoint(place)
            is_of_it = found["data"].get("data") == record["data"]["sha256"]
            if is_of_it and found["settings"] == _trained_with(record["settings"]):
                remove_checkpoint(place)


def _trained_with(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings that a checkpoint must have the same."""
    return {name: value for name, value in settings.items() if name not in _WITHOUT_EFFECT}


def _spell(name: str, value: Any) -> str:
    """A setting as it is given."""
    shown = value
    if isinstance(value, dict):
        shown = ",".join(f"{key}={one}" for key, one in value.items())
    elif isinstance(value, list):
        shown = ",".join(map(str, value))
    return f"{hint(name)} {shown}"
