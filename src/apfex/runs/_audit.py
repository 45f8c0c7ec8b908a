"""Audits of the decisions in a file or frame, and who they are about."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import numpy as np

from apfex.files import unchanged
from apfex.markup import code_in_markdown, html_section, in_html, in_markdown
from apfex.runs._agreement import check_audit
from apfex.runs._audit_data import (
    MOST_LEVELS,
    AuditData,
    check_groups,
    check_strata,
    missing_values,
    named_columns,
)
from apfex.runs._audit_engine import open_for_engine, wants_engine
from apfex.runs._columns import (
    GroupCounts,
    is_numeric,
    read_groups,
    read_weight,
    warn_of_many_levels,
    without_bins,
)
from apfex.runs._folder import (
    AUDIT,
    REPORT,
    RUN,
    decision_in,
    free_folder,
    new_folder,
    new_record,
    read_audit,
    read_record,
    report_path,
)
from apfex.runs._labels import MISSING, Outcome, check_finite, read_decisions
from apfex.runs._settings import AuditFileSettings, Bins, Names, named_metrics
from apfex.sources import RunError, Table, hint, open_table

if TYPE_CHECKING:
    import pandas as pd

    from apfex.auditing import Audit
    from apfex.groups import Groups
    from apfex.metrics import Inputs, Measure
    from apfex.runs._gates import GateResult


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

    def _repr_html_(self) -> str:
        """What was audited, and the audit."""
        data = self.record["data"]
        title = f"<p>Audit of {in_html(data['name'])}, {data['rows']:,} rows</p>"
        return html_section("apfex-audit-run", title, self.audit._repr_html_())

    def report(self, path: str | os.PathLike[str] | None = None) -> Path:
        """Write the page of the audit; by default that of the folder again, by this version."""
        from apfex.report import write_audit_page

        data = self.record["data"]
        return write_audit_page(
            self.audit,
            report_path(self.folder, path),
            title=f"Audit of {data['name']}",
            source=f"{data['name']}, {data['rows']:,} rows, sha256 {data['sha256'][:12]}",
            run={"date": self.record.get("created")}
            | {name: self.record[name] for name in ("data", "settings", "versions")},
            decision=decision_in(self.folder, None, data["sha256"]),
        )

    def to_markdown(self, gates: Sequence[GateResult] = ()) -> str:
        """A summary for a pull request: the verdict, what gates say, the worst gaps and groups.

        Parameters
        ----------
        gates : sequence of GateResult
            From :func:`check_gates`.

        Returns
        -------
        str
            Markdown that ends with a line break; names from data are escaped.
        """
        data = self.record["data"]
        parts = [f"## Fairness audit of {in_markdown(data['name'])}"]
        if gates:
            parts.append("\n".join(map(_gate_line, gates)))
        source = f"{data['rows']:,} rows, sha256 `{data['sha256']}`"
        parts += [self.audit.to_markdown().strip(), source]
        return "\n\n".join(parts) + "\n\n"

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Write ``report.html``, ``audit.json`` and ``run.json`` into a new folder."""
        from apfex.persistence import write_json, write_text_atomically

        target = free_folder(folder)
        with new_folder(target) as draft:
            write_text_atomically(draft / AUDIT, self.audit.to_json())
            self.report(draft / REPORT)
            write_json(draft / RUN, self.record)
        return target


def _gate_line(gate: GateResult) -> str:
    """A rule, whether it stops, and by what."""
    said = f"- {'**HIT**' if gate.hit else 'passed'}: {code_in_markdown(gate.rule.text)}"
    return "\n  - ".join([said, *map(in_markdown, gate.lines())])


