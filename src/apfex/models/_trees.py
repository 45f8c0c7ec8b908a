"""Boosted trees by XGBoost: settings, data, and an ensemble as a torch module."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Self, TypeVar, final

import numpy as np
import torch
import xgboost
from torch import Tensor, nn
from xgboost import Booster, DMatrix

from apfex.arguments import require_kind, require_numbers, require_whole
from apfex.boosters import (
    EnsembleArrays,
    FewRows,
    few_rows_of,
    read_booster,
    read_ensemble,
    written_again,
)
from apfex.models._rows import TrainingRows

_T = TypeVar("_T")
_U = TypeVar("_U")
_PART = 512
"""Rows that a thread predicts at least: for fewer it waits longer for Python's lock."""
_SMALL = 5_000
"""Below so many rows shallow trees and small steps are better."""
_FEW_ROWS: dict[str, Any] = {
    "n_estimators": 160,
    "max_depth": 3,
    "learning_rate": 0.05,
    "subsample": 0.8,
    "min_child_weight": 2.0,
    "reg_lambda": 1.0,
    "early_stopping_rounds": 30,
    "few_rows": True,
}
_GROUP: dict[str, Any] = {
    "n_estimators": 32,
    "max_depth": 4,
    "learning_rate": 0.4,
    "colsample_bytree": 1.0,  # the label is one of the columns
    "min_child_weight": 2.0,
    "reg_lambda": 1.0,
}
_GROUP_OF_FEW_ROWS: dict[str, Any] = {
    "n_estimators": 60,
    "max_depth": 2,
    "learning_rate": 0.1,
    "min_child_weight": 5.0,
}


@final
@dataclass(frozen=True)
class TreeSettings:
    """How trees are grown, in XGBoost's words.

    Attributes
    ----------
    n_estimators, max_depth, learning_rate, subsample, colsample_bytree
    min_child_weight, reg_lambda
    early_stopping_rounds : int
        Growing ends after so many rounds without a smaller loss on rows that do not learn.
    monotone_constraints : tuple of d numbers, or empty
        1: scores may only rise with the input; -1: they may only fall; 0: either.
    seed : int
    few_rows : bool
        Whether the table is small, so that the model of the group must be simple.
    n_threads : int
        Threads of one ensemble; several ensembles are grown in parallel.

    Examples
    --------
    >>> TreeSettings.for_rows(1_000).max_depth
    3
    >>> TreeSettings.for_rows(1_000, max_depth=4).max_depth
    4
    """

    n_estimators: int = 140
    max_depth: int = 6
    learning_rate: float = 0.1
    subsample: float = 1.0
    colsample_bytree: float = 0.5
    min_child_weight: float = 0.5
    reg_lambda: float = 0.1
    early_stopping_rounds: int = 10
    monotone_constraints: tuple[int, ...] = ()
    seed: int = 0
    few_rows: bool = False
    n_threads: int = 1

    def __post_init__(self) -> None:
        """Refuse settings out of range."""
        require_whole(n_estimators=self.n_estimators, max_depth=self.max_depth)
        require_numbers(learning_rate=self.learning_rate, reg_lambda=self.reg_lambda)
        for name in ("subsample", "colsample_bytree"):
            require_numbers(**{name: getattr(self, name)})
            if not 0 < getattr(self, name) <= 1:
                raise ValueError(
                    f"{name} must be above 0 and at most 1, got {getattr(self, name)}."
                )
        for name in ("n_estimators", "max_depth"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}.")
        if not self.learning_rate > 0:
            raise ValueError(f"learning_rate must be positive, got {self.learning_rate}.")

    @classmethod
    def for_rows(cls, n: int, **given: Any) -> Self:
        """Return settings for a table of n rows; what is given and not None has precedence."""
        named = {name: value for name, value in given.items() if value is not None}
        return cls(**{**(_FEW_ROWS if n < _SMALL else {}), **named})

    def for_groups(self) -> TreeSettings:
        """Return settings for a quick model of the group given the label."""
        usual = _GROUP_OF_FEW_ROWS if self.few_rows else _GROUP
        depth = min(usual["max_depth"], self.max_depth)
        return replace(self, monotone_constraints=(), **{**usual, "max_depth": depth})

    def parameters(self, **objective: Any) -> dict[str, Any]:
        """Return the parameters that XGBoost is given."""
        constraints = str(self.monotone_constraints) if any(self.monotone_constraints) else None
        return {
            "tree_method": "hist",
            "max_depth": self.max_depth,
            "learning_rate": self.learning_rate,
            "subsample": self.subsample,
            "colsample_bytree": self.colsample_bytree,
            "min_child_weight": self.min_child_weight,
            "reg_lambda": self.reg_lambda,
            "seed": self.seed,
            "nthread": self.n_threads,
            "verbosity": 0,
            **({} if constraints is None else {"monotone_constraints": constraints}),
            **objective,
        }


