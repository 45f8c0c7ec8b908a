"""``audit``: from rows, or from counts of them, to an audit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from apfex.auditing._calibration import calibration_table
from apfex.auditing._estimates import attribute_columns, rates_frame, shrunken_rates
from apfex.auditing._json import plain_frame
from apfex.auditing._metrics import (
    are_probabilities,
    check_measures,
    metric_tables,
    not_probabilities,
)
from apfex.auditing._result import Audit
from apfex.auditing._settings import AuditSettings, check_size, groupings_of
from apfex.auditing._strata import check_strata, gaps_within
from apfex.auditing._summary import few_cases
from apfex.auditing._thresholds import threshold_gaps
from apfex.auditing._verdicts import gaps_frame, tested_gap, with_fine_p_value
from apfex.groups import Groups, grouping_name, make_groups
from apfex.metrics import (
    CRITERIA,
    GroupRates,
    Inputs,
    Measure,
    check_indexes,
    read_inputs,
    read_measures,
)
from apfex.rates import ConfusionCounts

_MANY_LEVELS = 1000
_NOTED = 4  # places that a note names before it counts


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
        settings, notes = _without_labels(settings)
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
        check_indexes(y_pred=y_pred, control_features=control_features)
        strata = make_groups(control_features)
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
    favorable = settings.favorable_label
    counts = _count(data, favorable)
    check_measures(measures, data)
    if strata is not None:
        check_strata(strata, len(data.decided))
    found = audit_counts(counts, settings, (*notes, *_score_notes(data)))
    more: dict[str, Any] = {}
    notes = list(found.notes)
    if data.score is not None and data.y is not None:
        if are_probabilities(data.score):
            more["calibration"] = calibration_table(data, settings.confidence)
            known = {one.function for one in measures} | {one.name for one in measures}
            usual = read_measures(["brier", "calibration"])
            usual = [one for one in usual if not {one.function, one.name} & known]
            measures = [*measures, *usual]  # a name that was given is not taken again
        else:
            notes.append(not_probabilities(data.score))
    if measures:
        more["metrics"], more["metric_gaps"] = metric_tables(data, counts, settings, measures)
    if strata is not None:
        place = data.classes.index(favorable) if data.classes else 1
        more["gaps_within"], small = gaps_within(
            data, strata, place, lambda part: audit_counts(part, settings).gaps
        )
        notes += small
    more = {name: plain_frame(frame) for name, frame in more.items()}
    return replace(found, notes=tuple(notes), **more)


def audit_counts(
    counts: ConfusionCounts, settings: AuditSettings, notes: Sequence[str] = ()
) -> Audit:
    """An audit from counts alone.

    Parameters
    ----------
    counts : ConfusionCounts
        Of the full crossing, as from :func:`apfex.rates.count_rows`; those of batches, files or
        workers add up.
    settings : AuditSettings
    notes : sequence of str
        What a reader should know of the rows; more notes may join.

    Returns
    -------
    Audit

    Examples
    --------
    >>> import numpy as np
    >>> from apfex.groups import make_groups
    >>> from apfex.rates import count_rows
    >>> counts = count_rows(None, np.array([0, 1] * 50), make_groups(["F", "M"] * 50))
    >>> audit_counts(counts, AuditSettings("dp")).gaps["gap"].tolist()
    [1.0]
    """
    check_size(counts.groups)
    grouped = [counts.by(attributes) for attributes in groupings_of(counts.groups.attributes)]
    attributes = counts.groups.attributes
    columns = {one.groups.attributes: attribute_columns(one.groups, attributes) for one in grouped}
    nobody = dict.fromkeys(columns[attributes], np.array([None], dtype=object))
    overall, frames, measured = [], [], {}
    for rate in settings.rates:
        everyone, *tables = (
            GroupRates.of(one, rate, settings.min_count) for one in (counts.by(()), *grouped)
        )
        parents = dict(zip(attributes, tables, strict=False))  # they come first
        average = everyone.rates
        overall.append(rates_frame(everyone, average, average, settings.confidence, nobody))
        for table in tables:
            shrunken = shrunken_rates(table, everyone, parents)
            own = columns[table.counts.groups.attributes]
            frames.append(rates_frame(table, average, shrunken, settings.confidence, own))
            measured[rate, table.counts.groups.attributes] = table, shrunken
    tested = [
        tested_gap(
            criterion,
            [measured[rate, one.groups.attributes] for rate in CRITERIA[criterion]],
            settings.confidence,
        )
        for criterion in settings.criteria
        for one in grouped
    ]
    scores = [one.scores for one in grouped if one.scores is not None]
    tested = [with_fine_p_value(one, len(tested)) for one in tested]
    return Audit(
        gaps=gaps_frame(tested, settings.tolerance),
        groups=pd.concat(frames, ignore_index=True),
        overall=pd.concat(overall, ignore_index=True),
        thresholds=threshold_gaps(scores, settings) if scores else None,
        settings=settings,
        notes=(
            *notes,
            *_notes(counts, settings, [table for table, _ in measured.values()]),
            *few_cases(tested, settings.tolerance),
        ),
        _counts=counts,
        _tested=tuple(tested),
    )


def _without_labels(settings: AuditSettings) -> tuple[AuditSettings, tuple[str, ...]]:
    blind, needy = settings.without_labels()
    if not blind:
        raise ValueError(
            f"y_true must be given for the criteria {list(needy)}, got None; without labels only "
            "selection rates can be audited: criteria='dp'."
        )
    if not needy:
        return settings, ()
    note = f"Without labels: {', '.join(needy)} left out."
    return replace(settings, criteria=blind), (note,)


def _count(data: Inputs, favorable_label: Any) -> ConfusionCounts:
    check_size(data.groups)
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
    if data.score[gets_it].mean() >= data.score[~gets_it].mean():
        return []
    return [
        "Scores are lower where the favorable label is decided: rates over thresholds take higher "
        "scores for favorable; give the scores of the favorable label as y_score."
    ]


def _notes(
    counts: ConfusionCounts, settings: AuditSettings, tables: Sequence[GroupRates]
) -> list[str]:
    notes = []
    if counts.is_constant:
        notes.append("All decisions are the same: gaps are 0 for want of decisions, not of bias.")
    notes += _classes_of_one_column(counts)
    if counts.weight is None:
        notes.append("Weights differ: counts are effective ones, intervals are approximate.")
    if counts.outside:
        notes.append(f"{counts.outside:,} rows belong to no group and are left out.")
    for name, levels in zip(counts.groups.attributes, counts.groups.levels, strict=True):
        if len(levels) > _MANY_LEVELS:
            notes.append(
                f"{name} has {len(levels):,} levels; put it into bins if it is a number or an "
                "identifier."
            )
    small = [f"{of} by {by}: {n:,} of {k:,}" for of, by, n, k in map(_small, tables) if n]
    if small:
        more = f", and {len(small) - _NOTED} more" if len(small) > _NOTED else ""
        rows = "effective rows" if counts.weight is None else "rows"
        notes.append(
            f"Groups with fewer than {settings.min_count:g} {rows} that count are shown, but left "
            f"out of the gap ({', '.join(small[:_NOTED])}{more})."
        )
    return notes


def _classes_of_one_column(counts: ConfusionCounts) -> list[str]:
    """A note where labels have classes that are never decided, and the other way round."""
    if not counts.classes or not counts.labelled:
        return []
    labelled = counts.rows[:, :, 3].sum(1) > 0
    decided = counts.rows[:, :, :2].sum((1, 2)) > 0
    lacking = [
        [repr(label) for label, absent in zip(counts.classes, part, strict=True) if absent]
        for part in (labelled & ~decided, decided & ~labelled)
    ]
    if not all(lacking):
        return []
    never_decided, never_labelled = (", ".join(names[:_NOTED]) for names in lacking)
    return [
        f"No decision is {never_decided}, and no label is {never_labelled}: make sure that labels "
        "and decisions are written alike."
    ]


def _small(table: GroupRates) -> tuple[str, str, int, int]:
    """Rate, grouping, groups that count for no class, and all groups."""
    left_out, groups = int((~table.counted.any(0)).sum()), table.counts.groups
    return table.rate, grouping_name(groups.attributes), left_out, len(groups)
