"""Any metric of some rows, with an interval that small groups deserve."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from scipy.optimize import brentq
from scipy.stats import norm, rankdata, t

from apfex.metrics._counted import COUNTED
from apfex.rates import RATES, RateName, quotient, rate_sums

_BLOCKS = 20
"""Parts that are left out in turn, for metrics whose spread no formula gives."""
_OF_SCORES = {
    "average_precision_score",
    "brier_score_loss",
    "d2_brier_score",
    "d2_log_loss_score",
    "log_loss",
    "roc_auc_score",
    "top_k_accuracy_score",
}
"""Functions of scikit-learn that take scores or probabilities instead of decisions."""

_Rows = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Labels 0 and 1 (or any, of several), decisions or scores, weights."""


@final
@dataclass(frozen=True)
class Measure:
    """A metric by its name: what it is made from, and how sure it is.

    Attributes
    ----------
    name : str
    of_scores : bool
        Whether it takes scores instead of decisions.
    function : callable
        ``(y_true, y_pred or y_score)``, with ``sample_weight`` where it takes one.
    rate : str or None
        The rate of confusion counts that it is, of two labels, if it is one.
    """

    name: str
    of_scores: bool
    function: Callable[..., Any]
    rate: RateName | None = None

    @property
    def of_probabilities(self) -> bool:
        """Whether its scores must be probabilities."""
        return self._known in (brier, calibration, log_loss)

    @property
    def mean(self) -> str | None:
        """Name of the mean over rows that it is, if it is one: sums are then all that it needs."""
        return _MEANS.get(self._known)

    @property
    def counted(self) -> str | None:
        """Name of the function of confusion counts that it is, of two labels, if it is one."""
        name = _name_of(self.function)
        return name if name in COUNTED else None

    @property
    def is_of_sums(self) -> bool:
        """Whether sums over rows tell it, of two labels, so that no row itself is needed."""
        return (self.rate or self.mean or self.counted) is not None

    def mean_interval(
        self, mean: float, variance: float, n: float, confidence: float
    ) -> tuple[float, float]:
        """Interval of :attr:`mean` from mean and variance of n (effective) rows."""
        low, high = _student(mean, variance, n, confidence)
        if self._known is not brier:
            return low, high
        return float(np.clip(low, 0, 1)), float(np.clip(high, 0, 1))

    @property
    def _known(self) -> Callable[..., Any]:
        """The function of ours that computes the same, or the function itself."""
        return _SAME.get(_name_of(self.function), self.function)

    def value(self, y: np.ndarray, predicted: np.ndarray, weight: np.ndarray | None) -> float:
        """Return the metric of some rows; NaN where it is not defined there."""
        try:
            return self._computed(y, predicted, weight)
        except ValueError:  # such as the AUC of a single class
            return float("nan")

    def why_undefined(
        self, y: np.ndarray, predicted: np.ndarray, weight: np.ndarray | None
    ) -> str | None:
        """What the function says against these rows; None where it says nothing."""
        try:
            self._computed(y, predicted, weight)
        except ValueError as error:
            return str(error) or None
        return None

    def _computed(self, y: np.ndarray, predicted: np.ndarray, weight: np.ndarray | None) -> float:
        given = {}
        if weight is not None and _takes_weights(self.function):
            given = {"sample_weight": weight}
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return float(self.function(y, predicted, **given))

    def interval(
        self, y: np.ndarray, predicted: np.ndarray, weight: np.ndarray | None, confidence: float
    ) -> tuple[float, float]:
        """Return an interval of the metric in the population; NaN where the rows do not tell."""
        return self.intervals(y, predicted, weight, (confidence,))[0]

    def intervals(
        self,
        y: np.ndarray,
        predicted: np.ndarray,
        weight: np.ndarray | None,
        confidences: Sequence[float],
    ) -> list[tuple[float, float]]:
        """Return an interval for each confidence."""
        own = _INTERVALS.get(self._known)
        if own is not None:
            ones = np.ones(len(y)) if weight is None else weight
            return [own((y, predicted, ones), confidence) for confidence in confidences]
        whole, spread, freedom = _jackknife(self, y, predicted, weight)
        halves = [float(t.ppf(0.5 + one / 2, freedom)) * spread for one in confidences]
        return [(whole - half, whole + half) for half in halves]