def quantile_matrix(
    x: np.ndarray,
    feature_types: Sequence[str],
    *,
    label: np.ndarray | None = None,
    weight: np.ndarray | None = None,
    n_threads: int | None = None,
) -> DMatrix:
    """Put inputs [n, d] into bins, to learn from; all trees share the bins."""
    return xgboost.QuantileDMatrix(
        x,
        label,
        weight=weight,
        feature_types=list(feature_types),
        enable_categorical=True,
        nthread=n_threads or torch.get_num_threads(),
    )


def plain_matrix(
    x: np.ndarray,
    feature_types: Sequence[str],
    *,
    label: np.ndarray | None = None,
    weight: np.ndarray | None = None,
    n_threads: int | None = None,
) -> DMatrix:
    """Keep inputs [n, d] as they are, to predict: bins have no place for unknown categories."""
    return xgboost.DMatrix(
        x,
        label,
        weight=weight,
        feature_types=list(feature_types),
        enable_categorical=True,
        nthread=n_threads or torch.get_num_threads(),
    )


def in_parallel(work: Callable[[_T], _U], things: Sequence[_T]) -> Iterator[_U]:
    """Yield results in order, computed on as many threads as torch uses.

    XGBoost releases Python's lock while it works. Ensembles with one thread each, grown in
    parallel, wait less for each other than the threads of one ensemble, and give the same trees on
    any number of cores.
    """
    with ThreadPoolExecutor(max(1, min(len(things), torch.get_num_threads()))) as threads:
        yield from threads.map(work, things)


@cache
def _predictors() -> ThreadPoolExecutor:
    """Threads that predict, kept, as to start them takes as long as to predict some hundred rows.

    They call nothing that waits for another of them.
    """
    return ThreadPoolExecutor(os.cpu_count(), "apfex-trees")


if hasattr(os, "register_at_fork"):  # a child has none of its parent's threads
    os.register_at_fork(after_in_child=_predictors.cache_clear)


def objective_of(n_classes: int) -> dict[str, Any]:
    """What XGBoost minimises to learn classes, and the loss that is measured by."""
    if n_classes == 2:
        return {"objective": "binary:logistic", "eval_metric": "logloss"}
    return {"objective": "multi:softprob", "eval_metric": "mlogloss", "num_class": n_classes}


def fit_booster(
    settings: TreeSettings, n_classes: int, data: DMatrix, validation: DMatrix
) -> tuple[Booster, list[float]]:
    """Learn classes from data; also return the log loss on validation rows after each round.

    Growing stops early, as the settings say; what was grown since the least loss is still there.
    """
    objective = objective_of(n_classes)
    results: dict[str, dict[str, list[float]]] = {}
    booster = xgboost.train(
        settings.parameters(**objective),
        data,
        settings.n_estimators,
        evals=[(validation, "validation")],
        evals_result=results,
        early_stopping_rounds=settings.early_stopping_rounds,
        verbose_eval=False,
    )
    return booster, results["validation"][objective["eval_metric"]]


def check_trees(found: Any, types: Sequence[str], n_classes: int) -> None:
    """Refuse what are no trees that tell so many classes from inputs of these types."""
    if not isinstance(found, Trees):
        raise ValueError(f"trees must be an ensemble, got {type(found).__name__}")
    booster, wanted = found.booster, list(types)
    if booster.num_features() != len(wanted) or booster.feature_types not in (None, wanted):
        raise ValueError(f"trees must take {len(wanted)} inputs as they are here, got others")
    n_outputs = 1 if n_classes == 2 else n_classes
    width = found(torch.zeros(1, len(wanted))).shape[1]
    if width != n_outputs or not booster.num_boosted_rounds():
        raise ValueError(f"trees must give {n_outputs} margins, got {width}")


