"""Candidates for a front: models by their decisions on the validation rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, final

import numpy as np
import torch
from torch import Tensor, nn

from apfex.front._criteria import Criteria
from apfex.front._rows import Encoder, ValidationRows
from apfex.front._scoring import Scoring
from apfex.front._settings import SearchSettings
from apfex.groups import Groups
from apfex.history import History
from apfex.metrics import is_trivial
from apfex.rates import ConfusionCounts, GroupIndex


class MeasuringRows(Protocol):
    """Rows by which candidates were measured; they read the decisions that candidates hold."""

    @property
    def n_rows(self) -> int:
        """How many there are."""
        ...

    @property
    def classes(self) -> Sequence[Any]:
        """The labels."""
        ...

    @property
    def groupings(self) -> Sequence[Groups]:
        """Those whose gaps count."""
        ...

    def count(self, decisions: np.ndarray, favorable: int) -> ConfusionCounts:
        """Confusion counts of decisions, of the groups of the crossing."""
        ...

    def errors(self, decisions: np.ndarray) -> tuple[float, float]:
        """Error and balanced error of decisions."""
        ...

    def constant_losses(self, scoring: Scoring) -> Tensor:
        """Losses [c] of deciding for each class alone."""
        ...


class HasMembers(Protocol):
    """Where the model of a candidate comes from."""

    def member(self, index: int) -> nn.Module:
        """A model of its own."""
        ...


@final
@dataclass(frozen=True, eq=False)
class Candidate:
    """A model, by its decisions on the validation rows."""

    member: int
    epoch: int
    decisions: np.ndarray
    """Of the validation rows [n], or counts of them where the rows are not in memory."""
    values: np.ndarray
    """Loss (error, balanced error, cost, ...) and gaps on the validation rows, all finite."""
    ranks: np.ndarray
    """The same on resamples [r, 1 + criteria] of the rows that it is compared with others by."""
    trivial: bool
    snapshot: HasMembers
    stays: bool = False
    """Whether it is shown in any case: the user's own model, beside which others are judged."""


@final
@dataclass(frozen=True, eq=False)
class SearchResult:
    """What a search hands on.

    Attributes
    ----------
    candidates : sequence of Candidate
    rows : MeasuringRows
        By which the candidates were measured: ValidationRows, or CountedRows.
    encoder : Encoder
    history : History or None
        How the members came about, where that is recorded.
    objectives : sequence of str
        Names of the losses in the history.
    per_record : int
        Steps of rules, epochs or rounds that a record of the history is the mean of.
    inputs : Tensor or None
        Encoded validation rows, by which the probabilities of points are to be calibrated; None
        where that has been done.
    """

    candidates: Sequence[Candidate]
    rows: MeasuringRows
    encoder: Encoder
    history: History | None = None
    objectives: Sequence[str] = ()
    per_record: int = 1
    inputs: Tensor | None = None


@final
@dataclass(frozen=True, eq=False)
class Evaluation:
    """Decisions of members on the validation rows, and what they are worth.

    Attributes
    ----------
    decisions : int64 Tensor of shape [b, n]
    values : array of shape [b, 1 + criteria]
        Error and gaps; NaN where one is not estimable.
    trivial : bool array of shape [b]
    """

    decisions: Tensor
    values: np.ndarray
    trivial: np.ndarray

    def part(self, members: slice) -> Evaluation:
        """Those of some members."""
        return Evaluation(self.decisions[members], self.values[members], self.trivial[members])

    @property
    def best(self) -> list[float]:
        """Figures of the one with the least error."""
        return self.values[self.values[:, 0].argmin()].tolist()

    @property
    def losses(self) -> np.ndarray:
        """Sum of error and gaps [b]; a gap that is not estimable counts as 1."""
        return np.nan_to_num(self.values, nan=1.0).sum(1)

    def candidates(
        self,
        epochs: np.ndarray,
        snapshot: HasMembers,
        is_finite: np.ndarray,
        ranks: np.ndarray | None = None,
    ) -> list[Candidate]:
        """Those with finite scores [b] and measurable gaps, at their epochs [b].

        ``ranks`` [r, b, 1 + criteria] compare them; the values themselves by default.
        """
        ranks = self.values[None] if ranks is None else ranks
        is_finite = is_finite & np.isfinite(self.values).all(1) & np.isfinite(ranks).all((0, 2))
        small = self.decisions.to(torch.int16).cpu().numpy()
        return [
            Candidate(
                int(member),
                int(epochs[member]),
                small[member],
                self.values[member],
                ranks[:, member],
                bool(self.trivial[member]),
                snapshot,
            )
            for member in np.flatnonzero(is_finite)
        ]


def evaluate(
    decisions: Tensor, rows: ValidationRows, criteria: Criteria, scoring: Scoring
) -> Evaluation:
    """Error and hard gaps of decisions [b, n], on their device."""
    device = decisions.device
    y = torch.from_numpy(rows.y).to(device)
    weight = torch.from_numpy(rows.weight).to(device)
    hard = decisions.double()
    if rows.is_multiclass:
        hard = (
            decisions.unsqueeze(1) == torch.arange(rows.n_classes, device=device)[:, None]
        ).double()
    indexes = [GroupIndex.of(grouping) for grouping in rows.groupings]
    gaps = criteria.gaps(hard, y, indexes, weight, rows.is_multiclass)
    trivial = is_trivial(decisions, y, rows.n_classes, weight)
    values = torch.cat([scoring.losses(decisions, rows).unsqueeze(1), gaps], 1)
    return Evaluation(decisions, values.cpu().numpy(), trivial.cpu().numpy())


def evaluate_scores(
    scores: Tensor,
    epochs: np.ndarray,
    rows: ValidationRows,
    settings: SearchSettings,
    snapshot: HasMembers,
) -> tuple[list[Candidate], Evaluation]:
    """Members by their scores [b, n] or [b, n, c]; those that diverged are no candidates."""
    decisions = decisions_of(scores)
    evaluated = evaluate(decisions, rows, settings.criteria, settings.scoring)
    is_finite = scores.flatten(1).isfinite().all(1).cpu().numpy()
    return evaluated.candidates(epochs, snapshot, is_finite), evaluated


def decisions_of(scores: Tensor) -> Tensor:
    """Codes of classes [b, n], by scores [b, n] of the second of two, or of each [b, n, c]."""
    return (scores > 0).long() if scores.ndim == 2 else scores.argmax(2)
