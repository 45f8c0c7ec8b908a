"""Audits of the decisions in a file or frame, and who they are about."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import numpy as np

from apfex.runs._columns import put_into_bins, read_weight, warn_of_levels
from apfex.runs._errors import Argument, RunError, listed, named
from apfex.runs._files import Table, open_table
from apfex.runs._folder import AUDIT, REPORT, RUN, free_place, new_folder, new_record, read_record
from apfex.runs._outcomes import MISSING, Outcome, check_decided, decide, read_outcomes, spelled
from apfex.runs._settings import (
    AuditFileSettings,
    Bins,
    Names,
    as_names,
    check_bins,
    check_criteria,
)

if TYPE_CHECKING:
    from apfex.auditing import Audit
    from apfex.groups import Groups

_MOST_LEVELS = 100_000


@final
@dataclass(frozen=True, eq=False)
class AuditData:
    """Rows of a table that are audited: a decision each, a group, a label if there are labels.

    Attributes
    ----------
    description : str
        Name and form of the table.
    decided, label : records with name, codes, positive, negative and share; label may be None
    groups : Groups
    weight, score : array of shape [n], or None
    dropped : int
        Rows without a decision or label, left out because the user said so.
    """

    description: str
    decided: Outcome
    label: Outcome | None
    groups: Groups
    weight: np.ndarray | None
    score: np.ndarray | None
    dropped: int


@final
@dataclass(frozen=True, eq=False)
class AuditRun:
    """The audit of a table of decisions; made by :func:`audit_file` or :func:`load_audit`.

    Attributes
    ----------
    audit : Audit
    data : AuditData or None
        What was taken for what; None where it was read from a folder.
    record : mapping
        What ``run.json`` holds: settings, versions, name and sha256 of the data.
    folder : Path or None
        Where it is stored.
    """

    audit: Audit
    data: AuditData | None
    record: Mapping[str, Any]
    folder: Path | None = None

    def report(self, path: str | os.PathLike[str] | None = None) -> Path:
        """Write the page of the audit; by default that of the folder again, by this version."""
        from apfex.report import write_audit_page

        if path is None and self.folder is None:
            raise RunError(
                Argument("path"),
                " must name a file, as this audit is not stored in a folder; save makes one.",
            )
        target = Path(self.folder or "", REPORT) if path is None else path
        data = self.record["data"]
        return write_audit_page(
            self.audit,
            target,
            title=f"Audit of {data['name']}",
            source=f"{data['name']}, {data['rows']:,} rows, sha256 {data['sha256'][:12]}",
        )

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Write ``report.html``, ``audit.json`` and ``run.json`` into a new folder."""
        from apfex.persistence import write_json, write_text_atomically

        place = free_place(folder)
        with new_folder(place) as draft:
            write_text_atomically(draft / AUDIT, self.audit.to_json())
            self.report(draft / REPORT)
            write_json(draft / RUN, self.record)
        return place


def audit_file(
    source: Any,
    *,
    prediction: str,
    sensitive: Names,
    label: str | None = None,
    positive: object = None,
    threshold: float | None = None,
    bins: Bins | None = None,
    weight: str | None = None,
    criteria: Names = ("dp", "tpr"),
    tolerance: float = 0.05,
    confidence: float = 0.95,
    min_count: float = 10,
    drop_missing: bool = False,
    encoding: str | None = None,
) -> AuditRun:
    """Audit the decisions in a table, whichever model made them.

    Parameters
    ----------
    source : file, or frame of pandas or polars
        Only the columns that are needed are read.
    prediction : str
        Column with the decisions, or with scores.
    sensitive : str or sequence of str
        Columns of those whom the decisions are about.
    label : str, optional
        Column with the true outcome; without it there are selection rates only.
    positive : value, optional
        Positive value of decisions and labels; not needed for columns of 0 and 1.
    threshold : float, optional
        The column holds scores; from this one on it is decided positively.
    bins : mapping from a sensitive column of numbers to where it is cut
    weight : str, optional
        Column with weights of rows.
    criteria, tolerance, confidence, min_count
        As for :func:`apfex.audit`.
    drop_missing : bool
        Whether rows without a decision or label are left out; they are refused otherwise.
    encoding : str, optional
        Of a CSV file that is not UTF-8.

    Returns
    -------
    AuditRun
        ``.audit`` has the verdicts.

    Examples
    --------
    >>> import pandas as pd
    >>> approved = ["no", "yes", "yes", "yes"] * 100
    >>> table = pd.DataFrame({"sex": ["F", "M"] * 200, "approved": approved})
    >>> run = audit_file(table, prediction="approved", positive="yes", sensitive="sex")
    >>> run.audit.gaps[["criterion", "gap", "verdict"]].values.tolist()
    [['dp', 0.5, 'violation']]
    >>> run.data.decided.share, run.audit.notes
    (0.75, ('Without labels: tpr left out.',))
    """
    is_named = isinstance(source, str | os.PathLike)
    settings = AuditFileSettings(
        source=os.fspath(source) if is_named else "frame",
        prediction=prediction,
        sensitive=as_names(sensitive),
        label=label,
        positive=None if positive is None else spelled(positive),
        threshold=threshold,
        bins=check_bins(bins),
        weight=weight,
        criteria=check_criteria(criteria),
        tolerance=tolerance,
        confidence=confidence,
        min_count=min_count,
        drop_missing=drop_missing,
        encoding=encoding,
    )
    table = open_table(source, encoding)
    rows = _read_rows(table, settings)
    stored = {
        "name": "frame" if table.path is None else table.path.name,
        "path": None if table.path is None else str(table.path.resolve()),
        "sha256": table.sha256(),
        "rows": len(rows.decided.codes),
        "dropped": rows.dropped,
    }
    return AuditRun(_audit(rows, settings), rows, new_record("audit", asdict(settings), stored))


