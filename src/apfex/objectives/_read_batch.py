"""Reading a batch and its groups: alone, or as one of several workers that share it."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from apfex.distributed import Workers, workers_of
from apfex.groups import Groups
from apfex.objectives._batch import Batch, check_batch
from apfex.rates import GroupIndex

Grouping = Groups | Tensor | None
GroupReader = Callable[[Grouping, int], GroupIndex | None]
Indexes = list[GroupIndex | None]
_NONE, _CODES, _MEMBERSHIPS = 0, 1, 2
"""Kinds of groupings."""


def read_groups(groups: Grouping, n: int) -> GroupIndex | None:
    """Read the groups of n rows, where there are any."""
    if groups is None:
        return None
    index = GroupIndex.of(groups, n)
    return index if index.n_groups else replace(index, n_groups=1)  # rows may be in none


def read_batch(
    scores: Tensor,
    y: Tensor,
    sample_weight: Tensor | None,
    readers: Sequence[GroupReader],
    groupings: Sequence[Grouping],
) -> tuple[Batch, Indexes]:
    """Check a batch, and read the groups of each objective; a grouping they share is read once.

    With several workers these are the rows of one of them. Each checks its own; then they meet, so
    that what is wrong on one is an error on all, and find the number of groups and the rows of the
    whole batch.
    """
    team = workers_of(scores)
    if team is None:
        batch = check_batch(scores, y, sample_weight)
        return batch, _read_all(readers, groupings, scores.shape[0])
    problem, batch, indexes = None, None, []
    try:
        batch = check_batch(scores, y, sample_weight, is_part=True)
        indexes = _read_all(readers, groupings, scores.shape[0])
    except Exception as error:
        problem = error
    batch = _shared_batch(team, batch, len(indexes), problem)
    return batch, _shared_groups(team, indexes, groupings)


def _read_all(
    readers: Sequence[GroupReader], groupings: Sequence[Grouping], n: int
) -> list[GroupIndex | None]:
    if len(readers) == 1:
        return [readers[0](groupings[0], n)]
    read: dict[tuple[int, int | None], GroupIndex | None] = {}
    found = []
    for reader, grouping in zip(readers, groupings, strict=True):
        owner = getattr(reader, "__self__", None)
        key = (id(grouping), None if owner is None else id(owner))
        if key not in read:
            read[key] = reader(grouping, n)
        found.append(read[key])
    return found


def _shared_batch(
    team: Workers, batch: Batch | None, n_groupings: int, problem: Exception | None
) -> Batch:
    """The batch, with what is known of all of it."""
    facts = {"scores": 0.0, "sample_weight": 0.0, "objectives": n_groupings, "n": 0.0, "w": 0.0}
    if batch is not None:
        weight = batch.sample_weight
        facts["scores"] = batch.scores.shape[1] if batch.is_multiclass else 1
        facts["sample_weight"] = weight is not None
        facts["n"] = len(batch.scores)
        facts["w"] = facts["n"] if weight is None else float(weight.sum(dtype=torch.float64))
    found = team.call_roll("computing a loss", facts, problem)
    assert batch is not None
    for place, name in enumerate(list(facts)[:3]):
        told = found[:, place].tolist()
        if len(set(told)) > 1:
            raise ValueError(
                f"{name} must be of one kind on all workers, got {told} by rank (the number of "
                "classes or objectives, or whether there are weights)."
            )
    n, total = (float(entry) for entry in found[:, 3:].sum(0))
    if n == 0:
        raise ValueError("scores must have at least one row on some worker, got an empty batch.")
    if not total > 0:
        raise ValueError("sample_weight must not be 0 for all rows of all workers, got only zeros.")
    weighted = batch.sample_weight is not None
    return replace(batch, team=team, total=total, mean_weight=total / n if weighted else None)


def _shared_groups(team: Workers, indexes: Indexes, groupings: Sequence[Grouping]) -> Indexes:
    """The groups of all rows: a worker may have none of the last ones, or no row at all."""
    if not any(index is not None for index in indexes):
        own = torch.zeros(len(indexes), 3, dtype=torch.float64)
    else:
        own = torch.tensor(
            [_described(index, of) for index, of in zip(indexes, groupings, strict=True)],
            dtype=torch.float64,
        )
    found = team.gather(own)
    if bool((found[:, :, 1:] != found[0, :, 1:]).any()):
        raise ValueError(
            "groups must mean the same on all workers, but their kinds or names differ. Make the "
            "groups of the whole table, with make_groups, and give each worker the codes of its "
            "rows (groups.encode numbers new rows alike)."
        )
    n_groups = found[:, :, 0].amax(0).long().tolist()
    if bool(((found[:, :, 0] != found[0, :, 0]) & (found[:, :, 1] == _MEMBERSHIPS)).any()):
        raise ValueError(
            "groups must be memberships in as many groups on all workers, got "
            f"{found[:, :, 0].long().tolist()} by rank."
        )
    common: dict[int, GroupIndex] = {}
    for index, k in zip(indexes, n_groups, strict=True):
        if index is not None and id(index) not in common:
            common[id(index)] = replace(index, n_groups=k)
    return [None if index is None else common[id(index)] for index in indexes]


def _described(index: GroupIndex | None, grouping: Grouping) -> tuple[int, int, int]:
    """Number of groups, kind, and a checksum of their names where they have any."""
    if index is None:
        return 0, _NONE, 0
    if index.memberships is not None:
        return index.n_groups, _MEMBERSHIPS, 0
    names = "\n".join(grouping.names) if isinstance(grouping, Groups) else ""
    return index.n_groups, _CODES, zlib.crc32(names.encode())