def auc(y: np.ndarray, score: np.ndarray, *, sample_weight: np.ndarray | None = None) -> float:
    """Chance that a row of label 1 has a higher score than one of label 0; ties count half.

    Examples
    --------
    >>> auc(np.array([0, 0, 1, 1]), np.array([0.1, 0.4, 0.35, 0.8]))
    0.75
    """
    weight = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, float)
    positive = np.asarray(y) == 1
    if positive.all() or not positive.any():
        return float("nan")
    if sample_weight is None:
        m = positive.sum()
        ranks = rankdata(score)[positive].sum()
        return float((ranks - m * (m + 1) / 2) / (m * (len(y) - m)))
    _, places = np.unique(score, return_inverse=True)
    below = np.bincount(places, weight * ~positive)
    above = np.bincount(places, weight * positive)
    wins = above @ (np.cumsum(below) - below / 2)
    return float(wins / (below.sum() * above.sum()))


def brier(y: np.ndarray, score: np.ndarray, *, sample_weight: np.ndarray | None = None) -> float:
    """Mean squared distance of probabilities from labels of 0 and 1; smaller is better.

    Examples
    --------
    >>> brier(np.array([0, 1]), np.array([0.5, 1.0]))
    0.125
    """
    squares = (np.asarray(score, float) - y) ** 2
    return float(np.average(squares, weights=sample_weight))


def calibration(
    y: np.ndarray, score: np.ndarray, *, sample_weight: np.ndarray | None = None
) -> float:
    """Share of label 1 less the mean probability; above 0 where a group is underestimated.

    Examples
    --------
    >>> calibration(np.array([0, 1]), np.array([0.25, 0.5]))
    0.125
    """
    return float(np.average(y - np.asarray(score, float), weights=sample_weight))


def log_loss(y: np.ndarray, score: np.ndarray, *, sample_weight: np.ndarray | None = None) -> float:
    """Mean of minus the logarithm of the probability that the label had.

    Examples
    --------
    >>> round(log_loss(np.array([0, 1]), np.array([0.5, 0.5])), 4)
    0.6931
    """
    return float(np.average(_log_losses(y, score), weights=sample_weight))


MEASURES: dict[str, Callable[..., float]] = {
    "auc": auc,
    "brier": brier,
    "calibration": calibration,
    "log_loss": log_loss,
}
"""Metrics of scores that have a name of their own."""


_RATES_BY_NAME: dict[str, RateName] = {
    **{name: name for name in RATES},
    "accuracy_score": "accuracy",
    "false_negative_rate": "fnr",
    "false_positive_rate": "fpr",
    "negative_predictive_value": "npv",
    "precision": "ppv",
    "precision_score": "ppv",
    "recall": "tpr",
    "recall_score": "tpr",
    "selection_rate": "dp",
    "sensitivity": "tpr",
    "specificity": "tnr",
    "true_negative_rate": "tnr",
    "true_positive_rate": "tpr",
}
"""Rates by the names that fairlearn and scikit-learn have for them."""

_SAME_NAMES = {"brier_score": "brier", "brier_score_loss": "brier"}
_SAME_NAMES |= {"roc_auc": "auc", "roc_auc_score": "auc"}

_FROM_SKLEARN = {
    "average_precision": "average_precision_score",
    "balanced_accuracy": "balanced_accuracy_score",
    "f1": "f1_score",
    "matthews_corrcoef": "matthews_corrcoef",
}
"""Metrics by the names of scikit-learn's scorers."""

METRIC_NAMES: tuple[str, ...] = tuple(
    sorted({*MEASURES, *_RATES_BY_NAME, *_SAME_NAMES, *_FROM_SKLEARN})
)
"""Metrics that need no function."""


def read_measures(metrics: Mapping[str, Any] | Sequence[str] | str | None) -> tuple[Measure, ...]:
    """Read metrics: names that are known, or names of a user's with functions or known names.

    Examples
    --------
    >>> [measure.of_scores for measure in read_measures(["auc", "brier", "precision"])]
    [True, True, False]
    """
    if metrics is None:
        return ()
    named = [metrics] if isinstance(metrics, str) else metrics
    if not isinstance(named, Mapping):
        if not isinstance(named, list | tuple) or not all(isinstance(one, str) for one in named):
            raise TypeError(
                "metrics must be names, or map names to functions of labels and decisions, got "
                f"{metrics!r}."
            )
        named = {name: name for name in named}
    return tuple(_measure(str(name), given) for name, given in named.items())


