"""Bins of a number as extra inputs: ramps that climb inside a bin and steps at its borders.

A ramp is the piecewise-linear code of Gorishniy, Rubachev and Babenko (2022): 0 below the bin, 1
above it, linear between. Numbers are standardised before they come here.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Bins = Literal["tree", "quantile"]


def choose_edges(
    z: NDArray[np.float64], y: NDArray[Any] | None, bins: Bins, max_bins: int
) -> tuple[float, ...]:
    """Return bin edges, outer ones included, or nothing where bins would add nothing.

    Parameters
    ----------
    z : array of shape [n]
        Standardised values without missing ones.
    y : array of shape [n] or None
        Labels of the same rows; used by ``"tree"``.
    bins : "tree" or "quantile"
    max_bins : int
        Most bins to make.
    """
    distinct = np.unique(z)
    if len(distinct) <= 2:  # two values are told apart by the number itself
        return ()
    if bins == "tree":
        assert y is not None
        inner = _tree_thresholds(z, y, max_bins)
    else:
        inner = np.quantile(z, np.linspace(0, 1, max_bins + 1)[1:-1])
    inner = np.unique(inner)
    inner = inner[(inner > distinct[0]) & (inner < distinct[-1])]
    if not len(inner):
        return ()
    return (float(distinct[0]), *inner.tolist(), float(distinct[-1]))


def _tree_thresholds(z: NDArray[np.float64], y: NDArray[Any], max_bins: int) -> NDArray[np.float64]:
    from sklearn.tree import DecisionTreeClassifier

    # Leaves of a handful of rows would be bins of noise.
    smallest = max(5, len(z) // 2000)
    tree = DecisionTreeClassifier(
        max_leaf_nodes=max_bins, min_samples_leaf=smallest, random_state=0
    ).fit(z[:, None], y)
    is_split = tree.tree_.children_left != tree.tree_.children_right
    return np.asarray(tree.tree_.threshold[is_split], np.float64)


def n_bin_features(edges: tuple[float, ...]) -> int:
    """Return how many inputs ``encode_bins`` makes: a ramp per bin, a step per inner edge."""
    return 2 * len(edges) - 3 if edges else 0


def encode_bins(z: NDArray[np.float64], edges: tuple[float, ...], out: NDArray[Any]) -> None:
    """Fill ``out`` of shape [n, 2 * len(edges) - 3] with ramps, then steps.

    Ramps and steps of bins below a row's own are 1, those above 0; only its own has to be counted.
    """
    borders, widths, below = _bins_of(edges)
    own = np.searchsorted(borders[1:-1], z)  # the bin of each row: inner edges below it
    out[...] = below[own]
    ramp = (z - borders[own]) / widths[own]
    out[np.arange(len(z)), own] = np.clip(ramp, 0.0, 1.0).astype(np.float32)


@lru_cache(maxsize=1024)
def _bins_of(edges: tuple[float, ...]) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Borders, widths, and what ramps and steps are in each bin for the bins below it."""
    borders = np.asarray(edges)
    below = np.tri(len(borders) - 1, dtype=np.float32, k=-1)
    found = borders, np.diff(borders), np.hstack([below, below[:, :-1]])
    for array in found:
        array.setflags(write=False)
    return found
