"""A run: the front of a table, with all that is known of the data, in memory or in a folder."""

from __future__ import annotations

import os
import shlex
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, final

import numpy as np

from apfex.plain import printable
from apfex.runs._agreement import check_audit, check_front, check_model
from apfex.runs._audit import AuditRun, load_audit
from apfex.runs._conclusion import Conclusion
from apfex.runs._data import RunData
from apfex.runs._decider import NAMES, Decider, one_warning_of_unseen
from apfex.runs._folder import (
    AUDIT,
    DECISION,
    FRONT,
    MODEL,
    REPORT,
    RUN,
    check_finished,
    decision_in,
    free_folder,
    is_finished,
    keep_decision,
    new_folder,
    part_of,
    read_audit,
    read_front,
    read_record,
    report_path,
    run_id,
)
from apfex.runs._predictions import PredictedFile, check_new, target_of
from apfex.runs._settings import spelled
from apfex.runs._udf import RunUDF
from apfex.runs._unlike_training import UnlikeTraining
from apfex.sources import RunError, RunWarning, hint, open_stream, open_writer

if TYPE_CHECKING:
    from apfex.auditing import Audit
    from apfex.estimator import APFExClassifier
    from apfex.front import Front
    from apfex.report import Caveat


@final
@dataclass(frozen=True, eq=False, repr=False)
class Run:
    """The front of a table, its report, and decisions for new rows.

    Made by :func:`apfex.explore`, or read from its folder by :func:`load_run`.

    Attributes
    ----------
    record : mapping
        What ``run.json`` holds: settings, seed, versions, facts of the data, what the run came to,
        figures of points.
    folder : Path or None
        Where it is stored.
    """

    record: Mapping[str, Any]
    folder: Path | None = None
    _classifier: APFExClassifier | None = None
    _described: Mapping[str, Any] | None = None
    _audit: Audit | None = None

    def __repr__(self) -> str:
        """Name, rows and points."""
        data = self.record["data"]
        points = len(self.record["results"]["points"]) if self.is_finished else "no measured"
        return f"<Run of {printable(data['name'])}: {data['rows']:,} rows, {points} points>"

    def _repr_html_(self) -> str:
        """What it came to, its points on the test rows, and where its report is."""
        from apfex.runs._html import run_as_html

        return run_as_html(self)

    @property
    def is_finished(self) -> bool:
        """Whether its points were measured; one that was stopped can only predict."""
        return is_finished(self.record)

    @property
    def front(self) -> Front:
        """The front, with the figures of the validation rows."""
        return self.classifier.front_

    @cached_property
    def classifier(self) -> APFExClassifier:
        """The fitted classifier, at the point that was chosen."""
        return self._load() if self._classifier is None else self._classifier

    @cached_property
    def described(self) -> Mapping[str, Any]:
        """What the page shows: every point, measured on the test rows."""
        if self._described is not None:
            return self._described
        check_finished(self.record, self._home)
        found = read_front(self._home)
        check_front(found, self.record, self._home)
        return found

    @cached_property
    def audit(self) -> Audit:
        """The audit of the chosen point on the test rows."""
        if self._audit is not None:
            return self._audit
        check_finished(self.record, self._home)
        found = read_audit(self._home)
        check_audit(found, self.record, self._home, self.described)
        return found

    @cached_property
    def data(self) -> RunData:
        """What was taken for what, and what was found in the data."""
        return RunData.from_dict(self.record["data"])

    @property
    def conclusion(self) -> Conclusion:
        """What the run came to: whether a model meets the limit, and whether one can be used."""
        return Conclusion(**self.described["conclusion"])

    @property
    def caveats(self) -> tuple[Caveat, ...]:
        """What to know before the chosen point is used: of the data, and of its test rows.

        It is what its page says.
        """
        from apfex.report import Caveat

        return tuple(Caveat(**caveat) for caveat in caveats_of(self.described))

    def report(self, path: str | os.PathLike[str] | None = None) -> Path:
        """Write the page of the front; by default that of the folder again, by this version.

        A decision that the folder holds is on it.
        """
        from apfex.report import write_front_page

        described = with_run_id(self.described, self.record)
        if self.decision is not None:
            described["decision"] = self.decision
        return write_front_page(described, report_path(self.folder, path))

    def model_card(self, *, license: str | None = None) -> str:
        """The model card of the chosen point, in the form of Hugging Face: a ``README.md``.

        Parameters
        ----------
        license : str, optional
            Identifier of the licence that the model is given away under, such as "mit".

        Returns
        -------
        str
            YAML front matter and Markdown: intended use, data, groups, error and gaps with
            intervals and verdicts on the test rows, limits, how it was made. What only whoever
            uses the model knows is marked "[More Information Needed]".
        """
        from apfex.runs._model_card import write_card

        return write_card(self, license)

    @property
    def decision(self) -> Mapping[str, Any] | None:
        """The decision that its folder holds: ``point``, ``name``, ``date``, ``reason``; or None.

        One on another run is refused with an error.
        """
        return decision_in(
            self.folder, len(self.described["points"]), self.record["data"]["sha256"]
        )

    def predict(
        self,
        rows: Any,
        *,
        point: int | None = None,
        encoding: str | None = None,
        sheet: str | None = None,
    ) -> Any:
        """Decide for new rows.

        Parameters
        ----------
        rows : file, folder, pattern, several of these, frame or Arrow stream
            With the features of the run; sensitive columns are only needed where the run has
            ``include_sensitive`` or ``group_thresholds``. ``new/*.parquet`` are all files that
            match, in the order of their names; a frame is one of pandas or polars; an Arrow
            stream is anything with ``__arrow_c_stream__``, such as a relation of DuckDB.
        point : int, optional
            Point of the front; the one that was chosen by default, also where the run was signed
            for another one: a warning then says so.
        encoding : str, optional
            Of a CSV file that is not UTF-8.
        sheet : str, optional
            Of an Excel file with several.

        Returns
        -------
        pandas.DataFrame, or polars.DataFrame where ``rows`` is one
            ``prediction``: the decision, in the words of the training table. ``probability``: how
            probable the positive label is by the model, calibrated, and the same at every point.
            ``decision_margin``: how far the decision is from the other one; above 0 the positive
            label is decided, whatever its probability. The index of pandas is that of ``rows``.
        """
        import narwhals as nw
        import pandas as pd

        decider, unlike = self._watched(point)
        stream = open_stream(rows, encoding, sheet)
        decider.check(stream.columns, stream.name)
        self._warn_of_use(decider.classifier.point_)
        with one_warning_of_unseen(decider):
            batches = stream.batches(stream.part_rows(None), [*decider.columns])
            found = [decider.decide_batch(batch, stream.decimal) for batch in batches]
        unlike.warn()
        columns = {name: np.concatenate([part[name] for part in found]) for name in NAMES}
        if nw.dependencies.is_polars_dataframe(rows):
            return nw.from_dict(columns, backend="polars").to_native()
        index = rows.index if isinstance(rows, pd.DataFrame) else None
        return pd.DataFrame(columns, index=index)

    def predict_file(
        self,
        rows: Any,
        out: str | os.PathLike[str] | TextIO | None = None,
        *,
        point: int | None = None,
        prefix: str = "",
        force: bool = False,
        encoding: str | None = None,
        sheet: str | None = None,
        batch_size: int | None = None,
        progress: Callable[[int, int | None], None] | None = None,
    ) -> PredictedFile:
        """Write a copy of a table with the columns of :meth:`predict` in every row.

        Rows are read, decided and written some at a time, so that memory does not grow with them.

        Parameters
        ----------
        rows, point, encoding, sheet
            As for :meth:`predict`.
        out : file or stream, optional
            The ending says the form; a stream gets CSV. By default the name of the file, or of
            the folder of several, with ``-predictions``, beside it; CSV for an Excel file. The
            file appears when it is whole, or not at all.
        prefix : str
            Before the names of the new columns, where the table has such columns already.
        force : bool
            Whether a file that is there is replaced.
        batch_size : int, optional
            Rows at a time; 65,536 by default, fewer of a wide table.
        progress : callable, optional
            Told after each part how many rows are done, and of how many, where that is known.

        Returns
        -------
        PredictedFile

        Notes
        -----
        Cells of CSV stay as they stand, but text that a spreadsheet would run gets an apostrophe
        before it. Files that are read as one must have the same columns; decisions are those of
        :meth:`predict` to the last bit (networks may round the last digit otherwise where
        ``batch_size`` is no multiple of 16,384).
        """
        if batch_size is not None and batch_size < 1:
            raise RunError(
                f"{hint('batch_size')} must be at least 1, got {batch_size}.", found=batch_size
            )
        decider, unlike = self._watched(point)
        stream = open_stream(rows, encoding, sheet)
        target = target_of(out, stream, force)
        names = [f"{prefix}{name}" for name in NAMES]
        check_new(stream, names)
        decider.check(stream.columns, stream.name)
        self._warn_of_use(decider.classifier.point_)
        n, total = stream.part_rows(batch_size), stream.count()
        done = positive = made_safe = 0
        with one_warning_of_unseen(decider), open_writer(target, stream, names, n) as writer:
            for batch in stream.batches(n):
                decided = decider.decide_batch(batch, stream.decimal)
                made_safe += writer.write(
                    batch.rows, dict(zip(names, decided.values(), strict=True))
                )
                positive += int((decided["prediction"] == self.record["words"][1]).sum())
                done += len(batch.rows)
                if progress is not None:
                    progress(done, total)
        unlike.warn()
        return PredictedFile(
            out=target if isinstance(target, Path) else None,
            rows=done,
            files=len(stream.parts),
            point=decider.classifier.point_,
            columns=(names[0], names[1], names[2]),
            selection_rate=positive / done,
            cells_made_safe=made_safe,
        )

    def udf(self, point: int | None = None) -> RunUDF:
        """A function that decides inside an engine, such as DuckDB or Spark.

        Parameters
        ----------
        point : int, optional
            As for :meth:`predict`.

        Returns
        -------
        RunUDF
            ``register(connection)`` makes it a function of DuckDB, ``to_spark(frame)`` decides for
            a frame of Spark, and it may be called with tables of Arrow.
        """
        decider = self._decider(point)
        self._warn_of_use(decider.classifier.point_)
        return RunUDF.of(decider)

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Write the run: ``report.html``, ``front.json``, ``audit.json``, ``run.json``, ``model``.

        Parameters
        ----------
        folder : path
            Must not exist, or be empty. It appears when it is whole.

        Returns
        -------
        Path
            Of the folder, which :func:`load_run` reads.
        """
        target = free_folder(folder)
        with new_folder(target) as draft:
            self.classifier.save(draft / MODEL)
            self._write(draft, target)
        return target

    def _write(self, draft: Path, folder: Path) -> None:
        """All but the model; the record last, as a folder whose record says so is whole."""
        from apfex.persistence import write_json, write_text_atomically
        from apfex.report import write_front_page

        described = {**self.described, "command": f"apfex predict {shlex.quote(str(folder))} FILE"}
        write_json(draft / FRONT, described)
        write_text_atomically(draft / AUDIT, self.audit.to_json())
        write_front_page(described, draft / REPORT)
        write_json(draft / RUN, self.record)

    def _decider(self, point: int | None) -> Decider:
        """A point with all that it needs to decide for new rows."""
        given = self.record["settings"].get("bins")
        return Decider(self._at(point), self.record["features"], self.record["words"], given)

    def _watched(self, point: int | None) -> tuple[Decider, UnlikeTraining]:
        """A point, with what looks at all rows that it decides."""
        decider = self._decider(point)
        unlike = UnlikeTraining.of(decider.classifier)
        return replace(decider, unlike=unlike), unlike

    def _warn_of_use(self, point: int) -> None:
        """Warn of a run whose decisions nobody should use as they are, or not at this point."""
        if not self.is_finished:
            said = (
                f"{self._home} was stopped before its models were measured on the test rows: "
                "nobody knows how well, and how fairly, they decide."
            )
            warnings.warn(RunWarning(said), stacklevel=3)
        elif (self.record.get("conclusion") or {}).get("code") == "no_usable_model":
            warnings.warn(RunWarning(self.record["conclusion"]["text"]), stacklevel=3)
        if self.is_finished:
            self._warn_of_signature(point)

    def _warn_of_signature(self, point: int) -> None:
        """Warn where somebody took responsibility, but for another point than the one in use."""
        if self.folder is None or not (self.folder / DECISION).exists():
            return
        try:
            signed = self.decision
        except ValueError as error:
            said = f"{self.folder / DECISION} is no decision on this run: {error}"
            warnings.warn(RunWarning(said), stacklevel=4)
            return
        if signed is not None and signed["point"] != point:
            said = (
                f"This run was signed for point {signed['point']} (by "
                f"{printable(signed['name'], 80)} on {signed['date']}), but point {point} decides "
                f"here, for which nobody signed. To use the signed one: {hint('point')}"
            )
            warnings.warn(RunWarning(said, point=signed["point"], found=signed), stacklevel=4)

    def _at(self, point: int | None) -> APFExClassifier:
        if point is None:
            return self.classifier
        if not 0 <= point < len(self.front):
            raise RunError(
                f"{hint('point')} must be from 0 to {len(self.front) - 1}, the points of "
                f"{self.folder or 'the run'}, got {point}.",
                found=point,
            )
        return self.classifier.at(point)

    def _load(self) -> APFExClassifier:
        from apfex.estimator import load

        clf = load(part_of(self._home, MODEL))
        check_model(clf, self.record, self._home)
        return clf

    @property
    def _home(self) -> Path:
        assert self.folder is not None  # what is not in memory was stored
        return self.folder


def caveats_of(described: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """All caveats of the chosen point, those of the data among them, as plain values."""
    return described["points"][described["chosen"]]["caveats"]


def with_run_id(described: Mapping[str, Any], record: Mapping[str, Any]) -> dict[str, Any]:
    """A description that says which run it is of, for whoever signs its page."""
    run = {**(described.get("run") or {}), "run_id": run_id(record)}
    return {**described, "run": run}


def load_run(folder: str | os.PathLike[str]) -> Run:
    """Read a run from its folder.

    Parameters
    ----------
    folder : path
        That ``run.save`` or ``apfex explore`` has written; or of its ``run.json``.

    Returns
    -------
    Run
        Its model and figures are read when they are first used.

    Examples
    --------
    >>> load_run("nowhere")
    Traceback (most recent call last):
    apfex.sources._errors.RunError: There is no run nowhere.
    """
    home, record = read_record(folder, "explore")
    return Run(record, home)


def load_any(folder: str | os.PathLike[str]) -> Run | AuditRun:
    """Read a run or an audit, whichever the folder holds; both have an ``audit``.

    Examples
    --------
    >>> load_any("nowhere")
    Traceback (most recent call last):
    apfex.sources._errors.RunError: There is no run nowhere.
    """
    home, record = read_record(folder)
    return Run(record, home) if record["command"] == "explore" else load_audit(home)


def audit_in_words(run: Run | AuditRun) -> Audit:
    """The audit of a run, whose favorable label is the word of the table.

    The classes of a run are other words where sorting would not put the positive one last.
    """
    audit, record = run.audit, run.record
    favorable = audit.settings.favorable_label
    if favorable in record.get("classes", ()):
        favorable = record["words"][record["classes"].index(favorable)]
    return replace(audit, settings=replace(audit.settings, favorable_label=spelled(favorable)))


def rewrite_report(
    folder: str | os.PathLike[str], *, decision: str | os.PathLike[str] | None = None
) -> Run | AuditRun:
    """Write the page of a stored run or audit again, as after an update or a decision.

    Parameters
    ----------
    folder : path
        Of the run, or of its ``run.json``.
    decision : path, optional
        ``decision.json``, which a page has saved. It is kept in the folder, and its point, name,
        date and reason are on the page from then on. One on another run is refused.

    Examples
    --------
    >>> rewrite_report("nowhere")
    Traceback (most recent call last):
    apfex.sources._errors.RunError: There is no run nowhere.
    """
    run = load_any(folder)
    if decision is not None:
        assert run.folder is not None
        points = len(run.described["points"]) if isinstance(run, Run) else None
        keep_decision(decision, run.folder, points, run.record["data"]["sha256"])
    run.report()
    return run
