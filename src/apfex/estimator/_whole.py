"""Whether what was stored makes a whole classifier: its parts are there, and fit each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from apfex.estimator._kinds import Inputs
from apfex.estimator._own_trees import OwnInputs
from apfex.estimator._save import n_columns, n_inputs

if TYPE_CHECKING:
    from apfex.estimator._classifier import APFExClassifier

_FAMILIES = {"networks", "trees"}
_PARTS = ("cells", "models", "model", "label", "group", "parts")
"""Where descriptions of modules name others by their place."""


class NotWhole(Exception):
    """In words: what does not fit."""


def check_places(content: Mapping[str, Any]) -> None:
    """Refuse places that Python would count from the end, and parts that come later."""
    modules, points = content["modules"], content["points"]
    for here, one in enumerate(modules):
        for place in _places(one):
            _check_place(place, here, f"module {here} is made of module")
    for here, point in enumerate(points):
        _check_place(point["module"], len(modules), f"point {here} is module")
    _check_place(content["point"], len(points), "the point in use is")


def check_classes(classes: Any) -> None:
    """Refuse what ``fit`` would not have found in labels."""
    is_list = isinstance(classes, np.ndarray) and classes.ndim == 1 and len(classes) > 1
    if not is_list or not np.array_equal(np.unique(classes), classes):
        raise NotWhole(f"its classes are {classes}, not two or more, sorted")


def check_columns(clf: APFExClassifier) -> None:
    """Refuse an encoder of other columns than those of the classifier."""
    n, names, encoder = clf.n_features_in_, getattr(clf, "feature_names_in_", None), clf._encoder
    if names is not None and np.shape(names) != (n,):
        raise NotWhole(f"it names {np.size(names)} columns and has {n}")
    found = []
    if isinstance(encoder, Inputs):
        if not encoder.encoders or not encoder.encoders.keys() <= _FAMILIES:
            raise NotWhole(f"its encoders are {list(encoder.encoders)}, not networks, trees")
        found = [one.n_features_in_ for one in encoder.encoders.values()]
    elif isinstance(encoder, OwnInputs):
        found = [len(encoder.names)]
    for width in found:
        if width != n_columns(clf):
            raise NotWhole(f"its encoder takes {width} columns, its features are {n_columns(clf)}")


def check_modules(clf: APFExClassifier) -> None:
    """Let every point score two rows of zeros: widths of inputs and outputs must agree."""
    is_own = not callable(clf.model) and clf.init is None  # these count in float64
    rows = torch.zeros(2, n_inputs(clf), dtype=torch.float64 if is_own else torch.float32)
    groups = () if clf._groups is None else (torch.zeros(2, dtype=torch.int64),)
    c = len(clf.classes_)
    for place, point in enumerate(clf.front_):
        try:
            with torch.no_grad():
                shape = list(point.module(rows, *groups).shape)
        except Exception as error:
            raise NotWhole(f"point {place} does not take its inputs: {error}") from error
        if shape not in ([[2], [2, 1]] if c == 2 else [[2, c]]):
            raise NotWhole(f"point {place} gives scores {shape} to 2 rows and {c} classes")


def _places(described: Mapping[str, Any]) -> Iterator[Any]:
    """Places of the parts of a module."""
    for name in _PARTS:
        found = described.get(name)
        for one in found if isinstance(found, list) else [] if found is None else [found]:
            yield one[1] if isinstance(one, list) else one  # parts of a sequence have names


def _check_place(place: Any, n: int, what: str) -> None:
    if type(place) is not int or not 0 <= place < n:
        raise NotWhole(f"{what} {place!r}, which must be at least 0 and below {n}")
