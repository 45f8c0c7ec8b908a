"""``APFExClassifier``."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    check_is_fitted,
    check_random_state,
    column_or_1d,
    validate_data,
)

from apfex.estimator._criteria import Criteria
from apfex.estimator._fit import FitRequest, explore
from apfex.estimator._inputs import read_groupings, read_weights, sensitive_columns
from apfex.metrics import gap_inference, group_rates
from apfex.training import TrainingSettings

if TYPE_CHECKING:
    import pandas as pd


class APFExClassifier(ClassifierMixin, BaseEstimator):
    """A classifier with the whole front of accuracy and intersectional fairness.

    One ``fit`` trains a population of small networks, each towards another trade-off between
    the task and the gaps of the sensitive attributes' crossing. ``front_`` shows the points,
    ``select`` and ``at`` hand them out as classifiers of their own.

    Parameters
    ----------
    criteria : str or sequence of str
        Gaps to close: "dp" (demographic parity), "tpr" (equal opportunity), "fpr", ...,
        "equalized_odds"; fairlearn's words are taken as well.
    grouping : {"intersectional", "attributes"}
        Gaps over the cells of the crossing, or over each attribute on its own.
    model : {"mlp", "linear"} or callable
        A network with one hidden layer, a linear model, or a factory
        ``(n_features, n_outputs) -> nn.Module``.
    sensitive : sequence of column names, optional
        Sensitive columns of ``X``, instead of ``sensitive_features`` in ``fit``.
    include_sensitive : bool
        Whether the sensitive attributes are inputs of the model.
    scoring : {"accuracy", "balanced_accuracy"}
        What the error of a point means when points are ranked.
    n_points : int
        The most points that the front keeps.
    max_gap : float or mapping from criterion to float
        The bound for the point that ``predict`` uses at first.
    favorable_label : label, optional
        The outcome that a person would want; the last class by default.
    validation_fraction : float
        Share of the rows that choose points, and make no gradients.
    n_members : int
        Models trained together.
    epochs, batch_size, learning_rate, weight_decay, hidden
        Of the training; ``epochs=None`` means at least 12 epochs and at least 200 steps.
    bins : {"tree", "quantile", None}
        Steps and ramps of numeric columns as additional inputs.
    device : str
        "auto" takes a GPU if there is one.
    random_state : int, RandomState or None
    verbose : int
        1 shows a progress bar.

    Attributes
    ----------
    front_ : Front
        Points by rising error, measured on the rows that chose them.
    point_ : int
        The place on the front that ``predict`` uses.
    classes_, n_features_in_, feature_names_in_
        As in every classifier.

    Notes
    -----
    Sensitive features are used in training only, never at ``predict``. Without any, the front is
    a single plain model. ``predict_proba`` is not calibrated. ``fit`` never fails because a bound
    cannot be met: it takes the nearest non-trivial point, and warns.

    Examples
    --------
    >>> from apfex import make_biased
    >>> data = make_biased(n=600, random_state=0)
    >>> clf = APFExClassifier(max_gap=1.0, epochs=2, random_state=0)
    >>> clf = clf.fit(data.X, data.y, sensitive_features=data.sensitive)
    >>> len(clf.front_) >= 1
    True
    >>> clf.predict(data.X).shape
    (600,)
    """

    __metadata_request__fit = {"sensitive_features": True}  # noqa: RUF012 - scikit-learn's protocol

    def __init__(
        self,
        criteria: str | Sequence[str] = ("dp",),
        *,
        grouping: Literal["intersectional", "attributes"] = "intersectional",
        model: Any = "mlp",
        sensitive: Sequence[str] | None = None,
        include_sensitive: bool = False,
        scoring: Literal["accuracy", "balanced_accuracy"] = "accuracy",
        n_points: int = 16,
        max_gap: float | Mapping[str, float] = 0.05,
        favorable_label: Any = None,
        validation_fraction: float = 0.2,
        n_members: int = 16,
        epochs: int | None = None,
        batch_size: int = 1024,
        learning_rate: float = 5e-3,
        weight_decay: float = 1e-2,
        hidden: Sequence[int] = (32,),
        bins: Literal["tree", "quantile"] | None = "tree",
        device: str = "auto",
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.criteria = criteria
        self.grouping = grouping
        self.model = model
        self.sensitive = sensitive
        self.include_sensitive = include_sensitive
        self.scoring = scoring
        self.n_points = n_points
        self.max_gap = max_gap
        self.favorable_label = favorable_label
        self.validation_fraction = validation_fraction
        self.n_members = n_members
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.hidden = hidden
        self.bins = bins
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    def fit(
        self, X: Any, y: Any, *, sensitive_features: Any = None, sample_weight: Any = None
    ) -> APFExClassifier:
        """Explore the front.

        Parameters
        ----------
        X : table or array of shape [n, d]
            Mixed types and missing values are fine.
        y : array of shape [n]
        sensitive_features : column, table or mapping, optional
            Not needed where ``sensitive`` names columns of ``X``.
        sample_weight : array of shape [n], optional
        """
        criteria, bounds = self._check_settings()
        validate_data(self, X, skip_check_array=True)
        y = self._encode_labels(X, y)
        columns, X = sensitive_columns(
            X, self.sensitive, sensitive_features, self.include_sensitive
        )
        crossing, groupings = read_groupings(columns, len(y), X, self.grouping)
        if crossing is None:
            criteria = Criteria(())
            bounds = {}
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        request = FitRequest(
            X=X,
            y=y,
            n_classes=len(self.classes_),
            crossing=crossing,
            groupings=groupings,
            sample_weight=read_weights(sample_weight, len(y)),
            criteria=criteria,
            favorable=self._favorable(),
            settings=self._settings(len(y), seed),
            seed=seed,
            estimator=self,
        )
        self.front_, self._encoder = explore(request)
        self.point_ = self._first_choice(bounds)
        return self

    def select(
        self,
        max_gap: float | Mapping[str, float] | None = None,
        *,
        confidence: float | None = None,
    ) -> APFExClassifier:
        """The most accurate non-trivial point within the bounds, as a fitted classifier.

        Parameters
        ----------
        max_gap : float or mapping, optional
            A number: for every criterion; that of the constructor by default.
        confidence : float, optional
            If given, the upper end of the 95% interval must be within the bound.
        """
        check_is_fitted(self, "front_")
        if confidence is not None and confidence != 0.95:
            raise ValueError(f"confidence must be None or 0.95, got {confidence}.")
        names = tuple(self.front_[0].gaps)
        bounds = _read_bounds(self.max_gap if max_gap is None else max_gap, names)
        place = self.front_.choose(bounds, confidence is not None)
        if place is None:
            near = self.front_.nearest(bounds, confidence is not None)
            gaps = {name: round(gap.gap, 4) for name, gap in self.front_[near].gaps.items()}
            raise ValueError(
                f"max_gap must admit a point of the front, got {bounds}; the nearest is point "
                f"{near} with gaps {gaps} and error {self.front_[near].error:.4f}: use at({near})."
            )
        return self.at(place)

    def at(self, point: int) -> APFExClassifier:
        """A point of the front as a fitted classifier of its own."""
        check_is_fitted(self, "front_")
        if not -len(self.front_) <= point < len(self.front_):
            raise IndexError(
                f"point must be a place on the front of {len(self.front_)} points, got {point}."
            )
        return copy.copy(self).use(point)

    def use(self, point: int) -> APFExClassifier:
        """Make a point of the front what ``predict`` uses."""
        check_is_fitted(self, "front_")
        self.point_ = range(len(self.front_))[point]
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """Scores: logits of the last class [n], or of each class [n, c]."""
        check_is_fitted(self, "front_")
        validate_data(self, X, skip_check_array=True, reset=False)
        _, X = sensitive_columns(X, self.sensitive, None, self.include_sensitive, predicting=True)
        module = self.front_[self.point_].module
        x = torch.from_numpy(self._encoder.transform(X))
        with torch.no_grad():
            scores = module(x)
        return scores.squeeze(1).numpy() if scores.shape[1] == 1 else scores.numpy()

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities [n, c]; not calibrated."""
        scores = torch.from_numpy(self.decision_function(X)).double()
        if scores.ndim == 1:
            positive = torch.sigmoid(scores)
            return torch.stack([1 - positive, positive], 1).numpy()
        return torch.softmax(scores, 1).numpy()

    def predict(self, X: Any) -> np.ndarray:
        """Class of each row."""
        scores = self.decision_function(X)
        codes = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(1)
        return self.classes_[codes]

    def audit(self, X: Any, y: Any, *, sensitive_features: Any = None) -> pd.DataFrame:
        """Rates of every group and the gap of every criterion on fresh rows.

        Returns
        -------
        DataFrame
            A row per criterion: gap, 95% interval, p-value and noise floor. The rates of the
            groups are in ``attrs["groups"]``.
        """
        import pandas as pd

        check_is_fitted(self, "front_")
        columns, _ = sensitive_columns(X, self.sensitive, sensitive_features, True)
        crossing, _ = read_groupings(columns, len(y), X, "intersectional")
        if crossing is None:
            raise ValueError("sensitive_features must be given to audit, got None.")
        labels = np.searchsorted(self.classes_, np.asarray(y))
        decisions = np.searchsorted(self.classes_, self.predict(X))
        criteria, rows, rates = Criteria.of(self.criteria), [], []
        for name in criteria.names:
            for rate in criteria.rates_of(name):
                common = {"rate": rate, "sensitive_features": crossing}
                interval = gap_inference(labels, decisions, **common)
                rows.append({"criterion": name, "rate": rate, **_interval_row(interval)})
                rates.append(group_rates(labels, decisions, **common).assign(rate_name=rate))
        frame = pd.DataFrame(rows)
        frame.attrs["groups"] = pd.concat(rates, ignore_index=True)
        return frame

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn that missing values and categories are fine."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags

    def _check_settings(self) -> tuple[Criteria, dict[str, float]]:
        """Refuse settings that name nothing; return the criteria and their bounds."""
        choices = {
            "grouping": ("intersectional", "attributes"),
            "scoring": ("accuracy", "balanced_accuracy"),
        }
        for name, allowed in choices.items():
            if getattr(self, name) not in allowed:
                raise ValueError(
                    f"{name} must be one of {list(allowed)}, got {getattr(self, name)!r}."
                )
        if self.model not in ("mlp", "linear") and not callable(self.model):
            raise ValueError(f"model must be 'mlp', 'linear' or a factory, got {self.model!r}.")
        for name, least in (("n_points", 1), ("n_members", 2)):
            if getattr(self, name) < least:
                raise ValueError(f"{name} must be at least {least}, got {getattr(self, name)}.")
        if not 0 < self.validation_fraction < 1:
            raise ValueError(
                f"validation_fraction must be between 0 and 1, got {self.validation_fraction}."
            )
        criteria = Criteria.of(self.criteria)
        return criteria, _read_bounds(self.max_gap, criteria.names)

    def _encode_labels(self, X: Any, y: Any) -> np.ndarray:
        if y is None:
            raise ValueError(
                "y must be given: APFExClassifier requires y to be passed, but the target y is None."
            )
        y = column_or_1d(y, warn=True)
        check_classification_targets(y)
        n = X.shape[0] if hasattr(X, "shape") else len(X)
        if len(y) != n:
            raise ValueError(f"y must have one label for each of the {n} rows, got {len(y)}.")
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(
                f"y must hold at least two classes, got one class: {self.classes_.tolist()}."
            )
        return codes

    def _favorable(self) -> int:
        if self.favorable_label is None:
            return len(self.classes_) - 1
        places = np.flatnonzero(self.classes_ == self.favorable_label)
        if not places.size:
            raise ValueError(
                f"favorable_label must be one of {self.classes_.tolist()}, got "
                f"{self.favorable_label!r}."
            )
        return int(places[0])

    def _settings(self, n: int, seed: int) -> TrainingSettings:
        epochs = self.epochs
        if epochs is None:
            epochs = max(12, round(200 * self.batch_size / max(n, self.batch_size)))
        return TrainingSettings(
            epochs=epochs,
            batch_size=self.batch_size,
            learning_rate=self.learning_rate,
            weight_decay=self.weight_decay,
            seed=seed,
        )

    def _first_choice(self, bounds: Mapping[str, float]) -> int:
        place = self.front_.choose(bounds)
        if place is not None:
            return place
        near = self.front_.nearest(bounds)
        gaps = {name: round(gap.gap, 4) for name, gap in self.front_[near].gaps.items()}
        warnings.warn(
            f"No point of the front is within max_gap {dict(bounds)}; predict uses the nearest, "
            f"point {near} with gaps {gaps}. Raise max_gap, or look at front_.",
            stacklevel=3,
        )
        return near


def _read_bounds(max_gap: float | Mapping[str, float], names: Sequence[str]) -> dict[str, float]:
    if isinstance(max_gap, Mapping):
        unknown = sorted(set(max_gap) - set(names))
        if unknown:
            raise ValueError(f"max_gap must name criteria of {list(names)}, got {unknown}.")
        bounds = {name: float(bound) for name, bound in max_gap.items()}
    else:
        bounds = dict.fromkeys(names, float(max_gap))
    for name, bound in bounds.items():
        if not bound >= 0:
            raise ValueError(f"max_gap must be at least 0, got {bound} for {name!r}.")
    return bounds


def _interval_row(interval: Any) -> dict[str, float]:
    shown = ("gap", "lower", "upper", "p_value", "noise_floor")
    return {name: getattr(interval, name) for name in shown}
