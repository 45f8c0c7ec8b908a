"""``apfex explore``: from a table to a front, a report and a model, in one folder."""

from __future__ import annotations

import shlex
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import numpy as np

from apfex.cli._chosen import describe_choice, side_effects
from apfex.cli._features import describe_features
from apfex.cli._folder import AUDIT, FRONT, MODEL, REPORT, RUN, free_place, new_folder
from apfex.cli._front import brief, show_front
from apfex.cli._groups import check_few, describe_groups
from apfex.cli._identifiers import describe_identifiers, find_identifiers
from apfex.cli._leaks import Leak, find_leaks
from apfex.cli._record import new_record, results_of
from apfex.cli._screen import Screen, shown
from apfex.cli._settings import ExploreSettings
from apfex.cli._source import Source, read_source
from apfex.cli._split import hold_back
from apfex.cli._training import train

if TYPE_CHECKING:
    from apfex.estimator import APFExClassifier
    from apfex.groups import Groups


def explore(settings: ExploreSettings, out: Path | None, screen: Screen) -> dict[str, Any]:
    """Read, tell what was taken, train, measure on rows held back, write.

    Returns
    -------
    dict
        The record of the run, with ``folder`` and ``front``.
    """
    settings.check()
    place = free_place(out, settings.source)
    screen.aside(f"Reading {shown(settings.source)} ...")
    task = _prepare(settings)
    _tell(task, screen)
    started = time.monotonic()
    with new_folder(place, screen) as folder:
        draft = _write_draft(task, folder)
        screen.aside(f"Training on {len(task.fit):,} rows ... (Ctrl-C stops; nothing is kept)")
        clf = train(settings, task.source.favorable, task.rows(task.fit), screen)
        clf.save(folder / MODEL)
        screen.aside(
            f"Measuring {len(clf.front_)} points on {len(task.test):,} rows held back ... (Ctrl-C "
            "keeps the model)"
        )
        described = _write_front(task, clf, folder, place)
        record = _finish(draft, described, folder, time.monotonic() - started)
    show_front(described, screen)
    screen.say()
    screen.facts(
        {
            "Chosen": describe_choice(described),
            "Report": str(place / REPORT),
            "Predict": f"apfex predict {shlex.quote(str(place))} FILE",
        }
    )
    for effect in side_effects(described):
        screen.warn(effect)
    return record | {"folder": str(place), "front": brief(described)}


@final
@dataclass(frozen=True, eq=False)
class _Task:
    """Rows to fit and rows held back, with what was found of them."""

    settings: ExploreSettings
    source: Source
    groups: Groups
    fit: np.ndarray
    test: np.ndarray
    leaks: list[Leak]
    identifiers: list[str]

    def rows(self, places: np.ndarray) -> dict[str, Any]:
        """Some rows, as a classifier takes them."""
        source = self.source
        return {
            "X": source.X.iloc[places],
            "y": source.y[places],
            "sensitive_features": source.sensitive.iloc[places],
            "sample_weight": None if source.weight is None else source.weight[places],
        }


def _prepare(settings: ExploreSettings) -> _Task:
    from apfex.groups import make_groups

    source = read_source(settings)
    groups = make_groups(source.sensitive)
    check_few(groups)
    fit, test = hold_back(source.codes, groups.codes, settings.test_fraction, settings.seed)
    leaks = find_leaks(source.X.iloc[fit], source.codes[fit], settings.seed)
    identifiers = find_identifiers(source.X, source.kinds)
    return _Task(settings, source, groups, fit, test, leaks, identifiers)


def _tell(task: _Task, screen: Screen) -> None:
    """What was taken for what; nothing is guessed silently."""
    source = task.source
    share, favorable = 100 * task.source.codes.mean(), source.words[source.favorable]
    dropped = "".join(f"; {n:,} dropped {why}" for why, n in source.dropped.items())
    screen.facts(
        {
            "Data": f"{source.description}, {len(source.y):,} rows{dropped}",
            "Label": f"{source.label} ({share:.1f}%); favorable: {shown(favorable, 40)}",
            "Groups": describe_groups(task.groups),
            "Features": describe_features(source.kinds),
            "Rows": f"{len(task.fit):,} to fit and choose, {len(task.test):,} held back",
        }
    )
    for leak in task.leaks:
        label = source.words[source.classes[leak.label]]
        screen.warn(
            f"{leak.describe(shown(label, 40))}. If it is not known in time, leave it out: "
            f"{leak.remedy}"
        )
    if task.identifiers:
        screen.warn(describe_identifiers(task.identifiers))


def _write_front(task: _Task, clf: APFExClassifier, folder: Path, place: Path) -> dict[str, Any]:
    from apfex.persistence import write_json, write_text_atomically
    from apfex.report import describe_front, write_front_page

    fresh, settings, source = task.rows(task.test), task.settings, task.source
    limits: dict[str, Any] = {"tolerance": settings.tolerance, "confidence": settings.confidence}
    described = describe_front(
        clf,
        **fresh,
        **limits,
        title=f"Front of {source.name}",
        source=f"{source.description}: {len(task.test):,} rows held back of {len(source.y):,}",
        command=f"apfex predict {shlex.quote(str(place))} FILE",
        words=source.words,
    )
    write_json(folder / FRONT, described)
    write_text_atomically(folder / AUDIT, clf.audit(**fresh, **limits).to_json())
    write_front_page(described, folder / REPORT)
    return described


def _write_draft(task: _Task, folder: Path) -> dict[str, Any]:
    """The record as far as it goes before training: enough to predict with the model alone."""
    from apfex.persistence import write_json

    source = task.source
    data = {
        "name": source.name,
        "path": None if source.path is None else str(source.path.resolve()),
        "sha256": source.sha256,
        "rows": len(source.y),
        "dropped": dict(source.dropped),
        "fit_rows": len(task.fit),
        "test_rows": len(task.test),
    }
    record = new_record("explore", task.settings.to_dict(), data) | {
        "finished": False,
        "classes": list(source.classes),
        "words": [source.words[label] for label in source.classes],
        "favorable": source.favorable,
        "features": dict(source.kinds),
        "leaks": [leak.feature for leak in task.leaks],
        "identifiers": task.identifiers,
    }
    write_json(folder / RUN, record)
    return record


def _finish(
    record: dict[str, Any], described: dict[str, Any], folder: Path, seconds: float
) -> dict[str, Any]:
    """Written last: a folder whose record says so is whole."""
    from apfex.persistence import write_json

    whole = record | {
        "finished": True,
        "seconds": round(seconds, 1),
        "results": results_of(described),
    }
    write_json(folder / RUN, whole)
    return whole
