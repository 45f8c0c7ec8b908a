"""``audit_table``: decisions audited where they are, by sums that an engine makes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any

import numpy as np

from apfex.arguments import as_names, require_finite, require_kind
from apfex.auditing._audit import count_inputs, note_on_scores, without_labels
from apfex.auditing._calibration import Binned
from apfex.auditing._from_counts import audit_counts
from apfex.auditing._metrics import check_measures
from apfex.auditing._parts import Parts, with_parts
from apfex.auditing._result import Audit
from apfex.auditing._settings import AuditSettings
from apfex.auditing._table_scores import TableScores, of_sums
from apfex.auditing._tally import UNSCORED, Roles, TableQuery, Tally
from apfex.engines import EngineTable, no_match, open_engine_table, where_of
from apfex.files import unchanged
from apfex.groups import Groups, make_groups
from apfex.metrics import (
    Inputs,
    Measure,
    encode,
    favorable_codes,
    read_column,
    read_measures,
)


def audit_table(
    table: Any,
    *,
    prediction: str,
    sensitive: str | Sequence[str],
    label: str | None = None,
    score: str | None = None,
    weight: str | None = None,
    threshold: float | None = None,
    metrics: Mapping[str, Any] | Sequence[str] | str | None = None,
    control: str | Sequence[str] = (),
    where: Mapping[str, Any] | Callable[[Any], Any] | Any = None,
    criteria: str | Sequence[str] = ("dp", "tpr"),
    tolerance: float = 0.05,
    confidence: float = 0.95,
    min_count: float = 10,
    favorable_label: Any = 1,
    name: str | None = None,
) -> Audit:
    """Audit decisions where they are: files past memory, a database, or a cluster.

    One aggregate query counts rows in the engine, and everything else follows from the counts: the
    same audit as :func:`audit` makes of the same rows in memory.

    Parameters
    ----------
    table : path, glob, folder, URL, list of these, table of Ibis, data frame of Spark, or frame
        Parquet and CSV files, several of them in a list or of a pattern such as
        ``"data/*.parquet"`` or in a folder with partitions such as ``month=5``, are read by
        DuckDB, and so are URLs such as ``s3://`` where it has the extension for them. A file of
        DuckDB or SQLite is read as it is, and so are a relation of DuckDB, a dataset of Arrow and
        anything with ``__arrow_c_stream__``, whose rows may come but once. Any other engine is
        reached by a table of Ibis, or by a URL such as ``postgres://``.
    prediction : str
        Column with the decisions, written as the labels are.
    sensitive : str or sequence of str
        Columns of those whom the decisions are about; a missing value is a level of its own.
    label : str, optional
        Column with the true outcome; without it only selection rates are audited.
    score : str, optional
        Column with scores of the favorable label: rates over thresholds, calibration.
    weight : str, optional
        Column with weights of rows.
    threshold : float, optional
        ``prediction`` holds scores; from this one on, in their precision, the favorable label is
        decided.
    metrics : names, or mapping from name to function, optional
        As for :func:`audit`, if sums tell them: rates, "f1", "balanced_accuracy",
        "matthews_corrcoef", "brier", "calibration" and "log_loss".
    control : str or sequence of str
        Columns of control features, as for :func:`audit`.
    where : mapping, callable or expression of Ibis, optional
        Which rows: a mapping from a column to its value, or to several, as in ``{"month": 5}``; a
        function of the table of Ibis that returns a condition; or the condition. NaN is a missing
        value.
    criteria, tolerance, confidence, min_count, favorable_label
        As for :func:`audit`.
    name : str, optional
        Table of a database that has several.

    Returns
    -------
    Audit

    Notes
    -----
    Counts are those of :func:`audit` exactly, sums of weights to 1e-12 of their size. Thresholds
    and bins of scores are exact, too: order statistics are found by counting in finer and finer
    buckets, mostly two more passes over the scores.

    Examples
    --------
    >>> import pandas as pd
    >>> people = pd.DataFrame({"sex": ["F", "M"] * 200, "decided": [0, 1, 1, 1] * 100})
    >>> found = audit_table(people, prediction="decided", sensitive="sex", criteria="dp")
    >>> found.gaps[["by", "gap", "verdict"]].values.tolist()
    [['sex', 0.5, 'violation']]
    """
    settings = AuditSettings(criteria, tolerance, confidence, min_count, favorable_label)
    notes: tuple[str, ...] = ()
    if label is None:
        settings, notes = without_labels(settings, "label")
    measures = read_measures(metrics)
    check_sums(measures)
    require_kind("prediction", prediction, str, "the name of a column")
    sensitive, control = as_names("sensitive", sensitive), as_names("control", control)
    if threshold is not None:
        require_finite(threshold=threshold)
    given = {"prediction": prediction, "label": label, "score": score, "weight": weight}
    with closing(open_engine_table(table, name)) as opened, unchanged(opened.local_files):
        roles = _roles(opened, {**given, "threshold": threshold}, sensitive, control)
        roles = replace(roles, moments=moments_of(measures, roles))
        chosen = where_of(opened, where, [*sensitive, *control])
        query = TableQuery.of(replace(opened, table=chosen), roles)
        tally = query.tally()
        if where is not None and not len(tally.repeats.rows):
            raise no_match(opened, where)
        return _audit_query(query, tally, settings, notes, measures)


def _audit_query(
    query: TableQuery,
    tally: Tally,
    settings: AuditSettings,
    notes: Sequence[str],
    measures: Sequence[Measure],
) -> Audit:
    """Read the different rows of a table as :func:`audit` reads rows, and audit them."""
    data = _read(tally, query, settings.favorable_label)
    strata = make_groups(tally.frame("control")) if query.roles.control else None
    scores = None
    if query.roles.scored is not None:

        def read(other: Tally) -> tuple[np.ndarray, np.ndarray | None]:
            codes = data.groups.encode(other.frame("sensitive"))
            if data.y is None:
                return codes, None
            is_favorable = other.values["label"].to_numpy() == settings.favorable_label
            return codes, is_favorable.astype(np.int64)

        scores = TableScores(query, data, tally, read)
    return audit_tallied(data, tally, settings, notes, measures, strata, scores)


def audit_tallied(
    data: Inputs,
    tally: Tally,
    settings: AuditSettings,
    notes: Sequence[str] = (),
    measures: Sequence[Measure] = (),
    strata: Groups | None = None,
    scores: TableScores | None = None,
) -> Audit:
    """An audit of different rows, each of which stands for many; what tables and files share."""
    counts = count_inputs(data, settings.favorable_label, "sensitive")
    span = None if scores is None else scores.span
    check_measures(measures, data, span, ("label", "score"))
    needy = [one.name for one in measures if data.classes and one.rate is None]
    if needy:
        raise ValueError(
            f"metrics must be rates with more than two labels in an engine, got {needy} while the "
            f"labels are {list(data.classes)}; audit one label against the rest."
        )
    notes = list(notes)
    if scores is not None:
        counts = replace(counts, scores=scores.counts(data.groups))
        notes += note_on_scores(*scores.means, "score") if scores.means is not None else []
    found = audit_counts(counts, settings, notes)

    def binned() -> Binned:
        assert scores is not None
        return scores.binned()

    parts = Parts(data, span, lambda: of_sums(data, tally, settings), binned)
    return with_parts(found, parts, measures, strata, "control")


def check_sums(measures: Sequence[Measure]) -> None:
    """Refuse metrics that need the rows themselves."""
    needy = [one.name for one in measures if not one.is_of_sums]
    if needy:
        raise ValueError(
            "metrics must follow from sums over rows in an engine (rates, f1, balanced_accuracy, "
            f"brier, calibration, log_loss), got {needy}; read the rows that you need into memory, "
            "a sample for instance, and give them to audit."
        )


def moments_of(measures: Sequence[Measure], roles: Roles) -> tuple[str, ...]:
    """Sums of scores that will be needed."""
    if roles.scored is None or roles.label is None:
        return ()
    return ("means", *(["log_loss"] if any(one.mean == "log_loss" for one in measures) else []))


def _roles(source: EngineTable, given: Mapping[str, Any], sensitive: Any, control: Any) -> Roles:
    """Columns by the arguments that name them; each name must be there."""
    several = {
        argument: tuple([names] if isinstance(names, str) else names or ())
        for argument, names in (("sensitive", sensitive), ("control", control))
    }
    if not several["sensitive"]:
        raise ValueError("sensitive must name at least one column, got none.")
    single = {name: value for name, value in given.items() if name != "threshold"}
    named = [(argument, name) for argument, name in single.items() if name is not None]
    named += [(argument, name) for argument, names in several.items() for name in names]
    seen: dict[str, str] = {}
    for argument, name in named:
        source.column(name, argument)
        if name in seen and not {argument, seen[name]} <= {"prediction", "score"}:
            raise ValueError(
                f"{argument} must name another column than {seen[name]}, got {name!r}."
            )
        seen[name] = argument
    if given["threshold"] is not None and given["score"] is not None:
        raise ValueError(
            "score must be None with threshold, as the predictions are scores then, got "
            f"{given['score']!r}."
        )
    return Roles(**given, sensitive=several["sensitive"], control=several["control"])


def _read(tally: Tally, query: TableQuery, favorable: Any) -> Inputs:
    """Check labels, decisions and scores as :func:`audit` does."""
    roles, rows = query.roles, tally.repeats.rows
    if not len(rows):
        raise ValueError(f"table must have at least one row, got none in {query.source.name}.")
    _check_scores(tally)
    groups = make_groups(tally.frame("sensitive"))
    values = tally.values["prediction"]
    truth = None
    if roles.label is not None:
        truth = read_column("label", tally.values["label"], rows)
    decided = read_column("prediction", values, rows)
    if roles.threshold is not None:
        y = None if truth is None else _two_labels(truth, favorable)
        return Inputs(y, decided.astype(np.int64), (), groups, None, None, tally.repeats)
    codes, y, classes = encode(decided, truth, ("prediction", "label"))
    if len(classes) <= 2:
        codes, y = favorable_codes(codes, y, classes, favorable, "favorable_label")
        classes = ()
    elif roles.score is not None:
        raise ValueError(
            f"score must be None with more than two labels, got {roles.score!r} while the labels "
            f"are {list(classes)}; audit one label against the rest."
        )
    return Inputs(y, codes, classes, groups, None, None, tally.repeats)


def _two_labels(truth: np.ndarray, favorable: Any) -> np.ndarray:
    codes, _, classes = encode(truth, None, ("label", "label"))
    if len(classes) > 2:
        raise ValueError(
            f"threshold must be None with more than two labels, got one while the labels are "
            f"{list(classes)}; audit decisions, or one label against the rest."
        )
    return favorable_codes(codes, None, classes, favorable, "favorable_label")[0]


def _check_scores(tally: Tally) -> None:
    if UNSCORED not in tally.values:
        return
    lacking = tally.values[UNSCORED].to_numpy(bool)
    rows = tally.repeats.rows
    if lacking.any():
        raise ValueError(
            f"Scores must be finite, got {rows[lacking].sum():,} missing ones in {rows.sum():,} "
            "rows; drop or fill these rows."
        )
    ends = np.concatenate([tally.sums["s_low"], tally.sums["s_high"]])
    if not np.isfinite(ends).all():
        bad = ends[~np.isfinite(ends)][0]
        raise ValueError(f"Scores must be finite, got {bad:g}; drop or fill these rows.")
