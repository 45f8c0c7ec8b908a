"""A fitted record to a folder."""

from __future__ import annotations

import os
import platform
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import pandas as pd
import torch

from apfex.front import (
    Encoder,
    Fitted,
    InitColumns,
    LogitsModel,
    ModelEncoder,
    NumericColumns,
    Point,
    TableEncoders,
)
from apfex.groups import Groups
from apfex.persistence._bundle import Bundle, write_bundle
from apfex.persistence._label_models import models_to_dict
from apfex.persistence._modules import ModuleWriter
from apfex.persistence._values import pack, pack_arguments

if TYPE_CHECKING:
    from torch import Tensor

KIND, FORMAT = "apfex.APFExClassifier", 5
COUNTED = ("rows", "sums", "squares")
"""What the counts of points differ in."""
_PACKAGES = (
    "apfex",
    "numpy",
    "pandas",
    "scikit-learn",
    "skops",
    "torch",
    "xgboost",
    "xgboost-cpu",
)


@final
@dataclass(frozen=True, eq=False)
class StoredModel:
    """What a folder holds: a fitted record, and how it is used.

    Attributes
    ----------
    fitted : Fitted
    point : int
        The place on the front that is in use.
    arguments : mapping from names to values
        What the fit was asked for; :class:`NotStored` for what cannot be stored.
    """

    fitted: Fitted
    point: int
    arguments: Mapping[str, Any]


def save_model(
    folder: str | os.PathLike[str],
    model: StoredModel,
    *,
    needed: Collection[str] = (),
    overwrite: bool = False,
) -> Path:
    """Write a fitted record to a folder, whole or not at all.

    Parameters
    ----------
    folder : str or path
        One that is not there yet.
    model : StoredModel
    needed : collection of str
        Arguments that must be such that they can be stored.
    overwrite : bool
        Whether to replace what was saved there before, once the new one is whole.

    Returns
    -------
    Path
        Of the folder.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from apfex import APFExClassifier, make_biased
    >>> data = make_biased(n=400, random_state=0)
    >>> clf = APFExClassifier(epochs=2, max_gap=1.0, random_state=0)
    >>> clf = clf.fit(data.X, data.y, sensitive_features=data.sensitive)
    >>> model = StoredModel(clf.fitted_, clf.point_, {"epochs": 2})
    >>> with TemporaryDirectory() as place:
    ...     sorted(path.name for path in save_model(f"{place}/model", model).iterdir())
    ['arrays.safetensors', 'content.json', 'manifest.json']
    """
    bundle = _bundle(model, needed)
    return write_bundle(folder, bundle, kind=KIND, format=FORMAT, overwrite=overwrite)


def _bundle(model: StoredModel, needed: Collection[str]) -> Bundle:
    fitted = model.fitted
    front, features = fitted.front, fitted.features
    n_outputs = 1 if fitted.is_binary else len(fitted.classes)
    writer = ModuleWriter(_inputs_of_users(fitted.encoder), n_outputs)
    history, drawn = (None, {}) if fitted.history is None else _history_to_arrays(fitted.history)
    content = {
        "written_by": versions(),
        "arguments": pack_arguments(model.arguments, needed),
        "classes": pack(fitted.classes, "classes of y"),
        "features": {
            "n": features.n,
            "names": pack(features.names, "names of columns"),
            "left_out": pack(features.left_out, "names of sensitive columns"),
        },
        "encoder": _encoder_to_dict(fitted.encoder, writer),
        "groups": None if fitted.groups is None else _groups_to_dict(fitted.groups),
        "points": [_point(point, writer) for point in front],
        "counted": pack(_counted(front[0]), "groups of the validation rows"),
        "by": front.by,
        "constant_error": front.constant_error,
        "constant_label": pack(front.constant_label, "constant label"),
        "dtype": "float64" if front.dtype == torch.float64 else "float32",
        "favorable_label": pack(front.favorable_label, "favorable label"),
        "point": model.point,
        "history": history,
    }
    arrays = {**writer.arrays, **drawn}
    return Bundle({**content, "modules": writer.modules}, arrays, writer.files)


def _inputs_of_users(encoder: Encoder) -> int:
    """How many inputs a module of the user's own class has."""
    model = encoder.models[0] if isinstance(encoder, ModelEncoder) else None
    return model.columns.n_inputs if isinstance(model, LogitsModel) else encoder.n_inputs


def _encoder_to_dict(encoder: Encoder, writer: ModuleWriter) -> dict[str, Any]:
    """How a table becomes inputs."""
    if isinstance(encoder, ModelEncoder):
        table = _encoder_to_dict(encoder.table, writer)
        return {"is": "models", "table": table, **models_to_dict(encoder, writer)}
    if isinstance(encoder, TableEncoders):
        return {"is": "tables", "encoders": {k: e.to_json() for k, e in encoder.encoders.items()}}
    if isinstance(encoder, InitColumns):
        levels = {place: list(levels) for place, levels in encoder.levels.items()}
        return {
            "is": "columns of init",
            "names": list(encoder.names),
            "levels": pack(levels, "categories of X"),
        }
    if not isinstance(encoder, NumericColumns):
        raise TypeError(f"encoder must be one of ours, got {type(encoder).__name__}.")
    return {"is": "numbers"}


def _history_to_arrays(history: pd.DataFrame) -> tuple[dict[str, Any], dict[str, Tensor]]:
    columns = [str(name) for name in history.columns]
    arrays = {f"history.{name}": torch.tensor(history[name].to_numpy()) for name in columns}
    return {"columns": columns, "objectives": list(history.attrs["objectives"])}, arrays


def _groups_to_dict(groups: Groups) -> dict[str, Any]:
    """The groups that thresholds differ by; no rows of anybody."""
    return {
        "attributes": list(groups.attributes),
        "levels": [
            pack(levels, f"levels of {name!r}")
            for name, levels in zip(groups.attributes, groups.levels, strict=True)
        ],
        "cells": groups.cells.tolist(),
    }


def _point(point: Point, writer: ModuleWriter) -> dict[str, Any]:
    """Figures, confusion counts, and the place of the module."""
    figures = {
        field.name: pack(getattr(point, field.name), field.name)
        for field in fields(point)
        if field.name not in ("gaps", "module", "counts")
    }
    gaps = {name: pack(asdict(found), f"gap of {name}") for name, found in point.gaps.items()}
    counts = {name: point.counts.to_dict()[name] for name in COUNTED}
    return {
        "figures": figures,
        "gaps": gaps,
        "counts": pack(counts, "counts"),
        "module": writer.add(point.module),
    }


def _counted(point: Point) -> dict[str, Any]:
    """What the counts of all points have in common."""
    return {name: part for name, part in point.counts.to_dict().items() if name not in COUNTED}


def versions(packages: Sequence[str] = _PACKAGES) -> dict[str, str]:
    """Versions of Python and of packages, as far as they are installed."""
    found = {"python": platform.python_version()}
    for name in packages:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
