"""A fit that keeps what is finished, and goes on from there."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from sklearn.utils.validation import check_random_state

from apfex.arguments import check_path
from apfex.distributed import chosen_workers
from apfex.models import NOWHERE, Checkpoint, check_count
from apfex.persistence import (
    SEED,
    CheckpointError,
    open_checkpoint,
    pack_arguments,
    shared,
    unpack,
)

if TYPE_CHECKING:
    from apfex.estimator._classifier import APFExClassifier

_WITHOUT_EFFECT = ("n_jobs", "verbose")
"""On what comes out."""


@contextmanager
def opened_checkpoint(given: Any, clf: APFExClassifier) -> Iterator[Checkpoint]:
    """What ``fit(checkpoint=...)`` was given: nothing, a folder, or what a run has opened."""
    if given is None or hasattr(given, "read"):
        yield NOWHERE if given is None else given
        return
    if not isinstance(given, str | os.PathLike):
        raise TypeError(f"checkpoint must be the path of a folder or None, got {given!r}.")
    check_path("checkpoint", given)
    team = chosen_workers()
    if team is not None and team.rank > 0:
        yield shared(None)
        return
    with open_checkpoint(given, settings_of(clf), spell=_spell) as opened:
        try:
            yield shared(opened)
        except KeyboardInterrupt:
            warnings.warn(
                f"Stopped: what is finished is kept in {str(opened.folder)!r}, and the same fit "
                "with the same checkpoint goes on from there.",
                stacklevel=4,
            )
            raise


def seed_of(random_state: Any, checkpoint: Checkpoint) -> int:
    """The seed of a fit: that of the checkpoint, where there is one and nobody says otherwise."""
    seed = int(check_random_state(random_state).randint(2**31 - 1))

    def take(state: Any) -> int:
        return check_count(state["seed"], 0, 2**31 - 1, "seed")

    known = checkpoint.read(SEED, take)
    if known is None:
        checkpoint.write(SEED, {"seed": seed})
        return seed
    if random_state is not None and known != seed:
        raise CheckpointError(
            "random_state must be that of the checkpoint, got another; give the same, None (which "
            "takes that of the checkpoint), or another checkpoint."
        )
    return known


def settings_of(clf: APFExClassifier) -> dict[str, Any]:
    """What decides which front comes out; what cannot be stored is known by its name."""
    given = clf.get_params(deep=False)
    packed = pack_arguments({n: v for n, v in given.items() if n not in _WITHOUT_EFFECT}, ())
    return packed["stored"] | packed["not_stored"]


def _spell(name: str, value: Any) -> str:
    try:
        return f"{name}={unpack(value)!r}"
    except ValueError:
        return f"{name}={value}"