def load_audit(folder: str | os.PathLike[str]) -> AuditRun:
    """Read an audit from its folder.

    Parameters
    ----------
    folder : path
        That ``AuditRun.save`` or ``apfex audit`` has written.

    Examples
    --------
    >>> load_audit("nowhere")
    Traceback (most recent call last):
    apfex.runs._errors.RunError: There is no run nowhere.
    """
    from apfex.auditing import Audit

    home, record = read_record(folder, "audit")
    audit = Audit.from_json((home / AUDIT).read_text(encoding="utf-8"))
    return AuditRun(audit, None, record, home)


def _audit(rows: AuditData, options: AuditFileSettings) -> Audit:
    from apfex.auditing import AuditSettings, audit_counts
    from apfex.rates import count_rows

    settings = AuditSettings(
        options.criteria,
        options.tolerance,
        options.confidence,
        options.min_count,
        rows.decided.positive,
    )
    notes: list[str] = []
    if rows.label is None:
        blind, needy = settings.without_labels()
        if not blind:
            raise RunError(
                Argument("criteria"),
                f" {','.join(needy)} needs ",
                Argument("label"),
                "; without labels there is only dp.",
                found=",".join(needy),
            )
        notes += [f"Without labels: {', '.join(needy)} left out."] if needy else []
        settings = replace(settings, criteria=blind)
    counts = count_rows(
        None if rows.label is None else rows.label.codes,
        rows.decided.codes,
        rows.groups,
        rows.weight,
        score=rows.score,
    )
    return audit_counts(counts, settings, notes)


def _read_rows(table: Table, options: AuditFileSettings) -> AuditData:
    """Read only the columns that are needed, and refuse what would have to be guessed."""
    from apfex.groups import make_groups

    columns, sensitive = _columns(table, options)
    frame = table.read(list(dict.fromkeys([*columns.values(), *sensitive])))
    decided, label, score = _outcomes(frame, columns, options)
    complete = decided.codes != MISSING
    if label is not None:
        complete &= label.codes != MISSING
    dropped = int((~complete).sum())
    if dropped:
        _check_missing(table, decided, label, options)
        frame = frame[complete].reset_index(drop=True)
        decided, score = _take(decided, complete), None if score is None else score[complete]
        label = None if label is None else _take(label, complete)
    people = put_into_bins(frame[sensitive], options.bins, most=_MOST_LEVELS)
    weight = read_weight(frame[columns["weight"]]) if "weight" in columns else None
    groups = make_groups(people)
    if len(groups) < 2:
        raise RunError(
            Argument("sensitive"),
            f" must tell groups apart, got one: {groups.names[0]}.",
            found=groups.names[0],
        )
    warn_of_levels(people)
    return AuditData(table.describe(), decided, label, groups, weight, score, dropped)


def _columns(table: Table, options: AuditFileSettings) -> tuple[dict[str, str], list[str]]:
    """The columns that arguments name, and the sensitive ones."""
    if not options.sensitive:
        raise RunError(
            Argument("sensitive"),
            f" must name columns of {table.name}, which has {listed(table.columns)}.",
        )
    given = {"prediction": options.prediction, "label": options.label, "weight": options.weight}
    columns = {
        argument: table.column(name, argument)
        for argument, name in given.items()
        if name is not None
    }
    if len(set(columns.values())) < len(columns):
        raise RunError(*named(*columns), " must name different columns.")
    return columns, table.names(options.sensitive, "sensitive")


def _outcomes(
    frame: Any, columns: Mapping[str, str], options: AuditFileSettings
) -> tuple[Outcome, Outcome | None, np.ndarray | None]:
    """Decisions, labels and scores."""
    series = {
        argument: frame[columns[argument]]
        for argument in ("prediction", "label")
        if argument in columns
    }
    if options.threshold is None:
        check_decided(series["prediction"])
        outcomes = read_outcomes(series, options.positive)
        return outcomes[0], outcomes[1] if len(outcomes) > 1 else None, None
    decided, score = decide(series.pop("prediction"), options.threshold)
    if options.positive is not None and not series:
        raise RunError(
            Argument("positive"),
            " must not be given with ",
            Argument("threshold"),
            " and no ",
            Argument("label"),
            ".",
        )
    labels = read_outcomes(series, options.positive) if series else [None]
    return decided, labels[0], score


def _check_missing(
    table: Table, decided: Outcome, label: Outcome | None, options: AuditFileSettings
) -> None:
    """Rows without a decision may be the ones that matter: nobody leaves them out unasked."""
    if options.drop_missing:
        return
    found = {one.name: one.missing for one in (decided, label) if one is not None and one.missing}
    raise RunError(
        f"{table.name} has no value of "
        f"{' and of '.join((f'{name} in {n:,}' for name, n in found.items()))} of "
        f"{len(decided.codes):,} rows; fill them in, or leave these rows out: ",
        Argument("drop_missing", True),
        found=found,
    )


def _take(outcome: Outcome, rows: np.ndarray) -> Outcome:
    return replace(outcome, codes=outcome.codes[rows])
