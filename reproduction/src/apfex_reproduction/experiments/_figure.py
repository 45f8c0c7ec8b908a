"""The paper's figure: what training did, step by step, and which strategy was at work."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from apfex.strategies import AdaptiveSwitch, Choice
from apfex_reproduction.experiments._drawing import (
    BANDS,
    HATCH,
    check_path,
    new_figure,
    own_style,
    save,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

_SWITCH = AdaptiveSwitch()
_STRATEGIES = {
    Choice.PCP.name: _SWITCH.cone,
    Choice.AW.name: _SWITCH.weighting,
    Choice.PSS.name: _SWITCH.sampling,
}
_COLOURS = ("#000000", "#0072b2", "#c24e00", "#00795a", "#aa4499", "#666600", "#882255")
"""Okabe and Ito's for colour-blind readers, darkened to stand out from every band."""
_MARKERS = ("o", "s", "^", "D", "v")
_MARKED = 8
"""About so many points of a line carry its mark."""
_LOG_FROM = 10.0
"""Largest over smallest value from which on a logarithmic axis shows more."""


Trace = Mapping[str, Any]
"""One training run, window by window, as a record holds it."""
_KEYS = ("step", "strategy", "losses", "weights", "norm")


def draw_figure(traces: Mapping[str, Trace], path: str | os.PathLike[str] | None = None) -> Figure:
    """Draw gradient norm, losses and weights over the iterations, a column per data set.

    Behind the lines a coloured band shows the strategy at work; its share of the steps stands
    in the title of the column.

    Parameters
    ----------
    traces : mapping from data set to trace
        A trace is a mapping with ``step`` (steps taken when each window ended), ``strategy``
        ("PCP", "AW" or "PSS" in each window), ``losses`` and ``weights`` (a list for each
        objective, by name) and ``norm`` (length of the combined gradient): window means, the
        losses over their scales, as :meth:`~apfex.history.History.to_frame` gives them.
    path : path ending with .png, .svg or .pdf, optional
        Where to write it; the same traces give the same bytes.

    Returns
    -------
    matplotlib.figure.Figure
        Unknown to pyplot, so nothing needs to be closed.

    Notes
    -----
    A value is drawn at the middle of the window that it is the mean of. Norms and losses get a
    logarithmic axis where they span more than a factor of ten (zeros then leave it at the bottom).
    Objectives differ in colour and marks, strategies in hue, lightness and texture, so that the
    figure can be read without colours.

    Examples
    --------
    >>> from apfex_reproduction.experiments import draw_figure
    >>> trace = {
    ...     "step": [100, 200],
    ...     "strategy": ["AW", "PCP"],
    ...     "losses": {"cross-entropy": [0.69, 0.5], "dp sex x race": [0.3, 0.2]},
    ...     "weights": {"cross-entropy": [0.5, 0.3], "dp sex x race": [0.5, 0.7]},
    ...     "norm": [1.0, 0.1],
    ... }
    >>> figure = draw_figure({"adult": trace})
    >>> print(figure.axes[0].get_title())
    PCP 50 %, AW 50 %, PSS 0 %
    """
    file = check_path(path)
    if not traces:
        raise ValueError("traces must hold at least one data set, got none.")
    for name, trace in traces.items():
        _check(name, trace)
    with own_style():
        figure = new_figure(max(5.5, 1.1 + 1.85 * len(traces)), 6.2)
        figure.set_layout_engine("constrained", h_pad=0.03, w_pad=0.03)
        panels = figure.subplots(3, len(traces), squeeze=False, sharex="col", sharey="row")
        for column, (name, trace) in zip(panels.T, traces.items(), strict=True):
            _draw_column(column, name, trace)
        _finish_rows(panels, list(traces.values()))
        figure.legend(
            handles=_band_keys(),
            title="active strategy",
            ncols=3,
            loc="outside lower center",
            frameon=False,
        )
        figure.draw_without_rendering()  # ticks are made now, in this style
        figure.set_layout_engine("none")  # and stay where they are
        if file is not None:
            save(figure, file)
    return figure


def _draw_column(column: Sequence[Axes], name: str, trace: Trace) -> None:
    norms, losses, weights = column
    edges = np.concatenate([[0], np.asarray(trace["step"], dtype=float)])
    middles = (edges[:-1] + edges[1:]) / 2
    for panel in column:
        for strategy, start, end in _runs(trace["strategy"], edges):
            panel.axvspan(start, end, linewidth=0, edgecolor=HATCH, zorder=0, **BANDS[strategy])
    lone = "." if len(middles) == 1 else None  # a single point makes no line
    norms.plot(middles, trace["norm"], color="#333333", marker=lone)
    for panel, values in ((losses, trace["losses"]), (weights, trace["weights"])):
        for place, (objective, line) in enumerate(values.items()):
            _draw_line(panel, middles, line, place, _plain(objective))
    norms.set_title(_shares(trace["strategy"], np.diff(edges)), fontsize=7)
    norms.annotate(
        _plain(name),
        (0.5, 1),
        (0, 16),
        xycoords="axes fraction",
        textcoords="offset points",
        ha="center",
        fontsize=9,
        fontweight="bold",
    )
    weights.set_xlim(0, edges[-1])
    weights.set_xlabel("iteration (optimizer steps)")
    weights.legend(loc="upper center", bbox_to_anchor=(0.5, -0.25), frameon=False)


