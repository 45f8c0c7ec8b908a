"""Deciding as a whole: scores of all points for the same rows, with shared models run once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, final

import numpy as np
import torch
from torch import Tensor, nn

from apfex.models import BoostedModel, RuleModel, given_groups

_CHUNK = 2**14
"""Rows that a model sees at once."""


def score_in_chunks(
    models: Sequence[nn.Module], x: Tensor, groups: Tensor | None, dtype: torch.dtype
) -> Iterator[list[np.ndarray]]:
    """Scores of every model, [n] or [n, c], a chunk of rows at a time."""
    parts = [part.split(_CHUNK) for part in ((x,) if groups is None else (x, groups))]
    for rows, *codes in zip(*parts, strict=True):
        with torch.no_grad():
            scores = score_together(models, rows.to(dtype), *codes)
            yield [(one.squeeze(1) if one.ndim == 2 else one).numpy() for one in scores]


def score_together(
    models: Sequence[nn.Module], x: Tensor, groups: Tensor | None = None
) -> list[Tensor]:
    """Scores of every model for the same rows; what several of them share is evaluated once.

    Rules share the probabilities of their joint model, ensembles the scores of their base.

    Notes
    -----
    Every score is what ``model(x, groups)`` gives, to the last bit: rules are multiplied with the
    shared probabilities one after the other, and networks are run one after the other. One
    product for all rules, or one stack of networks, would sum in another order and could turn a
    decision on the boundary; it would save less than a millisecond in 10,000 rows, and a fifth of
    the time of networks.
    """
    given = () if groups is None else (groups,)
    if len(models) == 1:
        return [models[0](x, *given)]
    known: dict[int, Tensor] = {}

    def evaluate(part: nn.Module) -> Tensor:
        if id(part) not in known:
            known[id(part)] = part(x)
        return known[id(part)]

    def probabilities(joint: nn.Module) -> Tensor:
        if groups is None:
            return evaluate(joint)
        key = -id(joint)  # those where the groups are known
        if key not in known:
            known[key] = given_groups(evaluate(joint), groups)
        return known[key]

    scores = []
    for model in models:
        if isinstance(model, RuleModel):
            shared: Any = _Evaluated(probabilities(model.joint))
            scores.append(RuleModel(shared, model.rule)(x))
        elif isinstance(model, BoostedModel):
            scores.append(BoostedModel(_Evaluated(evaluate(model.base)), model.boosted)(x))
        else:
            scores.append(model(x, *given) if given else evaluate(model))
    return scores


def decide(scores: np.ndarray) -> np.ndarray:
    """Codes of classes [n], by scores of the second of two classes [n] or of each class [n, c]."""
    return (scores > 0).astype(np.int64) if scores.ndim == 1 else scores.argmax(1)


@final
class _Evaluated(nn.Module):
    """Stands for a model whose outputs for the rows are known already."""

    def __init__(self, outputs: Tensor) -> None:
        super().__init__()
        self._outputs = outputs

    def forward(self, _: Tensor) -> Tensor:
        """What was found before."""
        return self._outputs
