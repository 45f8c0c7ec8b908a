"""The course of a training run, shortened so that thousands can be kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

import numpy as np

Trace = Mapping[str, Any]
STRETCHES = 12
"""Parts of a run whose means are kept."""


def shortened(trace: Trace, stretches: int = STRETCHES, *, objectives: bool = True) -> dict:
    """Means over a few stretches of equal length instead of every window; strategies in full.

    Parameters
    ----------
    trace : mapping
        As a record holds it, with ``omega``, ``norm``, ``aligned`` and, for each objective,
        ``losses``, ``weights`` and ``norms``.
    stretches : int
        At most so many; windows are dealt out as evenly as they can be.
    objectives : bool
        Whether what there is for each objective is kept.

    Returns
    -------
    dict
        ``windows`` (how many), ``strategies`` (each with the number of windows that it ruled in a
        row, as "AW 5, PCP 2"), ``ends`` (omega in the first and in the last window) and the means.

    Examples
    --------
    >>> trace = dict(step=[1, 2, 3], strategy=["AW", "AW", "PCP"], norm=[3.0, 1.0, 0.5])
    >>> trace |= dict(omega=[1.0, 0.5, 0.1], aligned=[1, 1, 1], losses={}, weights={}, norms={})
    >>> short = shortened(trace, 2)
    >>> short["strategies"], short["omega"], short["ends"]
    ('AW 2, PCP 1', [0.75, 0.1], [1.0, 0.1])
    """
    parts = np.array_split(np.arange(len(trace["step"])), min(stretches, len(trace["step"])))

    def means(values: Sequence[float]) -> list[float]:
        found = np.asarray(values, dtype=float)
        return [float(f"{found[part].mean():.3g}") for part in parts]

    ruled = ((name, len(list(run))) for name, run in groupby(trace["strategy"]))
    short: dict[str, Any] = {
        "windows": len(trace["step"]),
        "strategies": ", ".join(f"{name} {count}" for name, count in ruled),
        "ends": [trace["omega"][0], trace["omega"][-1]],
    }
    short |= {name: means(trace[name]) for name in ("omega", "norm", "aligned")}
    for name in ("losses", "weights", "norms") if objectives else ():
        short[name] = {objective: means(values) for objective, values in trace[name].items()}
    return short
