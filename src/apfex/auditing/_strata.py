"""Gaps between people who are alike in control features: the same audit within each stratum."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from apfex.auditing._estimates import attribute_columns
from apfex.auditing._verdicts import holm
from apfex.groups import Groups
from apfex.metrics import Inputs
from apfex.rates import ConfusionCounts, count_rows

MOST_STRATA = 200
"""Strata beyond which an audit refuses: nobody compares them."""
_NOTED = 4


def check_strata(strata: Groups, n: int, argument: str = "control_features") -> None:
    """Refuse control features of another length, or more strata than anybody compares."""
    if len(strata.codes) != n:
        raise ValueError(
            f"{argument} must have one entry per row of y_pred ({n}), got {len(strata.codes)}."
        )
    if len(strata) > MOST_STRATA:
        raise ValueError(
            f"{argument} must form at most {MOST_STRATA} strata, got {len(strata):,}; put "
            "numbers into bins, merge levels or leave a column out."
        )


def gaps_within(
    data: Inputs,
    strata: Groups,
    favorable: int,
    gaps_of: Callable[[ConfusionCounts], pd.DataFrame],
) -> tuple[pd.DataFrame, list[str]]:
    """Gaps of each stratum, and a note of those that are too small.

    Returns
    -------
    frame : DataFrame
        Columns of the control features, ``count`` (rows of the stratum), then those of ``gaps``.
        Adjusted p-values are Holm's over all rows of this table.
    notes : list of str
    """
    frames, small = [], []
    for code, name in enumerate(strata.names):
        rows = np.flatnonzero((strata.codes == code) & (data.groups.codes >= 0))
        if not len(rows):
            continue
        counts = count_rows(
            None if data.y is None else data.y[rows],
            data.decided[rows],
            data.groups.take(rows, drop_empty=True),
            None if data.weight is None else data.weight[rows],
            classes=data.classes,
            favorable=favorable,
            repeats=None if data.repeats is None else data.repeats.take(rows),
        )
        gaps: Any = gaps_of(counts)
        if gaps["gap"].isna().all():
            small.append(name)
        gaps.insert(0, "count", counts.n_rows)
        frames.append(gaps.assign(_stratum=code))
    frame = pd.concat(frames, ignore_index=True)
    frame["p_adjusted"] = holm(frame["p_value"].tolist())
    codes = frame.pop("_stratum").to_numpy()
    columns = attribute_columns(strata, strata.attributes)
    for place, (name, levels) in enumerate(columns.items()):
        taken = name in frame.columns
        frame.insert(place, f"{name} (control)" if taken else name, levels[codes])
    return frame, _too_small(small, len(strata))


def _too_small(small: list[str], n: int) -> list[str]:
    if not small:
        return []
    more = f" and {len(small) - _NOTED} more" if len(small) > _NOTED else ""
    return [
        f"In {len(small)} of {n} strata no two groups have enough rows to be compared: "
        f"{'; '.join(small[:_NOTED])}{more}."
    ]
