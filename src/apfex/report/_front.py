"""A front, measured on rows that ``fit`` has not seen, as plain values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np
from sklearn.utils.validation import check_is_fitted

from apfex.auditing import Audit
from apfex.estimator import APFExClassifier, AuditRows, read_audit_rows
from apfex.metrics import read_criteria
from apfex.report._calibration import calibration_of, measure_calibration
from apfex.report._caveats import Caveat
from apfex.report._constant import Constant
from apfex.report._description import FRONT, Shown, describe
from apfex.report._history import describe_history
from apfex.report._point import MeasuredPoint, Others, describe_point, measure_point
from apfex.report._rates import labels_in_words
from apfex.report._summary import Choice

if TYPE_CHECKING:
    import pandas as pd


_FEW_ROWS = 100
"""Rows below which only the validation rows say whether a model is nearly constant."""


def describe_front(
    clf: APFExClassifier,
    X: Any,
    y: Any,
    *,
    sensitive_features: Any = None,
    sample_weight: Any = None,
    tolerance: float = 0.05,
    confidence: float = 0.95,
    min_count: float = 10,
    title: str | None = None,
    source: str | None = None,
    command: str | None = None,
    words: Mapping[Any, str] | None = None,
    history: pd.DataFrame | None = None,
    objectives: Sequence[str] | None = None,
    fresh: bool = True,
    caveats: Sequence[Caveat] = (),
    run: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Measure every point of a front on rows that ``fit`` has not seen.

    Parameters
    ----------
    clf : APFExClassifier
        Fitted.
    X, y, sensitive_features, sample_weight, tolerance, confidence, min_count
        As for ``clf.audit``.
    title, source : str, optional
        What the page is called, and where its rows come from.
    command : str, optional
        What predicts with a run, as ``"apfex predict RUN FILE"``; the page adds ``--point 3``.
    words : mapping from label to str, optional
        How labels are called wherever one is shown; a label without a word is shown as it is.
    history : pandas.DataFrame, optional
        ``History.to_frame()`` of a training: the paper's three panels. With members, the page
        shows the one that a point comes from. ``clf.history_`` by default.
    objectives : sequence of str, optional
        Names of the losses in ``history``.
    fresh : bool
        False where ``fit`` has seen these rows; every point then carries a warning.
    caveats : sequence of Caveat
        What else is to be known of every point, as what was found in the data.
    run : mapping, optional
        How it was made, for the section of that name: texts, numbers, lists and mappings.

    Returns
    -------
    dict
        Plain values, as JSON has them; unknown numbers are None. ``kind`` is "apfex.front",
        ``schema_version`` 2. ``points`` has, of each: ``error`` with its interval,
        ``balanced_error``, ``gaps`` of every grouping with verdicts, ``rates`` of every group with
        Wilson intervals, ``changes`` against the starting point (``baseline``), their ``tally``,
        ``worst`` groups, ``caveats`` (see :class:`Caveat`), and ``validation``, the figures of the
        validation rows: its ``gaps`` count every group that has a row, ``compared`` among them
        only those with ``min_count`` (None where that is not estimable). Of many groups those that
        are worst off at some point, or make a gap, are kept; ``groupings`` counts the rest.
        ``names`` are those that a page shows otherwise, without quotes.

    Notes
    -----
    The table is encoded once, and models that points share run once. The starting point is the
    first that is not trivial: the most accurate on the validation rows, not always on these. So is
    what ``Point.levelled_down`` compares with.

    Examples
    --------
    >>> from apfex import make_biased
    >>> data, new = make_biased(n=400, random_state=0), make_biased(n=400, random_state=1)
    >>> clf = APFExClassifier(model="linear", max_gap=1.0, epochs=2, random_state=0)
    >>> clf = clf.fit(data.X, data.y, sensitive_features=data.sensitive)
    >>> described = describe_front(clf, new.X, new.y, sensitive_features=new.sensitive)
    >>> len(described["points"]) == len(clf.front_), described["rows"]
    (True, 400)
    >>> [grouping["by"] for grouping in described["groupings"]]
    ['sex', 'origin', 'sex x origin']
    """
    measured = measure_front(
        clf,
        X,
        y,
        sensitive_features=sensitive_features,
        sample_weight=sample_weight,
        tolerance=tolerance,
        confidence=confidence,
        min_count=min_count,
    )
    return measured.describe(
        title=title,
        source=source,
        command=command,
        words=words,
        history=history,
        objectives=objectives,
        fresh=fresh,
        caveats=caveats,
        run=run,
    )