@final
class Trees(nn.Module):
    """An ensemble as a torch module, from inputs [n, d] to margins [n, outputs].

    Parameters
    ----------
    booster : xgboost.Booster
        The module owns it: nothing else may change it.

    Notes
    -----
    Several threads may call one ensemble at a time. That holds because a booster is set up once,
    when the module is made or unpickled: ``Booster.set_param`` is safe only while no other thread
    uses the booster, and a prediction at the same time is wrong or fails. A booster predicts with
    one thread, so that a single row does not wait for others; many rows are shared out. An
    ensemble that was read from JSON answers for a few rows without XGBoost, with the same bits
    (docs/decisions/0013-few-rows.md).

    Examples
    --------
    >>> import xgboost
    >>> x, y = np.arange(8.0, dtype=np.float32)[:, None], np.arange(8) // 4
    >>> booster = xgboost.train({"objective": "binary:logistic"}, xgboost.DMatrix(x, y), 2)
    >>> Trees(booster)(torch.from_numpy(x)).shape
    torch.Size([8, 1])
    """

    def __init__(self, booster: Booster) -> None:
        super().__init__()
        require_kind("booster", booster, Booster, "a Booster of XGBoost")
        self.booster = booster
        self.few_rows: FewRows | None = None
        self._use_one_thread()

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore a pickle."""
        super().__setstate__(state)
        self._use_one_thread()

    @staticmethod
    def fit(
        rows: TrainingRows,
        validation: TrainingRows,
        n_classes: int,
        settings: TreeSettings,
        feature_types: Sequence[str],
    ) -> Trees:
        """Learn the label, up to the round with the least loss on validation rows.

        Examples
        --------
        >>> x, y = torch.arange(40.0).unsqueeze(1), torch.arange(40) // 20
        >>> rows = TrainingRows(x, y, torch.zeros(0, 40, dtype=torch.int64), ())
        >>> trees = Trees.fit(rows, rows, 2, TreeSettings.for_rows(40), ["q"])
        >>> bool((trees(x)[:, 0] > 0).equal(y > 0))
        True
        """
        data, others = (
            make(
                part.x.cpu().numpy(),
                feature_types,
                label=part.y.cpu().numpy(),
                weight=part.weights().cpu().numpy(),
            )
            for make, part in ((quantile_matrix, rows), (plain_matrix, validation))
        )
        booster, losses = fit_booster(settings, n_classes, data, others)
        return Trees(booster[: int(np.argmin(losses)) + 1])

    def _use_one_thread(self) -> None:
        self.booster.set_param({"nthread": 1})

    def forward(self, x: Tensor) -> Tensor:
        """Return margins in the type of the inputs; no gradient flows through trees."""
        rows = x if len(x) else x.new_zeros(1, x.shape[1])  # XGBoost needs one
        inputs = np.ascontiguousarray(rows.detach().cpu().numpy(), np.float32)
        if self.few_rows is not None and self.few_rows.is_faster_for(inputs):
            return torch.from_numpy(self.few_rows.margins(inputs)[: len(x)]).to(x)
        n_parts = min(torch.get_num_threads(), len(inputs) // _PART)
        if n_parts < 2:
            margins = self._margins(inputs)
        else:
            parts = np.array_split(inputs, n_parts)
            margins = np.concatenate(list(_predictors().map(self._margins, parts)))
        return torch.from_numpy(margins[: len(x)]).to(x)

    def _margins(self, inputs: np.ndarray) -> np.ndarray:
        margins = self.booster.inplace_predict(inputs, predict_type="margin")
        return margins.reshape(len(inputs), -1).copy()  # XGBoost writes there again

    def to_json(self) -> bytes:
        """Return the ensemble in XGBoost's own JSON, exact to the last bit."""
        return bytes(self.booster.save_raw(raw_format="json"))

    @staticmethod
    def from_json(data: bytes) -> Trees:
        """Read an ensemble that ``to_json`` has written; damaged data are refused.

        XGBoost never sees the data, but what was checked of them, written again.
        """
        content = read_booster(data)
        checked = written_again(content)
        booster = xgboost.Booster()
        try:
            booster.load_model(checked)
        except xgboost.core.XGBoostError as error:
            reason = next(iter(str(error).splitlines()), "")
            raise ValueError(
                f"data must be a booster in XGBoost's JSON, got {reason!r}."
            ) from error
        trees = Trees(booster)
        trees.few_rows = few_rows_of(content, trees._margins)
        return trees

    def to_arrays(self) -> EnsembleArrays:
        """Return the ensemble as plain arrays."""
        return read_ensemble(self.to_json(), lambda x: self(torch.from_numpy(x)).numpy())
