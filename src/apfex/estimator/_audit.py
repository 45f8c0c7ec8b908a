"""What a classifier does on fresh rows, and whose decision another point changes."""

from __future__ import annotations

import numpy as np
import pandas as pd

from apfex.auditing import Audit, AuditSettings, audit_counts
from apfex.groups import Groups
from apfex.rates import count_rows


def audit_decisions(
    y: np.ndarray,
    decisions: np.ndarray,
    crossing: Groups,
    settings: AuditSettings,
    classes: np.ndarray,
    favorable: int,
    sample_weight: np.ndarray | None,
) -> Audit:
    """Audit decisions; labels and decisions are codes of classes."""
    counts = count_rows(
        y, decisions, crossing, sample_weight, classes=classes.tolist(), favorable=favorable
    )
    return audit_counts(counts, settings)


def compare_decisions(
    first: np.ndarray, second: np.ndarray, groups: Groups | None, favorable: object
) -> pd.DataFrame:
    """Flips from the first decisions to the second, by group."""
    codes = np.zeros(len(first), dtype=np.int64) if groups is None else groups.codes
    names = ("all rows",) if groups is None else groups.names
    changed = first != second

    def count(rows: np.ndarray) -> np.ndarray:
        return np.bincount(codes[rows], minlength=len(names))

    frame = pd.DataFrame({"group": list(names), "count": count(np.ones_like(changed))})
    frame["changed"] = count(changed)
    frame["gained"] = count(changed & (second == favorable))
    frame["lost"] = count(changed & (first == favorable))
    frame["net_share"] = (frame["gained"] - frame["lost"]) / frame["count"]
    return frame
