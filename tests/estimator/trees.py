"""Trees that are quick to fit, for tests of the classifier."""

import copy
from functools import cache
from typing import Any

import pandas as pd
import pytest
from tests.estimator.tables import DATA

from apfex.estimator import APFExClassifier

TREES = {
    "model": "boosting",
    "n_estimators": 12,
    "learning_rate": 0.2,
    "n_members": 5,
    "validation_fraction": 1 / 3,
    "max_gap": 1.0,
    "random_state": 0,
}


FORMS = {"rules": {}, "members": {"search": "inprocess"}}


BOTH = pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())


def trees(**changes):
    return APFExClassifier(**{**TREES, **changes})


def fitted(
    X: Any = DATA.X,
    y: Any = DATA.y,
    sensitive: Any = DATA.sensitive,
    sample_weight: Any = None,
    **changes: Any,
):
    return trees(**changes).fit(X, y, sensitive_features=sensitive, sample_weight=sample_weight)


def shared(**changes: Any):
    """One on the shared table, fitted once for all tests that only look at it."""
    return copy.copy(_kept(**changes))


_kept = cache(fitted)


WHOLE = pd.concat([DATA.X, DATA.sensitive], axis=1)


BY_NAME = {"sensitive": ["sex", "origin"]}


def base_of(module: Any) -> Any:
    return getattr(module, "base", module)
