"""A fitted classifier to a folder."""

from __future__ import annotations

import os
import platform
from dataclasses import asdict, fields
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from apfex.estimator._arguments import pack_arguments
from apfex.estimator._course import timeline_to_arrays
from apfex.estimator._front import Point
from apfex.estimator._kinds import Inputs
from apfex.estimator._modules import ModuleWriter
from apfex.estimator._own_trees import OwnInputs
from apfex.estimator._prepare import AsTheyAre
from apfex.groups import Groups, make_groups
from apfex.storage import Bundle, pack, write_bundle

if TYPE_CHECKING:
    from apfex.estimator._classifier import APFExClassifier

KIND, FORMAT = "apfex.APFExClassifier", 3
COUNTED = ("rows", "sums", "squares")
"""What the counts of points differ in."""
_PACKAGES = ("apfex", "numpy", "pandas", "scikit-learn", "torch", "xgboost", "xgboost-cpu")


def save_classifier(clf: APFExClassifier, folder: str | os.PathLike[str], overwrite: bool) -> Path:
    """Write the whole front; see :meth:`APFExClassifier.save`."""
    from apfex.estimator._classifier import APFExClassifier

    check_is_fitted(clf, "front_")
    if type(clf) is not APFExClassifier:
        raise TypeError(
            f"save knows APFExClassifier alone, got its subclass {type(clf).__name__}; use joblib."
        )
    bundle = _bundle(clf)
    return write_bundle(folder, bundle, kind=KIND, format=FORMAT, overwrite=overwrite)


def _bundle(clf: APFExClassifier) -> Bundle:
    writer = ModuleWriter(n_inputs(clf), 1 if len(clf.classes_) == 2 else len(clf.classes_))
    names = getattr(clf, "feature_names_in_", None)
    timeline, drawn = (None, {}) if clf.timeline_ is None else timeline_to_arrays(clf.timeline_)
    content = {
        "written_by": _versions(),
        "arguments": pack_arguments(clf),
        "classes": pack(clf.classes_, "classes of y"),
        "features": {"n": clf.n_features_in_, "names": pack(names, "names of columns")},
        "encoder": encoder_to_dict(clf._encoder),
        "groups": None if clf._groups is None else groups_to_dict(clf._groups),
        "points": [_point(point, writer) for point in clf.front_],
        "counted": pack(_counted(clf.front_[0]), "groups of the validation rows"),
        "by": clf.front_._by,
        "favorable_label": pack(clf.front_.favorable_label, "favorable label"),
        "point": clf.point_,
        "timeline": timeline,
    }
    arrays = {**writer.arrays, **drawn}
    return Bundle({**content, "modules": writer.modules}, arrays, writer.files)


def n_inputs(clf: APFExClassifier) -> int:
    """Inputs of the modules."""
    encoder = clf._encoder
    if isinstance(encoder, Inputs):
        return encoder.n_inputs
    if isinstance(encoder, OwnInputs):
        return len(encoder.names)
    return n_columns(clf)


def n_columns(clf: APFExClassifier) -> int:
    """Columns that become inputs."""
    named = [clf.sensitive] if isinstance(clf.sensitive, str) else clf.sensitive or ()
    return clf.n_features_in_ - (0 if clf.include_sensitive else len(named))


def encoder_to_dict(encoder: Any) -> dict[str, Any]:
    """How a table becomes inputs."""
    if isinstance(encoder, Inputs):
        return {"is": "tables", "encoders": {k: e.to_json() for k, e in encoder.encoders.items()}}
    if isinstance(encoder, OwnInputs):
        levels = {place: list(levels) for place, levels in encoder.levels.items()}
        return {
            "is": "columns of init",
            "names": list(encoder.names),
            "levels": pack(levels, "categories of X"),
        }
    if not isinstance(encoder, AsTheyAre):
        raise TypeError(f"encoder must be one of ours, got {type(encoder).__name__}.")
    return {"is": "numbers"}


def groups_to_dict(groups: Groups) -> dict[str, Any]:
    """The groups that thresholds differ by; no rows of anybody."""
    stored = {
        "attributes": list(groups.attributes),
        "levels": [
            pack(levels, f"levels of {name!r}")
            for name, levels in zip(groups.attributes, groups.levels, strict=True)
        ],
        "cells": groups.cells.tolist(),
    }
    again = make_groups_of(groups.attributes, groups.levels, groups.cells)
    same = np.array_equal(again.cells, groups.cells) and all(
        ours.dtype == theirs.dtype and ours.equals(theirs)
        for ours, theirs in zip(again.levels, groups.levels, strict=True)
    )
    if not same:
        raise TypeError(
            f"sensitive_features must have levels that come back in their order, got {stored}; "
            "convert them, for instance to text."
        )
    return stored


def make_groups_of(
    attributes: tuple[str, ...], levels: tuple[pd.Index, ...], cells: np.ndarray
) -> Groups:
    """Groups of the cells [k, attributes] that occur, without rows."""
    columns = {
        name: pd.Series(level.take(cells[:, place]))
        for place, (name, level) in enumerate(zip(attributes, levels, strict=True))
    }
    return make_groups(columns).take(np.arange(0))


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


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
