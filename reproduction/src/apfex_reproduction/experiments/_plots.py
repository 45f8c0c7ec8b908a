"""Two drawings of the findings: trade-offs as printed and as found, and paired differences."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from apfex_reproduction.experiments._drawing import check_path, new_figure, own_style, save
from apfex_reproduction.experiments._labels import data_name, label_of
from apfex_reproduction.experiments._paper import printed
from apfex_reproduction.experiments._protocol import DATASETS
from apfex_reproduction.experiments._study import Record, Study, own_volume, volume

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_SHOWN: dict[str, dict[str, Any]] = {
    "plain": {"color": "#000000", "marker": "o"},
    "mmamo-multi-fair": {"color": "#0072b2", "marker": "s"},
    "apfex-multi": {"color": "#aa4499", "marker": "D"},
    "apfex-inter": {"color": "#c24e00", "marker": "^"},
    "front": {"color": "#00795a", "marker": "v"},
}


def draw_trade_offs(
    records: Sequence[Record], path: str | os.PathLike[str] | None = None
) -> Figure:
    """Accuracy over the dp gap of the intersection: every run, and what the paper prints.

    Parameters
    ----------
    records : sequence of records
        Each with ``always_0``, the accuracy of always-0 on its test rows.
    path : path ending with .png, .svg or .pdf, optional

    Notes
    -----
    A small mark is one of ten runs, a cross the pair of means that the paper prints for the column
    (whose gap, under Multi, is one of an attribute), and the dashed line the larger class.

    Examples
    --------
    >>> from apfex_reproduction.experiments import draw_trade_offs
    >>> figure = draw_trade_offs([])
    >>> len(figure.axes)
    5
    """
    file, study = check_path(path), Study(records)
    with own_style():
        figure = new_figure(11, 3.2, layout="constrained")
        axes = figure.subplots(1, len(DATASETS))
        for ax, dataset in zip(axes, DATASETS, strict=True):
            _trade_offs(ax, study, dataset)
        axes[0].set_ylabel("accuracy")
        handles, labels = axes[0].get_legend_handles_labels()
        if handles:
            figure.legend(handles, labels, loc="outside lower center", ncols=len(handles))
        if file is not None:
            save(figure, file)
    return figure


def _trade_offs(ax: Axes, study: Study, dataset: str) -> None:
    ax.set_title(data_name(dataset))
    ax.set_xlabel("DDP on the intersection")
    for method, look in _SHOWN.items():
        runs = study.runs(dataset, method)
        if not runs:
            continue
        crossing = " x ".join(runs[0]["attributes"])
        gaps = study.values(dataset, method, "dp", crossing)
        accuracies = study.values(dataset, method, "accuracy")
        ax.scatter(gaps, accuracies, s=12, alpha=0.6, label=label_of(method), **look)
        there = printed(2, dataset, method)
        if there:
            place = (there["ddp"].mean, there["accuracy"].mean)
            ax.scatter(*place, s=60, marker="x", color=look["color"], linewidths=1.5)
    always = study.values(dataset, "always-0", "accuracy")
    if always:
        share = float(np.mean(always))
        ax.axhline(max(share, 1 - share), color="#888888", ls="--", lw=0.8)


def draw_differences(
    records: Sequence[Record],
    pairs: Sequence[tuple[str, str]],
    path: str | os.PathLike[str] | None = None,
) -> Figure:
    """Differences of hypervolumes with their intervals, with constants (filled) and without.

    Parameters
    ----------
    records : sequence of records
        As for :func:`draw_trade_offs`.
    pairs : sequence of (method, method)
        The first minus the second.
    path : path ending with .png, .svg or .pdf, optional

    Examples
    --------
    >>> from apfex_reproduction.experiments import draw_differences
    >>> figure = draw_differences([], [("apfex-inter", "plain")])
    >>> figure.axes[0].get_title()
    'Adult'
    """
    file, study = check_path(path), Study(records)
    with own_style():
        figure = new_figure(11, 0.9 + 0.34 * len(pairs), layout="constrained")
        axes = figure.subplots(1, len(DATASETS), sharey=True)
        for ax, dataset in zip(axes, DATASETS, strict=True):
            ax.set_title(data_name(dataset))
            ax.axvline(0, color="#888888", lw=0.8)
            for at, (first, second) in enumerate(pairs):
                for value, shift, face in ((volume, -0.15, None), (own_volume, 0.15, "white")):
                    found = study.paired(dataset, first, second, value)
                    if found is not None:
                        ax.plot([found.low, found.high], [at + shift] * 2, color="#000000")
                        ax.plot(found.mean, at + shift, "o", color="#000000", markerfacecolor=face)
        axes[0].set_yticks(
            range(len(pairs)), [f"{label_of(a)}\nminus {label_of(b)}" for a, b in pairs]
        )
        axes[0].invert_yaxis()
        axes[2].set_xlabel("difference of hypervolumes")
        if file is not None:
            save(figure, file)
    return figure
