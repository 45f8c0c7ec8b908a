"""Several workers that fit together: table, settings and seed must be the same on each of them."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from apfex.distributed import Workers, chosen_workers
from apfex.front import Rows, StreamedRows
from apfex.streams import StreamSettings
from apfex.tables import read_table

_WORDS = {
    "rows": "X must have as many rows with weight",
    "columns": "X must have as many columns",
    "names": "The columns of X must be the same, in the same order,",
    "labels": "y must be the same",
    "groups": "sensitive_features must be the same",
    "weights": "sample_weight must be the same",
    "inputs": "X must hold the same values, to the last digit,",
}


def read_alike(read: Callable[[], tuple[Any, Any, Any]]) -> tuple[Any, Any, Any]:
    """What was read, rows first; an error on all workers where one fails or has another table."""
    team = chosen_workers()
    if team is None:
        return read()
    found: tuple[Any, Any, Any] = (None, None, None)
    columns, facts = _look_at(None)
    problem = None
    try:
        found = read()
        columns, facts = _look_at(found[0])
    except Exception as error:
        problem = error
    _check(team, facts, columns, team.call_roll("reading the table", facts, problem))
    return found


def check_settings(
    settings: Mapping[str, Any], streaming: StreamSettings | None, seed: int
) -> None:
    """Refuse on all workers a fit whose settings, or seed, one of them has otherwise.

    Trees and rules are not shared: each worker would have a front of its own.

    Parameters
    ----------
    settings : mapping from argument to what a checkpoint keeps of it
        Devices may differ, and folders of ``streaming``.
    streaming : StreamSettings or None
    seed : int
        What ``random_state`` has become.
    """
    team = chosen_workers()
    if team is None:
        return
    sums = {name: _checksum(value) for name, value in settings.items() if name != "device"}
    sums["streaming"] = _checksum(replace(streaming or StreamSettings(), folder=None))
    sums["random_state"] = seed
    told = team.call_roll("comparing settings", {"settings": _checksum(list(sums.items()))})
    if bool((told != told[0]).any()):
        raise ValueError(
            f"{' and '.join(_differing(team, sums))} must be the same on all workers within "
            "share_batches, as they fit one front together, got other values on some of them; give "
            "all the same, and a whole number as random_state. A fit of one worker alone goes "
            "outside of share_batches, or within share_batches(None)."
        )


def _look_at(rows: Any) -> tuple[Mapping[str, int], dict[str, float]]:
    """Checksums of the columns, and what is known of the whole table, in numbers.

    Of a stream all rows are counted by group and label, and those of its sample are looked at: it
    is drawn by the places of rows, whatever chunks they come in.
    """
    if isinstance(rows, StreamedRows):
        columns, facts = _look_at(rows.sample)
        own = _checksum(rows.facts.counts.tolist(), rows.facts.label_totals.round(6).tolist())
        return columns, {**facts, "rows": rows.facts.n_rows, "labels": facts["labels"] + own}
    if not isinstance(rows, Rows):
        return {}, dict.fromkeys(_WORDS, 0.0)
    columns = {one.name: _checksum(*_values_of(one)) for one in read_table(rows.X).columns}
    crossing, weight = rows.crossing, rows.sample_weight
    groups = () if crossing is None else (crossing.names, crossing.codes.astype(np.int64))
    weights = () if weight is None else (weight.astype(np.float32),)
    return columns, {
        "rows": rows.n_rows,
        "columns": len(columns),
        "names": _checksum(list(columns)),
        "labels": _checksum(rows.classes.tolist(), rows.y.astype(np.int64)),
        "groups": _checksum(*groups),
        "weights": _checksum(*weights),
        "inputs": _checksum(list(columns.values())),
    }


def _values_of(column: Any) -> tuple[Any, ...]:
    """The values of a column, whatever order its levels have been found in."""
    if column.kind == "number":
        return (np.where(np.isnan(column.numbers), np.nan, column.numbers) + 0.0,)
    if column.kind == "empty":
        return ()
    order = np.argsort(np.array(column.levels, dtype=object))
    places = np.append(np.argsort(order), -1)  # the last is for a missing value, code -1
    return [column.levels[place] for place in order], places[column.codes].astype(np.int64)


def _checksum(*parts: Any) -> int:
    found = 0
    for part in parts:
        data = part.tobytes() if isinstance(part, np.ndarray) else repr(part).encode()
        found = zlib.crc32(data, found)
    return found


def _check(
    team: Workers, facts: Mapping[str, float], columns: Mapping[str, int], told: torch.Tensor
) -> None:
    for name, values in zip(facts, told.T.tolist(), strict=True):
        others = [rank for rank, value in enumerate(values) if value != values[0]]
        if not others:
            continue
        got = f"other ones on worker {', '.join(map(str, others))} than on worker 0"
        if name in ("rows", "columns"):
            got = f"{[int(value) for value in values]} by rank"
        if name == "names":
            got += f"; worker {team.rank} has {list(columns)}"
        if name == "inputs":
            got += f" in {_differing(team, columns)}"
        raise ValueError(
            f"{_WORDS[name]} on all workers within share_batches, as each of them reads the whole "
            f"table, got {got}. Give all of them the same file, in the same order of rows."
        )


def _differing(team: Workers, columns: Mapping[str, int]) -> list[str]:
    found = team.gather(torch.tensor(list(columns.values()), dtype=torch.float64))
    differs = (found != found[0]).any(0).tolist()
    return [name for name, does in zip(columns, differs, strict=True) if does]
