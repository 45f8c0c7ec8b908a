"""What ensembles learn of rows in chunks, and the models of group and label that they make up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from typing import final

import numpy as np
from torch import nn

from apfex.chunks._rows import Chunk, JointTargets
from apfex.models import (
    Checkpoint,
    Grown,
    JointTrees,
    Trees,
    TreeSettings,
    at_least_loss,
    groups_by_fold,
    paced,
    with_column,
)


@final
@dataclass(frozen=True, eq=False)
class TreeTarget:
    """What an ensemble learns: the label, or a group given inputs and label.

    Attributes
    ----------
    name : str
    n_classes : int
        Of what is learnt.
    n_labels : int
    types : sequence of str
        "q" or "c" for each input.
    groups : int array of shape [k], optional
        Group of each cell; without them the label is learnt.

    Examples
    --------
    >>> import torch
    >>> rows = torch.arange(4)
    >>> chunk = Chunk(torch.zeros(4, 1), rows, rows, torch.ones(4))
    >>> TreeTarget("label", 2, 2, "q").known(chunk.targets.numpy())
    array([0., 1., 0., 1.], dtype=float32)
    >>> TreeTarget("group", 2, 2, "qq", np.array([1, 0])).known(chunk.targets.numpy())
    array([1., 1., 0., 0.], dtype=float32)
    """

    name: str
    n_classes: int
    n_labels: int
    types: Sequence[str]
    groups: np.ndarray | None = None

    def inputs(self, chunk: Chunk) -> np.ndarray:
        """Return what it is learnt from."""
        if self.groups is None:
            return chunk.x.numpy()
        return with_column(chunk.x, (chunk.targets % self.n_labels).to(chunk.x)).numpy()

    def known(self, strata: np.ndarray) -> np.ndarray:
        """Return what is learnt of rows with ``cell * c + label``."""
        if self.groups is None:
            return (strata % self.n_labels).astype(np.float32)
        return self.groups[strata // self.n_labels].astype(np.float32)


def grow_targets(
    joint: JointTargets,
    types: Sequence[str],
    n_folds: int,
    grow: Callable[[TreeTarget, int], Grown],
    on_step: Callable[[], None],
    checkpoint: Checkpoint,
) -> list[nn.Module]:
    """Ensembles of the label, and of the group in each grouping, for each fold.

    ``grow`` grows that of a target and a fold; all folds of a target are cut after the round with
    the least out-of-fold loss. ``on_step`` is called twice for each fold.
    """
    (k, c), sizes = joint.shape, joint.sizes
    with_label, places = [*types, "q" if c == 2 else "c"], [np.arange(k)]
    if joint.cells is not None:
        starts = accumulate(sizes, initial=0)
        places = [own - start for own, start in zip(joint.cells.numpy().T, starts, strict=False)]
    targets = [TreeTarget("label", c, c, list(types))]
    for place, (groups, size) in enumerate(zip(places, sizes or (k,), strict=True)):
        if size > 1:
            name = f"group{place}" if sizes else "group"
            targets.append(TreeTarget(name, size, c, with_label, groups))
    step = paced(on_step, 2 * n_folds, len(targets) * n_folds)

    def boost(target: TreeTarget) -> list[Trees]:
        grown = []
        for fold in range(n_folds):
            own = f"{target.name}-{fold}", target.types, target.n_classes
            grown.append(Grown.kept(checkpoint, *own, partial(grow, target, fold)))
            step()
        return at_least_loss(grown)

    of_label, *rest = map(boost, targets)
    of_group = groups_by_fold(k, sizes, n_folds, rest)
    return [JointTrees(a, b, joint.shape) for a, b in zip(of_label, of_group, strict=True)]


def settings_for(target: TreeTarget, settings: TreeSettings) -> TreeSettings:
    """Those of the label, or of a group, whose trees are fewer."""
    return settings if target.groups is None else settings.for_groups()
