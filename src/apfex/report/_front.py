"""A front, measured on fresh rows, as plain values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from apfex.estimator import APFExClassifier, AuditRows, read_audit_rows
from apfex.metrics import read_criteria
from apfex.plain import jsonable
from apfex.report._groupings import (
    Rates,
    describe_levels,
    ends_of,
    levels_of,
    shown_groups,
    shown_names,
)
from apfex.report._history import describe_timeline
from apfex.report._names import names_within
from apfex.report._point import Shown, describe_point
from apfex.report._rates import describe_criteria, describe_rate, in_words
from apfex.report._rows import measure

if TYPE_CHECKING:
    import pandas as pd

KIND, SCHEMA_VERSION = "apfex.front", 1


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
    timeline: pd.DataFrame | None = None,
    objectives: Sequence[str] | None = None,
    fresh: bool = True,
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
    timeline : pandas.DataFrame, optional
        ``History.to_frame()`` of a training: the paper's three panels. With members, the page
        shows the one that a point comes from. ``clf.history_`` by default.
    objectives : sequence of str, optional
        Names of the losses in ``timeline``.
    fresh : bool
        False where ``fit`` has seen these rows; every point then carries a warning.

    Returns
    -------
    dict
        Plain values, as JSON has them; unknown numbers are None. ``kind`` is "apfex.front",
        ``schema_version`` 1. ``points`` has, of each: ``error`` with its interval,
        ``balanced_error``, ``gaps`` on every level with verdicts, ``rates`` of every group with
        Wilson intervals, ``changes`` against the starting point (``baseline``), their ``tally``,
        ``worst`` groups, ``doubts``, and ``validation``, the figures of the rows that chose it:
        its ``gaps`` count every group that has a row, ``compared`` among them only those with
        ``min_count`` (None where that is not estimable). Of many groups those that are worst off at
        some point, or make a gap, are kept; ``levels`` counts the rest. ``names`` are those that
        a page shows otherwise, without quotes.

    Notes
    -----
    The table is encoded once, and models that points share run once. The starting point is the
    first that is not trivial: the most accurate on the validation rows, not always on these. So is
    what ``Point.levelled_down`` compares with.

    Examples
    --------
    >>> from apfex import make_biased
    >>> data, new = make_biased(n=400, random_state=0), make_biased(n=400, random_state=1)
    >>> clf = APFExClassifier(max_gap=1.0, epochs=2, random_state=0)
    >>> clf = clf.fit(data.X, data.y, sensitive_features=data.sensitive)
    >>> described = describe_front(clf, new.X, new.y, sensitive_features=new.sensitive)
    >>> len(described["points"]) == len(clf.front_), described["rows"]
    (True, 400)
    >>> [level["by"] for level in described["levels"]]
    ['sex', 'origin', 'sex x origin']
    """
    check_is_fitted(clf, "front_")
    if timeline is None:
        timeline = clf.history_
        objectives = None if timeline is None else timeline.attrs.get("objectives")
    drawn, labels = describe_timeline(timeline, objectives), in_words(clf.classes_, words)
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
    decided = clf.decide_all(X, sensitive_features=given)
    measured = measure(rows, np.searchsorted(clf.classes_, decided))
    first = measured[0].audit
    baseline = next((p for p, point in enumerate(clf.front_) if not point.trivial), 0)
    keys = _rate_list(rows, measured[0].rates, labels)
    levels = levels_of(first)
    ends = set().union(*(ends_of(one.audit) for one in measured))
    kept = shown_groups(levels, [one.rates for one in measured], len(keys), ends)
    shown = Shown(levels, kept, [rate["key"] for rate in keys], labels)
    described = jsonable(
        {
            "kind": KIND,
            "schema_version": SCHEMA_VERSION,
            "title": title or "Front of accuracy and fairness",
            "source": source,
            "command": command,
            "rows": len(rows.y),
            "groups": len(rows.crossing),
            "fresh": fresh,
            "weighted": first.is_approximate,
            "settings": {
                "tolerance": tolerance,
                "confidence": confidence,
                "min_count": min_count,
                "ranked_by": clf.scoring,
                "grouping": clf.grouping,
                "max_gap": clf.max_gap,
            },
            "classes": labels,
            "favorable": labels[rows.favorable],
            "criteria": describe_criteria(
                first.settings.criteria, labels[rows.favorable], len(labels)
            ),
            "rates": keys,
            "levels": describe_levels(levels, kept),
            "chosen": clf.point_,
            "chosen_by": _chosen_by(clf),
            "baseline": baseline,
            "points": [
                describe_point(clf, one, measured[baseline], rows.crossing, shown, fresh)
                for one in measured
            ],
            "timeline": drawn,
        }
    )
    return described | {"names": names_within(described, shown_names(levels))}


def _chosen_by(clf: APFExClassifier) -> str:
    """Whether the point that ``predict`` uses is that of ``max_gap``, the nearest, or another."""
    given = clf.max_gap
    bounds = (
        {read_criteria(name)[0]: bound for name, bound in given.items()}
        if isinstance(given, Mapping)
        else dict.fromkeys(clf.front_[0].gaps, given)
    )
    within = clf.front_.choose(bounds)
    if within is not None:
        return "bounds" if clf.point_ == within else "hand"
    return "nearest" if clf.point_ == clf.front_.nearest(bounds) else "hand"


def _rate_list(rows: AuditRows, rates: Rates, labels: Sequence[str]) -> list[dict[str, Any]]:
    """Rates that a page can show: that of the favorable label first, none twice."""
    found = [describe_rate("favored", labels[rows.favorable], None)]
    for key in dict.fromkeys(key for key, _ in rates):
        of, _, place = key.partition(":")
        code = int(place) if place else rows.favorable
        if of == "favored" or (of == "dp" and code == rows.favorable):
            continue
        found.append(describe_rate(of, labels[code], code if place else None))
    return found
