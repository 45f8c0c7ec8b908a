"""What is changed, one at a time, in APFEx on the crossing with both criteria."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import torch

from apfex.strategies import (
    AdaptiveSwitch,
    AdaptiveWeighting,
    CAGrad,
    Choice,
    ConeProjection,
    Decision,
    EqualWeights,
    PCGrad,
    SetSampling,
    StepView,
    UPGrad,
)


@final
@dataclass(frozen=True)
class RandomSwitch:
    """One of the three strategies, drawn anew for each window.

    Examples
    --------
    >>> view = StepView.of(torch.eye(2), torch.ones(2))
    >>> Choice(int(RandomSwitch().decide(view).choice)) in set(Choice)
    True
    """

    def decide(self, view: StepView) -> Decision:
        """Weigh the objectives of one step."""
        window = view.step // view.history.window
        drawn = [
            int(np.random.default_rng([int(seed), window]).integers(len(Choice)))
            for seed in view.seeds.reshape(-1)
        ]
        choice = torch.tensor(drawn, device=view.losses.device).view_as(view.seeds)
        weights = torch.zeros_like(view.losses)
        blend = torch.ones_like(view.losses[..., 0])
        for number, strategy in zip(
            Choice, (ConeProjection(), AdaptiveWeighting(), SetSampling()), strict=True
        ):
            decision = strategy.decide(view)
            chosen = choice == number
            weights = torch.where(chosen.unsqueeze(-1), decision.weights, weights)
            if decision.blend is not None:
                blend = torch.where(chosen, decision.blend, blend)
        return Decision(weights, blend, choice)


def _switch(**changes: Any) -> dict[str, Any]:
    return {"strategy": AdaptiveSwitch(**changes)}


ABLATIONS: Mapping[str, Mapping[str, Any]] = {
    "pcp": {"strategy": ConeProjection()},
    "aw": {"strategy": AdaptiveWeighting()},
    "pss": {"strategy": SetSampling()},
    "pss-alone-each-step": {"strategy": SetSampling(hold="step")},
    "equal": {"strategy": EqualWeights()},
    "random-switch": {"strategy": RandomSwitch()},
    "cone-first": _switch(order="cone_first"),
    "pss-each-step": _switch(sampling=SetSampling(hold="step")),
    "literal-pcp": {"strategy": ConeProjection("unit"), "steps": "sgd"},
    "literal-switch": _switch(cone=ConeProjection("unit")) | {"steps": "sgd"},
    "scales-mean": {"scales": "mean"},
    "scales-range": {"scales": "range"},
    "scales-none": {"scales": "none"},
    "ccr": {"relaxation": "ccr"},
    "identity": {"relaxation": "identity"},
    "no-task-share": {"task_weight": 0.0},
    "tau-1": _switch(weighting=AdaptiveWeighting(rate=1.0)),
    "tau-100": _switch(weighting=AdaptiveWeighting(rate=100.0)),
    "delta-1e-4": _switch(tolerance=1e-4),
    "delta-1e-2": _switch(tolerance=1e-2),
    "beta-1.2": _switch(imbalance=1.2),
    "beta-5": _switch(imbalance=5.0),
    "pcgrad": {"strategy": PCGrad()},
    "cagrad": {"strategy": CAGrad()},
    "upgrad": {"strategy": UPGrad()},
}
"""Settings of ``PaperAPFEx`` that differ from the paper's, by name."""
