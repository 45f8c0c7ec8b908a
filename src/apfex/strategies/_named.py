"""Strategies by name, at the pace of a search of a few windows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from apfex.arguments import meant
from apfex.strategies._base import StepView, Strategy
from apfex.strategies._cagrad import CAGrad
from apfex.strategies._cone import ConeProjection
from apfex.strategies._equal_and_mgda import MGDA, EqualWeights
from apfex.strategies._pcgrad import PCGrad
from apfex.strategies._sampling import SetSampling
from apfex.strategies._switch import AdaptiveSwitch
from apfex.strategies._tchebycheff import SmoothTchebycheff
from apfex.strategies._upgrad import UPGrad
from apfex.strategies._weighting import AdaptiveWeighting


def _switch() -> Strategy:
    # The paper's 100 steps a window and five of patience suit minibatches; here a window is a
    # handful of exact steps, and there are four of them.
    return AdaptiveSwitch(weighting=AdaptiveWeighting(rate=1.0), patience=1)


STRATEGIES: dict[str, Callable[[], Strategy]] = {
    "switch": _switch,
    "pcp": ConeProjection,
    "aw": AdaptiveWeighting,
    "pss": SetSampling,
    "fixed": EqualWeights,
    "tchebycheff": SmoothTchebycheff,
    "mgda": MGDA,
    "cagrad": CAGrad,
    "pcgrad": PCGrad,
    "upgrad": UPGrad,
}
"""What a search may be driven by: the paper's switching rule, its three parts, and others."""


_SPELLED = {"pcp": "PCP", "aw": "AW", "pss": "PSS"}
"""Names as the switching rule tells them."""


def read_strategies(given: Any) -> tuple[Strategy, ...]:
    """Read a name, a strategy, or several of either; None is the switching rule.

    Examples
    --------
    >>> read_strategies(["pcp", SetSampling()])
    (ConeProjection(form='min_norm', zero=1e-08), SetSampling(blend=0.5, hold='window'))
    """
    several = isinstance(given, Sequence) and not isinstance(given, str)
    named: list[Any] = list(given) if several else ["switch" if given is None else given]
    wrong = [one for one in named if not (_is_name(one) or _is_strategy(one))]
    if wrong or not named:
        raise ValueError(
            f"strategy must be of {list(STRATEGIES)}, a strategy of apfex.strategies, or a list "
            f"of them, got {given!r}.{meant(given, STRATEGIES)}"
        )
    return tuple(STRATEGIES[one.lower()]() if isinstance(one, str) else one for one in named)


def name_of(strategy: Strategy) -> str:
    """The name that a strategy goes by; that of its class, if it has none here.

    Examples
    --------
    >>> name_of(ConeProjection())
    'PCP'
    """
    named = {type(make()): name for name, make in STRATEGIES.items()}
    found = named.get(type(strategy))
    return type(strategy).__name__ if found is None else _SPELLED.get(found, found)


def check_weights(weights: torch.Tensor, strategy: Strategy) -> None:
    """Refuse weights that no direction can be made of."""
    usable = (weights >= 0) & weights.isfinite()
    if not bool(usable.all()):
        wrong = weights[~usable][0]
        raise ValueError(
            f"strategy must return weights that are finite and not negative, got {float(wrong):g} "
            f"from {strategy!r}."
        )


def check_strategies(strategies: Sequence[Strategy], n_objectives: int) -> None:
    """Refuse strategies that do not go with the error and the gaps of a search."""
    for strategy in strategies:
        view = StepView.of(torch.eye(n_objectives).double(), torch.ones(n_objectives).double())
        try:
            weights = strategy.decide(view).weights
        except Exception as error:
            raise ValueError(
                f"strategy must weigh the error and {n_objectives - 1} gaps, got {strategy!r}, "
                f"which fails on them: {error}"
            ) from error
        shape = list(getattr(weights, "shape", ()))
        if shape != [n_objectives]:
            raise ValueError(
                f"strategy must return a weight for the error and for each of the "
                f"{n_objectives - 1} gaps, got {strategy!r} with weights of shape {shape}."
            )
        check_weights(weights, strategy)


def _is_name(given: Any) -> bool:
    return isinstance(given, str) and given.lower() in STRATEGIES


def _is_strategy(given: Any) -> bool:
    return isinstance(given, Strategy) and not isinstance(given, type)
