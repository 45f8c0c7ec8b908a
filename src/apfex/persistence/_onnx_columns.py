"""From the columns of a table to the inputs of models, as an ONNX graph."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, final

import numpy as np

from apfex.front import Encoder, InitColumns, ModelEncoder, NumericColumns, TableEncoders
from apfex.persistence._onnx_graph import Graph
from apfex.tables import FARTHEST

_LARGEST = float(np.finfo(np.float32).max)
_MISSING = "<missing>"


@final
class Columns:
    """Inputs of a graph: a column each, or one matrix where all are numbers without names.

    Attributes
    ----------
    described : list of JSON values
        Name, column and type of each input, in order; how a missing text is written.
    """

    def __init__(self, graph: Graph, matrix: Sequence[str] | None) -> None:
        self._graph = graph
        self._known: dict[str, str] = {}
        self._marks: dict[str, str] = {}
        self.described: list[dict[str, Any]] = []
        if matrix is None:
            return
        name = graph.input("X", np.float64, len(matrix))
        self.described.append({"name": name, "columns": list(matrix), "type": "matrix"})
        for place, column in enumerate(matrix):
            self._known[column] = graph.add(
                "Gather", name, graph.constant([place], np.int64), axis=1
            )

    def number(self, column: str) -> str:
        """A column of numbers, float64 [n, 1]."""
        if column not in self._known:
            self._known[column] = self._graph.input(column, np.float64, 1)
            self.described.append(self._entry(column, "number"))
        return self._known[column]

    def codes(self, column: str, levels: Sequence[str], other: int, missing: int) -> str:
        """Places of the texts of a column among levels, int64 [n, 1]."""
        if column not in self._known:
            mark = _MISSING
            while mark in levels:
                mark += "_"
            self._known[column], self._marks[column] = self._graph.input(column, str, 1), mark
            self.described.append(self._entry(column, "text") | {"missing": mark})
        return self._graph.add(
            "LabelEncoder",
            self._known[column],
            domain="ai.onnx.ml",
            keys_strings=[*levels, self._marks[column]],
            values_int64s=[*range(len(levels)), missing],
            default_int64=other,
        )

    def _entry(self, column: str, kind: str) -> dict[str, Any]:
        return {"name": self._known[column], "column": column, "type": kind}


def encode_columns(graph: Graph, encoder: Encoder) -> tuple[str, list[Any]]:
    """Inputs of modules, float32 [n, d], and what is known of those of the graph."""
    if isinstance(encoder, TableEncoders):
        return _encode_tables(graph, encoder)
    if isinstance(encoder, InitColumns):
        return _encode_own(graph, encoder)
    if isinstance(encoder, ModelEncoder):
        raise ValueError(
            f"to_onnx must be given a front of models of ours, got one around a model of yours "
            f"({encoder.models[0].name}); use save or joblib, or fit with model='boosting', or, "
            "around a network or XGBoost, with search='inprocess'."
        )
    if not isinstance(encoder, NumericColumns):
        raise TypeError(f"encoder must be one of ours, got {type(encoder).__name__}.")
    columns = Columns(graph, encoder.names)
    return graph.cast(columns.described[0]["name"], np.float32), columns.described


def _encode_tables(graph: Graph, encoder: TableEncoders) -> tuple[str, list[Any]]:
    stored = [json.loads(one.to_json()) for one in encoder.encoders.values()]
    plans = [plan for one in stored for plan in one["columns"]]
    numbers = all(plan["kind"] not in ("level", "code") for plan in plans)
    by_place = all(one["matched_by"] == "position" for one in stored)
    matrix = [plan["name"] for plan in stored[0]["columns"]] if numbers and by_place else None
    columns = Columns(graph, matrix)
    parts = [part for plan in plans for part in _ENCODE[plan["kind"]](graph, columns, plan)]
    return graph.add("Concat", *parts, axis=1), columns.described


def _encode_own(graph: Graph, encoder: InitColumns) -> tuple[str, list[Any]]:
    columns = Columns(graph, None if encoder.levels else encoder.names)
    parts = []
    for place, name in enumerate(encoder.names):
        if place not in encoder.levels:
            parts.append(graph.cast(columns.number(name), np.float32))
            continue
        levels = [str(level) for level in encoder.levels[place]]
        if len(set(levels)) < len(levels):
            raise ValueError(
                f"categories of the column {name!r} must read differently to be exported, got "
                f"{levels}; rename one."
            )
        parts.append(_with_nan(graph, columns.codes(name, levels, -1, -1)))
    return graph.add("Concat", *parts, axis=1), columns.described


def _dropped(*_: Any) -> list[str]:
    return []


def _number(graph: Graph, columns: Columns, plan: Mapping[str, Any]) -> list[str]:
    """Standardised number, flag, ramps and steps, counted in float64 and rounded at the end."""
    x = columns.number(plan["name"])
    missing = graph.add("IsNaN", x)
    mean, scale, zero = (graph.constant(value) for value in (plan["mean"], plan["scale"], 0.0))
    z = graph.add("Div", graph.add("Sub", x, mean), scale)
    z = graph.add("Where", missing, zero, _clip(graph, z, -FARTHEST, FARTHEST))
    parts = [graph.cast(z, np.float32)] if plan["varies"] else []
    parts += [graph.cast(missing, np.float32)] if plan["flag"] else []
    if plan["edges"]:
        borders = np.array(plan["edges"])
        low, width, inner = map(graph.constant, (borders[:-1], np.diff(borders), borders[1:-1]))
        ramps = graph.add("Div", graph.add("Sub", z, low), width)
        parts.append(graph.cast(_clip(graph, ramps, 0.0, 1.0), np.float32))
        parts.append(graph.cast(graph.add("Greater", z, inner), np.float32))
    return parts


def _level(graph: Graph, columns: Columns, plan: Mapping[str, Any]) -> list[str]:
    """An input for each level, for others and for what is missing, where there are such."""
    n, nowhere = len(plan["levels"]), -1
    other = n if plan["other"] else nowhere
    missing = n + plan["other"] if plan["missing"] else other
    codes = columns.codes(plan["name"], plan["levels"], other, missing)
    places = graph.constant(np.arange(n + plan["other"] + plan["missing"]))
    return [graph.cast(graph.add("Equal", codes, places), np.float32)]


def _value(graph: Graph, columns: Columns, plan: Mapping[str, Any]) -> list[str]:
    x = columns.number(plan["name"])
    cut = _clip(graph, x, -_LARGEST, _LARGEST)
    return [graph.cast(graph.add("Where", graph.add("IsNaN", x), x, cut), np.float32)]


def _code(graph: Graph, columns: Columns, plan: Mapping[str, Any]) -> list[str]:
    other = len(plan["levels"]) if plan["other"] else -1
    return [_with_nan(graph, columns.codes(plan["name"], plan["levels"], other, -1))]


_ENCODE = {
    "dropped": _dropped,
    "number": _number,
    "level": _level,
    "value": _value,
    "code": _code,
}


def _with_nan(graph: Graph, codes: str) -> str:
    """Codes as float32, those below 0 as NaN."""
    absent = graph.add("Less", codes, graph.constant(0))
    nan = graph.constant(np.nan, np.float32)
    return graph.add("Where", absent, nan, graph.cast(codes, np.float32))


def _clip(graph: Graph, value: str, low: float, high: float) -> str:
    return graph.add("Clip", value, graph.constant(low), graph.constant(high))
