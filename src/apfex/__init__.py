"""APFEx: classifiers that are accurate and fair at every intersection of sensitive attributes.

Read the rooms from left to right: :mod:`~apfex.groups` says who belongs together,
:mod:`~apfex.rates` what is counted, :mod:`~apfex.objectives` what is minimised,
:mod:`~apfex.gradients` and :mod:`~apfex.strategies` how several gradients become one direction,
and :mod:`~apfex.optimizer` takes the step. :mod:`~apfex.models` trains many trade-offs at once,
:mod:`~apfex.front` searches and keeps the best of them, :mod:`~apfex.persistence` stores them, and
:mod:`~apfex.estimator` hands them out. :mod:`~apfex.auditing` says what decisions do to
groups, whichever model made them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from apfex.auditing import audit
    from apfex.constraints import Constraint
    from apfex.datasets import load_dataset, make_biased
    from apfex.estimator import APFExClassifier, load
    from apfex.front import ParetoFront
    from apfex.groups import Groups, make_groups
    from apfex.objectives import CrossEntropy, FairnessLoss, Objectives
    from apfex.optimizer import APFEx
    from apfex.runs import Run, explore

__version__ = "0.1.0.dev0"

__all__ = [
    "APFEx",
    "APFExClassifier",
    "Constraint",
    "CrossEntropy",
    "FairnessLoss",
    "Groups",
    "Objectives",
    "ParetoFront",
    "Run",
    "audit",
    "explore",
    "load",
    "load_dataset",
    "make_biased",
    "make_groups",
]

_HOMES = {
    "APFEx": "optimizer",
    "APFExClassifier": "estimator",
    "Constraint": "constraints",
    "CrossEntropy": "objectives",
    "FairnessLoss": "objectives",
    "Groups": "groups",
    "Objectives": "objectives",
    "ParetoFront": "front",
    "Run": "runs",
    "audit": "auditing",
    "explore": "runs",
    "load": "estimator",
    "load_dataset": "datasets",
    "make_biased": "datasets",
    "make_groups": "groups",
}


def __getattr__(name: str) -> Any:
    """Import a name's room when it is first used, so that ``import apfex`` does no work."""
    if name not in _HOMES:
        raise AttributeError(f"module 'apfex' has no attribute {name!r}")
    return getattr(import_module(f"apfex.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    """The public names."""
    return sorted([*__all__, "__version__"])
