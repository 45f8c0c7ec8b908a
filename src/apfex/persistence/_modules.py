"""Models as plain descriptions and arrays, and back; of a user's own class numbers alone."""

from __future__ import annotations

import copy
import math
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, final

import torch
from torch import Tensor, nn

from apfex.models import (
    BoostedModel,
    ColumnsModel,
    GroupingsModel,
    InitModel,
    JointModel,
    JointTrees,
    LabelColumnsModel,
    Trees,
)
from apfex.rules import RuleModel

LAYERS: dict[type[nn.Module], tuple[str, ...]] = {
    nn.BatchNorm1d: ("num_features", "eps", "momentum", "affine", "track_running_stats"),
    nn.Dropout: ("p",),
    nn.ELU: ("alpha",),
    nn.GELU: ("approximate",),
    nn.Identity: (),
    nn.LayerNorm: ("normalized_shape", "eps", "elementwise_affine", "bias"),
    nn.LeakyReLU: ("negative_slope",),
    nn.Linear: ("in_features", "out_features", "bias"),
    nn.ReLU: (),
    nn.Sigmoid: (),
    nn.SiLU: (),
    nn.Tanh: (),
}
"""Layers of torch that are known by their arguments; others are a user's own."""
_GROUPS = (Trees, GroupingsModel)
_NAMES = {kind.__name__: kind for kind in LAYERS}
_MOST_COLUMNS, _MOST_OUTPUTS = 2**20, 2**16
_ROWS = 4
_ANSWER = ".answer"
"""Among the arrays; names of parameters do not begin with a dot."""
_CLOSE = 1e-3
_ARRAYS = {"weight", "bias", "running_mean", "running_var", "num_batches_tracked"}


def is_known(module: nn.Module) -> bool:
    """Whether a module is made of torch's layers, one after the other, and nothing else."""
    hooks = (module._forward_hooks, module._forward_pre_hooks)  # they may do anything
    if any(hooks) or "forward" in vars(module):
        return False
    if type(module) is nn.Sequential:
        return all(is_known(part) for part in module)
    return type(module) in LAYERS and module.state_dict().keys() <= _ARRAYS


class UnfitArgument(ValueError):
    """What a user gave to load a folder, or did not give, is the matter; not the folder."""


@final
class ModuleWriter:
    """Describes modules; what several of them share is described once.

    Attributes
    ----------
    modules : list of JSON values
        Parts come before those that they are part of, and are named by their place.
    arrays : dict from names to tensors
    files : dict from names to bytes
        Trees, in XGBoost's own JSON.
    """

    def __init__(self, n_features: int, n_outputs: int) -> None:
        self._shape = (n_features, n_outputs)
        self._places: dict[int, int] = {}
        self.modules: list[dict[str, Any]] = []
        self.arrays: dict[str, Tensor] = {}
        self.files: dict[str, bytes] = {}

    def add(self, module: nn.Module) -> int:
        """Describe a module, if it is new; its place."""
        if id(module) not in self._places:
            described = self._describe(module)
            self._places[id(module)] = len(self.modules)
            self.modules.append(described)
        return self._places[id(module)]

    def _describe(self, module: nn.Module) -> dict[str, Any]:
        if isinstance(module, RuleModel):
            rule = self._keep({"rule": module.rule})
            return {"is": "rule", "joint": self.add(module.joint), "arrays": rule}
        if isinstance(module, JointModel):
            parts = [self.add(part) for part in module.models]
            given = {name: getattr(module, name) for name in ("weights", "shape", "calibration")}
            cells = {} if module.cells is None else {"cells": module.cells}
            return {"is": "joint model", "models": parts, **given, "arrays": self._keep(cells)}
        if isinstance(module, GroupingsModel):
            parts = [self.add(part) for part in module.models]
            return {"is": "groupings", "models": parts, "sizes": module.sizes}
        if isinstance(module, ColumnsModel):
            part = self.add(module.model)
            return {"is": "columns", "model": part, "start": module.start, "stop": module.stop}
        if isinstance(module, JointTrees):
            group = None if module.group is None else self.add(module.group)
            label, shape = self.add(module.label), list(module.shape)
            return {"is": "joint trees", "label": label, "group": group, "shape": shape}
        if isinstance(module, LabelColumnsModel):
            group = None if module.group is None else self.add(module.group)
            given = {
                name: getattr(module, name) for name in ("start", "n_features", "shape", "kind")
            }
            return {"is": "label columns", "group": group, **given}
        if isinstance(module, InitModel):
            given = {"start": module.start, "decided": module.decided}
            return {"is": "init", "joint": self.add(module.joint), **given}
        if isinstance(module, BoostedModel):
            return {"is": "boosted", "parts": [self.add(module.base), self.add(module.boosted)]}
        if isinstance(module, Trees):
            name = f"trees-{len(self.files)}.json"
            self.files[name] = module.to_json()
            return {"is": "trees", "file": name}
        if not is_known(module):
            described, arrays = _describe_users(module, *self._shape)
            return {"is": "own", "arrays": self._keep(arrays), **described}
        if isinstance(module, nn.Sequential):
            # not named_children, which leaves out what occurs twice
            parts = [[name, self.add(part)] for name, part in module._modules.items() if part]
            return {"is": "sequence", "parts": parts}
        return self._layer(module)

    def _layer(self, layer: nn.Module) -> dict[str, Any]:
        given = {name: getattr(layer, name) for name in LAYERS[type(layer)]}
        if "bias" in given:
            given["bias"] = given["bias"] is not None
        if "normalized_shape" in given:
            given["normalized_shape"] = list(given["normalized_shape"])
        arrays = self._keep(layer.state_dict())
        return {"is": "layer", "type": type(layer).__name__, "given": given, "arrays": arrays}

    def _keep(self, arrays: Mapping[str, Tensor]) -> dict[str, str]:
        """Names in the file of arrays, by their own names."""
        names = {}
        for own, array in arrays.items():
            names[own] = f"{len(self.arrays)}.{own}"
            self.arrays[names[own]] = array
        return names