def _measure(name: str, given: Any) -> Measure:
    if isinstance(given, str):
        if given in _RATES_BY_NAME:
            return Measure(
                name, False, _rate_function(_RATES_BY_NAME[given]), _RATES_BY_NAME[given]
            )
        function = MEASURES.get(_SAME_NAMES.get(given, given))
        if given in _FROM_SKLEARN:
            import sklearn.metrics

            function = getattr(sklearn.metrics, _FROM_SKLEARN[given])
        if function is None:
            raise ValueError(
                f"metrics must be some of {list(METRIC_NAMES)}, or map names to functions of "
                f"labels and decisions, got {given!r}."
            )
    else:
        function = given
    if not callable(function):
        raise ValueError(
            "metrics must map names to functions of labels and decisions, or to one of "
            f"{list(METRIC_NAMES)}, got {given!r} for {name!r}."
        )
    scored = function in MEASURES.values() or _wants_scores(function)
    return Measure(name, scored, function, _RATES_BY_NAME.get(_name_of(function)))


def _rate_function(rate: RateName) -> Callable[..., float]:
    """A rate as a function of labels and decisions of 0 and 1.

    Examples
    --------
    >>> _rate_function("tpr")(np.array([0, 1, 1]), np.array([1, 1, 0]))
    0.5
    """

    def value(
        y: np.ndarray, decided: np.ndarray, *, sample_weight: np.ndarray | None = None
    ) -> float:
        ones = np.ones(len(decided)) if sample_weight is None else sample_weight
        positive, chosen = np.asarray(y) == 1, np.asarray(decided) == 1
        parts = (~positive & chosen, positive & chosen, ~positive, positive)
        above, below = rate_sums(rate, np.array([[ones[part].sum() for part in parts]]))
        return float(quotient(above, below)[0])

    return value


