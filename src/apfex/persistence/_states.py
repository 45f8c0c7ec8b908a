"""The state of something that learns as bytes, and back: numbers, text, tensors and models."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import torch
from torch import Tensor, nn

from apfex.front import EstimatorModel
from apfex.models import check_count
from apfex.persistence._bundle import _load_arrays, _save_arrays
from apfex.persistence._json import parse_json
from apfex.persistence._label_models import estimator_from_dict, estimator_to_dict
from apfex.persistence._modules import ModuleWriter, UserModules, build_modules
from apfex.persistence._values import pack, unpack

_CONTENT = "content"
_DIGEST = hashlib.sha256().digest_size


def write_state(state: Any) -> bytes:
    """A state as bytes: its sha256, then safetensors.

    Parameters
    ----------
    state : mappings, lists, tuples, numbers, text, None, tensors and modules of this package

    Returns
    -------
    bytes

    Examples
    --------
    >>> read_state(write_state({"epochs": 3, "rate": torch.tensor(0.5)}), Path("training"))
    {'epochs': 3, 'rate': tensor(0.5000)}
    """
    writer, tensors = ModuleWriter(0, 0), _TensorWriter()
    content = {"state": _plain(state, writer, tensors), "modules": writer.modules}
    arrays = tensors.arrays()
    arrays |= {f"m{name}": array for name, array in writer.arrays.items()}
    arrays |= {f"f{name}": _from_bytes(data) for name, data in writer.files.items()}
    arrays[_CONTENT] = _from_bytes(json.dumps(content, allow_nan=False).encode())
    data = _save_arrays(arrays)
    return hashlib.sha256(data).digest() + data


def read_state(data: bytes, path: Path) -> Any:
    """The state that :func:`write_state` was given; ``path`` names the file in messages."""
    digest, data = data[:_DIGEST], data[_DIGEST:]
    if hashlib.sha256(data).digest() != digest:
        raise ValueError(f"{str(path)!r} is damaged: its contents do not match their sha256.")
    arrays = _load_arrays(data, path)
    content = parse_json(arrays.pop(_CONTENT).numpy().tobytes(), path)
    own = {name[1:]: array for name, array in arrays.items() if name[0] == "m"}
    files = {name[1:]: a.numpy().tobytes() for name, a in arrays.items() if name[0] == "f"}
    modules = build_modules(content["modules"], own, files, UserModules(None), None)
    parts = _Parts(arrays, modules, files, {name: a.numel() for name, a in arrays.items()})
    return _read(content["state"], parts)


def _from_bytes(data: bytes) -> Tensor:
    return torch.frombuffer(bytearray(data), dtype=torch.uint8)


@final
class _TensorWriter:
    """Puts tensors of one type one after the other: a history has thousands of a few numbers."""

    def __init__(self) -> None:
        self._parts: dict[str, list[Tensor]] = {}
        self._ends: dict[str, int] = {}

    def add(self, tensor: Tensor) -> list[Any]:
        """Where it is: the name of its type, its first place, and its shape."""
        kind = f"t{tensor.dtype}".replace("torch.", "")
        start = self._ends.get(kind, 0)
        self._parts.setdefault(kind, []).append(tensor.detach().cpu().reshape(-1))
        self._ends[kind] = start + tensor.numel()
        return [kind, start, list(tensor.shape)]

    def arrays(self) -> dict[str, Tensor]:
        """All of them, by the names of their types."""
        return {kind: torch.cat(parts) for kind, parts in self._parts.items()}


def _plain(part: Any, writer: ModuleWriter, tensors: _TensorWriter) -> Any:
    if isinstance(part, Tensor):
        return {"is": "tensor", "value": tensors.add(part)}
    if isinstance(part, EstimatorModel):
        described = estimator_to_dict(part, writer)
        return {"is": "estimator", "value": [pack(described), part.n_classes]}
    if isinstance(part, nn.Module):
        return {"is": "module", "value": writer.add(part)}
    if isinstance(part, list | tuple):
        parts = [_plain(one, writer, tensors) for one in part]
        return parts if isinstance(part, list) else {"is": "tuple", "value": parts}
    if isinstance(part, Mapping):
        pairs = [[pack(key), _plain(one, writer, tensors)] for key, one in part.items()]
        return {"is": "dict", "value": pairs}
    return pack(part, "state")


@dataclass(frozen=True, eq=False)
class _Parts:
    """What a state refers to, and how many numbers of each array are not taken yet."""

    arrays: Mapping[str, Tensor]
    modules: list[nn.Module]
    files: Mapping[str, bytes]
    left: dict[str, int]

    def tensor(self, name: str, start: int, shape: list[int]) -> Tensor:
        """A tensor with memory of its own; together they take no more than was stored."""
        size = math.prod(shape)
        self.left[name] -= size
        if any(type(one) is not int or one < 0 for one in shape) or self.left[name] < 0:
            raise ValueError(f"its tensors are larger than what is stored of {name!r}")
        flat = self.arrays[name].narrow(0, start, size)
        return flat.clone().view(shape)  # at an address of its own, where sums round as before


def _read(stored: Any, parts: _Parts) -> Any:
    if isinstance(stored, list):
        return [_read(part, parts) for part in stored]
    kind = stored["is"] if isinstance(stored, dict) else None
    if kind == "tensor":
        return parts.tensor(*stored["value"])
    if kind == "module":
        check_count(stored["value"], 0, len(parts.modules) - 1, "module")
        return parts.modules[stored["value"]]
    if kind == "estimator":
        described, n_classes = stored["value"]
        return estimator_from_dict(unpack(described), parts.files, n_classes)
    if kind == "tuple":
        return tuple(_read(stored["value"], parts))
    if kind == "dict":
        return {unpack(key): _read(part, parts) for key, part in stored["value"]}
    return unpack(stored)
