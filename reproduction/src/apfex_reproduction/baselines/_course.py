"""The course of training, window by window: what a history keeps, and means of the gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

import pandas as pd
import torch
from torch import Tensor

from apfex.history import History, StepRecord
from apfex.solvers import min_norm


@final
class Course:
    """What happened to b members of m losses each, as means over windows of steps.

    Parameters
    ----------
    n_losses : int
        m.
    window : int
        Steps in a window.
    n_members : int
        b.
    names : sequence of str
        Of the strategies that a step may be decided by.

    Attributes
    ----------
    history : History
        Losses, weights, choices and the length of the direction; what strategies look at.
    """

    def __init__(self, n_losses: int, window: int, n_members: int, names: Sequence[str]) -> None:
        self.history = History(n_losses, window, members=(n_members,), choice_names=names)
        self._products: list[Tensor] = []
        self._norms: list[Tensor] = []
        self._omega: list[Tensor] = []
        self._aligned: list[Tensor] = []

    def record(self, step: StepRecord, products: Tensor) -> None:
        """Add a step and the inner products [b, m, m] of its scaled gradients."""
        self.history.record(step)
        self._products.append(products)
        if self.history.starts_window:  # one solve for all steps of the window
            self._close(torch.stack(self._products))
            self._products = []

    def frames(self) -> list[pd.DataFrame]:
        """A table for each member with a row per window.

        Beside the columns of :meth:`~apfex.history.History.to_frame`: ``norm0``, ... (length of
        each scaled gradient), ``omega`` (length of their shortest combination: 0 where the point
        is Pareto-stationary) and ``aligned`` (share of the pairs with a positive cosine), all as
        means over the steps of the window.
        """
        frame = self.history.to_frame()
        if frame.empty:
            return [frame] * self.history.members[0]
        parts = [part.drop(columns="member") for _, part in frame.groupby("member", sort=True)]
        return [self._filled(part, member) for member, part in enumerate(parts)]

    def _close(self, products: Tensor) -> None:
        """Means over the steps of a window, of products [w, b, m, m]."""
        norms = products.diagonal(dim1=-2, dim2=-1).clamp(min=0).sqrt()
        weights = min_norm(products)
        square = (weights.unsqueeze(-2) @ products @ weights.unsqueeze(-1))[..., 0, 0]
        pairs = torch.ones_like(products[0, 0], dtype=torch.bool).triu(1)
        self._norms.append(norms.mean(0))
        self._omega.append(square.clamp(min=0).sqrt().mean(0))
        self._aligned.append((products > 0)[..., pairs].double().mean(-1).mean(0))

    def _filled(self, frame: pd.DataFrame, member: int) -> pd.DataFrame:
        norms = torch.stack(self._norms)[:, member]
        columns = {f"norm{k}": column.numpy() for k, column in enumerate(norms.T)}
        columns["omega"] = torch.stack(self._omega)[:, member].numpy()
        columns["aligned"] = torch.stack(self._aligned)[:, member].numpy()
        return frame.reset_index(drop=True).assign(**columns)
