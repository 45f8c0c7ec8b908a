"""Any metric by group, and the gaps between groups, with intervals."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import pandas as pd
from scipy.stats import t

from apfex.auditing._estimates import attribute_columns, column_of, wilson_interval
from apfex.auditing._settings import AuditSettings, groupings_of
from apfex.groups import Groups, grouping_name
from apfex.metrics import (
    GroupRates,
    Inputs,
    Measure,
    counted_metric,
    gap_of_limits,
    interval_of_rates,
)
from apfex.rates import RATES, ConfusionCounts, quotient

ALL_ROWS = "all rows"
"""The one group of the grouping "overall"."""


@final
@dataclass(frozen=True, eq=False)
class ByGroup:
    """A metric of the k groups of a grouping, and its gap; arrays have shape [k]."""

    values: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    compared: np.ndarray
    gap_lower: float = math.nan
    gap_upper: float = math.nan


Measured = Callable[[Measure, tuple[str, ...], ConfusionCounts], ByGroup]
"""From a metric, the attributes of a grouping and its counts to the values of its groups."""


def check_measures(
    measures: Sequence[Measure],
    data: Inputs,
    span: tuple[float, float] | None,
    names: tuple[str, str] = ("y_true", "y_score"),
) -> None:
    """Refuse metrics of something that is not there.

    ``span`` is that of the scores, ``names`` what the caller calls labels and scores.
    """
    asked = {
        names[0]: [one.name for one in measures if data.y is None and _needs_labels(one)],
        names[1]: [one.name for one in measures if span is None and one.of_scores],
    }
    for argument, lacking in asked.items():
        if lacking:
            raise ValueError(f"{argument} must be given for the metrics {lacking}, got None.")
    several = [one.name for one in measures if one.rate not in (None, "accuracy")]
    if data.classes and several:
        raise ValueError(
            f"metrics must be defined for the {len(data.classes)} labels found, got {several}, "
            "which need two; give a function, such as one that averages over classes."
        )
    doubtful = [one.name for one in measures if one.of_probabilities]
    if doubtful and span is not None and not are_probabilities(span):
        raise ValueError(
            f"{names[1]} must lie between 0 and 1 for the metrics {doubtful}, got {_told(span)}."
        )


def span_of(score: np.ndarray | None) -> tuple[float, float] | None:
    """Lowest and highest score."""
    return None if score is None else (float(score.min()), float(score.max()))


def are_probabilities(span: tuple[float, float]) -> bool:
    """Whether scores could be probabilities."""
    return span[0] >= 0 and span[1] <= 1


def not_probabilities(span: tuple[float, float]) -> str:
    """A note on scores that are none."""
    return (
        f"Scores lie {_told(span)}, not between 0 and 1: they are no probabilities, so that "
        "calibration and Brier score are left out."
    )


def metric_tables(
    counts: ConfusionCounts,
    settings: AuditSettings,
    measures: Sequence[Measure],
    measured: Measured,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Metrics by group, and their gaps.

    ``measured`` finds those that are no rates, as :func:`of_rows` does in memory.

    Returns
    -------
    metrics : DataFrame
        A row per metric, grouping (the first is "overall") and group: ``metric``, ``by``,
        ``group``, a column for each attribute, ``count``, ``value``, ``lower``, ``upper``,
        ``compared`` (False where fewer than ``min_count`` rows count, or it is not defined).
    gaps : DataFrame
        A row per metric and grouping: ``metric``, ``by``, ``gap``, ``lower``, ``upper``,
        ``lowest``, ``lowest_value``, ``highest``, ``highest_value``, ``groups_compared``,
        ``groups``.
    """
    names, frames, gaps = counts.groups.attributes, [], []
    for measure in measures:
        for attributes in [(), *groupings_of(names)]:
            own = counts.by(attributes)
            if measure.rate is not None:
                table = GroupRates.of(own, measure.rate, settings.min_count)
                found = _of_rate(table, settings)
            elif measure.counted is not None and not counts.classes:
                found = _of_counts(measure.counted, own, settings)
            else:
                found = measured(measure, attributes, own)
            k = len(own.sizes)
            columns: dict[str, Any] = {column_of(name): [None] * k for name in names}
            if attributes:
                columns = attribute_columns(own.groups, names)
            group = list(own.names) if attributes else [ALL_ROWS]
            head = {"metric": measure.name, "by": grouping_name(attributes) or "overall"}
            columns = {
                "group": group,
                **columns,
                "count": own.sizes,
                "value": found.values,
                "lower": found.lower,
                "upper": found.upper,
                "compared": found.compared,
            }
            frames.append(pd.DataFrame(head | columns, index=range(k)))
            if attributes:
                gaps.append(head | _gap(found, group))
    return pd.concat(frames, ignore_index=True), pd.DataFrame(gaps)


def of_rows(data: Inputs, settings: AuditSettings) -> Measured:
    """Any metric of rows in memory."""
    split: dict[tuple[str, ...], list[tuple[int, np.ndarray]]] = {}
    for attributes in [(), *groupings_of(data.groups.attributes)]:
        groups = data.groups.parent(attributes) if attributes else None
        split[attributes] = list(_rows_of(groups, data))

    def measured(measure: Measure, attributes: tuple[str, ...], counts: ConfusionCounts) -> ByGroup:
        k, parts = len(counts.sizes), split[attributes]
        values, worth = np.full(k, np.nan), np.zeros(k)
        for place, rows in parts:
            values[place] = measure.value(*_arguments(measure, data, rows))
            weight = None if data.weight is None else data.weight[rows]
            worth[place] = len(rows)
            if weight is not None:
                worth[place] = round(weight.sum() ** 2 / (weight**2).sum())
        own = dict(parts)

        def limits(place: int, confidences: tuple[float, float]) -> list[tuple[float, float]]:
            return measure.intervals(*_arguments(measure, data, own[place]), confidences)

        return compare_values(values, worth, limits, settings)

    return measured