def audit_file(
    source: Any,
    *,
    prediction: str,
    sensitive: Names,
    label: str | None = None,
    positive: object = None,
    positive_prediction: object = None,
    threshold: float | None = None,
    score: str | None = None,
    metrics: Mapping[str, Any] | Names | None = None,
    control: Names | None = None,
    bins: Bins | None = None,
    weight: str | None = None,
    criteria: Names = ("dp", "tpr"),
    tolerance: float = 0.05,
    confidence: float = 0.95,
    min_count: float = 10,
    drop_missing: bool = False,
    where: Mapping[str, Any] | None = None,
    encoding: str | None = None,
    sheet: str | None = None,
    table: str | None = None,
) -> AuditRun:
    """Audit the decisions in a table, whichever model made them.

    Parameters
    ----------
    source : file, glob, folder, URL, table of Ibis, or frame
        Only the columns that are needed are read. Parquet files, several CSV files or one beyond 1
        GiB, files of DuckDB and SQLite and tables of other engines are counted by the engine and
        never held in memory, as by :func:`apfex.auditing.audit_table`.
    prediction : str
        Column with the decisions, or with scores.
    sensitive : str or sequence of str
        Columns of those whom the decisions are about.
    label : str, optional
        Column with the true outcome; without it there are selection rates only.
    positive : value, optional
        Positive value of decisions and labels; not needed for columns of 0 and 1.
    positive_prediction : value, optional
        Positive value of the decisions where these are written in other words than the labels,
        such as approved and declined for labels Y and N.
    threshold : float, optional
        The column holds scores; from this one on it is decided positively.
    score : str, optional
        Column with scores of the positive label, beside one with decisions.
    metrics : names, or mapping from name to function, optional
        Any metrics by group, as for :func:`apfex.audit`; those of scores need ``score`` or
        ``threshold``.
    control : str or sequence of str, optional
        Columns of control features: gaps are also measured within each of their strata.
    bins : mapping from a sensitive or control column of numbers to where it is cut
    weight : str, optional
        Column with weights of rows.
    criteria, tolerance, confidence, min_count
        As for :func:`apfex.audit`.
    drop_missing : bool
        Whether rows without a decision, label or score are left out; they are refused otherwise.
    where : mapping from a column to its value, or to several, optional
        Which rows.
    encoding, sheet, table : str, optional
        Encoding of a CSV file that is not UTF-8; sheet of an Excel file with several; table of a
        database with several.

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
    from apfex.auditing import AuditSettings, audit_rows, check_sums
    from apfex.engines import without_secrets
    from apfex.metrics import read_measures

    settings = AuditFileSettings.of(locals())
    measures = read_measures(named_metrics(metrics))
    criteria, notes = _criteria(settings)
    asked = AuditSettings(criteria, tolerance, confidence, min_count)
    if wants_engine(source, settings, measures):
        check_sums(measures)
        opened = open_for_engine(source, settings, encoding, sheet)
        with closing(opened) as engine, unchanged(engine.opened.local_files):
            counted = engine.read(settings, measures)
            data, identity = counted.shown, counted.identity
            _check_measures(measures, counted.data.y is not None, counted.scores is not None)
            asked = replace(asked, favorable_label=data.decided.positive)
            found = counted.audit(asked, notes, measures)
    else:
        with unchanged([source] if isinstance(source, str | os.PathLike) else []):
            table_read = open_table(source, encoding, sheet)
            rows, strata, data = _read(table_read, settings)
            identity = table_read.identity()
        _check_measures(measures, rows.y is not None, rows.score is not None)
        asked = replace(asked, favorable_label=data.decided.positive)
        found = audit_rows(rows, asked, notes, measures=measures, strata=strata)
    facts = {**identity, "rows": data.rows, "dropped": data.dropped}
    asked_for = {**settings.to_dict(), "sheet": sheet}
    if settings.source is not None:
        asked_for["source"] = without_secrets(settings.source)
    record = new_record("audit", asked_for, facts)
    return AuditRun(found, data, record)


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
    apfex.sources._errors.RunError: There is no run nowhere.
    """
    home, record = read_record(folder, "audit")
    audit = read_audit(home)
    check_audit(audit, record, home)
    return AuditRun(audit, None, record, home)


def _criteria(settings: AuditFileSettings) -> tuple[tuple[str, ...], list[str]]:
    """Criteria that can be audited, and a note of those that cannot without labels."""
    from apfex.auditing import AuditSettings

    if settings.label is not None:
        return settings.criteria, []
    without, needy = AuditSettings(settings.criteria).without_labels()
    if not without:
        raise RunError(
            f"{hint('criteria')} {','.join(needy)} needs {hint('label')}; without labels "
            "there is only dp.",
            found=",".join(needy),
        )
    return without, [f"Without labels: {', '.join(needy)} left out."] if needy else []


