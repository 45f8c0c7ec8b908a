"""``audit``: from rows in memory to an audit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from apfex.auditing._calibration import bin_rows
from apfex.auditing._from_counts import audit_counts
from apfex.auditing._metrics import check_measures, of_rows, span_of
from apfex.auditing._parts import Parts, with_parts
from apfex.auditing._result import Audit
from apfex.auditing._settings import AuditSettings, check_size
from apfex.groups import Groups, groups_of
from apfex.metrics import Inputs, Measure, read_inputs, read_measures
from apfex.rates import ConfusionCounts
from apfex.tables import check_indexes


def audit(
    y_true: Any,
    y_pred: Any,
    *,
    sensitive_features: Any,
    y_score: Any = None,
    sample_weight: Any = None,
    metrics: Mapping[str, Any] | Sequence[str] | str | None = None,
    control_features: Any = None,
    criteria: str | Sequence[str] = ("dp", "tpr"),
    tolerance: float = 0.05,
    confidence: float = 0.95,
    min_count: float = 10,
    favorable_label: Any = 1,
) -> Audit:
    """Audit any model's decisions: rates and gaps of every group, with verdicts.

    Parameters
    ----------
    y_true : column of n labels, or None
        Lists, arrays, tensors, pandas or polars series. None: only selection rates are audited.
    y_pred : column of n decisions
        Hard labels, not scores.
    sensitive_features : column, table, mapping or Groups
        As for :func:`apfex.groups.make_groups`. Audited are each attribute, each pair and the
        full crossing; 100,000 groups at most.
    y_score : column of n numbers, optional
        Scores of the favorable label, of two: the same rates over all thresholds, at every
        distinct score up to 101 of them, else at as many quantiles. Where they are probabilities
        and there are labels: calibration and Brier score by group.
    sample_weight : column of n weights, optional
        Counts are then effective ones (Kish), and intervals approximate.
    metrics : names, or mapping from name to function, optional
        Any metrics by group, with intervals: functions of labels and decisions, as those of
        scikit-learn and fairlearn (``{"f1": f1_score}``), or known names: rates ("precision",
        "recall", ...), "f1", "balanced_accuracy", and of scores "auc", "brier", "log_loss",
        "calibration", "average_precision", which need ``y_score``. Of two labels a function gets
        1 for the favorable one and 0 for the other. See ``Audit.metrics``.
    control_features : column, table, mapping or Groups, optional
        Gaps are also measured within each stratum of these, between people who are alike in them.
        See ``Audit.gaps_within``.
    criteria : str or sequence of str
        Rates ("dp", "tpr", "fpr", "tnr", "fnr", "ppv", "npv", "accuracy"), "equalized_odds" (the
        larger of the gaps in tpr and fpr), or fairlearn's "demographic_parity",
        "equal_opportunity".
    tolerance : float
        The gap that is still acceptable.
    confidence : float
        Of every interval, from 0.5 to 0.999.
    min_count : float
        Fewest rows that a rate must rest on (effective ones where there are weights): groups with
        fewer are shown, but leave the gap.
    favorable_label : label
        The outcome that a person would want; of two labels the one whose rates are shown. With
        more labels every class is compared, and this one tells who is worst off.

    Returns
    -------
    Audit
        ``gaps``, ``groups``, ``worst()``, ``plan()``, ``diff(earlier)``; prints well.

    Notes
    -----
    The interval of a gap, its test of parity and its noise floor are those of
    :func:`apfex.metrics.gap_interval`. A verdict is *violation* where the lower end exceeds the
    tolerance, *within tolerance* where the upper end is below it, *inconclusive* between, and
    *not estimable* with fewer than two groups of ``min_count`` rows. Adjusted p-values are Holm's,
    over all rows of ``gaps``; intervals hold row by row.

    Examples
    --------
    >>> people = {"sex": ["F", "M"] * 200, "race": ["A"] * 200 + ["B"] * 200}
    >>> decided = [0, 1] * 100 + [1, 1] * 100
    >>> result = audit(None, decided, sensitive_features=people, criteria="dp")
    >>> result.gaps[["by", "gap", "verdict"]]
               by  gap    verdict
    0         sex  0.5  violation
    1        race  0.5  violation
    2  sex x race  1.0  violation
    >>> result.worst(1)[["group", "favored", "driver"]].values.tolist()
    [['sex=F, race=A', 0.0, 'sex']]
    """
    settings = AuditSettings(criteria, tolerance, confidence, min_count, favorable_label)
    notes = ()
    if y_true is None:
        settings, notes = without_labels(settings, "y_true")
    data = read_inputs(
        y_true,
        y_pred,
        sensitive_features,
        sample_weight,
        favorable_label,
        y_score=y_score,
        label_argument="favorable_label",
    )
    measures = read_measures(metrics)
    strata = None
    if control_features is not None:
        check_indexes(
            y_pred=y_pred,
            y_true=y_true,
            sensitive_features=sensitive_features,
            control_features=control_features,
        )
        strata = groups_of("control_features", control_features)
    return audit_rows(data, settings, notes, measures=measures, strata=strata)


def audit_rows(
    data: Inputs,
    settings: AuditSettings,
    notes: Sequence[str] = (),
    *,
    measures: Sequence[Measure] = (),
    strata: Groups | None = None,
) -> Audit:
    """An audit of rows that were read and checked; what :func:`audit` and files have in common.

    Parameters
    ----------
    data : Inputs
    settings : AuditSettings
    notes : sequence of str
    measures : sequence of Measure
        From :func:`apfex.metrics.read_measures`.
    strata : Groups, optional
        Control features, crossed.

    Examples
    --------
    >>> from apfex.metrics import read_inputs
    >>> rows = read_inputs(None, [0, 1] * 50, ["F", "M"] * 50, None, 1)
    >>> audit_rows(rows, AuditSettings("dp")).gaps["gap"].tolist()
    [1.0]
    """
    span = span_of(data.score)
    counts = count_inputs(data, settings.favorable_label)
    check_measures(measures, data, span)
    found = audit_counts(counts, settings, (*notes, *_score_notes(data)))
    parts = Parts(
        data,
        span,
        measured=lambda: of_rows(data, settings),
        binned=lambda: bin_rows(data),
    )
    return with_parts(found, parts, measures, strata)


def without_labels(settings: AuditSettings, argument: str) -> tuple[AuditSettings, tuple[str, ...]]:
    """Settings without the criteria that need labels, and a note of these."""
    blind, needy = settings.without_labels()
    if not blind:
        raise ValueError(
            f"{argument} must be given for the criteria {list(needy)}, got None; without labels "
            "only selection rates can be audited: criteria='dp'."
        )
    if not needy:
        return settings, ()
    note = f"Without labels: {', '.join(needy)} left out."
    return replace(settings, criteria=blind), (note,)


def count_inputs(
    data: Inputs, favorable_label: Any, argument: str = "sensitive_features"
) -> ConfusionCounts:
    """Count rows that were read; refuse labels and groups that no audit can have."""
    check_size(data.groups, argument)
    classes = data.classes
    if not classes:
        return data.count()
    if favorable_label not in classes:
        raise ValueError(
            f"favorable_label must be one of the labels found, {list(classes)}, got "
            f"{favorable_label!r}."
        )
    if data.score is not None:
        raise ValueError(
            f"y_score must be None with more than two labels, got scores while the labels are "
            f"{list(classes)}; audit one label against the rest."
        )
    return data.count(classes.index(favorable_label))


def _score_notes(data: Inputs) -> list[str]:
    """A note where scores seem to be those of the other label."""
    gets_it = data.decided == 1
    if data.score is None or gets_it.all() or not gets_it.any():
        return []
    return note_on_scores(data.score[gets_it].mean(), data.score[~gets_it].mean())


def note_on_scores(favored: float, others: float, argument: str = "y_score") -> list[str]:
    """A note where the mean score of favorable decisions is the lower one."""
    if favored >= others:
        return []
    return [
        "Scores are lower where the favorable label is decided: rates over thresholds take higher "
        f"scores for favorable; give the scores of the favorable label as {argument}."
    ]
