"""The seam between what learns and where finished parts of it are kept."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar, final

import torch
from torch import Tensor

_T = TypeVar("_T")


def as_it_is(state: Any) -> Any:
    """The state itself."""
    return state


class Checkpoint(Protocol):
    """Where finished parts of a fit are kept, so that another process goes on from there.

    A state is made of mappings, lists, numbers, text, tensors and modules of this package.
    """

    def read(self, name: str, take: Callable[[Any], _T] = as_it_is) -> _T | None:
        """Return what ``take`` makes of the state of this name; None where there is none.

        Somebody else may have written it: where ``take`` raises an error, the state is refused.
        """
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

    def read(self, name: str, take: Callable[[Any], Any] = as_it_is) -> None:
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


def kept(
    checkpoint: Checkpoint,
    name: str,
    compute: Callable[[], _T],
    check: Callable[[_T], None] = lambda _: None,
) -> _T:
    """What was computed before, if ``check`` has nothing against it, or is computed and kept now.

    Examples
    --------
    >>> kept(NOWHERE, "sum", lambda: 1 + 1)
    2
    """

    def take(state: Any) -> Any:
        check(state)
        return state

    found = checkpoint.read(name, take)
    if found is None:
        found = compute()
        checkpoint.write(name, found)
    return found


def check_like(found: Any, own: Any, what: str = "it") -> None:
    """Refuse a state that has other parts than one of our own, or numbers that are not finite.

    Parameters
    ----------
    found : mappings, sequences, tensors, numbers, text, None
        What somebody may have written.
    own : the same
        Of the same keys and lengths, and tensors of the same type and shape; where these are not
        finite, as a mask may be, those that are found need not be.
    what : str
        Name of it in the error.

    Examples
    --------
    >>> check_like({"means": [torch.zeros(3)]}, {"means": [torch.zeros(2)]})
    Traceback (most recent call last):
    ValueError: means[0] must be float32 of shape [2], got float32 of shape [3]
    """
    if isinstance(own, Tensor):
        check_tensor(found, own.dtype, own.shape, what)
        if own.is_floating_point() and bool((own.isfinite() & ~found.to(own).isfinite()).any()):
            raise ValueError(f"{what} must be finite, got numbers that are not")
    elif isinstance(own, Mapping):
        if not isinstance(found, Mapping) or found.keys() != own.keys():
            there = list(found) if isinstance(found, Mapping) else type(found).__name__
            raise ValueError(f"{what} must have the parts {list(own)}, got {there}")
        for name, part in own.items():
            check_like(found[name], part, str(name) if what == "it" else f"{what}.{name}")
    elif isinstance(own, Sequence) and not isinstance(own, str):
        if not isinstance(found, Sequence) or isinstance(found, str) or len(found) != len(own):
            raise ValueError(f"{what} must have {len(own)} parts, got {str(found)[:40]}")
        for place, part in enumerate(own):
            check_like(found[place], part, f"{what}[{place}]")
    elif type(found) is not type(own):
        raise ValueError(f"{what} must be {type(own).__name__}, got {type(found).__name__}")


def check_tensor(found: Any, dtype: torch.dtype, shape: Sequence[int], what: str) -> None:
    """Refuse what is no tensor of this type and shape."""
    if not isinstance(found, Tensor) or found.dtype != dtype or found.shape != tuple(shape):
        told = type(found).__name__
        if isinstance(found, Tensor):
            told = f"{_name(found.dtype)} of shape {list(found.shape)}"
        raise ValueError(f"{what} must be {_name(dtype)} of shape {list(shape)}, got {told}")


def check_codes(found: Any, shape: Sequence[int], n: int) -> None:
    """Refuse what are no codes below n, of a shape."""
    check_tensor(found, torch.int64, shape, "codes")
    if found.numel() and not 0 <= int(found.min()) <= int(found.max()) < n:
        raise ValueError(f"codes must be from 0 to {n - 1}, got others")


def check_count(found: Any, least: int, most: int, what: str) -> int:
    """Refuse what is no whole number within bounds.

    Examples
    --------
    >>> check_count(3, 1, 5, "epochs")
    3
    """
    if type(found) is not int or not least <= found <= most:
        raise ValueError(f"{what} must be a whole number from {least} to {most}, got {found!r}")
    return found


def check_losses(found: Any, what: str) -> None:
    """Refuse what is no list of at least one finite number."""
    numbers = found if isinstance(found, list) else []
    if not numbers or not all(type(one) is float and math.isfinite(one) for one in numbers):
        raise ValueError(f"{what} must be finite numbers, got {str(found)[:40]}")


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