def measure_front(
    clf: APFExClassifier,
    X: Any,
    y: Any,
    *,
    sensitive_features: Any = None,
    sample_weight: Any = None,
    tolerance: float = 0.05,
    confidence: float = 0.95,
    min_count: float = 10,
) -> MeasuredFront:
    """Audit every point of a front once, on the same rows.

    Parameters
    ----------
    clf : APFExClassifier
        Fitted.
    X, y, sensitive_features, sample_weight, tolerance, confidence, min_count
        As for ``clf.audit``.

    Returns
    -------
    MeasuredFront
        ``audits`` of the points, and ``describe()`` for a page.

    Examples
    --------
    >>> from apfex import make_biased
    >>> data, new = make_biased(n=400, random_state=0), make_biased(n=400, random_state=1)
    >>> clf = APFExClassifier(model="linear", max_gap=1.0, epochs=2, random_state=0)
    >>> clf = clf.fit(data.X, data.y, sensitive_features=data.sensitive)
    >>> measured = measure_front(clf, new.X, new.y, sensitive_features=new.sensitive)
    >>> len(measured.audits) == len(clf.front_), measured.audits[0].n_rows
    (True, 400)
    """
    if not hasattr(clf, "fit"):
        raise TypeError(f"clf must be a fitted APFExClassifier, got {type(clf).__name__}.")
    check_is_fitted(clf, "front_")
    rows = read_audit_rows(
        clf,
        X,
        y,
        sensitive_features=sensitive_features,
        sample_weight=sample_weight,
        tolerance=tolerance,
        confidence=confidence,
        min_count=min_count,
    )
    given = None if clf.fitted_.groups is None else sensitive_features
    decided = np.searchsorted(clf.classes_, clf.decide_all(X, sensitive_features=given))
    return _measured(clf, rows, decided, measure_calibration(clf, rows, X, given))


def measure_decisions(
    clf: APFExClassifier, rows: AuditRows, decided: np.ndarray, score: np.ndarray
) -> MeasuredFront:
    """The same as :func:`measure_front` of rows whose inputs are not at hand.

    Parameters
    ----------
    clf : APFExClassifier
        Fitted, of two classes.
    rows : AuditRows
    decided : int array of shape [points, n]
        Decisions of every point, as places among the classes.
    score : array of shape [n]
        Probabilities of the favorable label.
    """
    return _measured(clf, rows, decided, calibration_of(rows, score))


def _measured(
    clf: APFExClassifier,
    rows: AuditRows,
    decided: np.ndarray,
    calibration: dict[str, Any] | None,
) -> MeasuredFront:
    points = [measure_point(rows, place, codes) for place, codes in enumerate(decided)]
    return MeasuredFront(clf, rows, points, calibration)


