"""Whether scores hold what they promise, group by group: reliability tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
import pandas as pd

from apfex.auditing._estimates import attribute_columns, column_of, wilson_interval
from apfex.auditing._metrics import ALL_ROWS
from apfex.auditing._settings import groupings_of
from apfex.groups import Groups, grouping_name
from apfex.metrics import Inputs

_BINS = 10


@final
@dataclass(frozen=True, eq=False)
class Binned:
    """Rows by bin of their scores; arrays have shape [m], each entry may stand for many rows."""

    edges: np.ndarray  # of the bins, one more than there are
    bins: np.ndarray
    codes: np.ndarray  # of the groups of the full crossing
    y: np.ndarray
    rows: np.ndarray
    sums: np.ndarray  # of weights
    squares: np.ndarray
    scores: np.ndarray  # sums of scores by weight


SHARES = np.linspace(0, 1, _BINS + 1)
"""Of rows that have lower scores, at the edges of bins."""


def bin_edges(quantiles: np.ndarray) -> np.ndarray:
    """Edges of bins from the quantiles at ``SHARES``; a single score has one bin."""
    edges = np.unique(quantiles)
    return np.repeat(edges, 2) if len(edges) < 2 else edges


def bin_rows(data: Inputs) -> Binned:
    """Rows in memory by bin: up to ten, with equally many of all rows in each."""
    assert data.y is not None
    assert data.score is not None
    inside = data.groups.codes >= 0
    score = data.score[inside]
    edges = bin_edges(np.quantile(score, SHARES))
    bins = np.clip(np.searchsorted(edges, score, side="right") - 1, 0, len(edges) - 2)
    ones = np.ones(len(score))
    weight = ones if data.weight is None else data.weight[inside]
    y, codes = data.y[inside], data.groups.codes[inside]
    return Binned(edges, bins, codes, y, ones, weight, weight**2, weight * score)


def calibration_table(binned: Binned, groups: Groups, confidence: float) -> pd.DataFrame:
    """Mean score and share of the favorable label, for each group and part of the scores.

    Returns
    -------
    DataFrame
        A row per grouping (the first is "overall"), group and bin with rows: ``by``, ``group``, a
        column for each attribute, ``score_from``, ``score_to``, ``count``, ``mean_score``,
        ``observed`` (share of the favorable label among the labels) and its Wilson interval
        ``lower`` and ``upper``. The bins are the same for all groups.
    """
    frames = []
    for attributes in [(), *groupings_of(groups.attributes)]:
        parent = groups.parent(attributes) if attributes else None
        codes = np.zeros(len(binned.codes), np.int64)
        if attributes:
            codes = groups.parent_codes(attributes)[binned.codes]
        frame = _table(binned, codes, confidence)
        for at, (name, values) in enumerate(_who(parent, groups).items()):
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


def _table(binned: Binned, codes: np.ndarray, confidence: float) -> pd.DataFrame:
    edges, b = binned.edges, len(binned.edges) - 1
    keys, size = codes * b + binned.bins, (int(codes.max()) + 1) * b
    sums, squares, positives, scores, rows = (
        np.bincount(keys, part, size)
        for part in (
            binned.sums,
            binned.squares,
            binned.sums * binned.y,
            binned.scores,
            binned.rows,
        )
    )
    used = np.flatnonzero(sums > 0)
    total = sums[used]
    observed = np.minimum(positives[used] / total, 1)
    lower, upper = wilson_interval(observed, total**2 / squares[used], confidence)
    return pd.DataFrame(
        {
            "code": used // b,
            "score_from": edges[used % b],
            "score_to": edges[used % b + 1],
            "count": rows[used].astype(np.int64),
            "mean_score": scores[used] / total,
            "observed": observed,
            "lower": lower,
            "upper": upper,
        }
    )