def build_modules(
    described: Sequence[Mapping[str, Any]],
    arrays: Mapping[str, Tensor],
    files: Mapping[str, bytes],
    own: UserModules,
    n_classes: int | None,
) -> list[nn.Module]:
    """Modules that :class:`ModuleWriter` has described, in evaluation mode.

    Their outputs are checked where the number of classes is known.
    """
    built: list[nn.Module] = []
    check_once(name for one in described for name in one.get("arrays", {}).values())
    check_once(one["file"] for one in described if one["is"] == "trees")
    for one in described:
        taken = {name: arrays[key] for name, key in one.get("arrays", {}).items()}
        check_finite(taken, is_own=one["is"] == "own")
        if "shape" in one and n_classes is not None:
            _check_shape(one["shape"], n_classes)
        built.append(_build(one, built.__getitem__, taken, files, own).eval())
    return built


def check_once(names: Iterable[str]) -> None:
    """Refuse what is used by several: each would make a copy of its own, however large it is."""
    repeated = [name for name, n in Counter(names).items() if n > 1]
    if repeated:
        raise KeyError(f"{repeated[0]!r} must be of one part of a model, and is of several")


def check_finite(arrays: Mapping[str, Tensor], *, is_own: bool) -> None:
    """Refuse numbers that no model learns; a user's own may have infinities, as a mask does."""
    for name, array in arrays.items():
        if array.is_floating_point() or array.is_complex():
            odd = array.isnan().any() if is_own else not array.isfinite().all()
            if odd:
                raise KeyError(f"{name} of a model must be finite, and other numbers are stored")


def _build(
    one: Mapping[str, Any],
    part: Callable[[int], Any],  # of those that were built before
    arrays: Mapping[str, Tensor],
    files: Mapping[str, bytes],
    own: UserModules,
) -> nn.Module:
    kind = one["is"]
    if kind == "rule":
        return RuleModel(_of(JointModel, part(one["joint"])), arrays["rule"])
    if kind == "joint model":
        models = [part(place) for place in one["models"]]
        shape = _pair(one["shape"])
        check_calibration(one["calibration"], shape[1])
        cells = _cells(arrays.get("cells"), shape[0])
        weights = _weights(one["weights"], len(models))
        return JointModel(models, weights, shape, one["calibration"], cells)
    if kind == "groupings":
        models = [part(place) for place in one["models"]]
        return GroupingsModel(models, [int(size) for size in one["sizes"]])
    if kind == "columns":
        return ColumnsModel(part(one["model"]), int(one["start"]), int(one["stop"]))
    if kind == "joint trees":
        group = None if one["group"] is None else _of(_GROUPS, part(one["group"]))
        return JointTrees(_of(Trees, part(one["label"])), group, _pair(one["shape"]))
    if kind == "label columns":
        group = None if one["group"] is None else _of(_GROUPS, part(one["group"]))
        start, width = int(one["start"]), int(one["n_features"])
        return LabelColumnsModel(start, group, width, _pair(one["shape"]), str(one["kind"]))
    if kind == "init":
        decided = None if one["decided"] is None else int(one["decided"])
        return InitModel(_of(JointModel, part(one["joint"])), int(one["start"]), decided)
    if kind == "boosted":
        return BoostedModel(*(part(place) for place in one["parts"]))
    if kind == "trees":
        return _trees(one["file"], files)
    if kind == "own":
        return own.build(one, arrays)
    if kind == "sequence":
        return nn.Sequential(OrderedDict((name, part(place)) for name, place in one["parts"]))
    if kind != "layer":
        raise KeyError(f"no module is {kind!r}")
    return _layer(one, arrays)


