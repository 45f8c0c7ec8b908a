"""What both searches need of the rows: encoded inputs, and the rows that choose."""

from __future__ import annotations

import copy
from typing import Any, final

import numpy as np
import torch
from sklearn.utils import _safe_indexing
from torch import Tensor, nn

from apfex.estimator._inputs import Rows
from apfex.estimator._kinds import Inputs
from apfex.estimator._measure import Encoder, Held
from apfex.estimator._settings import Settings
from apfex.groups import make_groups
from apfex.models import TrainingRows


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
    """Inputs of members; the user's own model takes its inputs as they are."""
    return AsTheyAre() if settings.init is not None else fit_inputs(rows, part, settings)


def fit_inputs(rows: Rows, part: np.ndarray, settings: Settings) -> Inputs:
    """Fit the encoders to some of the rows."""
    X, y = _safe_indexing(rows.X, part), rows.y[part]
    inputs = Inputs.fit(X, y, settings, len(rows.y))
    if not inputs.n_inputs:
        dropped = next(iter(inputs.encoders.values())).dropped_
        raise ValueError(f"X must have a column that varies, got none: {dropped}.")
    return inputs


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
        classes=rows.classes.tolist(),
    )


def training_rows(rows: Rows, part: np.ndarray, x: Tensor) -> TrainingRows:
    """Some of the rows with their inputs, to learn from."""
    codes = np.empty((len(rows.groupings), len(part)), dtype=np.int64)
    for place, grouping in enumerate(rows.groupings):
        codes[place] = grouping.codes[part]
    weight = rows.sample_weight
    return TrainingRows(
        x=x,
        y=torch.from_numpy(rows.y[part]).to(x.device),
        codes=torch.from_numpy(codes).to(x.device),
        n_groups=tuple(len(grouping) for grouping in rows.groupings),
        sample_weight=None if weight is None else torch.from_numpy(weight[part]).to(x),
    )


def check_init(init: nn.Module, x: Tensor, n_classes: int) -> None:
    """Refuse a network of the user's that does not go with rows [n, d], and leave it as it is."""
    rows, n_outputs = x[:8], 1 if n_classes == 2 else n_classes
    found = _outputs(init, rows)
    shape = list(found.shape) if isinstance(found, Tensor) else None
    if shape == [len(rows), n_outputs] or (n_outputs == 1 and shape == [len(rows)]):
        return
    what, wanted = f"shape {shape} for {len(rows)} rows", "a logit for each class"
    if shape is None:
        what, wanted = f"a {type(found).__name__}", "the logits alone"
    elif n_outputs == 1:
        wanted = "one logit (of two, the second minus the first)"
    raise ValueError(
        f"init must return a tensor of logits of shape [n, {n_outputs}] for {n_classes} classes, "
        f"got {what}; wrap it in a module that returns {wanted}."
    )


def _outputs(init: nn.Module, rows: Tensor) -> Any:
    network = copy.deepcopy(init).to(rows.device).eval()
    try:
        with torch.no_grad():
            return network(rows)
    except Exception as error:
        raise ValueError(
            f"init must take the {rows.shape[1]} columns of X as float32, got one that fails on "
            f"them ({error}); give fit the columns that init was fitted to, encoded as for it."
        ) from error
