"""Reject option classification, searched for several objectives: post-processing."""

from __future__ import annotations

import copy
from typing import Any, Literal, Self, final

import numpy as np
import torch
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted, check_random_state

from apfex.front import FrontPoint, ParetoFront, non_dominated
from apfex.groups import make_groups
from apfex_reproduction.baselines._band import HIGH, LOW, Band, cuts, margins
from apfex_reproduction.baselines._base import NetworkClassifier
from apfex_reproduction.baselines._classifier import BinaryClassifier
from apfex_reproduction.baselines._evolution import exhaustive, nsga2, pso
from apfex_reproduction.baselines._inputs import (
    Parts,
    Rows,
    encode_groups,
    read_parts,
    read_rows,
    read_table,
    require_groups,
)
from apfex_reproduction.baselines._judge import Judge, Rule, Snapshot, check_rule, choose
from apfex_reproduction.baselines._plain import PlainNetwork


@final
class RejectOption(BinaryClassifier):
    """Decisions near the threshold are made by the group: post-processing of a classifier.

    **Post-processing: it needs the sensitive features at prediction**, and treats two people who
    differ in nothing else differently. It changes no model.

    Parameters
    ----------
    criterion : {"dp", "tpr"}
    estimator : classifier with ``predict_proba``, optional
        :class:`PlainNetwork` by default.
    search : {"nsga2", "pso", "grid"}
        How threshold and margin are found: NSGA-II (100 individuals, 50 generations), a particle
        swarm (30 particles, 50 iterations) on the distance from the ideal point, or a grid of 100
        thresholds and 50 margins.
    prefit : bool
        Whether ``estimator`` is fitted already; all rows given to ``fit`` then choose.
    selection : {"nearest", "fairest", "accurate"}
        Nearest to the ideal point; the smallest gap among those of at least ``min_accuracy`` that
        are not constant; the most accurate.
    min_accuracy : float, optional
    validation_fraction : float
        Share of the rows that choose, where ``fit`` is given no others.
    random_state : int, RandomState or None

    Attributes
    ----------
    threshold_, margin_ : float
    lower_ : list of str
        Groups that the model selects less often than average: they win within the margin.
    archive_ : ParetoFront
        The non-dominated of all (threshold, margin) that the search tried, by error, gap and
        share of rows whose decision would flip with the attribute.
    constant_ : bool
        Whether the decisions are no better than a constant on the rows that chose.
    estimator_ : the classifier

    Notes
    -----
    The classical reject option [1]_ with the search of [2]_ (code: github.com/RN0311/
    Multiobjective-Optimization-For-Debiasing-Credit-System). The public scripts of [2]_ cannot
    serve: they refit one model whatever the variables, and measure accuracy on accepted rows
    only. Here thresholds t in [.05, .95] and margins m in [0, min(t, 1 - t)] are the variables.
    Several attributes form the cells of their crossing.

    References
    ----------
    .. [1] F. Kamiran, A. Karim, X. Zhang, "Decision Theory for Discrimination-Aware
       Classification", ICDM 2012.
    .. [2] R. Nagpal, A. Khan, M. Borkar, A. Gupta, "A Multi-Objective Framework for Balancing
       Fairness and Accuracy in Debiasing Machine Learning Models", MAKE 2024.

    Examples
    --------
    >>> from apfex.datasets import make_biased
    >>> data = make_biased(400, kind="marginal", random_state=0)
    >>> clf = RejectOption("dp", PlainNetwork(epochs=5), search="grid", random_state=0)
    >>> clf = clf.fit(data.X, data.y, sensitive_features=data.sensitive["sex"])
    >>> clf.predict(data.X, sensitive_features=data.sensitive["sex"]).shape
    (400,)
    """

    __metadata_request__predict = {"sensitive_features": True}  # noqa: RUF012 - scikit-learn's protocol
    __metadata_request__score = {"sensitive_features": True}  # noqa: RUF012

    def __init__(
        self,
        criterion: Literal["dp", "tpr"] = "dp",
        estimator: Any = None,
        *,
        search: Literal["nsga2", "pso", "grid"] = "nsga2",
        prefit: bool = False,
        selection: Rule = "nearest",
        min_accuracy: float | None = None,
        validation_fraction: float = 0.2,
        random_state: Any = None,
    ) -> None:
        self.criterion: Literal["dp", "tpr"] = criterion
        self.estimator = estimator
        self.search = search
        self.prefit = prefit
        self.selection: Rule = selection
        self.min_accuracy = min_accuracy
        self.validation_fraction = validation_fraction
        self.random_state = random_state

    def _fit(
        self, X: Any, y: Any, sensitive_features: Any, sample_weight: Any, validation: Any
    ) -> None:
        self._check(validation)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        parts = self._parts(X, y, sensitive_features, sample_weight, validation, seed)
        groups = require_groups(parts.training, "RejectOption")
        self.classes_, self._groups = parts.classes, groups
        self.estimator_ = self.estimator if self.prefit else self._fit_estimator(parts, seed)
        band = self._band(parts.validation)
        judge = Judge(_crossed(parts.validation), [(self.criterion, 0)])
        if len(judge.axes) == 0:
            raise ValueError(
                f"sensitive_features must have two groups with {_COUNTED[self.criterion]} among "
                f"the {len(parts.validation.y)} rows that choose, got fewer; give more rows."
            )
        self._lower = band.lower
        self.lower_ = [name for name, low in zip(groups.names, band.lower, strict=True) if low]
        self.archive_ = self._archive(band, judge, seed)
        self._choose(self.selection, self.min_accuracy)

    def select(self, selection: Rule, min_accuracy: float | None = None) -> Self:
        """Another threshold and margin of the same search, as a fitted classifier of its own."""
        check_is_fitted(self, "archive_")
        _check_rule(selection, min_accuracy)
        return copy.copy(self)._choose(selection, min_accuracy)

    def decision_function(self, X: Any, *, sensitive_features: Any = None) -> np.ndarray:
        """Probability minus what the row's group needs [n]; positive means selected."""
        p, cut = self._probabilities(X, sensitive_features)
        return p - cut

    def predict_proba(self, X: Any, *, sensitive_features: Any = None) -> np.ndarray:
        """Probabilities [n, 2], bent so that 1/2 is what the row's group needs; not calibrated."""
        p, cut = self._probabilities(X, sensitive_features)
        cut = np.clip(cut, 1e-12, 1 - 1e-12)
        bent = np.where(p > cut, 0.5 + (p - cut) / (1 - cut) / 2, p / cut / 2)
        positive = np.clip(bent, 0, 1)
        return np.stack([1 - positive, positive], 1)

    def predict(self, X: Any, *, sensitive_features: Any = None) -> np.ndarray:
        """Class of each row; a row of a group that ``fit`` has not seen is decided by threshold."""
        scores = self.decision_function(X, sensitive_features=sensitive_features)
        return self.classes_[(scores > 0).astype(int)]

    def score(
        self, X: Any, y: Any, sample_weight: Any = None, *, sensitive_features: Any = None
    ) -> float:
        """Accuracy."""
        right = self.predict(X, sensitive_features=sensitive_features) == np.asarray(y)
        return float(np.average(right, weights=sample_weight))

    def _check(self, validation: Any) -> None:
        for name, allowed in (("criterion", ("dp", "tpr")), ("search", ("nsga2", "pso", "grid"))):
            if getattr(self, name) not in allowed:
                raise ValueError(
                    f"{name} must be one of {list(allowed)}, got {getattr(self, name)!r}."
                )
        _check_rule(self.selection, self.min_accuracy)
        if self.prefit and (self.estimator is None or validation is not None):
            raise ValueError(
                "prefit=True needs a fitted estimator and no validation, got "
                f"estimator={self.estimator!r}; pass the rows that choose as X and y."
            )
        if self.estimator is not None and not hasattr(self.estimator, "predict_proba"):
            raise TypeError(
                "estimator must have predict_proba, got "
                f"{type(self.estimator).__name__}; calibrate it first."
            )

    def _parts(
        self, X: Any, y: Any, sensitive: Any, weight: Any, validation: Any, seed: int
    ) -> Parts:
        if self.prefit:
            rows, classes = read_rows(self, X, y, sensitive, weight)
            return Parts(rows, rows, classes)
        return read_parts(self, X, y, sensitive, weight, validation, self.validation_fraction, seed)

    def _fit_estimator(self, parts: Parts, seed: int) -> Any:
        """The classifier of the training rows; a network chooses its epoch by the others."""
        rows, validation = parts.training, parts.validation
        weight = {} if rows.sample_weight is None else {"sample_weight": rows.sample_weight}
        made: Any = PlainNetwork() if self.estimator is None else clone(self.estimator)
        if "random_state" in made.get_params() and made.get_params()["random_state"] is None:
            made.set_params(random_state=seed)
        labels, chosen_by = parts.classes[rows.y], parts.classes[validation.y]
        if isinstance(made, PlainNetwork):
            return made.fit(rows.X, labels, validation=(validation.X, chosen_by), **weight)
        if isinstance(made, NetworkClassifier):
            raise TypeError(
                f"estimator must be a plain classifier, got {type(made).__name__}; fit it first, "
                "and pass prefit=True."
            )
        return made.fit(rows.X, labels, **weight)

    def _positive(self, X: Any) -> np.ndarray:
        classes = list(self.estimator_.classes_)
        if sorted(classes) != sorted(self.classes_):
            raise ValueError(
                f"estimator must know the classes {self.classes_.tolist()}, got {classes}."
            )
        p = np.asarray(self.estimator_.predict_proba(X), dtype=np.float64)
        return p[:, classes.index(self.classes_[1])]

    def _band(self, rows: Rows) -> Band:
        assert rows.groups is not None
        p, codes, weight = self._positive(rows.X), rows.groups.codes, rows.weight
        sizes = np.bincount(codes, weight, minlength=len(rows.groups))
        chosen = np.bincount(codes, weight * (p > 0.5), minlength=len(rows.groups))
        lower = chosen / np.maximum(sizes, 1e-300) < chosen.sum() / sizes.sum()
        return Band(p, rows.y, codes, weight, lower, self.criterion)

    def _archive(self, band: Band, judge: Judge, seed: int) -> ParetoFront:
        """The non-dominated of all that the search has tried."""
        seen: list[np.ndarray] = []

        def evaluate(variables: np.ndarray) -> np.ndarray:
            threshold = LOW + (HIGH - LOW) * variables[:, 0]
            margin = margins(threshold, variables[:, 1])
            values = band.values(threshold, margin)
            seen.append(np.column_stack([values, threshold, margin]))
            return values

        _SEARCHES[self.search](evaluate, seed)
        tried = np.unique(np.concatenate(seen), axis=0)
        tried = tried[non_dominated(tried[:, :3])]
        archive = ParetoFront()
        for part in np.array_split(tried, -(-len(tried) // _CHUNK)):
            decided = [band.p > self._cuts(band.groups, *places) for places in part[:, 3:]]
            flags = judge.constant(torch.from_numpy(np.stack(decided)).long())
            for values, constant in zip(part, flags.tolist(), strict=True):
                archive.insert(values[:3], Snapshot(tuple(values[3:].tolist()), None, constant))
        return archive

    def _cuts(self, codes: np.ndarray, threshold: float, margin: float) -> np.ndarray:
        """What each row's probability must exceed; the threshold itself for unknown groups."""
        low, high = cuts(np.array(threshold), np.array(margin))
        of_groups = np.where(self._lower, low, high)
        return np.append(of_groups, threshold)[codes]

    def _choose(self, selection: Rule, min_accuracy: float | None) -> Self:
        point: FrontPoint = choose(
            self.archive_, next(iter(self.archive_)), selection, min_accuracy, n_gaps=1
        )
        self.threshold_, self.margin_ = point.payload.place
        self.constant_ = point.payload.constant
        return self

    def _probabilities(self, X: Any, sensitive_features: Any) -> tuple[np.ndarray, np.ndarray]:
        check_is_fitted(self, "threshold_")
        X = read_table(self, X, reset=False)
        if sensitive_features is None:
            raise ValueError(
                "sensitive_features must be given at prediction, got None: a reject option decides "
                "by the group within its margin. Use PlainNetwork, SMAMO or MMAMO to decide "
                "without."
            )
        groups = encode_groups(self._groups, sensitive_features, len(X))
        return self._positive(X), self._cuts(groups.codes, self.threshold_, self.margin_)


def _check_rule(selection: str, min_accuracy: float | None) -> None:
    check_rule(selection, min_accuracy)
    if selection == "last":
        raise ValueError("selection must not be 'last' for RejectOption: there are no epochs.")


def _crossed(rows: Rows) -> Rows:
    """The cells of the crossing as one attribute."""
    assert rows.groups is not None
    return Rows(rows.X, rows.y, make_groups({"group": rows.groups.codes}), rows.sample_weight)


_CHUNK = 64
"""Points whose decisions are held at once."""
_COUNTED = {"dp": "rows", "tpr": "positives"}
_SEARCHES = {"nsga2": nsga2, "pso": pso, "grid": exhaustive}