def of_scores(function: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a metric of a user's own as one of scores, which it then gets instead of decisions.

    Examples
    --------
    >>> read_measures({"spread": of_scores(lambda y, score: score.std())})[0].of_scores
    True
    """
    if not callable(function):
        raise TypeError(
            f"function must be one of labels and scores, got {type(function).__name__}."
        )

    def marked(y: Any, score: Any, **given: Any) -> Any:
        return function(y, score, **given)

    marked.__wrapped__ = function  # type: ignore[attr-defined]
    marked.of_scores = True  # type: ignore[attr-defined]
    return marked


def _wants_scores(function: Callable[..., Any]) -> bool:
    if getattr(function, "of_scores", False):
        return True
    return _name_of(getattr(function, "func", function)) in _OF_SCORES  # of a partial its own


def _name_of(function: Callable[..., Any]) -> str:
    """The name of a metric of scikit-learn or fairlearn; of any other function nothing."""
    ours = (getattr(function, "__module__", None) or "").startswith(("sklearn.", "fairlearn."))
    return getattr(function, "__name__", "") if ours else ""


def _takes_weights(function: Callable[..., Any]) -> bool:
    try:
        return "sample_weight" in inspect.signature(function).parameters
    except (TypeError, ValueError):  # some builtins tell nothing
        return False


def _log_losses(y: np.ndarray, score: np.ndarray) -> np.ndarray:
    p = np.clip(np.asarray(score, float), 1e-15, 1 - 1e-15)
    return -np.log(np.where(np.asarray(y) == 1, p, 1 - p))


def _effective(weight: np.ndarray) -> float:
    """Rows that weights are worth (Kish)."""
    return float(weight.sum() ** 2 / (weight**2).sum()) if len(weight) else 0.0


def _auc_interval(rows: _Rows, confidence: float) -> tuple[float, float]:
    """Newcombe's fifth method: AUCs at which what was found lies within z standard errors.

    Hanley and McNeil's variance at the AUC in question, with the mean of the two sizes for the
    exponential terms; it has a width even where no pair is out of order.
    R. G. Newcombe, "Confidence intervals for an effect size measure based on the Mann-Whitney
    statistic, part 2", Statistics in Medicine 25, 2006.
    """
    y, score, weight = rows
    found = auc(y, score, sample_weight=weight)
    if np.isnan(found):
        return float("nan"), float("nan")
    m, n = _effective(weight[y == 1]), _effective(weight[y != 1])
    z, mean = norm.ppf(0.5 + confidence / 2), (m + n) / 2 - 1

    def excess(theta: float) -> float:
        tail = (1 - theta) / (2 - theta) + theta / (1 + theta)
        spread = theta * (1 - theta) * (1 + mean * tail) / (m * n)
        return float((found - theta) ** 2 - z**2 * max(spread, 0.0))

    tiny = 1e-9  # at 0 and 1 themselves there is no spread, and another root
    root: Any = brentq
    low = 0.0 if found <= tiny else root(excess, 0.0, found - tiny)
    high = 1.0 if found >= 1 - tiny else root(excess, found + tiny, 1.0)
    return float(low), float(high)


def _mean_interval(values: np.ndarray, weight: np.ndarray, confidence: float) -> tuple:
    """Student's interval of a mean; NaN where fewer than three rows tell of its spread."""
    mean = np.average(values, weights=weight)
    variance = np.average((values - mean) ** 2, weights=weight)
    return _student(float(mean), float(variance), _effective(weight), confidence)


def _student(mean: float, variance: float, n: float, confidence: float) -> tuple[float, float]:
    if n < 3:
        return float("nan"), float("nan")
    half = t.ppf(0.5 + confidence / 2, n - 1) * np.sqrt(variance / (n - 1))
    return float(mean - half), float(mean + half)


def _brier_interval(rows: _Rows, confidence: float) -> tuple[float, float]:
    y, score, weight = rows
    low, high = _mean_interval((score - y) ** 2, weight, confidence)
    return float(np.clip(low, 0, 1)), float(np.clip(high, 0, 1))


def _calibration_interval(rows: _Rows, confidence: float) -> tuple[float, float]:
    y, score, weight = rows
    return _mean_interval(y - score, weight, confidence)


def _log_loss_interval(rows: _Rows, confidence: float) -> tuple[float, float]:
    y, score, weight = rows
    return _mean_interval(_log_losses(y, score), weight, confidence)


_MEANS: dict[Callable[..., Any], str] = {
    brier: "brier",
    calibration: "calibration",
    log_loss: "log_loss",
}
"""Metrics that are means over rows."""

_SAME = {"roc_auc_score": auc, "brier_score_loss": brier, "log_loss": log_loss}
"""Functions of scikit-learn whose spread a formula gives; not with arguments bound to them."""

_INTERVALS: dict[Callable[..., Any], Callable[[_Rows, float], tuple[float, float]]] = {
    auc: _auc_interval,
    brier: _brier_interval,
    calibration: _calibration_interval,
    log_loss: _log_loss_interval,
}


def _jackknife(
    measure: Measure, y: np.ndarray, predicted: np.ndarray, weight: np.ndarray | None
) -> tuple[float, float, int]:
    """Value, standard error and degrees of freedom, leaving out one of up to 20 parts at a time.

    The error is NaN where the metric does not move at all. Rows are put into an order of their own
    first, so that the order they came in has no say, and dealt out at random from a fixed seed.
    """
    n = len(y)
    blocks = min(_BLOCKS, n)
    if blocks < 3:
        return float("nan"), float("nan"), 1
    keys = [np.unique(column, return_inverse=True)[1] for column in (y, predicted)]
    keys += [] if weight is None else [weight]
    order = np.lexsort(keys)
    dealt = np.empty(n, dtype=np.int64)
    dealt[order] = np.random.default_rng(0).permutation(np.arange(n) % blocks)
    whole, parts = measure.value(y, predicted, weight), np.empty(blocks)
    for block in range(blocks):
        kept = dealt != block
        rest = None if weight is None else weight[kept]
        parts[block] = measure.value(y[kept], predicted[kept], rest)
    spread = np.sqrt((blocks - 1) / blocks * np.square(parts - parts.mean()).sum())
    return whole, float(spread) if spread > 0 else float("nan"), blocks - 1