def _draw_line(panel: Axes, x: np.ndarray, y: Sequence[float], place: int, label: str) -> None:
    """A line with its colour and, now and then, its mark; shifted so that marks rarely meet."""
    apart = max(1, round(len(x) / _MARKED))
    panel.plot(
        x,
        y,
        color=_COLOURS[place % len(_COLOURS)],
        marker=_MARKERS[place % len(_MARKERS)],
        markevery=((place * apart) // 5 % apart, apart),
        markeredgecolor="white",
        markeredgewidth=0.4,
        label=label,
        zorder=3 - 0.01 * place,
    )


def _finish_rows(panels: np.ndarray, traces: Sequence[Trace]) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

    norms, losses, weights = (row[0] for row in panels)
    norms.set_ylabel("combined gradient norm\n(window mean)")
    losses.set_ylabel("loss over its scale\n(window mean)")
    weights.set_ylabel("weight of the objective\n(window mean)")
    rows = {norms: [trace["norm"] for trace in traces]}
    rows[losses] = [line for trace in traces for line in trace["losses"].values()]
    for panel, lines in rows.items():
        if _needs_log(lines):
            panel.set_yscale("log")
            panel.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
            panel.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
            panel.yaxis.set_minor_formatter(NullFormatter())
    largest = max(1.0, weights.get_ylim()[1])
    weights.set_ylim(-0.03 * largest, 1.03 * largest)  # marks at either end are drawn whole
    for panel in panels[-1]:
        panel.xaxis.set_major_locator(MaxNLocator(4, integer=True))


def _runs(names: Sequence[str], edges: np.ndarray) -> Iterator[tuple[str, float, float]]:
    """Neighbouring windows of one strategy as one stretch."""
    start = 0
    for name, windows in groupby(names):
        end = start + len(list(windows))
        yield name, edges[start], edges[end]
        start = end


def _shares(names: Sequence[str], lengths: np.ndarray) -> str:
    taken = {name: lengths[np.array(names) == name].sum() / lengths.sum() for name in BANDS}
    return ", ".join(f"{name} {_per_cent(share)}" for name, share in taken.items())


def _per_cent(share: float) -> str:
    rounded = round(100 * share)
    if share > 0 and rounded == 0:
        return "< 1 %"
    return "> 99 %" if share < 1 and rounded == 100 else f"{rounded} %"


def _band_keys() -> list[Patch]:
    from matplotlib.patches import Patch

    return [
        Patch(
            label=f"{name} ({type(_STRATEGIES[name]).__name__})",
            edgecolor=HATCH,
            linewidth=0.4,
            **band,
        )
        for name, band in BANDS.items()
    ]


def _needs_log(lines: Iterable[Sequence[float]]) -> bool:
    values = np.concatenate([np.asarray(line, dtype=float) for line in lines])
    positive = values[np.isfinite(values) & (values > 0)]
    if not len(positive) or (values < 0).any():
        return False
    return bool(positive.max() > _LOG_FROM * positive.min())


def _plain(text: str) -> str:
    return text.replace("$", r"\$")


def _check(name: str, trace: Trace) -> None:
    """Refuse a trace that would be drawn wrongly."""
    where = f"traces[{name!r}]"
    missing = [key for key in _KEYS if key not in trace]
    if missing:
        raise ValueError(f"{where} must have {', '.join(_KEYS)}, got none of {missing}.")
    steps = np.asarray(trace["step"], dtype=float)
    if steps.ndim != 1 or not len(steps) or not (np.diff(steps, prepend=0) > 0).all():
        raise ValueError(
            f"{where}['step'] must be rising and positive, the steps taken when each window "
            f"ended, got {list(trace['step'])[:5]}."
        )
    unknown = sorted(set(trace["strategy"]) - set(BANDS))
    if unknown:
        raise ValueError(f"{where}['strategy'] must be one of {list(BANDS)}, got {unknown[0]!r}.")
    if not trace["losses"] or list(trace["losses"]) != list(trace["weights"]):
        raise ValueError(
            f"{where} must have losses and weights of the same objectives in the same order, got "
            f"{list(trace['losses'])} and {list(trace['weights'])}."
        )
    lines = {"strategy": trace["strategy"], "norm": trace["norm"]}
    for kind in ("losses", "weights"):
        lines |= {f"{kind}[{key!r}]": line for key, line in trace[kind].items()}
    for key, line in lines.items():
        if len(line) != len(steps):
            raise ValueError(
                f"{where}: {key} must have an entry for each of the {len(steps)} windows, got "
                f"{len(line)}."
            )
