"""What only rows can tell beyond their counts: calibration, metrics, gaps within strata."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, final

from apfex.auditing._calibration import Binned, calibration_table
from apfex.auditing._from_counts import audit_counts
from apfex.auditing._json import plain_frame
from apfex.auditing._metrics import (
    Measured,
    are_probabilities,
    metric_tables,
    not_probabilities,
    undefined_metrics,
)
from apfex.auditing._result import Audit
from apfex.auditing._strata import check_strata, gaps_within
from apfex.auditing._summary import few_cases
from apfex.groups import Groups
from apfex.metrics import Inputs, Measure, read_measures


@final
@dataclass(frozen=True, eq=False)
class Parts:
    """What only rows can tell beyond their counts, found where they are: in memory or an engine."""

    data: Inputs
    span: tuple[float, float] | None  # of scores
    measured: Callable[[], Measured]
    binned: Callable[[], Binned]


def with_parts(
    found: Audit,
    parts: Parts,
    measures: Sequence[Measure] = (),
    strata: Groups | None = None,
    argument: str = "control_features",
) -> Audit:
    """The audit with calibration, metrics by group and gaps within strata."""
    data, span, settings, counts = parts.data, parts.span, found.settings, found.counts
    if strata is not None:
        check_strata(strata, len(data.decided), argument)
    more: dict[str, Any] = {}
    notes = list(found.notes)
    if span is not None and data.y is not None:
        if are_probabilities(span):
            table = calibration_table(parts.binned(), counts.groups, settings.confidence)
            more["calibration"] = table
            known = {one.function for one in measures} | {one.name for one in measures}
            usual = read_measures(["brier", "calibration"])
            usual = [one for one in usual if not {one.function, one.name} & known]
            measures = [*measures, *usual]  # a name that was given is not taken again
        else:
            notes.append(not_probabilities(span))
    if measures:
        tables = metric_tables(counts, settings, measures, parts.measured())
        more["metrics"], more["metric_gaps"] = tables
        notes += undefined_metrics(measures, tables[0], data)
    if strata is not None:
        place = data.classes.index(settings.favorable_label) if data.classes else 1
        more["gaps_within"], small = gaps_within(
            data, strata, place, lambda part: audit_counts(part, settings).gaps
        )
        notes += [*small, *few_cases(more["gaps_within"])]
    more = {name: plain_frame(frame) for name, frame in more.items()}
    return replace(found, notes=tuple(notes), **more)
