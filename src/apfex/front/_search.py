"""One fit: search, make the front of what was found, and keep all of it as one record."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import numpy as np
import torch
from torch import Tensor, nn

from apfex.front._candidates import Candidate, SearchResult
from apfex.front._chunked_search import search_stream
from apfex.front._dask_search import PartitionedRows, search_partitions
from apfex.front._encoded_rows import InputRows
from apfex.front._front import Front, probabilities_in_chunks
from apfex.front._inprocess import search_members
from apfex.front._pareto_front import non_dominated
from apfex.front._point import Point, gap_of
from apfex.front._postprocess import search_rules
from apfex.front._rows import Encoder, Rows, TableEncoders, ValidationRows
from apfex.front._settings import SearchSettings
from apfex.front._spooled_rows import RowFacts, StreamedRows
from apfex.groups import Groups
from apfex.memory import free_memory, in_bytes, is_too_much
from apfex.metrics import GroupRates, levelled_down
from apfex.models import NOWHERE, Checkpoint, fit_calibration, use_threads
from apfex.rates import ConfusionCounts
from apfex.streams import StreamSettings

if TYPE_CHECKING:
    import pandas as pd


_LEAST_VOLUME = 1e-9
"""What adds no more than this to the volume of a front is not on it."""


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
        What happened to every member, step by step.
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

    def open(self, X: Any) -> InputRows:
        """The same for models that take a chunk at a time; all that can be wrong is found here.

        A user's models below ours are asked once for all rows.
        """
        return self.encoder.open(X) if isinstance(self.encoder, TableEncoders) else self.encode(X)


def search_front(
    rows: Rows,
    settings: SearchSettings,
    features: Features,
    favorable: int,
    seed: int,
    checkpoint: Checkpoint = NOWHERE,
) -> Fitted:
    """Search a front: training rows make models and rules, validation rows report.

    Rules are chosen by out-of-fold figures of the training rows, members (models of their own) by
    the validation rows, which for both pick the point for a bound and see to it that one within
    the bounds stays.

    Parameters
    ----------
    rows : Rows
    settings : SearchSettings
    features : Features
    favorable : int
        Code of the favorable class.
    seed : int
    checkpoint : Checkpoint, optional
        Where what is finished is kept, and from where a search that was stopped goes on.

    Returns
    -------
    Fitted

    Examples
    --------
    >>> from apfex import APFExClassifier, make_biased
    >>> data = make_biased(n=400, random_state=0)
    >>> clf = APFExClassifier(model="linear", epochs=2, max_gap=1.0, random_state=0)
    >>> clf.fit(data.X, data.y, sensitive_features=data.sensitive).fitted_.features.n
    5
    """
    search = search_rules if settings.search == "postprocess" else search_members
    _check_members(settings, len(rows.y), len(rows.classes))
    with use_threads(settings.n_threads):
        found = search(rows, settings, seed, checkpoint)
        return fitted_of(found, rows, settings, features, favorable)


def search_streamed_front(
    rows: StreamedRows,
    settings: SearchSettings,
    features: Features,
    favorable: int,
    seed: int,
    *,
    checkpoint: Checkpoint = NOWHERE,
    streaming: StreamSettings,
    folder: Path,
) -> Fitted:
    """Search a front of rows that are read in chunks and kept in files of a folder."""
    _check_members(settings, 1, len(rows.facts.classes))
    with use_threads(settings.n_threads):
        found = search_stream(rows, settings, streaming, seed, folder, checkpoint)
        return fitted_of(found, rows.facts, settings, features, favorable)


def search_partitioned_front(
    rows: PartitionedRows,
    settings: SearchSettings,
    features: Features,
    favorable: int,
    seed: int,
    streaming: StreamSettings,
    checkpoint: Checkpoint = NOWHERE,
) -> Fitted:
    """Search a front of rows that lie on the workers of a Dask cluster."""
    _check_members(settings, 1, len(rows.facts.classes))
    with use_threads(settings.n_threads):
        found = search_partitions(rows, settings, streaming, seed, checkpoint)
        return fitted_of(found, rows.facts, settings, features, favorable)


_BYTES = 8
"""Of a score."""
_HISTORY = 2**13
"""Bytes that are remembered of a member, at least."""


def _check_members(settings: SearchSettings, n_rows: int, n_classes: int) -> None:
    """Refuse more members than there is memory for: each has a score for every row."""
    scores = n_rows * (1 if n_classes == 2 else n_classes)
    needed = settings.n_members * (_BYTES * scores + _HISTORY)
    if is_too_much(needed):
        raise ValueError(
            f"n_members must be such that their scores fit into memory, got "
            f"{settings.n_members:,}: for {n_rows:,} rows at a time they take at least "
            f"{in_bytes(needed)}, and {in_bytes(free_memory())} are free; use fewer members (26 do "
            "by default) or rows."
        )


def fitted_of(
    found: SearchResult,
    rows: Rows | RowFacts,
    settings: SearchSettings,
    features: Features,
    favorable: int,
) -> Fitted:
    """The front of what was found, and all that predicting needs."""
    needed = rows.crossing if settings.group_thresholds else None
    return Fitted(
        front=make_front(found, settings, favorable),
        encoder=found.encoder,
        classes=rows.classes,
        # which groups there are is needed, not who is in them
        groups=None if needed is None else needed.take(np.arange(0)),
        history=_history_of(found),
        features=features,
    )


def _history_of(found: SearchResult) -> pd.DataFrame | None:
    """What happened, member by member; steps are those done, as the epochs of points are."""
    if found.history is None:
        return None
    frame = found.history.to_frame().dropna(subset=["loss0"])  # steps that a member did not take
    frame = frame.dropna(axis=1, how="all")  # what a search does not measure
    frame = frame.sort_values("member", kind="stable", ignore_index=True)
    frame["step"] = (frame["step"] // found.history.window + 1) * found.per_record
    frame.attrs["objectives"] = list(found.objectives)
    return frame


def make_front(found: SearchResult, settings: SearchSettings, favorable: int) -> Front:
    """Keep what nobody dominates, thin it, and measure what is left."""
    candidates, rows = found.candidates, found.rows
    if not candidates:
        raise ValueError(
            f"No member of the population has finite scores and measurable criteria "
            f"{list(settings.criteria.names)} on the validation rows; give more rows, lower "
            "learning_rate, or choose another criterion."
        )
    losses = rows.constant_losses(settings.scoring)
    loss, code = settings.scoring.without_inputs(losses, favorable)
    chosen = _choose(candidates, settings, loss)
    chosen.sort(key=lambda candidate: tuple(candidate.values))
    base = next((c for c in chosen if not c.trivial), chosen[0])
    before = rows.count(base.decisions, favorable)
    points = [
        _point(candidate, found, settings, rows.count(candidate.decisions, favorable), before)
        for candidate in chosen
    ]
    return Front(
        points,
        settings.scoring.name,
        rows.classes[favorable],
        settings.dtype,
        loss,
        None if code is None else rows.classes[code],
    )


def _choose(
    candidates: Sequence[Candidate], settings: SearchSettings, worst_loss: float
) -> list[Candidate]:
    """At most ``n_points`` that new rows like these may put on the front; the best trivial one.

    One after the other, whichever adds most to the volume that those taken dominate, in the loss
    and all gaps at once, in the mean over the resamples by which candidates are compared: what
    adds to none of them is dominated. A trivial model pushes no other off the front, as a constant
    has no gap at all; it is shown where none of the others dominates it.
    """
    trivial = sorted((c for c in candidates if c.trivial and not c.stays), key=_mean_rank)[:1]
    others = _distinct([c for c in candidates if not c.trivial or c.stays])
    if not others:
        return trivial
    first = min(others, key=_mean_rank)
    staying = list(dict.fromkeys([*_those_that_stay(others, settings), first]))
    taken = staying[: settings.n_points]
    draws = max(len(c.ranks) for c in others)  # a model of the user's has a single one
    each = [np.broadcast_to(c.ranks, (draws, c.ranks.shape[1])) for c in others]
    ranks = np.stack(each, 1)  # [r, n, 1 + criteria]
    worst = np.maximum(first.ranks.mean(0), [worst_loss, *[0.5] * (ranks.shape[2] - 1)]) + 1e-9
    order = _by_volume(ranks, [others.index(c) for c in taken], worst, settings.n_points)
    chosen = [others[place] for place in order]
    room = len(chosen) < settings.n_points
    return chosen + [c for c in trivial if room and not _is_dominated(c, chosen)]


def _by_volume(ranks: np.ndarray, taken: Sequence[int], worst: np.ndarray, n: int) -> list[int]:
    """Places of up to n candidates with ranks [r, b, m]: those taken, then what adds most volume.

    What a candidate adds never grows as others come in, so only those are looked at again whose
    old figure is the largest.
    """
    import moocore

    found, dominated = list(taken), moocore.Hypervolume(ref=worst)

    def volume(places: list[int]) -> float:
        return sum(dominated(draw[places]) for draw in ranks) / len(ranks)

    now = volume(found)
    waiting = [(-np.inf, place) for place in range(ranks.shape[1]) if place not in found]
    fresh = dict.fromkeys((place for _, place in waiting), -1)
    while waiting and len(found) < n:
        gain, place = heapq.heappop(waiting)
        if fresh[place] == len(found):
            if -gain <= _LEAST_VOLUME:
                break
            found.append(place)
            now -= gain
            continue
        fresh[place] = len(found)
        heapq.heappush(waiting, (now - volume([*found, place]), place))
    return found


def _distinct(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Those that no other decides like; of equal ones the first."""
    seen = {candidate.ranks.tobytes(): candidate for candidate in reversed(candidates)}
    return list(reversed(seen.values()))


