"""From decisions on the validation rows to the points of a front."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, final

import numpy as np
import torch
from torch import Tensor, nn

from apfex.front._criteria import Criteria
from apfex.front._dominance import non_dominated
from apfex.front._encoders import Encoder
from apfex.front._intervals import gap_of
from apfex.front._points import Front, Point
from apfex.front._rows import ValidationRows
from apfex.front._settings import SearchSettings
from apfex.front._tracking import RuleHistory
from apfex.groups import Groups
from apfex.metrics import (
    CRITERIA,
    GroupRates,
    NotEstimableWarning,
    NotMeasurableError,
    accuracy,
    balanced_accuracy,
    class_recalls,
    is_trivial,
    levelled_down,
)
from apfex.rates import ConfusionCounts, GroupIndex, count_rows


class HasMembers(Protocol):
    """Where the model of a candidate comes from."""

    def member(self, index: int) -> nn.Module:
        """A model of its own."""
        ...


@final
@dataclass(frozen=True, eq=False)
class Candidate:
    """A model, by its decisions on the held rows."""

    member: int
    epoch: int
    decisions: np.ndarray
    values: np.ndarray
    """Error (balanced, where that ranks) and gaps, all minimised, all finite."""
    trivial: bool
    snapshot: HasMembers


@final
@dataclass(frozen=True, eq=False)
class SearchResult:
    """What a search hands on."""

    candidates: Sequence[Candidate]
    held: ValidationRows
    encoder: Encoder
    history: RuleHistory | None = None


@final
@dataclass(frozen=True, eq=False)
class Evaluated:
    """Error and gaps [b, 1 + criteria], NaN where not estimable, and who is trivial [b]."""

    values: np.ndarray
    trivial: np.ndarray

    @property
    def best(self) -> list[float]:
        """Figures of the one with the least error."""
        return self.values[self.values[:, 0].argmin()].tolist()

    @property
    def losses(self) -> np.ndarray:
        """Sum of error and gaps [b]; a gap that is not estimable counts as 1."""
        return np.nan_to_num(self.values, nan=1.0).sum(1)


def score(decisions: Tensor, held: ValidationRows, criteria: Criteria, by: str) -> Evaluated:
    """Error and hard gaps of decisions [b, n], on their device."""
    device = decisions.device
    y = torch.from_numpy(held.y).to(device)
    weight = torch.from_numpy(held.weight).to(device)
    if by == "balanced_error":  # a class of a single row is in the training part
        right = class_recalls(decisions, y, held.n_classes, weight).nanmean(1)
    else:
        right = (decisions == y).double() @ (weight / weight.sum())
    hard = decisions.double()
    if held.is_multiclass:
        hard = (
            decisions.unsqueeze(1) == torch.arange(held.n_classes, device=device)[:, None]
        ).double()
    indexes = [GroupIndex.of(grouping) for grouping in held.groupings]
    gaps = criteria.gaps(hard, y, indexes, weight, held.is_multiclass)
    trivial = is_trivial(decisions, y, held.n_classes, weight)
    values = torch.cat([1 - right.unsqueeze(1), gaps], 1)
    return Evaluated(values.cpu().numpy(), trivial.cpu().numpy())


def evaluate(
    scores: Tensor,
    epochs: np.ndarray,
    held: ValidationRows,
    settings: SearchSettings,
    snapshot: HasMembers,
) -> tuple[list[Candidate], Evaluated]:
    """Members by their scores [b, n] or [b, n, c] on the held rows, but those that diverged."""
    decisions = (scores > 0).long() if scores.ndim == 2 else scores.argmax(2)
    scored = score(decisions, held, settings.criteria, settings.by)
    alive = scores.flatten(1).isfinite().all(1).cpu().numpy()
    small = decisions.to(torch.int16).cpu().numpy()
    candidates = [
        Candidate(
            int(member),
            int(epochs[member]),
            small[member],
            scored.values[member],
            bool(scored.trivial[member]),
            snapshot,
        )
        for member in np.flatnonzero(alive & np.isfinite(scored.values).all(1))
    ]
    return candidates, scored


def check_measurable(held: ValidationRows, criteria: Criteria) -> None:
    """Refuse criteria that the held rows cannot measure; warn of groups that are left out."""
    left_out = []
    favorable = 0 if criteria.of_other_label else 1
    counts = count_rows(
        held.y, held.y * 0, held.crossing, classes=held.classes, favorable=favorable
    )
    for name in criteria.names:
        for rate in CRITERIA[name]:
            if rate in ("ppv", "npv"):  # by decisions: models that decide all alike are left out
                continue
            for grouping in held.groupings:
                known = GroupRates.of(counts.by(grouping.attributes), rate).counted
                _check_two_groups(name, rate, grouping, int(known.sum(1).max()), held)
                missing = tuple(np.array(grouping.names)[~known.any(0)].tolist())
                left_out += [(rate, missing)] if missing else []
    if left_out:
        named = "; ".join(f"{rate} of {list(names)}" for rate, names in left_out)
        text = (
            f"Groups without rows that count among the {len(held.y)} validation rows are left out "
            f"of the gaps: {named}. Merge levels, or raise validation_fraction."
        )
        warnings.warn(NotEstimableWarning(text, tuple(left_out), len(held.y)), stacklevel=5)


def _check_two_groups(
    name: str, rate: str, grouping: Groups, found: int, held: ValidationRows
) -> None:
    needed = {"tpr": "with the favorable", "fnr": "with the favorable"}
    needed |= {"fpr": "without the favorable", "tnr": "without the favorable"}
    if found < 2:
        raise NotMeasurableError(
            f"criteria must be measurable on the {len(held.y)} validation rows, got {name!r}: of "
            f"the groups {list(grouping.names)} {found} have rows "
            f"{needed.get(rate, 'with any')} label there, and a gap needs two. "
            "Merge levels, add rows, raise validation_fraction, or choose "
            "another criterion.",
            name,
            len(held.y),
        )


def make_front(
    candidates: Sequence[Candidate], held: ValidationRows, settings: SearchSettings, favorable: int
) -> Front:
    """Keep what nobody dominates, thin it, and measure what is left."""
    if not candidates:
        raise ValueError(
            f"No member of the population has finite scores and measurable criteria "
            f"{list(settings.criteria.names)} on the validation rows; lower learning_rate, or "
            "choose another criterion."
        )
    chosen = _thin(_leading(candidates), settings)
    base = next((c for c in chosen if not c.trivial), chosen[0])
    before = held.count(base.decisions, favorable)
    points = [
        _point(candidate, held, settings, held.count(candidate.decisions, favorable), before)
        for candidate in chosen
    ]
    return Front(points, settings.by, held.classes[favorable], settings.dtype)


def _leading(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Distinct non-dominated ones by rising error; the best trivial one, if none dominates it.

    A trivial model pushes no other off the front: a constant has no gap at all.
    """
    trivial = sorted((c for c in candidates if c.trivial), key=lambda c: tuple(c.values))[:1]
    others = [c for c in candidates if not c.trivial]
    kept = _undominated(others)
    if not kept:
        return trivial
    return kept + [c for c in _undominated(kept + trivial) if c.trivial]


