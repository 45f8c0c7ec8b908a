"""Methods that ``bench_front.py`` compares, one short file per family.

A family file exports ``METHODS``: name -> generator function ``(rows, test, seed)`` that yields
what it hands out problem by problem, all in terms of ``rivals.common``. Packages of rivals are
imported inside the functions, so that one that is missing or broken becomes a listed error of that
method alone.
"""

from __future__ import annotations

import contextlib
from importlib import import_module

import torch

from rivals.common import Method

_FAMILIES = (
    *("plain", "linearpost_", "errorparity_", "fairlearn_", "oxonfair_", "fairgbm_"),
    *("sweep", "torchjd_", "fairret_", "apfex_"),
)
_PACKAGES = (
    "fairlearn.postprocessing",
    "fairlearn.reductions",
    "torchjd.aggregation",
    "torchjd.autojac",
    "fairret.loss",
    "fairret.statistic",
    "oxonfair",
    "error_parity",
    "fairgbm",
    "sklearn.ensemble",
    "xgboost",
)


def all_methods() -> dict[str, Method]:
    """Every registered method by name, rivals first."""
    found: dict[str, Method] = {}
    for family in _FAMILIES:
        methods = import_module(f"rivals.{family}").METHODS
        twice = found.keys() & methods.keys()
        if twice:
            raise ValueError(f"Methods registered twice: {sorted(twice)}.")
        found |= methods
    return found


def own_methods() -> frozenset[str]:
    """Names of APFEx's own methods: they are compared with the best of all others."""
    return frozenset(import_module("rivals.apfex_").METHODS)


def warm_up() -> None:
    """Import what methods import, so that the first run is not charged for it."""
    for package in _PACKAGES:
        with contextlib.suppress(Exception):  # told again, as an error, by the method that needs it
            import_module(package)
    weight = torch.zeros(1, requires_grad=True)  # the first optimizer of a process is slow to make
    weight.grad = torch.zeros(1)
    torch.optim.AdamW([weight], fused=True).step()