def _read(table: Table, settings: AuditFileSettings) -> tuple[Inputs, Groups | None, AuditData]:
    """Read only the columns that are needed, and refuse what would have to be guessed."""
    from apfex.metrics import Inputs

    columns, sensitive, control = named_columns(table, settings)
    codes = without_bins([*sensitive, *control], settings.bins)
    frame = table.read(list(dict.fromkeys([*columns.values(), *sensitive, *control])), codes=codes)
    outcomes = {name: frame[columns[name]] for name in ("prediction", "label") if name in columns}
    decided, label, score = read_decisions(
        outcomes, settings.positive, settings.threshold, settings.positive_prediction
    )
    if "score" in columns:
        score = _read_score(frame[columns["score"]])
    complete = decided.codes != MISSING
    if label is not None:
        complete &= label.codes != MISSING
    if score is not None:
        complete &= ~np.isnan(score)
    dropped = int((~complete).sum())
    if dropped:
        if not settings.drop_missing:
            raise _missing(table, decided, label, columns.get("score"), score)
        frame, decided = frame[complete].reset_index(drop=True), decided.take(complete)
        score = None if score is None else score[complete]
        label = None if label is None else label.take(complete)
    groups, strata = _read_groups(frame, sensitive, control, settings)
    warn_of_many_levels(frame[[name for name in sensitive if name not in (settings.bins or ())]])
    weight = read_weight(frame[columns["weight"]]) if "weight" in columns else None
    labels = None if label is None else label.codes
    rows = Inputs(labels, decided.codes.astype(np.int64), (), groups, weight, score)
    shown = AuditData(
        table.describe(),
        decided,
        label,
        GroupCounts.of(groups),
        dropped,
        columns.get("score"),
        None if strata is None else GroupCounts.of(strata),
    )
    return rows, strata, shown


def _read_score(column: pd.Series) -> np.ndarray:
    if not is_numeric(column):
        raise RunError(f"{hint('score')} {column.name} must hold numbers.", found=column.name)
    return check_finite(column.to_numpy(np.float64), "score", str(column.name))


def _read_groups(
    frame: Any,
    sensitive: Sequence[str],
    control: Sequence[str],
    settings: AuditFileSettings,
) -> tuple[Groups, Groups | None]:
    """Groups of the sensitive columns, and strata of the control features."""
    bins = settings.bins or {}
    of_control = {name: cuts for name, cuts in bins.items() if name in control}
    others = {name: cuts for name, cuts in bins.items() if name not in of_control}
    own = read_groups(frame[list(sensitive)], others, most_levels=MOST_LEVELS)
    groups = check_groups(own)
    if not control:
        return groups, None
    strata = read_groups(frame[list(control)], of_control, most_levels=MOST_LEVELS)
    return groups, check_strata(strata)


def _check_measures(measures: Sequence[Measure], labelled: bool, scored: bool) -> None:
    """Refuse metrics of columns that were not named."""
    from apfex.rates import RATES

    for one in measures:
        if one.of_scores and not scored:
            raise RunError(
                f"{hint('metrics')} {one.name} needs a column with scores of the positive label: "
                f"{hint('score')}.",
                found=one.name,
            )
        if not labelled and (one.rate is None or RATES[one.rate].needs_labels):
            raise RunError(
                f"{hint('metrics')} {one.name} needs the true outcome: {hint('label')}.",
                found=one.name,
            )


def _missing(
    table: Table,
    decided: Outcome,
    label: Outcome | None,
    scored: str | None,
    score: np.ndarray | None,
) -> RunError:
    found = {one.name: one.missing for one in (decided, label) if one is not None and one.missing}
    if scored is not None and score is not None and np.isnan(score).any():
        found[scored] = int(np.isnan(score).sum())
    return missing_values(table.name, found, decided.n_rows)
