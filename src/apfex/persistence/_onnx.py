"""A point of the front as an ONNX file, from the columns of a table to the label."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import torch

from apfex.arguments import as_path
from apfex.front import Fitted
from apfex.persistence._files import write_bytes_atomically
from apfex.persistence._onnx_columns import encode_columns
from apfex.persistence._onnx_graph import Graph
from apfex.persistence._onnx_modules import ModuleExport

_OUTPUTS = ("label", "probabilities", "scores")
_LABELS = {"i": np.int64, "u": np.int64, "b": np.bool_, "f": np.float64, "U": str}
"""Kinds of labels that ONNX has a type for; text also comes as objects."""


def export_onnx(
    fitted: Fitted, point: int, path: str | os.PathLike[str], *, overwrite: bool = False
) -> Path:
    """Write a point of the front as an ONNX file.

    Parameters
    ----------
    fitted : Fitted
    point : int
        Its place on the front.
    path : str or path
        One that is not there yet.
    overwrite : bool
        Whether to replace a file that is there, once the new one is whole.

    Returns
    -------
    Path
        Of the file; for what it takes and gives see :meth:`apfex.APFExClassifier.to_onnx`.

    Examples
    --------
    >>> from apfex import APFExClassifier, make_biased
    >>> data = make_biased(n=400, random_state=0)
    >>> clf = APFExClassifier(model="linear", epochs=2, max_gap=1.0, random_state=0)
    >>> clf = clf.fit(data.X, data.y, sensitive_features=data.sensitive)
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as place:
    ...     export_onnx(clf.fitted_, 0, f"{place}/first.onnx").name
    'first.onnx'
    """
    if as_path("path", path).is_file() and not overwrite:
        raise FileExistsError(
            f"{str(path)!r} must not be there yet, got a file of this name; choose another, or "
            "pass overwrite=True."
        )
    graph = Graph(_OUTPUTS)
    export = ModuleExport(graph, np.float64 if fitted.front.dtype == torch.float64 else np.float32)
    x, inputs = encode_columns(graph, fitted.encoder)
    groups = None
    if fitted.groups is not None:
        groups = graph.input("group", np.int64, None)
        inputs.append({"name": groups, "type": "group", "groups": list(fitted.groups.names)})
    used = fitted.front[point]
    scores = export.scores(used.module, graph.cast(x, export.dtype), groups)
    each = export.binary(scores) if fitted.is_binary else scores
    probabilities = export.probabilities(used.module, each, used.calibration)
    outputs = _outputs(graph, fitted.classes, scores, probabilities, export.dtype)
    about = {"apfex": _about(fitted, point, inputs)}
    return write_bytes_atomically(path, graph.model(outputs, about))


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


def _about(fitted: Fitted, place: int, inputs: list[Any]) -> str:
    """What a reader must know of the inputs, and may want to know of the point."""
    point = fitted.front[place]
    about = {
        "kind": "apfex.onnx",
        "format": 1,
        "inputs": inputs,
        "classes": [str(label) for label in fitted.classes.tolist()],
        "label_is": "class" if label_type(fitted.classes) else "place among classes",
        "point": place,
        "error": point.error,
        "gaps": {name: interval.gap for name, interval in point.gaps.items()},
        "trivial": point.trivial,
    }
    return json.dumps(about)
