"""Populations of a user's own torch modules."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, final

import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap

from apfex.models._checkpoint import check_like
from apfex.models._stacked_mlp import take_over

Factory = Callable[[int, int], nn.Module]
"""``(n_features, n_outputs) -> module``."""

_CONVOLUTIONS = (
    nn.Conv1d,
    nn.Conv2d,
    nn.Conv3d,
    nn.ConvTranspose1d,
    nn.ConvTranspose2d,
    nn.ConvTranspose3d,
)


@final
class StackedModules:
    """b modules of a user's own class, evaluated as one tensor program where possible.

    Parameters
    ----------
    factory : callable
        ``(n_features, n_outputs) -> nn.Module``; all modules must have one shape.
    n_features : int
        d.
    n_outputs : int
        1 for two classes, else c. Modules return [n, n_outputs], or [n] for two classes.
    n_members : int
        b.
    seed : int
        While member i is made, torch's generator has the seed ``seed * 1_000_003 + i``.

    Notes
    -----
    The first call in each mode evaluates the members both together and one by one. Modules that
    change their buffers (batch norm), that vmap refuses, or that keep values outside parameters
    and buffers are evaluated one by one; so are convolutions on a CPU, where that is faster. In
    training, all members draw the same random numbers, so that dropout does not make a member
    depend on the number of others.

    Examples
    --------
    >>> population = StackedModules(nn.Linear, 3, 1, n_members=2, seed=0)
    >>> population.scores(torch.zeros(5, 3)).shape
    torch.Size([2, 5])
    """

    def __init__(
        self, factory: Factory, n_features: int, n_outputs: int, n_members: int, seed: int
    ) -> None:
        self.n_members, self.n_outputs = n_members, n_outputs
        self._modules: list[nn.Module] = []
        for member in range(n_members):
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(seed * 1_000_003 + member)
                made = factory(n_features, n_outputs)
            if not isinstance(made, nn.Module):
                raise TypeError(
                    "factory must make an nn.Module of (n_features, n_outputs), got "
                    f"{type(made).__name__}."
                )
            self._modules.append(copy.deepcopy(made))
        self._parameters = _stacked_parameters(self._modules)
        self._buffers = _stacked([dict(module.named_buffers()) for module in self._modules])
        self._is_stacked: dict[bool, bool] = {}
        for module in self._modules:
            for tensor in (*module.parameters(), *module.buffers()):
                tensor.data = tensor.data.new_empty(0)  # the stack holds the values

    @classmethod
    def copies_of(cls, module: nn.Module, n_members: int, n_outputs: int) -> StackedModules:
        """Make a population whose members all start as copies of a fitted module.

        Parameters
        ----------
        module : nn.Module
            Its outputs have shape [n, n_outputs], or [n] for two classes. It is not changed.
        n_members : int
        n_outputs : int
            1 for two classes, else c.

        Examples
        --------
        >>> population = StackedModules.copies_of(nn.Linear(3, 2), 4, n_outputs=2)
        >>> population.scores(torch.zeros(5, 3)).shape
        torch.Size([4, 5, 2])
        """
        if not isinstance(module, nn.Module):
            raise TypeError(f"module must be an nn.Module, got {type(module).__name__}.")
        return cls(lambda *_: module, 0, n_outputs, n_members, seed=0)

    def scores(self, x: Tensor) -> Tensor:
        """Return the scores of all members: [b, n], or [b, n, c] for several classes."""
        training = self._modules[0].training
        if training not in self._is_stacked and x.numel():
            self._is_stacked[training] = self._agrees(x)
        together = self._is_stacked.get(training, False)
        outputs = self._together(x) if together else self._one_by_one(x)
        self._check(outputs, len(x))
        return outputs.view(self.n_members, -1) if self.n_outputs == 1 else outputs

    def parameters(self) -> list[nn.Parameter]:
        """Return what is trained, each of shape [b, ...]."""
        return [parameter for parameter in self._parameters.values() if parameter.requires_grad]

    def values(self) -> list[Tensor]:
        """Return everything that training may change: parameters and buffers."""
        return [tensor.detach() for tensor in (*self.parameters(), *self._buffers.values())]

    def member(self, index: int) -> nn.Module:
        """Return a member with values of its own."""
        module = copy.deepcopy(self._modules[index])
        empty = dict(module.named_parameters()) | dict(module.named_buffers())
        for name, stack in (self._parameters | self._buffers).items():
            empty[name].data = stack[index].detach().clone()
        return module

    def of_members(self, members: Tensor) -> StackedModules:
        """Return some of the members as a population with values of its own."""
        taken = copy.copy(self)
        taken.n_members = len(members)
        taken._modules = [self._modules[member] for member in members.tolist()]
        taken._parameters = {
            name: nn.Parameter(parameter.detach()[members], parameter.requires_grad)
            for name, parameter in self._parameters.items()
        }
        taken._buffers = {name: buffer[members] for name, buffer in self._buffers.items()}
        return taken

    def state_dict(self) -> dict[str, Any]:
        """Return parameters, buffers and how members are evaluated, for a checkpoint."""
        return {"values": self.values(), "stacked": dict(self._is_stacked)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over what :meth:`state_dict` has returned, in place."""
        take_over(self.values(), state["values"])
        known = {mode: True for mode in (True, False) if mode in state["stacked"]}
        check_like(state["stacked"], known, "stacked")
        self._is_stacked.update(state["stacked"])

    def train(self, mode: bool = True) -> None:
        """Switch dropout and the like on or off."""
        for module in self._modules:
            module.train(mode)

    def to(self, device: torch.device) -> StackedModules:
        """Move all members to a device."""
        for parameter in self._parameters.values():
            parameter.data = parameter.data.to(device)
        self._buffers = {name: buffer.to(device) for name, buffer in self._buffers.items()}
        for module in self._modules:
            module.to(device)
        self._is_stacked = {}
        return self

    def _together(self, x: Tensor) -> Tensor:
        def one(values: dict[str, Tensor]) -> Tensor:
            return functional_call(self._modules[0], values, (x,))

        return vmap(one, randomness="same")(self._parameters | self._buffers)

    def _one_by_one(self, x: Tensor) -> Tensor:
        outputs = []
        parameters = {name: stack.unbind() for name, stack in self._parameters.items()}
        for member, module in enumerate(self._modules):
            buffers = {name: stack[member] for name, stack in self._buffers.items()}
            values = {name: part[member] for name, part in parameters.items()} | buffers
            is_last = member == self.n_members - 1
            with nullcontext() if is_last or not module.training else _forked(x.device):
                outputs.append(functional_call(module, values, (x,)))
            for name, buffer in buffers.items():
                if values[name] is not buffer:  # replaced, not changed in place
                    buffer.copy_(values[name].detach())
        return torch.stack(outputs)

    def _agrees(self, x: Tensor) -> bool:
        """Whether the members together give what they give one by one, and change no buffer."""
        if x.device.type == "cpu" and any(
            isinstance(layer, _CONVOLUTIONS) for layer in self._modules[0].modules()
        ):
            return False
        before = {name: buffer.clone() for name, buffer in self._buffers.items()}
        with _forked(x.device):
            expected = self._one_by_one(x)
        changed = [
            name for name, was in before.items() if not torch.equal(was, self._buffers[name])
        ]
        for name in changed:
            self._buffers[name].copy_(before[name])
        if changed:
            return False
        try:
            with _forked(x.device):
                found = self._together(x)
        except Exception:
            return False
        return found.shape == expected.shape and _are_close(found, expected)

    def _check(self, outputs: Tensor, n: int) -> None:
        shape, wanted = list(outputs.shape[1:]), [n, self.n_outputs]
        if shape != wanted and not (self.n_outputs == 1 and shape == [n]):
            raise ValueError(f"Modules must return outputs of shape {wanted}, got {shape}.")


