"""The seam between what learns and where finished parts of it are kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeVar, final

_T = TypeVar("_T")


class Checkpoint(Protocol):
    """Where finished parts of a fit are kept, so that another process goes on from there.

    A state is made of mappings, lists, numbers, text, tensors and modules of this package.
    """

    def read(self, name: str) -> Any | None:
        """Return the state of this name; None where there is none."""
        ...

    def write(self, name: str, state: Any) -> None:
        """Keep a state, whole or not at all, in place of an earlier one of this name."""
        ...

    def is_due(self, *, finished: bool) -> bool:
        """Whether a training that is under way, or finished, is to be kept now."""
        ...

    def match(self, facts: Callable[[], Mapping[str, Any]]) -> None:
        """Refuse a checkpoint that was made with other data, given what is learnt from."""
        ...

    def part(self, name: str) -> Checkpoint:
        """Return the same place, where all names begin with this one."""
        ...


@final
class _Nowhere:
    """Nothing is kept."""

    def read(self, name: str) -> None:
        """There is nothing."""

    def write(self, name: str, state: Any) -> None:
        """Keep nothing."""

    def is_due(self, *, finished: bool) -> bool:  # noqa: ARG002
        """Never."""
        return False

    def match(self, facts: Callable[[], Mapping[str, Any]]) -> None:
        """Whatever they are."""

    def part(self, name: str) -> _Nowhere:  # noqa: ARG002
        """Return the same."""
        return self


NOWHERE: Checkpoint = _Nowhere()
"""For a fit that keeps nothing."""


def kept(checkpoint: Checkpoint, name: str, compute: Callable[[], _T]) -> _T:
    """What was computed before, or is computed and kept now.

    Examples
    --------
    >>> kept(NOWHERE, "sum", lambda: 1 + 1)
    2
    """
    found = checkpoint.read(name)
    if found is None:
        found = compute()
        checkpoint.write(name, found)
    return found
