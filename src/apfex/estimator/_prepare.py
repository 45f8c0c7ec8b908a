"""What both searches need of the rows: encoded inputs, and the rows that choose."""

from __future__ import annotations

from typing import Any, final

import numpy as np
import torch
from sklearn.utils import _safe_indexing
from torch import Tensor

from apfex.estimator._inputs import Rows
from apfex.estimator._measure import Encoder, Held
from apfex.estimator._settings import Settings
from apfex.groups import make_groups
from apfex.tables import TableEncoder


@final
class AsTheyAre:
    """Inputs for a network that was fitted elsewhere: numbers, unchanged."""

    def transform(self, X: Any) -> np.ndarray:
        """Rows as float32 [n, d]."""
        try:
            table = np.asarray(X, dtype=np.float32)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"X must hold numbers, as init takes them, got {error}; encode it as for init."
            ) from error
        if not np.isfinite(table).all():
            raise ValueError(
                "X must be finite where init is given, got missing or infinite values; encode it "
                "as for init."
            )
        return table


def fit_encoder(rows: Rows, part: np.ndarray, settings: Settings) -> Encoder:
    """Fit the encoder to some of the rows; the user's own network takes its inputs as they are."""
    if settings.init is not None:
        return AsTheyAre()
    bins = settings.bins_for(len(rows.y))
    encoder = TableEncoder(bins=bins).fit(_safe_indexing(rows.X, part), rows.y[part])
    if not encoder.n_features_out_:
        raise ValueError(f"X must have a column that varies, got none: {encoder.dropped_}.")
    return encoder


def encode(encoder: Encoder, rows: Rows, part: np.ndarray, settings: Settings) -> Tensor:
    """Inputs of some of the rows, on the device."""
    table = encoder.transform(_safe_indexing(rows.X, part))
    return torch.from_numpy(table).to(settings.device)


def held_rows(rows: Rows, part: np.ndarray) -> Held:
    """Labels and groups of the rows that choose."""
    everybody = make_groups(np.zeros(len(rows.y), dtype=np.int64))
    crossing = everybody if rows.crossing is None else rows.crossing
    weight = rows.sample_weight
    return Held(
        y=rows.y[part],
        groupings=[grouping.take(part) for grouping in rows.groupings],
        crossing=crossing.take(part),
        sample_weight=None if weight is None else weight[part],
        n_classes=len(rows.classes),
    )
