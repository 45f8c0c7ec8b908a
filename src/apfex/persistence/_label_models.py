"""A user's models of the label in a folder: classifiers by skops, networks and trees as ours."""

from __future__ import annotations

import io
import math
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import ModuleType
from typing import IO, Any, final

import numpy as np
from torch import nn

from apfex.extras import need_extra
from apfex.files import check_zip
from apfex.front import (
    EstimatorModel,
    FunctionModel,
    InitColumns,
    Inputs,
    LabelModel,
    LogitsModel,
    ModelEncoder,
    NumericColumns,
    TextAsCategories,
)
from apfex.persistence._modules import ModuleWriter, UnfitArgument, check_once
from apfex.persistence._values import pack, unpack
from apfex.strict_json import check_nesting
from apfex.tables import TableEncoder

_MOST_NESTED = 256
"""Levels of a classifier's own parts; pipelines of ensembles have a few dozen."""
_HARMLESS = ("collections.OrderedDict", "numpy.dtype")
"""Types without a behaviour of their own, which skops leaves to its callers."""


def models_to_dict(encoder: ModelEncoder, writer: ModuleWriter) -> dict[str, Any]:
    """Models of the label and how they get a table; files and modules go to the writer."""
    return {
        "n_classes": encoder.n_classes,
        "names": None if encoder.names is None else list(encoder.names),
        "inputs": _inputs_to_dict(encoder.inputs),
        "models": [_model_to_dict(model, writer) for model in encoder.models],
    }


def _inputs_to_dict(inputs: Inputs) -> dict[str, Any] | None:
    if inputs is None:
        return None
    if isinstance(inputs, TableEncoder):
        return {"is": "table", "encoder": inputs.to_json()}
    levels = {name: list(levels) for name, levels in inputs.levels.items()}
    return {"is": "categories", "levels": pack(levels, "categories of X")}


def _model_to_dict(model: LabelModel, writer: ModuleWriter) -> dict[str, Any]:
    if isinstance(model, EstimatorModel):
        name = f"model-{len(writer.files)}.skops"
        writer.files[name] = _dump(model)
        return {
            "is": "estimator",
            "file": name,
            "class": model.name,
            "places": list(model.places),
            "argument": model.argument,
            "decides": model.decides,
        }
    if isinstance(model, FunctionModel):
        return {"is": "function", "name": model.name, "gives": model.gives}
    assert isinstance(model, LogitsModel)
    levels, columns = None, model.columns
    if not isinstance(columns, NumericColumns):
        levels = pack({at: list(found) for at, found in columns.levels.items()}, "categories of X")
    return {
        "is": "logits",
        "model": writer.add(model.module),
        "class": model.name,
        "names": list(columns.names),
        "levels": levels,
    }


def _dump(model: EstimatorModel) -> bytes:
    skops = _skops(f"save of a {model.name}")
    try:
        return skops.dumps(model.estimator)
    except Exception as error:
        raise TypeError(
            f"{model.argument} must be such that skops can store it, got {model.name} ({error}); "
            "use joblib."
        ) from error


def _skops(what: str) -> ModuleType:
    return need_extra("skops", "skops.io", what)


def estimator_to_dict(model: EstimatorModel, writer: ModuleWriter) -> dict[str, Any]:
    """A fitted classifier of the user's, if all its types are known to be safe when it is read."""
    described = _model_to_dict(model, writer)
    skops = _skops(f"a checkpoint of a {model.name}")
    unknown = set(skops.get_untrusted_types(data=writer.files[described["file"]])) - {*_HARMLESS}
    if unknown:
        raise TypeError(f"{model.name} has parts that skops does not trust: {sorted(unknown)[:3]}")
    return described


def estimator_from_dict(
    stored: Mapping[str, Any], files: Mapping[str, bytes], n_classes: int
) -> EstimatorModel:
    """What :func:`estimator_to_dict` has described."""
    found = UserModels().estimator(files[stored["file"]], stored["class"], stored["argument"])
    places = tuple(int(place) for place in stored["places"])
    return EstimatorModel(found, places, n_classes, stored["argument"], bool(stored["decides"]))


@final
@dataclass(frozen=True, eq=False)
class UserModels:
    """Where models come from that a folder has only in part, or that must be trusted.

    Attributes
    ----------
    init : object or None
        The fitted model itself, instead of the stored one.
    trusted : sequence of str
        Types that may be built, beside those that skops trusts.
    """

    init: Any = None
    trusted: Sequence[str] = ()

    def estimator(self, data: bytes, name: str, argument: str) -> Any:
        """A classifier from its file, if all its types are trusted."""
        skops = _skops(f"load of a {name}")
        known = {*self.trusted, *_HARMLESS}
        _check_archive(name, data)
        try:
            unknown = sorted(set(skops.get_untrusted_types(data=data)) - known)
        except Exception as error:  # a damaged or forged archive fails in many ways
            raise ValueError(f"the stored {name} cannot be read by skops: {error}") from error
        if unknown:
            itself = ", or give the fitted model itself: load(folder, init=model)"
            raise UnfitArgument(
                f"trusted must name the types of the stored {name} that are not known to be safe, "
                f"got none of {unknown}; if you know who made the folder, use load(folder, "
                f"trusted={sorted({*self.trusted, *unknown})})"
                f"{itself if argument == 'init' else ''}."
            )
        return skops.loads(data, trusted=sorted(known))


