"""One fit: search, make the front of what was found, and keep all of it as one record."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np
import torch
from torch import Tensor

from apfex.front._candidates import make_front
from apfex.front._encoders import Encoder
from apfex.front._inprocess import search_members
from apfex.front._points import Front
from apfex.front._postprocess import search_rules
from apfex.front._rows import Rows
from apfex.front._settings import SearchSettings
from apfex.groups import Groups

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
    found = search(rows, settings, seed)
    front = make_front(found.candidates, found.held, settings, favorable)
    history = found.history
    needed = rows.crossing if settings.group_thresholds else None
    return Fitted(
        front=front,
        encoder=found.encoder,
        classes=rows.classes,
        # which groups there are is needed, not who is in them
        groups=None if needed is None else needed.take(np.arange(0)),
        history=None if history is None else history.to_frame(point.member for point in front),
        features=features,
    )
