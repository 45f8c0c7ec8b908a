"""A point of the front as an ONNX file, from the columns of a table to the label."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from apfex.estimator._onnx_graph import Graph
from apfex.estimator._onnx_inputs import encode_columns
from apfex.estimator._onnx_modules import ModuleExport
from apfex.estimator._save import n_inputs
from apfex.storage import write_bytes_atomically

if TYPE_CHECKING:
    from apfex.estimator._classifier import APFExClassifier

_OUTPUTS = ("label", "probabilities", "scores")
_LABELS = {"i": np.int64, "u": np.int64, "b": np.bool_, "f": np.float64, "U": str}
"""Kinds of labels that ONNX has a type for; text also comes as objects."""


def export_onnx(clf: APFExClassifier, path: str | os.PathLike[str], overwrite: bool) -> Path:
    """Write the point in use; see :meth:`APFExClassifier.to_onnx`."""
    check_is_fitted(clf, "front_")
    if Path(path).is_file() and not overwrite:
        raise FileExistsError(
            f"{str(path)!r} must not be there yet, got a file of this name; choose another, or "
            "pass overwrite=True."
        )
    graph = Graph(_OUTPUTS)
    is_own = not callable(clf.model) and clf.init is None  # these count in float64
    export = ModuleExport(graph, np.float64 if is_own else np.float32)
    x, inputs = encode_columns(graph, clf._encoder, _column_names(clf))
    groups = None
    if clf._groups is not None:
        groups = graph.input("group", np.int64, None)
        inputs.append({"name": groups, "type": "group", "groups": list(clf._groups.names)})
    module = clf.front_[clf.point_].module
    scores = export.scores(module, graph.cast(x, export.dtype), groups)
    probabilities = export.probabilities(scores, len(clf.classes_) == 2)
    outputs = _outputs(graph, clf.classes_, scores, probabilities, export.dtype)
    return write_bytes_atomically(path, graph.model(outputs, {"apfex": _about(clf, inputs)}))


def _column_names(clf: APFExClassifier) -> list[str]:
    """Columns that are inputs as they are."""
    d = n_inputs(clf)
    known = getattr(clf, "feature_names_in_", None)
    if known is None:
        return [f"x{place}" for place in range(d)]
    named = [clf.sensitive] if isinstance(clf.sensitive, str) else clf.sensitive or ()
    left_out = () if clf.include_sensitive else named
    return [str(name) for name in known if name not in left_out]


def _outputs(
    graph: Graph, classes: np.ndarray, scores: str, probabilities: str, dtype: type
) -> dict[str, tuple[str, type, list[Any]]]:
    c = len(classes)
    shape: list[Any] = ["n", c]
    if c == 2:
        scores, shape = graph.add("Squeeze", scores, graph.constant([1])), ["n"]
        above = graph.add("Greater", scores, graph.constant(0, dtype))
        codes = graph.cast(above, np.int64)
    else:
        codes = graph.add("ArgMax", scores, axis=1, keepdims=0)
    label = (codes, np.int64, ["n"])
    kind = label_type(classes)
    if kind is not None:
        values = graph.constant(classes.astype(object) if kind is str else classes.astype(kind))
        label = (graph.add("Gather", values, codes), kind, ["n"])
    found = (label, (probabilities, np.float64, ["n", c]), (scores, dtype, shape))
    return dict(zip(_OUTPUTS, found, strict=True))


def label_type(classes: np.ndarray) -> type | None:
    """Type of the labels in ONNX; None where there is none, and places among them are given."""
    if classes.dtype.kind in "OT":
        return str if all(isinstance(label, str) for label in classes.tolist()) else None
    return _LABELS.get(classes.dtype.kind)


def _about(clf: APFExClassifier, inputs: list[Any]) -> str:
    """What a reader must know of the inputs, and may want to know of the point."""
    point = clf.front_[clf.point_]
    gaps = {name: interval.gap for name, interval in point.gaps.items()}
    about = {
        "kind": "apfex.onnx",
        "format": 1,
        "inputs": inputs,
        "classes": [str(label) for label in clf.classes_.tolist()],
        "label_is": "class" if label_type(clf.classes_) else "place among classes",
        "point": clf.point_,
        "error": point.error,
        "gaps": gaps,
        "trivial": point.trivial,
    }
    return json.dumps(about)
