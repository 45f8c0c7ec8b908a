"""Modules of a user's own class: their numbers are stored, their code is not."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any, final

import torch
from torch import Tensor, nn

_ROWS = 4
_ANSWER = ".answer"
"""Among the arrays; names of parameters do not begin with a dot."""
_CLOSE = 1e-3


def write_own(
    module: nn.Module, n_features: int, n_outputs: int
) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """What is known of a module, and its arrays: parameters and all buffers."""
    arrays = dict(module.named_parameters()) | dict(module.named_buffers())
    answer = _answer(module, n_features)
    if answer is not None:
        arrays[_ANSWER] = answer
    described = {
        "class": f"{type(module).__module__}.{type(module).__qualname__}",
        "n_features": n_features,
        "n_outputs": n_outputs,
    }
    return described, arrays


@final
class OwnModules:
    """Makes modules of a user's own class, where the user says how.

    Parameters
    ----------
    factory : callable, nn.Module or None
        ``(n_features, n_outputs) -> nn.Module``, or a module to copy.
    """

    def __init__(self, factory: Callable[[int, int], nn.Module] | nn.Module | None) -> None:
        if factory is not None and not callable(factory):
            raise TypeError(
                "model must be a factory (n_features, n_outputs) -> nn.Module, a module or None, "
                f"got {type(factory).__name__}."
            )
        self._factory = factory

    def build(self, described: Mapping[str, Any], arrays: Mapping[str, Tensor]) -> nn.Module:
        """A module that computes what the stored one did."""
        module = self._make(described)
        values = dict(arrays)
        answer = values.pop(_ANSWER, None)
        self._fill(module, values, described["class"])
        found = None if answer is None else _answer(module, int(described["n_features"]))
        if answer is not None and not _agree(found, answer):
            raise ValueError(
                f"model must make modules that compute what the stored {described['class']} did, "
                "got one with the same parameters and other outputs; give the factory that the "
                "classifier was fitted with."
            )
        return module

    def _make(self, described: Mapping[str, Any]) -> nn.Module:
        if self._factory is None:
            raise ValueError(
                f"model must be given to load this folder: its modules are of the class "
                f"{described['class']}, whose code is not stored. Use load(folder, model=factory), "
                "with a factory (n_features, n_outputs) -> nn.Module, or a module like them."
            )
        shape = int(described["n_features"]), int(described["n_outputs"])
        try:
            given = isinstance(self._factory, nn.Module)
            made: Any = self._factory if given else self._factory(*shape)
            return copy.deepcopy(made).cpu().eval()
        except Exception as error:
            raise ValueError(
                f"model must make an nn.Module of {shape}, got one that fails ({error})."
            ) from error

    def _fill(self, module: nn.Module, values: Mapping[str, Tensor], name: str) -> None:
        places = dict(module.named_parameters()) | dict(module.named_buffers())
        shapes = {key: list(place.shape) for key, place in places.items()}
        stored = {key: list(value.shape) for key, value in values.items()}
        if shapes != stored:
            odd = sorted(
                key for key in shapes.keys() | stored.keys() if shapes.get(key) != stored.get(key)
            )
            raise ValueError(
                f"model must make modules like the stored {name}, got one whose {odd[0]!r} has "
                f"shape {shapes.get(odd[0])} where {stored.get(odd[0])} is stored; give the "
                "factory that the classifier was fitted with."
            )
        for key, value in values.items():
            places[key].data = value


def _answer(module: nn.Module, n_features: int) -> Tensor | None:
    """What a module says of rows that are nobody's; None where it takes none, or draws lots."""
    rows = torch.linspace(-1.0, 1.0, _ROWS * n_features).reshape(_ROWS, n_features)
    try:
        with torch.no_grad():
            found, again = module(rows), module(rows)
    except Exception:
        return None
    usable = isinstance(found, Tensor) and torch.equal(found, again)
    return found if usable else None


def _agree(found: Tensor | None, answer: Tensor) -> bool:
    return found is not None and torch.allclose(found, answer.to(found), _CLOSE, _CLOSE)
