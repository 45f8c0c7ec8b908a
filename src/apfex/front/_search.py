"""One fit: search, make the front of what was found, and keep all of it as one record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, final

import numpy as np
import torch
from torch import Tensor, nn

from apfex.front._candidates import Candidate, SearchResult
from apfex.front._front import Front, probabilities_in_chunks
from apfex.front._inprocess import search_members
from apfex.front._pareto_front import non_dominated
from apfex.front._point import Point, gap_of
from apfex.front._postprocess import search_rules
from apfex.front._rows import Encoder, Rows
from apfex.front._settings import SearchSettings
from apfex.groups import Groups
from apfex.metrics import GroupRates, accuracy, balanced_accuracy, levelled_down
from apfex.models import fit_calibration, use_threads
from apfex.rates import ConfusionCounts

if TYPE_CHECKING:
    import pandas as pd


@final
@dataclass(frozen=True, eq=False)
class Features:
    """Columns of the table that ``fit`` was given.

    Attributes
    ----------
    n : int
    names : array of shape [n] or None
        None where there are none, or not all of them are text.
    left_out : tuple of str
        Sensitive ones that are no inputs.
    """

    n: int
    names: np.ndarray | None = None
    left_out: tuple[str, ...] = ()

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of those that are inputs; "x0", "x1", ... where they have none."""
        if self.names is None:
            return tuple(f"x{place}" for place in range(self.n - len(self.left_out)))
        return tuple(str(name) for name in self.names if name not in self.left_out)


@final
@dataclass(frozen=True, eq=False)
class Fitted:
    """All that was learned in one fit: what predicts, is stored, exported and reported.

    It holds no rows.

    Attributes
    ----------
    front : Front
    encoder : Encoder
        From the columns of a table that are inputs to those of models.
    classes : array of shape [c]
    groups : Groups or None
        Those that thresholds differ by, without rows.
    history : pandas.DataFrame or None
        How the rules of the front came about.
    features : Features
    """

    front: Front
    encoder: Encoder
    classes: np.ndarray
    groups: Groups | None
    history: pd.DataFrame | None
    features: Features

    @property
    def is_binary(self) -> bool:
        """Whether there are two classes."""
        return len(self.classes) == 2

    def encode(self, X: Any) -> Tensor:
        """Inputs of models, float32 [n, d], from the columns of a table that are inputs."""
        return torch.from_numpy(self.encoder.transform(X))


def search_front(
    rows: Rows, settings: SearchSettings, features: Features, favorable: int, seed: int
) -> Fitted:
    """Search a front: some rows make gradients, others choose; nothing else touches a choice.

    Parameters
    ----------
    rows : Rows
    settings : SearchSettings
    features : Features
    favorable : int
        Code of the favorable class.
    seed : int

    Returns
    -------
    Fitted

    Examples
    --------
    >>> from apfex import APFExClassifier, make_biased
    >>> data = make_biased(n=400, random_state=0)
    >>> clf = APFExClassifier(epochs=2, max_gap=1.0, random_state=0)  # asks for a search
    >>> clf.fit(data.X, data.y, sensitive_features=data.sensitive).fitted_.features.n
    5
    """
    search = search_rules if settings.search == "postprocess" else search_members
    with use_threads(settings.n_threads):
        found = search(rows, settings, seed)
    front = make_front(found, settings, favorable)
    needed = rows.crossing if settings.group_thresholds else None
    return Fitted(
        front=front,
        encoder=found.encoder,
        classes=rows.classes,
        # which groups there are is needed, not who is in them
        groups=None if needed is None else needed.take(np.arange(0)),
        history=_history_of(front, found),
        features=features,
    )


def _history_of(front: Front, found: SearchResult) -> pd.DataFrame | None:
    """How the points came about, member by member; steps count from 1."""
    if found.history is None:
        return None
    frame = found.history.to_frame(sorted({point.member for point in front}))
    frame = frame.sort_values("member", kind="stable", ignore_index=True)
    frame["step"] += 1
    frame.attrs["objectives"] = list(found.objectives)
    return frame


