"""A fitted record from the folder that it was saved in; its parts must be there and agree."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from apfex.front import (
    Encoder,
    Features,
    Fitted,
    Front,
    ModelEncoder,
    NumericColumns,
    Point,
    TableEncoders,
)
from apfex.groups import Groups
from apfex.metrics import GapInterval
from apfex.models import InitModel
from apfex.persistence._bundle import Bundle, read_bundle
from apfex.persistence._label_models import UserModels, init_columns, models_from_dict
from apfex.persistence._modules import (
    UnfitArgument,
    UserModules,
    build_modules,
    check_calibration,
)
from apfex.persistence._save import FORMAT, KIND, StoredModel
from apfex.persistence._values import unpack, unpack_arguments
from apfex.rates import ConfusionCounts
from apfex.strict_json import check_record
from apfex.tables import TableEncoder

_MOST_COLUMNS, _MOST_LEFT_OUT = 2**20, 1_000
_MOST_STEPS, _MOST_STEPS_IN_ALL, _MOST_LEVELS = 10_000, 1_000_000, 32
"""Of a module that is made of others: one that occurs twice is computed twice."""
_MOST_SAID = 500
"""Characters of an error that is about what somebody else has written."""
_DTYPES = {"float64": torch.float64, "float32": torch.float32}
_FAMILIES = {"networks", "trees"}
_PARTS = ("joint", "models", "model", "label", "group", "parts")
"""Where descriptions of modules name others by their place."""


class CorruptModelError(ValueError):
    """A folder holds parts of a model that are missing, or do not fit each other."""


def load_model(
    folder: str | os.PathLike[str],
    *,
    factory: Callable[[int, int], nn.Module] | nn.Module | None = None,
    init: Any = None,
    trusted: Sequence[str] = (),
) -> StoredModel:
    """The fitted record that :func:`save_model` has stored; nothing in the folder is executed.

    Parameters
    ----------
    folder : str or path
    factory : callable or nn.Module, optional
        Makes modules of a class of the user's own, of which only the numbers are stored.
    init : fitted model or function, optional
        The one that the front was made around, instead of the stored one.
    trusted : sequence of str
        Types of a stored classifier that may be built, beside those that skops trusts.

    Returns
    -------
    StoredModel

    Raises
    ------
    CorruptModelError
        Where the content makes no model.
    FileNotFoundError, NotADirectoryError, ValueError
        As :func:`read_bundle`.

    Examples
    --------
    >>> try:
    ...     load_model("no such folder")
    ... except FileNotFoundError as error:
    ...     print(error)
    'no such folder' must be a folder that was saved, got nothing of this name.
    """
    modules = UserModules(factory)
    bundle = read_bundle(folder, kind=KIND, format=FORMAT, oldest=FORMAT)
    try:
        return _model(bundle, modules, UserModels(init, trusted))
    except (UnfitArgument, ImportError):
        raise
    except Exception as error:  # whoever has written it may make any of them
        raise CorruptModelError(
            f"{str(folder)!r} must hold a whole classifier, got one that cannot be put together: "
            f"{_told(error)[:_MOST_SAID]}; save it again."
        ) from error


def _told(error: Exception) -> str:
    """What is wrong with a folder, in words: errors of Python name parts that are not there."""
    said = error.args[0] if error.args else ""
    if isinstance(error, KeyError) and " " not in str(said):
        return f"its description lacks {said!r}"
    if isinstance(error, ValueError | KeyError):
        return str(said if isinstance(error, KeyError) else error).rstrip(".")
    return f"a part of its description is of another kind ({type(error).__name__}: {error})"


def _model(bundle: Bundle, user_modules: UserModules, user_models: UserModels) -> StoredModel:
    content = bundle.content
    _check_places(content)
    classes = _unpack(content["classes"])
    _check_classes(classes)
    features = _features(content["features"])
    parts = content["modules"], bundle.arrays, bundle.files
    modules = build_modules(*parts, user_modules, len(classes))
    encoder = _encoder(content["encoder"], features)
    if content["encoder"]["is"] == "models":
        found = content["encoder"], classes, bundle.files, modules.__getitem__
        encoder = ModelEncoder(_tables(encoder), **models_from_dict(*found, user_models))
        _check_models(encoder, features, len(classes))
    _check_columns(features, encoder)
    counted = _unpack(content["counted"])
    points: list[Point] = []
    for one in content["points"]:
        groups = points[0].counts.groups if points else None  # those of all
        points.append(_point(one, counted, modules[one["module"]], groups))
    for point in points:
        check_calibration(point.calibration, len(classes))
        _check_init(point.module, encoder)
    favorable = _unpack(content["favorable_label"])
    fitted = Fitted(
        front=Front(
            points,
            str(content["by"]),
            favorable,
            _DTYPES[content["dtype"]],
            float(content["constant_error"]),
            _unpack(content["constant_label"]),
        ),
        encoder=encoder,
        classes=classes,
        groups=None if content["groups"] is None else _groups(content["groups"]),
        history=_history(content["history"], bundle.arrays),
        features=features,
    )
    if not any(one["is"] == "own" for one in content["modules"]):  # those may refuse made-up rows
        _check_scores(fitted)
    arguments = _unpack(content["arguments"], unpack_arguments)
    return StoredModel(fitted, content["point"], arguments)


def _features(stored: Mapping[str, Any]) -> Features:
    """Columns; numbers of them that are backed by nothing are refused before they are counted."""
    n, names, left_out = stored["n"], _unpack(stored["names"]), _unpack(stored["left_out"])
    if type(n) is not int or not 0 < n <= _MOST_COLUMNS:
        raise CorruptModelError(f"it has {n!r} columns, not 1 to {_MOST_COLUMNS:,}")
    if names is not None and (not isinstance(names, np.ndarray) or names.shape != (n,)):
        raise CorruptModelError(f"it names {np.size(names)} columns and has {n}")
    if names is not None and not all(isinstance(name, str) for name in names.tolist()):
        raise CorruptModelError("it names columns by other things than text")
    if not isinstance(left_out, tuple) or len(left_out) > min(n, _MOST_LEFT_OUT):
        raise CorruptModelError(f"it leaves out {len(left_out)} of {n} columns")
    return Features(n, names, left_out)


def _encoder(stored: Mapping[str, Any], features: Features) -> Encoder:
    if stored["is"] == "tables":
        encoders = stored["encoders"].items()
        return TableEncoders({family: _table_encoder(text, family) for family, text in encoders})
    if stored["is"] == "models":
        return _encoder(stored["table"], features)
    if stored["is"] == "columns of init":
        return init_columns(stored["names"], _unpack(stored["levels"]))
    if stored["is"] != "numbers":
        raise CorruptModelError(f"no encoder is {stored['is']!r}")
    return NumericColumns(features.inputs)


def _tables(encoder: Encoder) -> TableEncoders:
    if not isinstance(encoder, TableEncoders):
        raise CorruptModelError("what the group is told from is no table")
    return encoder


def _table_encoder(text: str, family: str) -> TableEncoder:
    try:
        return TableEncoder.from_json(text)
    except ValueError as error:
        raise CorruptModelError(f"the encoder of {family} cannot be read: {error}") from error


def _history(stored: Any, arrays: Mapping[str, Tensor]) -> pd.DataFrame | None:
    if stored is None:
        return None
    try:
        frame = pd.DataFrame(
            {name: arrays[f"history.{name}"].numpy() for name in stored["columns"]}
        )
        if stored["strategies"]:
            names = [str(stored["strategies"][str(choice)]) for choice in frame["choice"]]
            frame.insert(2, "strategy", names)
    except (KeyError, ValueError) as error:
        raise CorruptModelError(f"its history cannot be read: {error}") from error
    frame.attrs["objectives"] = [str(name) for name in stored["objectives"]]
    return frame


def _unpack(stored: Any, by: Callable[[Any], Any] = unpack) -> Any:
    try:
        return by(stored)
    except ValueError as error:
        raise CorruptModelError(str(error)) from error


def _groups(stored: Mapping[str, Any]) -> Groups:
    levels = tuple(_unpack(level) for level in stored["levels"])
    names, is_index = stored["attributes"], [isinstance(one, pd.Index) for one in levels]
    if not all(is_index) or len(is_index) != len(set(names)) or len(names) != len(levels):
        raise CorruptModelError("its groups have attributes without levels of their own")
    if not all(isinstance(name, str) for name in names):
        raise CorruptModelError("its groups have attributes that are no names")
    cells = np.array(stored["cells"], dtype=np.int64)
    try:
        return Groups.of_cells(tuple(stored["attributes"]), levels, cells)
    except ValueError as error:
        raise CorruptModelError(f"its groups cannot be read: {error}") from error


def _point(
    stored: Mapping[str, Any], counted: Mapping[str, Any], module: Any, groups: Groups | None
) -> Point:
    figures = {name: _unpack(value) for name, value in stored["figures"].items()}
    check_record(Point, figures)
    if not all(isinstance(one, tuple) for one in figures["groupings"]):
        raise CorruptModelError(f"its groupings are {figures['groupings']!r}, not attributes")
    gaps = {}
    for name, gap in stored["gaps"].items():
        check_record(GapInterval, found := _unpack(gap))
        gaps[name] = GapInterval(**found)
    counts = _unpack(
        stored["counts"],
        lambda packed: ConfusionCounts.from_dict({**counted, **unpack(packed)}, groups),
    )
    return Point(**figures, gaps=gaps, module=module, counts=counts)


def _check_places(content: Mapping[str, Any]) -> None:
    """Refuse places that Python would count from the end, and parts that come later."""
    modules, points = content["modules"], content["points"]
    steps, levels = [], []
    for here, one in enumerate(modules):
        parts = list(_places(one))
        for place in parts:
            _check_place(place, here, f"module {here} is made of module")
        steps.append(1 + sum(steps[place] for place in parts))
        levels.append(1 + max((levels[place] for place in parts), default=0))
        if steps[-1] > _MOST_STEPS or levels[-1] > _MOST_LEVELS:
            raise CorruptModelError(
                f"module {here} takes {steps[-1]:,} steps in {levels[-1]} levels, more than "
                f"{_MOST_STEPS:,} in {_MOST_LEVELS}"
            )
    for here, point in enumerate(points):
        _check_place(point["module"], len(modules), f"point {here} is module")
    if sum(steps[point["module"]] for point in points) > _MOST_STEPS_IN_ALL:
        raise CorruptModelError(f"its points take more than {_MOST_STEPS_IN_ALL:,} steps")
    for one in content["encoder"].get("models", []):
        for place in _places(one):
            _check_place(place, len(modules), "a model of the label is module")
    _check_place(content["point"], len(points), "the point in use is")


def _places(described: Mapping[str, Any]) -> Iterator[Any]:
    """Places of the parts of a module."""
    for name in _PARTS:
        found = described.get(name)
        for one in found if isinstance(found, list) else [] if found is None else [found]:
            yield one[1] if isinstance(one, list) else one  # parts of a sequence have names


def _check_place(place: Any, n: int, what: str) -> None:
    if type(place) is not int or not 0 <= place < n:
        raise CorruptModelError(f"{what} {place!r}, which must be at least 0 and below {n}")


def _check_classes(classes: Any) -> None:
    """Refuse what ``fit`` would not have found in labels."""
    is_list = isinstance(classes, np.ndarray) and classes.ndim == 1 and len(classes) > 1
    if not is_list or not np.array_equal(np.unique(classes), classes):
        raise CorruptModelError(f"its classes are {classes}, not two or more, sorted")


def _check_columns(features: Features, encoder: Encoder) -> None:
    """Refuse an encoder of other columns than those of the table."""
    tables = encoder.table if isinstance(encoder, ModelEncoder) else encoder
    if isinstance(tables, TableEncoders):
        families = tables.encoders.keys()
        if not families or not families <= _FAMILIES:
            raise CorruptModelError(f"its encoders are {list(families)}, not networks, trees")
    wanted = features.n - len(features.left_out)
    for width in encoder.n_columns - {wanted}:
        raise CorruptModelError(f"its encoder takes {width} columns, its features are {wanted}")


def _check_models(encoder: ModelEncoder, features: Features, n_classes: int) -> None:
    """Refuse models of the label that want other columns, or tell of other classes."""
    names = encoder.names
    if names is not None and (features.names is None or sorted(names) != sorted(features.inputs)):
        raise CorruptModelError(f"its models of the label want the columns {names[:5]}")
    texts = getattr(encoder.inputs, "levels", {})
    if features.names is not None and not set(map(str, texts)) <= set(features.inputs):
        raise CorruptModelError(f"its models of the label want the columns {list(texts)[:5]}")
    if encoder.n_classes != n_classes or not encoder.models:
        raise CorruptModelError(f"its models of the label know {encoder.n_classes} classes")


def _check_init(module: nn.Module, encoder: Encoder) -> None:
    """Refuse a model that decides by an input that is not its decision: codes lead to places."""
    if isinstance(module, InitModel) and module.decided is not None:
        own = isinstance(encoder, ModelEncoder) and encoder.decides
        if not own or module.decided != encoder.n_inputs - 1:
            raise CorruptModelError(f"a model decides by the input {module.decided}")


def _check_scores(fitted: Fitted) -> None:
    """Let every point score two rows of zeros: widths of inputs and outputs must agree."""
    rows = torch.zeros(2, fitted.encoder.n_inputs, dtype=fitted.front.dtype)
    known = fitted.groups
    groups = () if known is None else (torch.tensor([0, len(known) - 1]),)
    c = len(fitted.classes)
    for place, point in enumerate(fitted.front):
        try:
            with torch.no_grad():
                shape = list(point.module(rows, *groups).shape)
        except Exception as error:
            raise CorruptModelError(f"point {place} does not take its inputs: {error}") from error
        if shape not in ([[2], [2, 1]] if c == 2 else [[2, c]]):
            raise CorruptModelError(f"point {place} gives scores {shape} to 2 rows and {c} classes")