@final
@dataclass(frozen=True, eq=False)
class MeasuredFront:
    """The points of a front, audited on the same rows; made by :func:`measure_front`."""

    _clf: APFExClassifier
    _rows: AuditRows
    _points: list[MeasuredPoint]
    _calibration: dict[str, Any] | None = None

    @property
    def audits(self) -> list[Audit]:
        """The audit of each point, as ``clf.at(point).audit`` gives it."""
        return [one.audit for one in self._points]

    def describe(
        self,
        *,
        title: str | None = None,
        source: str | None = None,
        command: str | None = None,
        words: Mapping[Any, str] | None = None,
        history: pd.DataFrame | None = None,
        objectives: Sequence[str] | None = None,
        fresh: bool = True,
        caveats: Sequence[Caveat] = (),
        run: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """What a page shows of it; see :func:`describe_front`."""
        clf, rows, points = self._clf, self._rows, self._points
        labels = labels_in_words(clf.classes_, words)
        rates = [one.rates for one in points]
        shown = Shown.of(self.audits, rates, labels[rows.favorable], labels)
        baseline = next((place for place, one in enumerate(clf.front_) if not one.trivial), 0)
        constant = Constant.of(
            self.audits[0],
            labels,
            shown.favorable,
            clf.front_.by,
            clf.front_.constant_error,
            clf.selection_rate,
            _word_of(clf, clf.front_.constant_label, labels),
        )
        losses = [_ranked(clf, one) for one in points]
        weak = [one.trivial or one.near_constant for one in clf.front_]
        few = weak if len(rows.y) < _FEW_ROWS else None
        others = Others(points[baseline], constant, losses, tuple(caveats), fresh, few)
        bounds, chosen_by = _bounds(clf), _chosen_by(clf)
        is_trivial = all(weak) or others.is_useless
        choices = [
            _choice(clf, place, baseline, bounds, chosen_by, is_trivial)
            for place in range(len(points))
        ]
        told = [
            describe_point(clf, rows, one, others, shown, choice)
            for one, choice in zip(points, choices, strict=True)
        ]
        parts = {
            "title": title or "Accuracy and fairness",
            "source": source,
            "command": command,
            "fresh": fresh,
            "classes": labels,
            "chosen": clf.point_,
            "chosen_by": chosen_by,
            "trivial": is_trivial,
            "ranked_by": clf.front_.by,
            "baseline": baseline,
            "without_goal": _is_without_goal(clf, baseline),
            "constant": None if constant is None else self._constant(constant, labels),
            "calibration": self._calibration,
            "run": None if run is None else dict(run),
            "history": _history(clf, history, objectives),
        }
        aims = {"ranked_by": clf.scoring, "grouping": clf.grouping, "max_gap": clf.max_gap}
        return describe(FRONT, self.audits[0], shown, told, parts, aims)

    def _constant(self, constant: Constant, labels: Sequence[str]) -> dict[str, Any]:
        """The constant decision with the gaps that it has on the same groups."""
        rows = self._rows
        decided = np.full(len(rows.y), labels.index(constant.label))
        gaps: Any = rows.audit(decided).gaps
        return constant.describe(gaps[["criterion", "by", "gap"]].to_dict("records"))


def _history(
    clf: APFExClassifier, history: pd.DataFrame | None, objectives: Sequence[str] | None
) -> dict[str, Any] | None:
    """The history that is given, or that of the members which points of the classifier are of."""
    whole: Any = clf.history_
    if history is None and whole is not None:
        members = {point.member for point in clf.front_}
        shown = [member in members for member in whole["member"]]
        history = whole.loc[shown] if any(shown) else None
        objectives = whole.attrs.get("objectives")
    return describe_history(history, objectives)


def _word_of(clf: APFExClassifier, label: Any, words: Sequence[str]) -> str | None:
    """The word for a label, or None."""
    if label is None:
        return None
    return words[int(np.flatnonzero(clf.classes_ == label)[0])]


def _bounds(clf: APFExClassifier) -> dict[str, float]:
    """The limits that the proposed point was chosen by, for each criterion."""
    given: Any = clf.max_gap
    if isinstance(given, Mapping):
        return {read_criteria(name)[0]: bound for name, bound in given.items()}
    same: Any = dict.fromkeys(clf.front_[0].gaps, given)
    return same


def _chosen_by(clf: APFExClassifier) -> str:
    """Whether the point that ``predict`` uses is that of ``max_gap``, the nearest, or another."""
    bounds = _bounds(clf)
    increase = clf.max_error_increase
    within = clf.front_.choose(bounds, None, increase)
    if within is not None:
        return "bounds" if clf.point_ == within else "hand"
    return "nearest" if clf.point_ == clf.front_.nearest(bounds, None, increase) else "hand"


def _choice(
    clf: APFExClassifier,
    place: int,
    baseline: int,
    bounds: Mapping[str, float],
    by: str,
    is_trivial: bool,
) -> Choice:
    return Choice(
        place=place,
        chosen=clf.point_,
        baseline=baseline,
        by=by,
        bounds=bounds,
        gaps={name: clf.front_[place].gaps[name].gap for name in bounds},
        is_trivial=is_trivial,
        without_goal=_is_without_goal(clf, baseline),
    )


def _ranked(clf: APFExClassifier, one: MeasuredPoint) -> float:
    """The loss that ranks points: on the rows at hand, or on the validation rows if only there."""
    known = {"error": one.error, "balanced_error": one.balanced_error}
    point: Any = clf.front_[one.place]
    return known[clf.front_.by] if clf.front_.by in known else float(point.loss)


def _is_without_goal(clf: APFExClassifier, place: int) -> bool:
    """Whether a point was surely trained without any fairness goal: its gaps weighed nothing."""
    history: Any = clf.history_
    if history is None or "member" not in history:
        return False
    own = history[history["member"] == clf.front_[place].member]
    weights = own[[name for name in own if name.startswith("weight") and name != "weight0"]]
    return len(own) > 0 and bool((weights == 0).all(axis=None))