def _undominated(candidates: Sequence[Candidate]) -> list[Candidate]:
    if not candidates:
        return []
    values = np.stack([candidate.values for candidate in candidates])
    kept = np.flatnonzero(non_dominated(values))
    kept = kept[np.unique(values[kept], axis=0, return_index=True)[1]]  # sorted by error
    return [candidates[index] for index in kept]


def _thin(leading: Sequence[Candidate], settings: SearchSettings) -> list[Candidate]:
    """At most ``n_points``, spread over the front; the one that the bounds choose always stays.

    The most accurate one comes first, then that of the bounds, then those with the least gaps,
    then whichever is farthest from all that were taken.
    """
    if len(leading) <= settings.n_points:
        return list(leading)
    values = np.stack([candidate.values for candidate in leading])
    limits = [settings.bounds.get(name, np.inf) for name in settings.criteria.names]
    usable = [i for i, c in enumerate(leading) if not c.trivial and (c.values[1:] <= limits).all()]
    places = values / np.maximum(np.ptp(values, axis=0), 1e-12)
    taken = list(dict.fromkeys([*usable[:1], 0, *values.argmin(0).tolist()]))[: settings.n_points]
    while len(taken) < settings.n_points:
        distances = np.abs(places[:, None] - places[taken]).max(2).min(1)
        taken.append(int(distances.argmax()))
    return [leading[place] for place in sorted(taken)]


def _point(
    candidate: Candidate,
    held: ValidationRows,
    settings: SearchSettings,
    counts: ConfusionCounts,
    before: ConfusionCounts,
) -> Point:
    decisions, weight = candidate.decisions, held.sample_weight
    accuracies = GroupRates.of(counts, "accuracy").rates[0]
    worst = int(np.nanargmin(accuracies))
    down = levelled_down(_favored(counts) - _favored(before))
    groupings = tuple(grouping.attributes for grouping in held.groupings)
    return Point(
        error=1 - accuracy(held.y, decisions, sample_weight=weight),
        balanced_error=1 - balanced_accuracy(held.y, decisions, sample_weight=weight),
        gaps={name: gap_of(counts, name, groupings) for name in settings.criteria.names},
        worst_group=counts.names[worst],
        worst_group_accuracy=float(accuracies[worst]),
        share_favored=counts.share_favored,
        trivial=candidate.trivial,
        levelled_down=tuple(np.array(counts.names)[down].tolist()),
        member=candidate.member,
        epoch=candidate.epoch,
        n_rows=len(held.y),
        module=_module(candidate, settings),
        counts=counts,
        groupings=groupings,
    )


def _favored(counts: ConfusionCounts) -> np.ndarray:
    """Share of each group that gets the favorable label; 0 where it has no rows."""
    return np.nan_to_num(GroupRates.of(counts.of_favorable(), "dp").rates[0])


def _module(candidate: Candidate, settings: SearchSettings) -> nn.Module:
    module = candidate.snapshot.member(candidate.member).cpu().eval()
    return module.double() if settings.dtype == torch.float64 else module
