"""Whether scores hold what they promise, group by group: reliability tables."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from apfex.auditing._estimates import attribute_columns, column_of, wilson_interval
from apfex.auditing._metrics import ALL_ROWS
from apfex.auditing._settings import groupings_of
from apfex.groups import Groups, grouping_name
from apfex.metrics import Inputs

_BINS = 10


def calibration_table(data: Inputs, confidence: float) -> pd.DataFrame:
    """Mean score and share of the favorable label, for each group and part of the scores.

    Returns
    -------
    DataFrame
        A row per grouping (the first is "overall"), group and bin with rows: ``by``, ``group``, a
        column for each attribute, ``score_from``, ``score_to``, ``count``, ``mean_score``,
        ``observed`` (share of the favorable label among the labels) and its Wilson interval
        ``lower`` and ``upper``. The bins are the same for all groups: up to ten, with equally many
        of all rows in each.
    """
    assert data.y is not None
    assert data.score is not None
    inside = data.groups.codes >= 0
    score = data.score[inside]
    edges = np.unique(np.quantile(score, np.linspace(0, 1, _BINS + 1)))
    if len(edges) < 2:
        edges = np.repeat(edges, 2)
    bins = np.clip(np.searchsorted(edges, score, side="right") - 1, 0, len(edges) - 2)
    weight = None if data.weight is None else data.weight[inside]
    columns = score, data.y[inside], weight
    names = data.groups.attributes
    frames = []
    for attributes in [(), *groupings_of(names)]:
        groups = data.groups.parent(attributes) if attributes else None
        codes = np.zeros(len(score), np.int64) if groups is None else groups.codes[inside]
        frame = _table(columns, codes, bins, edges, confidence)
        for at, (name, values) in enumerate(_who(groups, data.groups).items()):
            frame.insert(at, name, [values[code] for code in frame["code"]])
        frame.insert(0, "by", grouping_name(attributes) or "overall")
        frames.append(frame.drop(columns="code"))
    return pd.concat(frames, ignore_index=True)


def _who(groups: Groups | None, all_groups: Groups) -> dict[str, Any]:
    """Columns that tell the groups apart."""
    names = all_groups.attributes
    if groups is None:
        return {"group": [ALL_ROWS], **{column_of(name): [None] for name in names}}
    return {"group": groups.names, **attribute_columns(groups, names)}


def _table(
    columns: tuple[np.ndarray, np.ndarray, np.ndarray | None],
    codes: np.ndarray,
    bins: np.ndarray,
    edges: np.ndarray,
    confidence: float,
) -> pd.DataFrame:
    score, y, weight = columns
    b = len(edges) - 1
    keys, size = codes * b + bins, (int(codes.max()) + 1) * b
    ones = np.ones(len(score)) if weight is None else weight
    total, squares = np.bincount(keys, ones, size), np.bincount(keys, ones**2, size)
    used = np.flatnonzero(total > 0)
    total = total[used]
    observed = np.minimum(np.bincount(keys, ones * y, size)[used] / total, 1)
    lower, upper = wilson_interval(observed, total**2 / squares[used], confidence)
    return pd.DataFrame(
        {
            "code": used // b,
            "score_from": edges[used % b],
            "score_to": edges[used % b + 1],
            "count": np.bincount(keys, minlength=size)[used],
            "mean_score": np.bincount(keys, ones * score, size)[used] / total,
            "observed": observed,
            "lower": lower,
            "upper": upper,
        }
    )