def undefined_metrics(
    measures: Sequence[Measure], metrics: pd.DataFrame, data: Inputs
) -> list[str]:
    """A note of each metric that has no value for all rows, and of what its function said."""
    notes = []
    for measure in measures:
        own: Any = metrics[(metrics["metric"] == measure.name) & (metrics["by"] == "overall")]
        if own["value"].notna().any():
            continue
        why = None
        if measure.rate is None and data.repeats is None:
            _, rows = next(_rows_of(None, data))
            why = measure.why_undefined(*_arguments(measure, data, rows))
        said = f": {why.splitlines()[0].rstrip('.')}" if why else ""
        notes.append(f"The metric {measure.name} is not defined for these rows{said}.")
    return notes


def compare_values(
    values: np.ndarray,
    worth: np.ndarray,
    limits: Callable[[int, tuple[float, float]], list[tuple[float, float]]],
    settings: AuditSettings,
) -> ByGroup:
    """Values of k groups with intervals, and the interval of their gap.

    ``worth`` has the (effective) rows of each group, ``limits`` finds the intervals of one at two
    confidences.
    """
    compared = (worth >= settings.min_count) & np.isfinite(values)
    k = int(compared.sum())
    pairs = max(k * (k - 1) // 2, 1)  # any of them may look apart where all are alike
    alpha = 1 - settings.confidence
    own, joint = np.full((2, len(values)), np.nan), np.full((2, len(values)), np.nan)
    for place in np.flatnonzero(compared):
        own[:, place], joint[:, place] = limits(int(place), (1 - alpha, 1 - alpha / pairs))
    if k < 2:
        return ByGroup(values, own[0], own[1], compared)
    kept = (joint[0][compared], joint[1][compared]), (own[0][compared], own[1][compared])
    ends = gap_of_limits(values[compared], *kept)
    return ByGroup(values, own[0], own[1], compared, *ends)


def _of_rate(table: GroupRates, settings: AuditSettings) -> ByGroup:
    """A rate, as the audit itself has it."""
    low, high = wilson_interval(table.rates, table.totals, settings.confidence)
    gap = interval_of_rates([table], confidence=settings.confidence)
    return ByGroup(table.rates[0], low[0], high[0], table.counted[0], gap.lower, gap.upper)


def _of_counts(name: str, counts: ConfusionCounts, settings: AuditSettings) -> ByGroup:
    """A function of confusion counts, with Student's interval."""
    squares = (counts.rows if counts.squares is None else counts.squares)[0]
    values, error = counted_metric(name, counts.sums[0], squares)
    effective = quotient(counts.sums[0, :, 2:].sum(-1) ** 2, squares[:, 2:].sum(-1))
    worth = counts.sizes if counts.squares is None else np.round(np.nan_to_num(effective))

    def limits(place: int, confidences: tuple[float, float]) -> list[tuple[float, float]]:
        if effective[place] < 3 or not error[place] > 0:  # nothing tells of its spread
            return [(math.nan, math.nan)] * 2
        halves = [t.ppf(0.5 + one / 2, effective[place] - 1) * error[place] for one in confidences]
        return [(float(values[place] - half), float(values[place] + half)) for half in halves]

    return compare_values(values, worth, limits, settings)


def _rows_of(groups: Groups | None, data: Inputs) -> Iterator[tuple[int, np.ndarray]]:
    """The rows of each group that has some; of all groups together without ``groups``."""
    inside = np.flatnonzero(data.groups.codes >= 0)
    if groups is None:
        yield 0, inside
        return
    codes = groups.codes[inside]
    order = inside[np.argsort(codes, kind="stable")]
    found, starts = np.unique(groups.codes[order], return_index=True)
    for place, rows in zip(found, np.split(order, starts[1:]), strict=True):
        if data.weight is None or data.weight[rows].any():
            yield int(place), rows


def _arguments(
    measure: Measure, data: Inputs, rows: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Labels, decisions or scores, and weights; of several labels the labels themselves."""
    weight = None if data.weight is None else data.weight[rows]
    y = np.zeros(len(rows), dtype=np.int64) if data.y is None else data.y[rows]
    if measure.of_scores:
        assert data.score is not None
        return y, data.score[rows], weight
    decided = data.decided[rows]
    if not data.classes:
        return y, decided, weight
    classes = np.asarray(data.classes)
    return classes[y], classes[decided], weight


def _gap(found: ByGroup, groups: Sequence[str]) -> dict[str, object]:
    values = np.where(found.compared, found.values, np.nan)
    n = int(found.compared.sum())
    if n < 2:
        low = high = None
    else:
        low, high = int(np.nanargmin(values)), int(np.nanargmax(values))
    return {
        "gap": math.nan if low is None or high is None else float(values[high] - values[low]),
        "lower": found.gap_lower,
        "upper": found.gap_upper,
        "lowest": None if low is None else groups[low],
        "lowest_value": math.nan if low is None else float(values[low]),
        "highest": None if high is None else groups[high],
        "highest_value": math.nan if high is None else float(values[high]),
        "groups_compared": n,
        "groups": len(groups),
    }


def _needs_labels(measure: Measure) -> bool:
    return measure.rate is None or RATES[measure.rate].needs_labels


def _told(span: tuple[float, float]) -> str:
    return f"between {span[0]:.4g} and {span[1]:.4g}"
