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
from apfex.front._intervals import Intervals
from apfex.front._points import Front, Point
from apfex.front._rows import ValidationRows
from apfex.front._settings import SearchSettings
from apfex.front._tracking import RuleHistory
from apfex.groups import Groups
from apfex.metrics import (
    NotEstimableWarning,
    NotMeasurableError,
    accuracy,
    balanced_accuracy,
    group_rates,
)
from apfex.rates import GroupIndex, rate_sums

_GAINED = 0.005
"""Share of a group's rows from which on it has gained, or lost, favorable decisions."""


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
    right = (decisions == y).double()
    classes = GroupIndex(y, None, held.n_classes)
    sizes = classes.sum(weight)
    known = sizes > 0  # a class of a single row is in the training part
    recalls = classes.sum(right * weight)[:, known] / sizes[known]  # [b, c]
    errors = 1 - (recalls.mean(1) if by == "balanced_error" else right @ (weight / weight.sum()))
    hard = decisions.double()
    if held.is_multiclass:
        hard = (
            decisions.unsqueeze(1) == torch.arange(held.n_classes, device=device)[:, None]
        ).double()
    indexes = [GroupIndex.of(grouping) for grouping in held.groupings]
    gaps = criteria.gaps(hard, y, indexes, weight, held.is_multiclass)
    is_constant = (decisions == decisions[:, :1]).all(1)
    effective = sizes[known] ** 2 / classes.sum(weight**2)[known]  # Kish
    trivial = is_constant | _no_better_than_constant(recalls, effective)
    values = torch.cat([errors.unsqueeze(1), gaps], 1)
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


def _no_better_than_constant(recalls: Tensor, sizes: Tensor) -> Tensor:
    """Balanced accuracy, noise allowed for, not above a constant's by more than .02."""
    spread = (recalls * (1 - recalls) / sizes).sum(1).sqrt() / recalls.shape[1]
    return recalls.mean(1) + 1.645 * spread <= 1 / recalls.shape[1] + 0.02


def check_measurable(held: ValidationRows, criteria: Criteria) -> None:
    """Refuse criteria that the held rows cannot measure; warn of groups that are left out."""
    left_out = []
    nobody = torch.zeros(len(held.y), dtype=torch.float64)
    if held.is_multiclass:
        nobody = nobody.expand(held.n_classes, -1)
    for name in criteria.names:
        for rate in criteria.rates_of(name):
            if rate in ("ppv", "npv"):  # by decisions: models that decide all alike are left out
                continue
            for grouping in held.groupings:
                y, index = torch.from_numpy(held.y), GroupIndex.of(grouping)
                sums = rate_sums(rate, nobody, y, index, multiclass=held.is_multiclass)
                known = (sums.denominator > 0).numpy().reshape(-1, len(grouping))
                own, most = criteria.named(rate), int(known.sum(1).max())
                _check_two_groups(name, own, grouping, most, held)
                missing = tuple(np.array(grouping.names)[~known.any(0)].tolist())
                left_out += [(own, missing)] if missing else []
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
    rates = _favorable_rates(base.decisions, held, favorable)
    points = [_point(candidate, held, settings, favorable, rates) for candidate in chosen]
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
    favorable: int,
    base: np.ndarray,
) -> Point:
    decisions, weight = candidate.decisions, held.sample_weight
    right = (decisions == held.y).astype(int)
    rates = group_rates(
        None, right, rate="dp", sensitive_features=held.crossing, sample_weight=weight
    )
    accuracies = rates["rate"].to_numpy()
    worst = int(np.nanargmin(accuracies))
    change = _favorable_rates(decisions, held, favorable) - base
    lost = np.array(held.crossing.names)[change < -_GAINED]
    interval_at = Intervals.of(
        held.y, decisions, held.groupings, weight, held.n_classes, settings.criteria
    )
    return Point(
        error=1 - accuracy(held.y, decisions, sample_weight=weight),
        balanced_error=1 - balanced_accuracy(held.y, decisions, sample_weight=weight),
        gaps={name: interval_at(name) for name in settings.criteria.names},
        worst_group=held.crossing.names[worst],
        worst_group_accuracy=float(accuracies[worst]),
        share_positive=float(np.average(decisions == favorable, weights=weight)),
        trivial=candidate.trivial,
        levelled_down=() if (change > _GAINED).any() else tuple(lost.tolist()),
        member=candidate.member,
        epoch=candidate.epoch,
        n_rows=len(held.y),
        module=_module(candidate, settings),
        interval_at=interval_at,
    )


def _module(candidate: Candidate, settings: SearchSettings) -> nn.Module:
    module = candidate.snapshot.member(candidate.member).cpu().eval()
    return module.double() if settings.dtype == torch.float64 else module


def _favorable_rates(decisions: np.ndarray, held: ValidationRows, favorable: int) -> np.ndarray:
    codes, k, weight = held.crossing.codes, len(held.crossing), held.weight
    totals = np.bincount(codes, weight, minlength=k)
    favored = np.bincount(codes, weight * (decisions == favorable), minlength=k)
    return favored / np.where(totals > 0, totals, 1.0)
