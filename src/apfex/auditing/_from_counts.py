"""From counts alone to an audit."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from apfex.arguments import as_names, require_kind
from apfex.auditing._estimates import attribute_columns, rates_frame, shrunken_rates
from apfex.auditing._result import Audit
from apfex.auditing._settings import AuditSettings, check_size, groupings_of
from apfex.auditing._summary import few_cases, rests_on
from apfex.auditing._thresholds import threshold_gaps
from apfex.auditing._verdicts import gaps_frame, tested_gap, with_fine_p_value
from apfex.groups import grouping_name
from apfex.metrics import CRITERIA, MOST_CODES, GroupRates, are_numbers, written_twice
from apfex.rates import ConfusionCounts

_MANY_LEVELS = 1000
_NOTED = 4  # places that a note names before it counts


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
    require_kind("counts", counts, ConfusionCounts, "ConfusionCounts, as from count_rows")
    require_kind("settings", settings, AuditSettings, "AuditSettings")
    notes = as_names("notes", notes)
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
    gaps = gaps_frame(tested, settings.tolerance)
    gaps["rests_on"] = pd.Series(rests_on(tested, settings.tolerance), dtype=object)
    return Audit(
        gaps=gaps,
        groups=pd.concat(frames, ignore_index=True),
        overall=pd.concat(overall, ignore_index=True),
        thresholds=threshold_gaps(scores, settings) if scores else None,
        settings=settings,
        notes=(
            *notes,
            *_notes(counts, settings, [table for table, _ in measured.values()]),
            *few_cases(gaps),
        ),
        _counts=counts,
        _tested=tuple(tested),
    )


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
        twins = written_twice(str(level) for level in levels if level is not None)
        if twins:
            notes.append(
                f"{name} has levels that differ in spelling alone, as {twins[0]!r} and "
                f"{twins[1]!r}: each is a group of its own; write them alike if they are one."
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
    """A note where labels have classes that are never decided, and the other way round.

    Of two labels and decisions of more, too; and where decisions without labels may be scores.
    """
    if not counts.classes:
        return []
    if not counts.labelled:
        if len(counts.classes) <= MOST_CODES or not are_numbers(counts.classes):
            return []
        return [
            f"Decisions take {len(counts.classes):,} values, and each is compared as a class of "
            "its own: if they are scores, turn them into decisions first."
        ]
    labelled = counts.rows[:, :, 3].sum(1) > 0
    decided = counts.rows[:, :, :2].sum((1, 2)) > 0
    never_decided, never_labelled = (
        [repr(label) for label, absent in zip(counts.classes, part, strict=True) if absent]
        for part in (labelled & ~decided, decided & ~labelled)
    )
    if not never_labelled or not (never_decided or labelled.sum() <= 2):
        return []
    no_decision = f"No decision is {', '.join(never_decided[:_NOTED])}, and no"
    return [
        f"{no_decision if never_decided else 'No'} label is {', '.join(never_labelled[:_NOTED])}: "
        "make sure that labels and decisions are written alike."
    ]


def _small(table: GroupRates) -> tuple[str, str, int, int]:
    """Rate, grouping, groups that count for no class, and all groups."""
    left_out, groups = int((~table.counted.any(0)).sum()), table.counts.groups
    return table.rate, grouping_name(groups.attributes), left_out, len(groups)