def _check_archive(name: str, data: bytes) -> None:
    """Refuse what would take far more memory than the archive: its parts, and arrays in them."""
    check_zip(name, data)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for part in archive.infolist():
            if part.filename.endswith(".json"):
                check_nesting(archive.read(part).decode(), _MOST_NESTED)
            elif part.filename.endswith(".npy"):
                with archive.open(part) as stream:
                    _check_array(stream, part.file_size)


def _check_array(stream: IO[bytes], size: int) -> None:
    """Refuse an array that says it is larger than its file: room is made for it first."""
    version = np.lib.format.read_magic(stream)
    read = np.lib.format.read_array_header_1_0
    read = read if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read(stream)
    if math.prod(shape) * dtype.itemsize > size:
        raise ValueError(f"an array of shape {shape} is stored in {size:,} bytes")


def models_from_dict(
    stored: Mapping[str, Any],
    classes: np.ndarray,
    files: Mapping[str, bytes],
    module: Callable[[int], nn.Module],
    user: UserModels,
) -> dict[str, Any]:
    """Arguments of :class:`ModelEncoder`, but for its table."""
    check_once(one["file"] for one in stored["models"] if one["is"] == "estimator")
    models = [_model(one, classes, files, module, user) for one in stored["models"]]
    return {
        "models": tuple(models),
        "n_classes": int(stored["n_classes"]),
        "inputs": _inputs(stored["inputs"]),
        "names": None if stored["names"] is None else tuple(map(str, stored["names"])),
    }


def _inputs(stored: Mapping[str, Any] | None) -> Inputs:
    if stored is None:
        return None
    if stored["is"] == "table":
        return TableEncoder.from_json(stored["encoder"])
    levels = unpack(stored["levels"])
    _check_levels(levels, object)  # columns of pandas may have any names
    return TextAsCategories(levels)


def init_columns(names: Sequence[Any], levels: Any) -> InitColumns:
    """Columns as a fitted model takes them, if each list of levels is of one of them."""
    _check_levels(levels, int)
    if not all(isinstance(name, str) for name in names) or set(levels) - set(range(len(names))):
        raise KeyError(f"levels are of {len(names)} columns, and others are stored")
    return InitColumns(list(names), levels)


def _check_levels(levels: Any, kind: Any) -> None:
    """Refuse what are no lists of single values by columns."""
    if not isinstance(levels, dict) or not all(
        isinstance(name, kind) and isinstance(one, list) for name, one in levels.items()
    ):
        raise KeyError("levels must be lists by columns, and others are stored")
    for one in levels.values():
        hash(tuple(one))


def _model(
    one: Mapping[str, Any],
    classes: np.ndarray,
    files: Mapping[str, bytes],
    module: Callable[[int], nn.Module],
    user: UserModels,
) -> LabelModel:
    if one["is"] == "logits":
        columns = NumericColumns(tuple(map(str, one["names"])))
        if one["levels"] is not None:
            columns = init_columns(one["names"], unpack(one["levels"]))
        return LogitsModel(module(one["model"]), columns, str(one["class"]))
    if one["is"] == "function":
        if user.init is None:
            raise UnfitArgument(
                f"init must be given to load this folder: it was the function {one['name']}, whose "
                "code is not stored. Use load(folder, init=function)."
            )
        return FunctionModel(user.init, one["gives"], len(classes))
    if one["is"] != "estimator":
        raise KeyError(f"no model of the label is {one['is']!r}")
    places = tuple(int(place) for place in one["places"])
    if sorted(set(places)) != sorted(places) or not set(places) <= set(range(len(classes))):
        raise KeyError(f"a classifier knows the places {places} of {len(classes)} classes")
    fitted = EstimatorModel(None, places, len(classes), one["argument"], bool(one["decides"]))
    if user.init is not None and fitted.argument == "init":
        return replace(fitted, estimator=_checked(user.init, classes[list(places)]))
    found = user.estimator(files[one["file"]], str(one["class"]), fitted.argument)
    known = getattr(found, "classes_", ())
    if not hasattr(found, "predict_proba") or np.shape(known) != (len(places),):
        raise KeyError(f"no classifier of {len(places)} classes is stored, but {type(found)}")
    return replace(fitted, estimator=found)


def _checked(init: Any, classes: np.ndarray) -> Any:
    """The model that the user gives again, if it knows the classes of the stored one."""
    known = np.asarray(getattr(init, "classes_", classes)).tolist()
    if not hasattr(init, "predict_proba") or known != classes.tolist():
        raise UnfitArgument(
            f"init must be the fitted classifier that the front was made around, with the classes "
            f"{classes.tolist()}, got {type(init).__name__} with {known}."
        )
    return init
