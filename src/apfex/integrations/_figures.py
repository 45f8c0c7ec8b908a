"""What is worth keeping of a run, a front, an audit or a training: one record for every tool."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, final

from apfex.auditing import Audit
from apfex.estimator import APFExClassifier
from apfex.history import History
from apfex.runs import AuditRun, Run

if TYPE_CHECKING:
    import pandas as pd

_STEMS = ("loss", "weight", "norm")
_NO_FIGURES = {"step", "member", "choice"}


@final
@dataclass(frozen=True, eq=False)
class Figures:
    """Parameters, metrics and texts by name, and series of metrics by step.

    Attributes
    ----------
    params : mapping from name to text
    metrics : mapping from name to float
        Of the decisions in use; unknown ones are left out.
    points : sequence of mappings from name to float
        Of each point of a front, by its place.
    series : sequence of pairs of a step and a mapping from name to float
        What happened in training.
    tags, texts : mapping from name to text
        Short facts; pages in Markdown.
    """

    params: Mapping[str, str] = field(default_factory=dict)
    metrics: Mapping[str, float] = field(default_factory=dict)
    points: Sequence[Mapping[str, float]] = ()
    series: Sequence[tuple[int, Mapping[str, float]]] = ()
    tags: Mapping[str, str] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)


def figures_of(what: Any, objectives: Sequence[str] = ()) -> Figures:
    """The record of whatever there is to keep.

    Parameters
    ----------
    what : Run, AuditRun, Audit, fitted APFExClassifier or History
    objectives : sequence of str
        Names of the losses of a training, in their order.
    """
    if isinstance(what, Run):
        return _of_run(what)
    if isinstance(what, AuditRun):
        found = figures_of(what.audit)
        return Figures(
            _params(what.record["settings"]),
            found.metrics,
            tags={**found.tags, **_tags(what.record)},
            texts=found.texts,
        )
    if isinstance(what, Audit):
        tags = {"apfex.verdict": what.summary.verdict, "apfex.summary": what.summary.text}
        return Figures(
            metrics=_gaps(what.gaps.to_dict("records")) | {"share_favored": what.share_favored},
            tags=tags,
            texts={"audit": what.to_markdown()},
        )
    if isinstance(what, APFExClassifier):
        return _of_classifier(what)
    if isinstance(what, History):
        return Figures(series=series_of(what.to_frame(), objectives))
    raise TypeError(
        "what must be a Run, an AuditRun, an Audit, a fitted APFExClassifier or a History, got "
        f"{type(what).__name__}."
    )


def series_of(
    frame: pd.DataFrame, objectives: Sequence[str] = (), members: Iterable[int] | None = None
) -> list[tuple[int, dict[str, float]]]:
    """Steps of a training with what was measured; of several members each under its name.

    Parameters
    ----------
    frame : pandas.DataFrame
        From ``History.to_frame`` or ``clf.history_``.
    objectives : sequence of str
    members : ints, optional
        Those that are kept; all by default.
    """
    several = len(set(frame["member"])) > 1
    kept: Any = frame if members is None else frame[frame["member"].isin(list(members))]
    numbers = kept.select_dtypes(["number", "bool"]).columns
    columns = [name for name in numbers if name not in _NO_FIGURES]
    names = {name: _tag(name, objectives) for name in columns}
    found = []
    for row in kept.to_dict("records"):
        under = f"member_{row['member']}/" if several else ""
        values = {f"{under}{names[name]}": row[name] for name in columns}
        found.append((int(row["step"]), _finite(values)))
    return found


def _of_run(run: Run) -> Figures:
    """All points by the test rows; the figures are those of the chosen one."""
    described, record = run.described, run.record
    points = [_point(point) for point in described["points"]]
    conclusion = run.conclusion
    tags = {**_tags(record), "apfex.conclusion": conclusion.code, "apfex.summary": conclusion.text}
    return Figures(
        _params(record["settings"]),
        points[described["chosen"]] | {"point": float(described["chosen"])},
        points,
        _of_members(run.classifier),
        tags,
        {"model_card": run.model_card(), "audit": run.audit.to_markdown()},
    )


def _of_classifier(clf: APFExClassifier) -> Figures:
    """All points by the validation rows."""
    rows: list[Any] = clf.front_.to_frame().to_dict("records")
    left_out = ("member", "epoch", "n_rows")
    points = [
        _finite({k: v for k, v in row.items() if not isinstance(v, str) and k not in left_out})
        for row in rows
    ]
    return Figures(
        _params(clf.get_params(deep=False)),
        points[clf.point_] | {"point": float(clf.point_)},
        points,
        _of_members(clf),
        {"apfex.measured_on": "validation rows"},
    )


def _of_members(clf: APFExClassifier) -> list[tuple[int, dict[str, float]]]:
    """What happened to the members that points of the front come from."""
    if clf.history_ is None:
        return []
    members = {point.member for point in clf.front_}
    return series_of(clf.history_, ("error", *clf.front_[0].gaps), members)


def _point(point: Mapping[str, Any]) -> dict[str, float]:
    names = ("error", "error_lower", "error_upper", "balanced_error", "share_favored", "gain_share")
    found = {name: point[name] for name in names} | {"trivial": float(point["trivial"])}
    return _finite(found) | _gaps(point["gaps"])


def _gaps(rows: Iterable[Mapping[Any, Any]]) -> dict[str, float]:
    """Gaps with their intervals, as in ``dp_gap/sex x origin`` and ``dp_gap_lower/...``."""
    found = {}
    for row in rows:
        for end, key in (("", "gap"), ("_lower", "lower"), ("_upper", "upper")):
            found[f"{row['criterion']}_gap{end}/{row['by']}"] = row[key]
    return _finite(found)


def _finite(values: Mapping[Any, Any]) -> dict[str, float]:
    known = {str(k): float(v) for k, v in values.items() if v is not None}
    return {name: value for name, value in known.items() if math.isfinite(value)}


def _params(settings: Mapping[str, Any]) -> dict[str, str]:
    return {name: str(value) for name, value in settings.items() if value is not None}


def _tags(record: Mapping[str, Any]) -> dict[str, str]:
    data = record["data"]
    return {
        "apfex.version": record["versions"]["apfex"],
        "apfex.data": data["name"],
        "apfex.data_sha256": data["sha256"],
    }


def _tag(column: str, objectives: Sequence[str]) -> str:
    """``loss0`` becomes ``loss/0``, or ``loss/error``, so that pages group them."""
    for stem in _STEMS:
        place = column.removeprefix(stem)
        if place != column and place.isdigit():
            known = int(place) < len(objectives)
            return f"{stem}/{objectives[int(place)] if known else place}"
    return column
