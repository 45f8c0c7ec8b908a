"""A model of the user's own, as ``model`` or ``init``: whether it is one at all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sklearn.base import BaseEstimator, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted
from torch import nn

from apfex.front import is_xgboost

if TYPE_CHECKING:
    from apfex.estimator._classifier import APFExClassifier


def is_estimator(model: Any) -> bool:
    """Whether something is of scikit-learn's form, or a class that makes such things."""
    return hasattr(model, "fit") and (hasattr(model, "get_params") or hasattr(model, "predict"))


def check_estimator(given: APFExClassifier) -> None:
    """Refuse a ``model`` that cannot learn probabilities of the label."""
    model = given.model
    if isinstance(model, type):
        raise ValueError(
            f"model must be a classifier, got the class {model.__name__}; give {model.__name__}()."
        )
    if given.init is not None:
        raise ValueError(
            f"model must be left at its default where init is given, got {_name(model)}: init is "
            "the model of the label, and is not fitted again."
        )
    if given.search == "inprocess":
        raise ValueError(
            f"search must be 'postprocess' or 'auto' with a classifier as model, got 'inprocess' "
            f"with {_name(model)}: points of their own are networks or boosted trees."
        )
    _check_classifier("model", model)


def check_init(given: APFExClassifier, search: str) -> None:
    """Refuse an ``init`` that is no fitted model, or not one that the search can start from."""
    init = given.init
    if init is None:
        return
    if search == "inprocess":
        _check_start(given)
    elif isinstance(init, type):
        raise ValueError(f"init must be a fitted classifier, got the class {init.__name__}.")
    elif not isinstance(init, nn.Module) and not is_xgboost(init):
        _check_fitted(init)


def _check_start(given: APFExClassifier) -> None:
    """Members start from a network, or from boosted trees."""
    init, with_trees = given.init, given.model == "boosting"
    remedy = "other models have rules on top of them, with search='postprocess'"
    if with_trees and not is_xgboost(init):
        raise ValueError(
            "init must be a fitted XGBoost model for members with model='boosting', got "
            f"{_name(init)}; {remedy}."
        )
    if not with_trees and not isinstance(init, nn.Module):
        raise ValueError(
            f"init must be a fitted torch.nn.Module or None for members, got {_name(init)}; a "
            f"fitted XGBoost model goes with model='boosting', and {remedy}."
        )


def _check_fitted(init: Any) -> None:
    if not is_estimator(init) and not hasattr(init, "predict_proba"):
        if callable(init):
            return
        raise ValueError(
            "init must be a fitted classifier with predict_proba, an nn.Module, an XGBoost model, "
            f"a function from X to probabilities, or None, got {_name(init)}."
        )
    _check_classifier("init", init)
    if not isinstance(init, BaseEstimator):
        return
    try:
        check_is_fitted(init)
    except NotFittedError as error:
        raise ValueError(
            f"init must be fitted, got {_name(init)} that is not; call its fit first, or give it "
            "as model to have it fitted here. Where a search has cloned it, give "
            "sklearn.frozen.FrozenEstimator(init)."
        ) from error


def _check_classifier(argument: str, model: Any) -> None:
    name = _name(model)
    if isinstance(model, BaseEstimator) and is_regressor(model):
        raise ValueError(f"{argument} must be a classifier, got the regressor {name}.")
    if hasattr(model, "predict_proba"):
        return
    wrapped = f"CalibratedClassifierCV({name}())"
    if argument == "init":
        wrapped = "its decision_function, or CalibratedClassifierCV around it"
    raise ValueError(
        f"{argument} must be a classifier with predict_proba, got {name}, which has none; give "
        f"{wrapped}."
    )


def _name(model: Any) -> str:
    return type(model).__name__
