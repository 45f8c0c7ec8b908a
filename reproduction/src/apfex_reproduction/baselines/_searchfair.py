"""SearchFair: a convex bound on the gap, and a bisection for its weight."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from itertools import product
from typing import Any, Literal, final

import numpy as np
import pandas as pd
import torch
from sklearn.utils.validation import check_is_fitted, check_random_state

from apfex_reproduction.baselines._bisection import GapProblem, Model, search
from apfex_reproduction.baselines._classifier import BinaryClassifier
from apfex_reproduction.baselines._inputs import (
    Parts,
    Rows,
    fit_encoder,
    read_parts,
    read_rows,
    read_table,
    require_groups,
    require_two_values,
)
from apfex_reproduction.baselines._judge import Judge
from apfex_reproduction.baselines._kernels import LinearSpan, RBFSpan, Span


@final
class SearchFair(BinaryClassifier):
    """A kernel machine whose gap on the training rows is searched to be near zero.

    Parameters
    ----------
    notion : {"dp", "tpr"}
        Difference of demographic parity (DDP) or of equal opportunity (DEO).
    kernel : {"linear", "rbf"}
    beta : float or sequence of float
        Weight of the squared coefficients. Of several, the most accurate on validation rows is
        kept among those whose gap there is below ``max_gap`` and that are not constant.
    gamma : float, sequence of float or None
        Of the RBF kernel; None: 1 over the number of inputs.
    max_gap : float
        For the choice among several betas and gammas.
    max_rows : int
        The RBF kernel learns from so many rows at most, drawn at random. Linear: from all.
    tolerance : float
        The search ends at a smaller gap on the training rows.
    max_steps : int
        Of the bisection.
    validation_fraction : float
        Share of rows that choose among several betas and gammas, where ``fit`` is given no others.
    random_state : int, RandomState or None

    Attributes
    ----------
    gap_ : float
        Of the chosen model on its training rows, signed: second value of the attribute minus first.
    lam_, beta_, gamma_ : float
    search_ : DataFrame
        A row for each problem solved: beta, gamma, lam, gap, value, duality gap.
    constant_ : bool
        Whether the model decides the same for all, or no better than that, on the rows it was
        chosen by.

    Notes
    -----
    The method of [1]_ (code: github.com/mlohaus/SearchFair), for one two-valued attribute. With
    labels y and groups s in {-1, 1} it minimises, for a given lam,

        mean (1 - y_i f_i)_+ + beta |a|^2 + lam sum_i w_i (1 + d s_i f_i)_+,

    ``f(x) = sum_j a_j k(x, x_j)`` over half of the rows, w one over the size of the row's group
    (for tpr: among positives). The last sum bounds the gap: from above (d = 1) if the model of
    lam = 0 favours s = 1, from below (d = -1) otherwise. The linear kernel is the inner product
    plus one. Then lam is searched: 0 and 1 first; if the gaps there have different signs, by
    bisection on the sign of the gap on the *training* rows. Whichever had the smallest is kept.

    Instead of the published dual form, each problem is solved in the span of the kernel, exactly
    (:mod:`tests` compare it with a generic solver): for the linear kernel on all rows. The
    published accuracy-scored grid can end at a constant model, hence the rule for ``beta``.

    References
    ----------
    .. [1] M. Lohaus, M. Perrot, U. von Luxburg, "Too Relaxed to Be Fair", ICML 2020.

    Examples
    --------
    >>> from apfex.datasets import make_biased
    >>> data = make_biased(400, kind="marginal", random_state=0)
    >>> clf = SearchFair("dp", random_state=0)
    >>> clf = clf.fit(data.X, data.y, sensitive_features=data.sensitive["sex"])
    >>> abs(clf.gap_) < 0.02
    True
    """

    def __init__(
        self,
        notion: Literal["dp", "tpr"] = "dp",
        *,
        kernel: Literal["linear", "rbf"] = "linear",
        beta: float | Sequence[float] = 1e-3,
        gamma: float | Sequence[float] | None = None,
        max_gap: float = 0.05,
        max_rows: int = 2000,
        tolerance: float = 0.01,
        max_steps: int = 10,
        validation_fraction: float = 0.2,
        random_state: Any = None,
    ) -> None:
        self.notion: Literal["dp", "tpr"] = notion
        self.kernel = kernel
        self.beta = beta
        self.gamma = gamma
        self.max_gap = max_gap
        self.max_rows = max_rows
        self.tolerance = tolerance
        self.max_steps = max_steps
        self.validation_fraction = validation_fraction
        self.random_state = random_state

    def _fit(
        self, X: Any, y: Any, sensitive_features: Any, sample_weight: Any, validation: Any
    ) -> None:
        self._check()
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        grid = list(product(np.atleast_1d(self.beta), np.atleast_1d(np.array(self.gamma, float))))
        if validation is None and len(grid) == 1:  # nothing to choose: all rows learn
            rows, classes = read_rows(self, X, y, sensitive_features, sample_weight)
            parts = Parts(rows, rows, classes)
        else:
            given = (X, y, sensitive_features, sample_weight, validation)
            parts = read_parts(self, *given, self.validation_fraction, seed)
        require_groups(parts.training, "SearchFair", most_attributes=1)
        remedy = "merge levels, or fit one value against the rest"
        require_two_values(parts.training, "SearchFair", remedy)
        self.classes_, self._encoder = parts.classes, fit_encoder(parts.training)
        found = self._search(parts.training, grid, seed)
        self._keep(found, parts.validation)

    def decision_function(self, X: Any) -> np.ndarray:
        """Scores of the second class [n]; positive means decided so."""
        check_is_fitted(self, "lam_")
        x = self._encoder.transform(read_table(self, X, reset=False)).astype(np.float64)
        return self._span_.scores(x, self._z)

    def predict_proba(self, X: Any) -> np.ndarray:
        """The logistic function of the scores [n, 2]; margins, not calibrated probabilities."""
        positive = 1 / (1 + np.exp(-np.clip(self.decision_function(X), -500, 500)))
        return np.stack([1 - positive, positive], 1)

    def predict(self, X: Any) -> np.ndarray:
        """Class of each row."""
        scores = self.decision_function(X)
        return self.classes_[(scores > 0).astype(int)]

    def _check(self) -> None:
        for name, allowed in (("notion", ("dp", "tpr")), ("kernel", ("linear", "rbf"))):
            if getattr(self, name) not in allowed:
                raise ValueError(
                    f"{name} must be one of {list(allowed)}, got {getattr(self, name)!r}."
                )
        for name in ("beta", "gamma"):
            value = getattr(self, name)
            given = [] if value is None else np.atleast_1d(value).tolist()
            if not all(one > 0 for one in given) or (not given and value is not None):
                raise ValueError(f"{name} must be positive, got {value}.")
        if not self.max_rows >= 4:
            raise ValueError(f"max_rows must be at least 4, got {self.max_rows}.")

    def _search(
        self, rows: Rows, grid: Sequence[tuple[float, float]], seed: int
    ) -> list[tuple[float, Span, Model]]:
        """The fairest model for each beta and gamma."""
        rows = rows.take(_shuffled(rows, seed, self.max_rows if self.kernel == "rbf" else None))
        problem = GapProblem.of(rows, self.notion)
        x = self._encoder.transform(rows.X).astype(np.float64)
        found, log = [], []
        known: dict[float, LinearSpan | RBFSpan] = {}  # all betas share the span of a gamma
        for beta, gamma in grid:
            gamma = 1 / x.shape[1] if np.isnan(gamma) else float(gamma)
            if gamma not in known:
                known[gamma] = self._whole_span(x, gamma)
            span = self._span(known[gamma], float(beta), problem)
            best, tried = search(span, problem, float(beta), self.tolerance, self.max_steps)
            log += [{"beta": beta, "gamma": span.gamma, **one.figures()} for one in tried]
            found.append((float(beta), span, best))
        self.search_ = pd.DataFrame(log)
        return found

    def _whole_span(self, x: np.ndarray, gamma: float) -> LinearSpan | RBFSpan:
        points = x[: max(len(x) // 2, 1)]
        if self.kernel == "linear":
            return LinearSpan.of(x, points)
        return RBFSpan.of(x, points, gamma)

    def _span(self, whole: LinearSpan | RBFSpan, beta: float, problem: GapProblem) -> Span:
        """Without the directions of an RBF kernel that a beta leaves no room for."""
        if isinstance(whole, LinearSpan):
            return whole
        steepest = np.square(problem.weights.sum(0)).sum()
        return whole.cut(np.sqrt(4e-5 * beta / steepest))

    def _keep(self, found: Sequence[tuple[float, Span, Model]], rows: Rows) -> None:
        """Choose by rows: the most accurate that is fair and decides."""
        x = self._encoder.transform(rows.X).astype(np.float64)
        scores = np.stack([span.scores(x, best.z) for _, span, best in found])
        judge, decisions = Judge(rows, [(self.notion, 0)]), torch.from_numpy(scores > 0).long()
        values, constant = judge.values(decisions), judge.constant(decisions)
        gaps = values[:, 1] if values.shape[1] > 1 else np.zeros(len(values))
        allowed = np.flatnonzero((gaps < self.max_gap) & ~constant)
        if len(allowed):
            place = int(allowed[values[allowed, 0].argmin()])
        else:
            place = int(np.lexsort((gaps, constant))[0])
            if len(found) > 1:
                warnings.warn(
                    f"No beta and gamma give a validation gap below max_gap={self.max_gap} without "
                    "a constant model; the smallest gap is used. Raise max_gap or widen beta.",
                    stacklevel=4,
                )
        beta, span, best = found[place]
        self.beta_, self.gamma_, self.lam_, self.gap_ = beta, span.gamma, best.lam, best.gap
        self._span_, self._z, self.constant_ = span, best.z, bool(constant[place])


def _shuffled(rows: Rows, seed: int, most: int | None) -> np.ndarray:
    """The rows in random order, both labels and both groups first; at most so many."""
    order = np.random.default_rng(seed).permutation(len(rows.y))
    if most is None or most >= len(order):
        return order
    assert rows.groups is not None
    cells = 2 * rows.groups.codes[order] + rows.y[order]
    first = np.unique(cells, return_index=True)[1]
    rest = np.setdiff1d(np.arange(len(order)), first)
    kept = np.sort(np.concatenate([first, rest[: most - len(first)]]))
    return order[kept]
