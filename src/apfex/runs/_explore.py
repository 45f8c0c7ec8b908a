"""From a table to a front that is measured on test rows."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from apfex.clusters import is_dask_frame
from apfex.distributed import chosen_workers
from apfex.plain import jsonable, printable
from apfex.runs._agreement import results_of, sha256_of
from apfex.runs._checkpoint import checkpoint_of
from apfex.runs._conclusion import conclude
from apfex.runs._data import RunData, SplitData, read_and_split
from apfex.runs._data_caveats import caveats_of_data, caveats_of_training, warn_of_data
from apfex.runs._folder import MODEL, RUN, free_folder, new_folder, new_record
from apfex.runs._run import Run, caveats_of, with_run_id
from apfex.runs._settings import Bins, ExploreSettings, Names
from apfex.runs._stream_data import StreamedData, is_streamed, read_streamed
from apfex.sources import RunError, RunWarning, hint, stored_frame

if TYPE_CHECKING:
    from apfex.estimator import APFExClassifier
    from apfex.metrics import NotEstimableWarning
    from apfex.models import Checkpoint

_NAMED = 5


Progress = Callable[[Literal["read", "resuming", "training", "measuring"], RunData], object]


def explore(
    source: Any,
    *,
    label: str | None = None,
    positive: object = None,
    favorable: object = None,
    sensitive: Names | None = None,
    bins: Bins | None = None,
    drop: Names | None = None,
    weight: str | None = None,
    criteria: Names = ("dp", "tpr"),
    max_gap: float | Mapping[str, float] | None = None,
    max_error_increase: float | None = None,
    scoring: str = "accuracy",
    cost: Mapping[str, float] | None = None,
    class_weight: str | Mapping[str, float] | None = None,
    selection_rate: float | None = None,
    include_sensitive: bool = False,
    group_thresholds: bool = False,
    model: Names = "auto",
    search: str = "auto",
    strategy: Names = "switch",
    points: int = 16,
    test_fraction: float = 0.25,
    tolerance: float | None = None,
    confidence: float = 0.95,
    seed: int = 0,
    threads: int | None = None,
    encoding: str | None = None,
    sheet: str | None = None,
    stream: bool | None = None,
    out: str | os.PathLike[str] | None = None,
    fresh: bool = False,
    progress: Progress | None = None,
    verbose: bool = False,
) -> Run:
    """Train the front of accuracy and fairness of a table, and measure it on test rows.

    Parameters
    ----------
    source : str, path or frame
        A data set by its name, a CSV, Excel, Parquet or Arrow file, or a frame of pandas or polars;
        a pattern or folder of Parquet, Arrow or CSV files, which are read in chunks, or a Dask
        DataFrame, whose partitions are brought to this machine's disk one by one.
    label, positive : str, and a value or several
        Column to predict, and its positive value; not needed for columns of 0 and 1. Several values
        count as one outcome; in text they have commas between.
    favorable : value, optional
        The outcome that a person would want, if it is not the positive one.
    sensitive : str or sequence of str
        Columns that say to whom it must be fair; the model does not decide by them.
    bins : mapping from a sensitive column of numbers to where it is cut
    drop : str or sequence of str
        Columns that the model must not decide by, such as identifiers.
    weight : str, optional
        Column with weights of rows.
    criteria : str or sequence of str
        Gaps that count: "dp", "tpr", "fpr", "equalized_odds", ...
    max_gap : float or mapping from criterion to float, optional
        Largest gap that the chosen model may have; 0.05 for the first criterion by default.
    max_error_increase : float, optional
        How much larger than the lowest error of all models its error may be.
    scoring : str
        What "most accurate" means: "accuracy", "balanced_accuracy" (both labels count alike,
        however rare one is), or a scorer of scikit-learn that looks at decisions, such as "f1".
    cost : mapping with "false_positive" and "false_negative", optional
        What an error of each kind costs; models are then ranked by their cost.
    class_weight : "balanced" or mapping with "positive" and "negative", optional
        How much an error on each outcome counts when models are made; they are still ranked by
        ``scoring``. "balanced": as much more as the outcome is rarer.
    selection_rate : float, optional
        Share of rows that get the favorable outcome, the same for every model.
    include_sensitive : bool
        Whether the model may decide by the sensitive columns, too.
    group_thresholds : bool
        Whether people of different groups may be decided on by different thresholds; ``predict``
        then needs the sensitive columns. Where you are this may not be allowed.
    model, search, points, threads
        As ``model``, ``search``, ``n_points`` and ``n_jobs`` of
        :class:`~apfex.estimator.APFExClassifier`.
    strategy : str or sequence of str
        What decides where the front is searched, by name: "switch" (the paper's rule), "pcp", "aw",
        "pss", "fixed", "tchebycheff", ...; several share the models among them.
    test_fraction : float
        Share of rows that are test rows, every group and label in proportion.
    tolerance : float, optional
        The limit of the verdicts in the report, for all criteria; ``max_gap`` by default, or 0.05
        where that has several values. Criteria that ``max_gap`` does not name had no part in the
        choice, and the conclusion says what they are judged by.
    confidence : float
        Of the intervals in the report.
    seed : int
        The same seed gives the same run.
    encoding, sheet : str, optional
        Encoding of a CSV file that is not UTF-8; sheet of an Excel file with several.
    stream : bool, optional
        Whether Parquet, Arrow or CSV files are read in chunks, so that they need not fit into
        memory. By default patterns and folders are, and files larger than an eighth of the
        memory of the machine or container.
    out : path, optional
        Folder to write while the run goes on, as ``run.save`` does at its end; if it is stopped
        after the training, the model is kept in ``NAME.incomplete``. Of several workers
        (:func:`~apfex.distributed.share_batches`) the first one writes. What is finished of the
        training is kept beside it, in ``NAME.checkpoint``, until the run is whole: a run that was
        stopped, or killed, goes on from there when it is started again.
    fresh : bool
        Start anew: a checkpoint of an earlier run into ``out`` is removed.
    progress : callable, optional
        Called with a word and the :class:`RunData`: "read" when the data are read, "resuming" where
        a run that was stopped goes on, "training" and "measuring" before that begins.
    verbose : bool
        Whether a bar is drawn during the training; a line now and then where there is no terminal.

    Returns
    -------
    Run

    Warns
    -----
    RunWarning
        Of features that give the label or a sensitive attribute away, of columns that only name
        rows, and of groups without rows that count.

    Examples
    --------
    >>> from apfex import explore, make_biased
    >>> people = make_biased(n=400, random_state=0)
    >>> table = people.X.assign(hired=people.y, sex=people.sensitive["sex"])
    >>> run = explore(table, label="hired", sensitive="sex", criteria="dp", model="linear",
    ...               search="inprocess", points=2)
    >>> run
    <Run of frame: 400 rows, 2 points>
    >>> run.predict(table.head(2), point=0)["prediction"].isin(["0", "1"]).all()
    np.True_
    >>> run.data.leaks, run.data.test_rows
    ((), 100)
    """
    return explore_with(ExploreSettings.of(locals()), source, out, progress, verbose, fresh=fresh)


def explore_with(
    settings: ExploreSettings,
    source: Any,
    out: str | os.PathLike[str] | None,
    progress: Progress | None,
    verbose: bool,
    *,
    fresh: bool = False,
) -> Run:
    """Do what the settings say; ``source`` is the frame where they name none."""
    team = chosen_workers()
    writes = out is not None and (team is None or team.rank == 0)
    folder = free_folder(out) if writes else None
    if is_dask_frame(source) and settings.stream is not False:
        with stored_frame(source) as stored:
            own = replace(settings, stream=True)
            found = read_streamed(own, stored)
            return _explore_data(own, found, folder, progress, verbose, fresh=fresh)
    if is_streamed(source, settings.stream):
        settings = replace(settings, stream=True)  # for whoever repeats it on another machine
        data: SplitData | StreamedData = read_streamed(settings)
    else:
        data = read_and_split(settings, source)
    return _explore_data(settings, data, folder, progress, verbose, fresh=fresh)


def _explore_data(
    settings: ExploreSettings,
    data: SplitData | StreamedData,
    folder: Path | None,
    progress: Progress | None,
    verbose: bool,
    *,
    fresh: bool,
) -> Run:
    """Train on rows that were read, and keep the run in a folder if there is one."""
    from apfex.persistence import shared

    tell = progress or (lambda *_: None)
    tell("read", data.about)
    warn_of_data(data.about, data.words)
    if folder is None:
        return _train_and_measure(settings, data, None, None, tell, verbose, shared(None))
    with checkpoint_of(folder, settings, data.about, fresh=fresh) as checkpoint:
        if checkpoint.n_finished:
            tell("resuming", data.about)
        with new_folder(folder, checkpoint) as draft:
            kept = shared(checkpoint)
            run = _train_and_measure(settings, data, draft, folder, tell, verbose, kept)
    return replace(run, folder=folder)


def _train_and_measure(
    settings: ExploreSettings,
    data: SplitData | StreamedData,
    draft: Path | None,
    folder: Path | None,
    tell: Progress,
    verbose: bool,
    checkpoint: Checkpoint,
) -> Run:
    """Fit, measure, and write each part as soon as it is there."""
    from apfex.persistence import write_json

    started, about = time.monotonic(), data.about
    record = _draft_record(settings, data)
    if draft is not None:
        write_json(draft / RUN, record)
    tell("training", about)
    rows = {**data.fit_arguments(), "checkpoint": checkpoint}
    clf, caught = _fit(settings, data.classes[data.favorable], rows, verbose)
    if draft is not None:
        clf.save(draft / MODEL)
    tell("measuring", about)
    measured = data.measure(clf, tolerance=settings.tolerance, confidence=settings.confidence)
    caveats = [*caveats_of_data(about, data.words), *caveats_of_training(caught)]
    described = measured.describe(
        title=f"Accuracy and fairness: {about.name}",
        source=f"{about.description}: {about.test_rows:,} test rows of {about.rows:,}",
        words=dict(zip(data.classes, data.words, strict=True)),
        caveats=caveats,
        run=_facts_of_run(record, data),
    )
    conclusion = conclude(described, clf.front_, settings).to_dict()
    described["conclusion"] = conclusion
    described = jsonable(described)
    record |= {
        "finished": True,
        "seconds": round(time.monotonic() - started, 1),
        "conclusion": conclusion,
        "caveats": caveats_of(described),
        "results": results_of(described),
        "front_sha256": sha256_of(described),
    }
    described = with_run_id(described, record)
    run = Run(record, None, clf, described, measured.audits[clf.point_])
    if draft is not None and folder is not None:
        run._write(draft, folder)
    return run


def _fit(
    settings: ExploreSettings, favorable: Any, rows: dict[str, Any], verbose: bool
) -> tuple[APFExClassifier, list[NotEstimableWarning]]:
    """Fit, with the warnings and errors of the classifier in the words of this room.

    Warnings of groups that are left out are handed back, too, as a page must show them.
    """
    from apfex.estimator import APFExClassifier
    from apfex.metrics import NotEstimableWarning, NotMeasurableError

    clf = APFExClassifier(
        settings.criteria,
        favorable_label=favorable,
        verbose=int(verbose),
        **settings.classifier_arguments(),
    )
    try:
        with warnings.catch_warnings(record=True, action="always") as caught:
            clf.fit(**rows)
    except NotMeasurableError as error:
        raise RunError(
            f"{hint('criteria')} {error.criterion} cannot be measured on the {error.n_rows:,} "
            "validation rows: a gap needs two groups with rows that "
            f"count there. {_REMEDY}, or choose other criteria.",
            found=error.criterion,
        ) from error
    except ValueError as error:
        if not settings.stream:
            raise
        raise RunError(printable(str(error), 400)) from error  # what only the whole table tells
    left_out = []
    for one in caught:
        message = one.message
        if isinstance(message, NotEstimableWarning) and message.left_out:
            left_out.append(message)
            warnings.warn(_left_out(message), stacklevel=6)
        else:
            warnings.warn_explicit(message, one.category, one.filename, one.lineno)
    return clf.set_params(verbose=0), left_out


_REMEDY = (
    f"Put values together ({hint('bins')} for numbers), add rows, or lower {hint('test_fraction')}"
)


def _left_out(warning: NotEstimableWarning) -> RunWarning:
    """Groups that no gap counts, for those who do not call ``fit``."""
    groups = "; ".join(f"{rate} of {_together(names)}" for rate, names in warning.left_out)
    return RunWarning(
        f"Among the {warning.n_rows:,} validation rows some groups have no rows that count, and "
        f"are left out of the gaps: {groups}. {_REMEDY}.",
        found=warning.left_out,
    )


def _together(names: tuple[str, ...]) -> str:
    """Names of groups, which have commas themselves."""
    more = [f"{len(names) - _NAMED:,} more"] if len(names) > _NAMED else []
    return " and ".join([*(printable(name, 80) for name in names[:_NAMED]), *more])


def _draft_record(settings: ExploreSettings, data: SplitData | StreamedData) -> dict[str, Any]:
    """The record as far as it goes before training: enough to predict with the model alone."""
    about, team = data.about, chosen_workers()
    return new_record("explore", settings.to_dict(), about.to_dict()) | {
        "finished": False,
        "workers": 1 if team is None else team.size,
        "classes": list(data.classes),
        "words": list(data.words),
        "favorable": data.classes[data.favorable],
        "features": dict(about.features),
        "leaks": [leak.feature for leak in about.leaks],
        "identifiers": list(about.identifiers),
        "proxies": [proxy.feature for proxy in about.proxies],
    }


def _facts_of_run(record: Mapping[str, Any], data: SplitData | StreamedData) -> dict[str, Any]:
    """What a reader of the page needs to find this run again, and to repeat it."""
    about, settings = data.about, record["settings"]
    return {
        "date": record["created"],
        "data": {
            "name": about.name,
            "sha256": about.sha256,
            "rows": about.rows,
            "fit_rows": about.fit_rows,
            "test_rows": about.test_rows,
            "dropped": dict(about.dropped),
        },
        "label": about.label,
        "positive": about.positive,
        "sensitive": list(about.groups.levels),
        "features": dict(about.features),
        "model": settings["model"],
        "seed": settings["seed"],
        "settings": {name: value for name, value in settings.items() if name != "source"},
        "versions": record["versions"],
    }
