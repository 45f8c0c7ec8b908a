"""Gaps with intervals, drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from apfex.auditing._names import plain
from apfex.auditing._tables import worst_first

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from apfex.auditing._audit import Audit

_COLOURS = {"violation": "C3", "within tolerance": "C2", "inconclusive": "C7"}


def plot_gaps(audit: Audit, ax: Axes | None, most: int) -> Axes:
    """A line per criterion and grouping, the worst on top."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("plot needs matplotlib: pip install 'apfex[plot]'.") from error
    gaps = worst_first(audit.gaps.dropna(subset=["gap"])).head(most)
    if ax is None:
        ax = plt.subplots(figsize=(7, 1.5 + 0.35 * len(gaps)))[1]
    places = np.arange(len(gaps))[::-1]
    for verdict, colour in _COLOURS.items():
        rows = (gaps["verdict"] == verdict).to_numpy()
        if rows.any():
            middle, low, high = gaps[["gap", "lower", "upper"]].to_numpy()[rows].T
            ax.errorbar(
                middle,
                places[rows],
                xerr=np.maximum([middle - low, high - middle], 0),
                fmt="o",
                color=colour,
                capsize=3,
                label=verdict,
            )
    floor = gaps["noise_floor"].to_numpy()
    ax.plot(floor, places, "|", color="black", markersize=12, label="noise floor")
    ax.axvline(audit.settings.tolerance, linestyle="--", color="grey", label="tolerance")
    names = [f"{row['criterion']} by {plain(row['by'], 40)}" for row in gaps.to_dict("records")]
    ax.set_yticks(places, [name.replace("$", r"\$") for name in names])
    ax.set(xlabel="gap between groups", ylabel="criterion and grouping")
    ax.set_title(f"Gaps with {audit.settings.confidence:.4g} intervals")
    ax.legend()
    return ax
