"""Models that users bring, on a mixed table with missing values."""

from typing import Any

import lightgbm
import numpy as np
import pandas as pd
import xgboost
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from tests.estimator.tables import DATA, FRESH

from apfex import make_biased
from apfex.estimator import APFExClassifier

PAST = make_biased(600, kind="marginal", strength=0.4, random_state=2)
"""Rows that models in production have learnt from."""
NUMBERS = ["merit_1", "merit_2", "noise_1"]
GAPS = np.random.default_rng(0).random(DATA.X.shape) < 0.1


def mixed(data: Any) -> pd.DataFrame:
    """Text and numbers, a tenth of them missing."""
    return data.X.mask(GAPS)


def pipeline() -> Any:
    columns = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["town", "noise_2"]),
        (SimpleImputer(), NUMBERS),
    )
    return make_pipeline(columns, LogisticRegression())


UNFITTED = {
    "random forest": RandomForestClassifier(10, min_samples_leaf=5),
    "logistic regression": LogisticRegression(),
    "histogram boosting": HistGradientBoostingClassifier(max_iter=10),
    "lightgbm": lightgbm.LGBMClassifier(n_estimators=10, verbose=-1, n_jobs=1),
    "xgboost": xgboost.XGBClassifier(n_estimators=10, n_jobs=1),
    "pipeline": pipeline(),
}


def around(**settings: Any) -> APFExClassifier:
    """An unfitted classifier that is quick to fit, whose bound any point meets."""
    quick = {"n_members": 4, "n_estimators": 8, "validation_fraction": 1 / 3}
    given = {"max_gap": 1.0, "random_state": 0, **quick, **settings}
    return APFExClassifier(**given)


def fitted(X: Any = None, y: Any = DATA.y, sample_weight: Any = None, **settings: Any) -> Any:
    X = mixed(DATA) if X is None else X
    clf = around(**settings)
    return clf.fit(X, y, sensitive_features=DATA.sensitive, sample_weight=sample_weight)


def own_point(clf: APFExClassifier) -> APFExClassifier:
    """The point that is the model in production itself."""
    (place,) = [place for place, point in enumerate(clf.front_) if point.epoch == 0]
    return clf.at(place)


def three(data: Any) -> np.ndarray:
    """Words for three classes."""
    return np.where(data.X["merit_1"] > 1, "high", np.where(data.y == 1, "fair", "low"))


def fresh(model: Any) -> Any:
    """An unfitted copy."""
    return clone(model)


NEW = mixed(FRESH)
