"""The user's own fitted model: whether it goes with the rows, and what the search starts from."""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from apfex.front._encoders import InitColumns
from apfex.front._rows import Rows
from apfex.models import Trees, import_xgboost

if TYPE_CHECKING:
    from xgboost import Booster

_TOLERANCE = 1e-3
_OBJECTIVES = ("binary:logistic", "binary:logitraw", "multi:softprob", "multi:softmax")
"""Those whose margins are logits."""


def read_init_trees(init: Any, rows: Rows, inputs: InitColumns) -> Trees:
    """The trees of a fitted model, if they go with the rows."""
    booster = _booster(init)
    n_outputs = 1 if len(rows.classes) == 2 else len(rows.classes)
    known = getattr(init, "classes_", rows.classes)
    if list(known) != list(rows.classes):
        raise ValueError(
            f"init must know the classes {rows.classes.tolist()} of y, got "
            f"{np.asarray(known).tolist()}; encode y as for init."
        )
    if booster.num_features() != len(inputs.names):
        raise ValueError(
            f"init must take the {len(inputs.names)} columns of X, got a model of "
            f"{booster.num_features()}; give fit the columns that init was fitted to."
        )
    stopped = init is not booster and booster.attr("best_iteration") is not None
    trees = Trees(booster[: booster.best_iteration + 1] if stopped else booster.copy())
    _check_margins(init, booster, trees, rows, inputs, n_outputs)
    return trees


def _booster(init: Any) -> Booster:
    """Trees of a classifier, or the user's own; of early stopping only the former takes heed."""
    if not hasattr(init, "get_booster"):
        booster = init
    elif hasattr(init, "classes_") and init.__sklearn_is_fitted__():
        booster = init.get_booster()
    else:
        raise ValueError(
            f"init must be a fitted classifier or Booster, got {type(init).__name__} without "
            "classes. Clones, as GridSearchCV makes them, are not fitted: give model.get_booster()."
        )
    learner = json.loads(booster.save_config())["learner"]
    kind, objective = learner["gradient_booster"]["name"], learner["objective"]["name"]
    if kind not in ("gbtree", "dart"):
        raise ValueError(f"init must be made of trees, got {kind!r}.")
    if objective not in _OBJECTIVES:
        raise ValueError(
            f"init must have logits as margins, with an objective of {list(_OBJECTIVES)}, got "
            f"{objective!r}."
        )
    return booster


def _check_margins(
    init: Any, booster: Booster, trees: Trees, rows: Rows, inputs: InitColumns, n_outputs: int
) -> None:
    """Our way to read the table must give what the model itself says."""
    ours = trees(torch.from_numpy(inputs.transform(rows.X))).numpy()
    if ours.shape[1] != n_outputs:
        raise ValueError(
            f"init must have {n_outputs} scores for {len(rows.classes)} classes, got "
            f"{ours.shape[1]}."
        )
    theirs = _own_margins(init, booster, rows.X).reshape(ours.shape)
    if not np.allclose(ours, theirs, atol=_TOLERANCE, equal_nan=True):
        raise ValueError(
            "init must score X as it did when it was fitted, got margins that differ by up to "
            f"{np.nanmax(np.abs(ours - theirs)):.3g} from those by codes of the categories; give "
            "fit a table with the categories that init was fitted to."
        )


def _own_margins(init: Any, booster: Booster, X: Any) -> np.ndarray:
    try:
        if init is not booster:
            return np.asarray(init.predict(X, output_margin=True))
        data = import_xgboost().DMatrix(X, enable_categorical=True)
        return booster.predict(data, output_margin=True)
    except Exception as error:
        reason = next(iter(str(error).splitlines()), "")
        raise ValueError(
            f"init must take X as it is, got one that fails on it ({reason}); give fit a table "
            "like that which init was fitted to."
        ) from error


def check_init_network(init: nn.Module, x: Tensor, n_classes: int) -> None:
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