def _forked(device: torch.device) -> AbstractContextManager[None]:
    """Restore the random number generators on leaving, so that the same numbers come again."""
    return torch.random.fork_rng(devices=[device] if device.type == "cuda" else [])


def _are_close(found: Tensor, expected: Tensor) -> bool:
    reach = 1e-3 * float(expected.detach().nan_to_num(0, 0, 0).abs().amax())
    return torch.allclose(found, expected, rtol=1e-3, atol=reach, equal_nan=True)


def _stacked_parameters(modules: Sequence[nn.Module]) -> dict[str, nn.Parameter]:
    named = [dict(module.named_parameters()) for module in modules]
    stacks = {
        name: nn.Parameter(stack, requires_grad=named[0][name].requires_grad)
        for name, stack in _stacked(named).items()
    }
    if not any(parameter.requires_grad for parameter in stacks.values()):
        raise ValueError("Modules must have a parameter that requires a gradient, got none.")
    return stacks


def _stacked(named: Sequence[Mapping[str, Tensor]]) -> dict[str, Tensor]:
    shapes = [{name: tuple(tensor.shape) for name, tensor in one.items()} for one in named]
    for member, shape in enumerate(shapes):
        if shape != shapes[0]:
            raise ValueError(
                f"factory must make modules of one shape, got {shapes[0]} for member 0 and {shape} "
                f"for member {member}."
            )
    return {name: torch.stack([one[name].detach() for one in named]) for name in named[0]}