def make_front(found: SearchResult, settings: SearchSettings, favorable: int) -> Front:
    """Keep what nobody dominates, thin it, and measure what is left."""
    candidates, rows = found.candidates, found.rows
    if not candidates:
        raise ValueError(
            f"No member of the population has finite scores and measurable criteria "
            f"{list(settings.criteria.names)} on the validation rows; lower learning_rate, or "
            "choose another criterion."
        )
    chosen = _with_those_that_stay(_thin(_leading(candidates), settings), candidates, settings)
    base = next((c for c in chosen if not c.trivial), chosen[0])
    before = rows.count(base.decisions, favorable)
    points = [
        _point(candidate, found, settings, rows.count(candidate.decisions, favorable), before)
        for candidate in chosen
    ]
    loss, code = settings.scoring.without_inputs(rows, favorable)
    return Front(
        points,
        settings.scoring.name,
        rows.classes[favorable],
        settings.dtype,
        loss,
        None if code is None else rows.classes[code],
    )


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


def _with_those_that_stay(
    chosen: list[Candidate], candidates: Sequence[Candidate], settings: SearchSettings
) -> list[Candidate]:
    """The chosen ones and the user's own model, dominated or not, if there is room for two."""
    staying = [c for c in candidates if c.stays and settings.n_points > 1]
    if not staying:
        return chosen
    others = [c for c in chosen if not any((c.values == s.values).all() for s in staying)]
    room = replace(settings, n_points=settings.n_points - len(staying))
    return sorted([*_thin(others, room), *staying], key=lambda c: tuple(c.values))


def _point(
    candidate: Candidate,
    found: SearchResult,
    settings: SearchSettings,
    counts: ConfusionCounts,
    before: ConfusionCounts,
) -> Point:
    rows, module = found.rows, _module(candidate, settings)
    decisions, weight = candidate.decisions, rows.sample_weight
    accuracies = GroupRates.of(counts, "accuracy").rates[0]
    worst = int(np.nanargmin(accuracies))
    down = levelled_down(_favored(counts) - _favored(before))
    groupings = tuple(grouping.attributes for grouping in rows.groupings)
    return Point(
        error=1 - accuracy(rows.y, decisions, sample_weight=weight),
        balanced_error=1 - balanced_accuracy(rows.y, decisions, sample_weight=weight),
        loss=float(candidate.values[0]),
        gaps={name: gap_of(counts, name, groupings) for name in settings.criteria.names},
        worst_group=counts.names[worst],
        worst_group_accuracy=float(accuracies[worst]),
        share_favored=counts.share_favored,
        trivial=candidate.trivial,
        levelled_down=tuple(np.array(counts.names)[down].tolist()),
        member=candidate.member,
        epoch=candidate.epoch,
        n_rows=len(rows.y),
        module=module,
        counts=counts,
        groupings=groupings,
        calibration=None if found.inputs is None else _calibration(module, found, settings.dtype),
    )


def _calibration(
    module: nn.Module, found: SearchResult, dtype: torch.dtype
) -> tuple[float, ...] | None:
    """What makes probabilities of a model's scores, by the validation rows in two halves."""
    assert found.inputs is not None
    labels = probabilities_in_chunks(module, found.inputs.cpu(), None, dtype)
    y, weight = torch.from_numpy(found.rows.y), torch.from_numpy(found.rows.weight)
    halves = torch.empty_like(y)
    halves[y.argsort(stable=True)] = torch.arange(len(y)) % 2  # alike in labels
    return fit_calibration(labels, y, weight, halves)


def _favored(counts: ConfusionCounts) -> np.ndarray:
    """Share of each group that gets the favorable label; 0 where it has no rows."""
    return np.nan_to_num(GroupRates.of(counts.of_favorable(), "dp").rates[0])


def _module(candidate: Candidate, settings: SearchSettings) -> nn.Module:
    module = candidate.snapshot.member(candidate.member).cpu().eval()
    return module.double() if settings.dtype == torch.float64 else module
