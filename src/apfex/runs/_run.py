"""A run: the front of a table, with all that is known of the data, in memory or in a folder."""

from __future__ import annotations

import os
import shlex
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, final

import numpy as np

from apfex.plain import printable
from apfex.runs._audit import AuditRun, load_audit
from apfex.runs._columns import read_features
from apfex.runs._data import RunData
from apfex.runs._errors import RunError, RunWarning
from apfex.runs._folder import (
    AUDIT,
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
    read_record,
    report_path,
)
from apfex.runs._predictions import PredictedFile, check_new, target_of, write_rows
from apfex.runs._tables import Table, open_table

if TYPE_CHECKING:
    import pandas as pd

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
        What ``run.json`` holds: settings, seed, versions, facts of the data, figures of points.
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
        from apfex.persistence import read_json

        if self._described is not None:
            return self._described
        check_finished(self.record, self._home)
        return read_json(self._home / FRONT)

    @cached_property
    def audit(self) -> Audit:
        """The audit of the chosen point on the test rows."""
        from apfex.auditing import Audit

        if self._audit is not None:
            return self._audit
        check_finished(self.record, self._home)
        return Audit.from_json((self._home / AUDIT).read_text(encoding="utf-8"))

    @cached_property
    def data(self) -> RunData:
        """What was taken for what, and what was found in the data."""
        return RunData.from_dict(self.record["data"])

    @property
    def caveats(self) -> tuple[Caveat, ...]:
        """Why the chosen point may not be trusted, by the test rows: what its page says."""
        from apfex.report import Caveat

        chosen = self.described["points"][self.described["chosen"]]
        return tuple(Caveat(**caveat) for caveat in chosen["caveats"])

    def report(self, path: str | os.PathLike[str] | None = None) -> Path:
        """Write the page of the front; by default that of the folder again, by this version.

        A decision that the folder holds is on it.
        """
        from apfex.report import write_front_page

        points, data = len(self.described["points"]), self.record["data"]
        decision = decision_in(self.folder, points, data["sha256"])
        described = {**self.described, "decision": decision}
        return write_front_page(described, report_path(self.folder, path))

    def predict(
        self, rows: Any, *, point: int | None = None, encoding: str | None = None
    ) -> pd.DataFrame:
        """Decide for new rows.

        Parameters
        ----------
        rows : file, or frame of pandas or polars
            With the features of the run; sensitive columns are not needed.
        point : int, optional
            Point of the front; the one that was chosen by default.
        encoding : str, optional
            Of a CSV file that is not UTF-8.

        Returns
        -------
        pandas.DataFrame
            ``prediction``, in the words of the training table, and ``probability`` of its positive
            value (not calibrated); the index is that of ``rows``.
        """
        import pandas as pd

        classifier = self._at(point)
        decided = self._decide(classifier, open_table(rows, encoding))
        index = rows.index if isinstance(rows, pd.DataFrame) else None
        return pd.DataFrame(decided, index=index)

    def predict_file(
        self,
        rows: Any,
        out: str | os.PathLike[str] | TextIO | None = None,
        *,
        point: int | None = None,
        prefix: str = "",
        force: bool = False,
        encoding: str | None = None,
    ) -> PredictedFile:
        """Write a copy of a table with a decision and its probability in every row.

        Parameters
        ----------
        rows, point, encoding
            As for :meth:`predict`.
        out : file or stream, optional
            The ending says the form; a stream gets CSV. By default the name of the file with
            ``-predictions``, here.
        prefix : str
            Before the names of the new columns, where the table has such columns already.
        force : bool
            Whether a file that is there is replaced.

        Returns
        -------
        PredictedFile

        Notes
        -----
        Cells of CSV stay as they stand, but text that a spreadsheet would run gets an apostrophe
        before it.
        """
        classifier = self._at(point)
        table = open_table(rows, encoding)
        target = target_of(out, table, force)
        names = (f"{prefix}prediction", f"{prefix}probability")
        check_new(table, names)
        decided = dict(zip(names, self._decide(classifier, table).values(), strict=True))
        made_safe = write_rows(table, decided, target)
        is_positive = decided[names[0]] == self.record["words"][1]
        return PredictedFile(
            out=target if isinstance(target, Path) else None,
            rows=len(is_positive),
            point=classifier.point_,
            columns=names,
            selection_rate=float(is_positive.mean()),
            cells_made_safe=made_safe,
        )

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

    def _decide(self, classifier: APFExClassifier, table: Table) -> dict[str, np.ndarray]:
        X = read_features(table, self.record["features"])
        if not self.is_finished:
            said = (
                f"{self._home} was stopped before its points were measured on test rows: "
                "nobody knows how well, and how fairly, they decide."
            )
            warnings.warn(RunWarning(said), stacklevel=3)
        words = dict(zip(self.record["classes"], self.record["words"], strict=True))
        decided = [words[label] for label in classifier.predict(X).tolist()]
        return {
            "prediction": np.array(decided),
            "probability": classifier.predict_proba(X)[:, -1],
        }

    def _at(self, point: int | None) -> APFExClassifier:
        if point is None:
            return self.classifier
        if not 0 <= point < len(self.front):
            raise RunError(
                f"{{--point}} must be from 0 to {len(self.front) - 1}, the points of "
                f"{self.folder or 'the run'}, got {point}.",
                found=point,
            )
        return self.classifier.at(point)

    def _load(self) -> APFExClassifier:
        from apfex.estimator import load

        clf = load(self._home / MODEL)
        known = (clf.classes_.tolist(), [str(name) for name in clf.feature_names_in_])
        if known != (self.record["classes"], list(self.record["features"])):
            raise RunError(
                f"{self._home / RUN} is not of the model in {self._home / MODEL}: its classes and "
                "features differ; copy the whole folder again."
            )
        return clf

    @property
    def _home(self) -> Path:
        assert self.folder is not None  # what is not in memory was stored
        return self.folder


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
    apfex.runs._errors.RunError: There is no run nowhere.
    """
    home, record = read_record(folder, "explore")
    return Run(record, home)


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
        date and reason are on the page from then on.

    Examples
    --------
    >>> rewrite_report("nowhere")
    Traceback (most recent call last):
    apfex.runs._errors.RunError: There is no run nowhere.
    """
    home, record = read_record(folder)
    run = Run(record, home) if record["command"] == "explore" else load_audit(home)
    if decision is not None:
        points = len(run.described["points"]) if isinstance(run, Run) else None
        keep_decision(decision, home, points, record["data"]["sha256"])
    run.report()
    return run