def _mean_rank(candidate: Candidate) -> tuple[float, ...]:
    return tuple(candidate.ranks.mean(0))


def _is_dominated(candidate: Candidate, others: Sequence[Candidate]) -> bool:
    values = np.stack([c.ranks.mean(0) for c in (candidate, *others)])
    return not non_dominated(values)[0]


def _those_that_stay(candidates: Sequence[Candidate], settings: SearchSettings) -> list[Candidate]:
    """The best ranked one within the bounds, and the user's own model if there is room for two.

    Within them on the validation rows, which pick the point for a bound; rather one that is so by
    its ranks, too: by the validation rows alone many are by luck.
    """
    limits = [settings.bounds.get(name, np.inf) for name in settings.criteria.names]
    usable = [c for c in candidates if not c.trivial and (c.values[1:] <= limits).all()]
    sure = [c for c in usable if (c.ranks.mean(0)[1:] <= limits).all()]
    asked = sorted(sure or usable, key=_mean_rank)[:1]
    own = [c for c in candidates if c.stays and settings.n_points > 1]
    return list(dict.fromkeys([*asked, *own]))


def _point(
    candidate: Candidate,
    found: SearchResult,
    settings: SearchSettings,
    counts: ConfusionCounts,
    before: ConfusionCounts,
) -> Point:
    rows, module = found.rows, _module(candidate, settings)
    error, balanced_error = rows.errors(candidate.decisions)
    accuracies = GroupRates.of(counts, "accuracy").rates[0]
    worst = int(np.nanargmin(accuracies))
    down = levelled_down(_favored(counts) - _favored(before))
    groupings = tuple(grouping.attributes for grouping in rows.groupings)
    return Point(
        error=error,
        balanced_error=balanced_error,
        loss=float(candidate.values[0]),
        gaps={name: gap_of(counts, name, groupings) for name in settings.criteria.names},
        worst_group=counts.names[worst],
        worst_group_accuracy=float(accuracies[worst]),
        share_favored=counts.share_favored,
        trivial=candidate.trivial,
        levelled_down=tuple(np.array(counts.names)[down].tolist()),
        member=candidate.member,
        epoch=candidate.epoch,
        n_rows=rows.n_rows,
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
    assert isinstance(found.rows, ValidationRows)
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