def _trees(name: Any, files: Mapping[str, bytes]) -> Trees:
    """An ensemble; what is wrong with it is told with the name of its file."""
    if name not in files:
        raise KeyError(f"its trees are in {name!r}, and the folder has no such file")
    try:
        return Trees.from_json(files[name])
    except ValueError as error:
        raise ValueError(f"the trees in {name} cannot be read: {error}") from error


def _of(kind: Any, module: nn.Module) -> Any:
    """A part, if it is of the kind that its place is for."""
    if not isinstance(module, kind):
        raise KeyError(f"a part of a model must be {kind}, and a {type(module).__name__} is stored")
    return module


def _weights(stored: Sequence[float], n_models: int) -> Sequence[float]:
    """Shares of models, if each has one."""
    is_share = [type(one) in (int, float) and 0 <= one <= 1 for one in stored]
    if not all(is_share) or len(is_share) != n_models or not n_models:
        raise KeyError(f"{n_models} models must have a share each, and {stored!r} are stored")
    return stored


def _cells(cells: Tensor | None, n_groups: int) -> Tensor | None:
    """Groups of the cells, if there are any; a place that no group has is refused."""
    if cells is not None and (
        cells.dtype != torch.int64
        or cells.ndim != 2
        or not ((cells >= 0) & (cells < n_groups)).all()
    ):
        raise KeyError(f"cells must name some of {n_groups} groups, and others are stored")
    return cells


def _layer(one: Mapping[str, Any], arrays: Mapping[str, Tensor]) -> nn.Module:
    kind = _NAMES[one["type"]]
    given = {name: one["given"][name] for name in LAYERS[kind]}
    with torch.device("meta"):  # shapes alone: the numbers come from the file
        layer = kind(**given)
    try:
        layer.load_state_dict(dict(arrays), assign=True)
    except RuntimeError as error:
        raise KeyError(f"a {one['type']} does not have the arrays that are stored") from error
    return layer


def check_calibration(stored: Any, n_classes: int) -> None:
    """Refuse what is not a slope and an offset for each class."""
    if stored is None:
        return
    if len(stored) != 1 + n_classes or not all(math.isfinite(number) for number in stored):
        raise KeyError(f"a calibration has {1 + n_classes} finite numbers, not {stored!r}")


def _check_shape(shape: Sequence[int], n_classes: int) -> None:
    """Refuse a shape that says other classes: outputs are computed for each of them."""
    k, c = shape
    if type(k) is not int or k < 1 or c != n_classes or k * c > _MOST_OUTPUTS:
        raise KeyError(f"a model of {n_classes} classes has the shape {shape}")


def _pair(shape: Sequence[int]) -> tuple[int, int]:
    k, c = shape
    return int(k), int(c)


def _describe_users(
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
class UserModules:
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
        for name in ("n_features", "n_outputs"):
            if type(described[name]) is not int or not 0 < described[name] <= _MOST_COLUMNS:
                raise KeyError(f"{name} of a module is {described[name]!r}")
        module = self._make(described)
        values = dict(arrays)
        answer = values.pop(_ANSWER, None)
        self._fill(module, values, described["class"])
        found = None if answer is None else _answer(module, int(described["n_features"]))
        if answer is not None and not _agree(found, answer):
            raise UnfitArgument(
                f"model must make modules that compute what the stored {described['class']} did, "
                "got one with the same parameters and other outputs; give the factory that the "
                "classifier was fitted with."
            )
        return module

    def _make(self, described: Mapping[str, Any]) -> nn.Module:
        if self._factory is None:
            raise UnfitArgument(
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
            raise UnfitArgument(
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
            raise UnfitArgument(
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
