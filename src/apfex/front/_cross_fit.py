"""A user's unfitted classifier, cloned and fitted once for each fold."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, final

import narwhals as nw
import numpy as np
import pandas as pd
import torch
from pandas.util import hash_array
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import has_fit_parameter

from apfex.front._init_model import as_frame
from apfex.front._label_models import EstimatorModel, first_line
from apfex.front._rows import Rows
from apfex.models import NOWHERE, Checkpoint, kept
from apfex.tables import TableEncoder

_TAKE_CATEGORIES = ("lightgbm", "xgboost", "sklearn.ensemble._hist_gradient_boosting")
"""Packages whose classifiers split on the categories of pandas, but do not read text."""
_TAKE_TABLES = (*_TAKE_CATEGORIES, "catboost", "tabpfn")
"""Packages whose classifiers take categories and missing values as they are."""


@final
@dataclass(frozen=True, eq=False)
class TextAsCategories:
    """A frame as a pandas one whose columns of text are categories; others stay as they are.

    Attributes
    ----------
    levels : mapping from column to levels
        A level that is not among them is missing.

    Examples
    --------
    >>> frame = pd.DataFrame({"town": ["Bern", "Basel", "Bern"], "age": [1, 2, 3]})
    >>> list(TextAsCategories.fit(frame).transform(frame)["town"].cat.categories)
    ['Basel', 'Bern']
    """

    levels: Mapping[Any, Sequence[Any]]

    @staticmethod
    def fit(X: Any) -> TextAsCategories:
        """Remember the levels of the columns of text."""
        frame = _as_pandas(X)
        texts = [name for name in frame.columns if _is_text(frame[name])]
        return TextAsCategories({n: sorted(frame[n].dropna().unique(), key=str) for n in texts})

    def transform(self, X: Any) -> pd.DataFrame:
        """The table with categories."""
        frame = _as_pandas(X).copy(deep=False)
        for name, levels in self.levels.items():
            known = frame[name].astype(object).where(frame[name].isin(levels))
            frame[name] = pd.Categorical(known, levels)
        return frame


def _as_pandas(X: Any) -> pd.DataFrame:
    return X if isinstance(X, pd.DataFrame) else nw.from_native(X, eager_only=True).to_pandas()


def _is_text(column: Any) -> bool:
    return pd.api.types.is_object_dtype(column) or pd.api.types.is_string_dtype(column)


Inputs = TableEncoder | TextAsCategories | None
"""How a classifier gets the table; None: as it is."""


def fit_inputs(model: Any, X: Any) -> Inputs:
    """How a classifier wants a table: as it is, with categories for text, or as numbers.

    A pipeline, and whatever contains one, brings its own preprocessing and gets the table as it is.
    So do boosted trees that take categories themselves, but where they read no text it becomes
    categories. All others get numbers: standardised, one-hot, nothing missing.
    """
    parts = [model, *_parameters(model).values()]
    if any(isinstance(part, Pipeline | ColumnTransformer) for part in parts):
        return None
    homes = [type(part).__module__ for part in parts]
    if not any(home.startswith(_TAKE_TABLES) for home in homes):
        return TableEncoder().fit(X)
    if as_frame(X) is not None and any(home.startswith(_TAKE_CATEGORIES) for home in homes):
        return TextAsCategories.fit(X)
    return None


def cross_fit(
    model: Any,
    rows: Rows,
    part: np.ndarray,
    folds: np.ndarray,
    inputs: Inputs,
    seed: int,
    checkpoint: Checkpoint = NOWHERE,
) -> list[EstimatorModel]:
    """Fit a clone for each fold, without the rows of that fold.

    Parameters
    ----------
    model : classifier
        Unfitted; it is not changed.
    rows : Rows
    part : int array of shape [n]
        Places of the rows to learn from.
    folds : int array of shape [n]
    inputs : TableEncoder, TextAsCategories or None
    seed : int
        Of clones whose ``random_state`` is None.
    checkpoint : Checkpoint, optional
        Where every clone is kept that can be stored.
    """
    X = rows.take(part)
    X = X if inputs is None else inputs.transform(X)
    weighting = _weight_argument(model)
    if rows.sample_weight is not None and weighting is None:
        warnings.warn(
            f"sample_weight is not taken by fit of {type(model).__name__}: the model learns from "
            "all rows alike, and only calibration, rules and figures are weighted.",
            stacklevel=6,
        )
    checkpoint.match(lambda: _facts(X, rows, part, folds))

    def learn(fold: int) -> EstimatorModel:
        own = np.flatnonzero(folds != fold)
        weight = None if rows.sample_weight is None else rows.sample_weight[part[own]]
        given = {} if weight is None or weighting is None else {weighting: weight}
        made = _seeded(_takes_categories(clone(model)), [seed, fold])
        return _fit(made, _safe_indexing(X, own), rows.y[part[own]], rows.classes, given)

    def check(fold: int, found: Any) -> None:
        _check_kept(found, model, rows, rows.y[part[folds != fold]], _safe_indexing(X, [0]))

    return [
        kept(checkpoint, f"model-{fold}", partial(learn, fold), partial(check, fold))
        for fold in range(int(folds.max()) + 1)
    ]


def _check_kept(found: Any, model: Any, rows: Rows, codes: np.ndarray, row: Any) -> None:
    """Refuse a classifier of another kind, of other labels, or that does not take a row."""
    there, c = np.unique(codes).tolist(), len(rows.classes)
    if not isinstance(found, EstimatorModel) or type(found.estimator) is not type(model):
        raise ValueError(f"model must be a fitted {type(model).__name__}, got another")
    if (found.n_classes, found.argument, found.decides) != (c, "model", False):
        raise ValueError(f"model must tell {c} labels, got one of {found.n_classes}")
    if sorted(found.places) != there:
        raise ValueError(f"model must know the labels {there}, got {found.places}")
    found.probabilities(row)


def _facts(X: Any, rows: Rows, part: np.ndarray, folds: np.ndarray) -> dict[str, Any]:
    """What clones learn from, for a checkpoint."""
    frame = isinstance(X, pd.DataFrame)
    columns = [X.iloc[:, place] for place in range(X.shape[1])] if frame else list(np.asarray(X).T)
    hashed: Any = hash_array  # known to pyright as a module
    cells = [torch.from_numpy(hashed(_hashable(one)).view(np.int64)) for one in columns]
    weight = np.ones(0) if rows.sample_weight is None else rows.sample_weight[part]
    labels = [torch.from_numpy(one) for one in (rows.y[part], folds)]
    return {"columns of X": cells, "y": labels, "sample_weight": torch.from_numpy(weight)}


def _hashable(column: Any) -> np.ndarray:
    """Values of one type: text where there are several."""
    values = np.asarray(column)
    return values.astype(str).astype(object) if values.dtype.kind in "OUST" else values


def _fit(made: Any, X: Any, codes: np.ndarray, classes: np.ndarray, given: Any) -> EstimatorModel:
    name, there = type(made).__name__, np.unique(codes)
    # XGBoost knows no labels but 0, 1, ...
    counted = type(made).__module__.startswith("xgboost")
    labels = np.searchsorted(there, codes) if counted else classes[codes]
    try:
        made.fit(X, labels, **given)
        known = np.asarray(made.classes_).tolist()
    except Exception as error:
        raise ValueError(
            f"model must be such that it can be fitted to X and y, got {name}, which fails "
            f"({first_line(error)}); put what it needs before it, in a Pipeline."
        ) from error
    wanted = classes[there].tolist()
    places = there if counted else [int(there[wanted.index(label)]) for label in known]
    return EstimatorModel(made, tuple(map(int, places)), len(classes), "model")


def _weight_argument(model: Any) -> str | None:
    """Name by which ``fit`` takes weights of rows, if it does."""
    if isinstance(model, GridSearchCV | RandomizedSearchCV):
        return _weight_argument(model.estimator)
    if isinstance(model, Pipeline):
        name, last = model.steps[-1]
        inner = _weight_argument(last)
        return None if inner is None else f"{name}__{inner}"
    return "sample_weight" if has_fit_parameter(model, "sample_weight") else None


def _seeded(made: Any, seed: Sequence[int]) -> Any:
    """Give seeds to what would draw its own."""
    generator = np.random.default_rng(seed)
    names = sorted(
        name
        for name, value in _parameters(made).items()
        if value is None and name.split("__")[-1] == "random_state"
    )
    return made.set_params(**{name: int(generator.integers(2**31)) for name in names})


def _takes_categories(made: Any) -> Any:
    """Let XGBoost split on categories, which it does if asked for alone."""
    names = [
        name
        for name, value in _parameters(made).items()
        if name.split("__")[-1] == "enable_categorical" and not value
    ]
    return made.set_params(**dict.fromkeys(names, True)) if names else made


def _parameters(model: Any) -> dict[str, Any]:
    return model.get_params(deep=True) if hasattr(model, "get_params") else {}
