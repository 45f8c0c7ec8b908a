"""Plain trees: what classes rows have, with the loss on other rows after each round."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import Tensor

from apfex.models._rows import TrainingRows
from apfex.models._trees import Trees, TreeSettings, import_xgboost, quantise, unbinned

if TYPE_CHECKING:
    from xgboost import Booster, DMatrix


def grow(
    settings: TreeSettings, n_classes: int, data: DMatrix, check: DMatrix
) -> tuple[Booster, list[float]]:
    """Learn from labelled data; the log loss on others after each round.

    Examples
    --------
    >>> x, y = np.arange(40, dtype=np.float32)[:, None], np.arange(40) // 20
    >>> data = quantise(x, ["q"], label=y)
    >>> _, losses = grow(TreeSettings.for_rows(40, n_estimators=3), 2, data, data)
    >>> losses[0] > losses[2]
    True
    """
    objective: dict[str, Any] = {"objective": "binary:logistic", "eval_metric": "logloss"}
    if n_classes > 2:
        objective = {"objective": "multi:softprob", "eval_metric": "mlogloss"}
        objective["num_class"] = n_classes
    results: dict[str, dict[str, list[float]]] = {}
    booster = import_xgboost().train(
        settings.parameters(**objective),
        data,
        settings.n_estimators,
        evals=[(check, "check")],
        evals_result=results,
        verbose_eval=False,
    )
    return booster, results["check"][objective["eval_metric"]]


def grow_trunk(
    rows: TrainingRows,
    check: TrainingRows,
    n_classes: int,
    settings: TreeSettings,
    feature_types: Sequence[str],
) -> Trees:
    """Trees that learn the label, up to the round with the least loss on other rows.

    Examples
    --------
    >>> import torch
    >>> x, y = torch.arange(40.0).unsqueeze(1), torch.arange(40) // 20
    >>> rows = TrainingRows(x, y, torch.zeros(0, 40, dtype=torch.int64), ())
    >>> trunk = grow_trunk(rows, rows, 2, TreeSettings.for_rows(40), ["q"])
    >>> bool((trunk(x)[:, 0] > 0).equal(y > 0))
    True
    """
    data = quantise(_array(rows.x), feature_types, **_labels(rows))
    others = unbinned(_array(check.x), feature_types, **_labels(check))
    booster, losses = grow(settings, n_classes, data, others)
    return Trees(booster[: int(np.argmin(losses)) + 1])


def _labels(rows: TrainingRows) -> dict[str, np.ndarray]:
    return {"label": _array(rows.y), "weight": _array(rows.weights())}


def _array(values: Tensor) -> np.ndarray:
    return values.cpu().numpy()
