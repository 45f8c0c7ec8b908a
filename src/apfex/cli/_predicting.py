"""``apfex predict``: decisions of a point of a run for the rows of a file."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from apfex.cli._errors import CommandError, listed, nearest
from apfex.cli._features import like_training
from apfex.cli._files import TableFile, open_table
from apfex.cli._folder import MODEL, RUN
from apfex.cli._record import is_finished, read_record
from apfex.cli._screen import Screen, shown
from apfex.cli._write import write_rows

if TYPE_CHECKING:
    import pandas as pd

_STDOUT = Path("-")


def predict_file(
    run: Path,
    file: Path,
    *,
    point: int | None,
    out: Path | None,
    prefix: str,
    force: bool,
    encoding: str | None,
    screen: Screen,
) -> dict[str, Any]:
    """Add a decision and its probability to every row; the file itself is not changed."""
    folder, record = read_record(run, "explore", finished=False)
    clf = _load(folder, record, point)
    table = open_table(file, encoding)
    target = _target(out, table, force)
    names = {part: f"{prefix}{part}" for part in ("prediction", "probability")}
    _check_new(table, list(names.values()))
    X = _features(table, record)
    if not is_finished(record):
        screen.warn(
            f"{folder} was stopped before its points were measured on rows held back: nobody knows "
            "how well, and how fairly, they decide."
        )
    decided, probability = clf.predict(X), clf.predict_proba(X)[:, -1]
    words = dict(zip(record["classes"], record["words"], strict=True))
    added = {
        names["prediction"]: np.array([words[label] for label in decided.tolist()]),
        names["probability"]: probability,
    }
    made_safe = write_rows(table, added, target)
    _tell(target, clf.point_, decided, record, made_safe, names, screen)
    return {
        "run": str(folder),
        "point": clf.point_,
        "rows": len(decided),
        "out": None if target is None else str(target),
        "columns": list(names.values()),
        "share_positive": float((decided == record["classes"][1]).mean()),
        "cells_made_safe": made_safe,
    }


def _target(out: Path | None, table: TableFile, force: bool) -> Path | None:
    """Where to write; None is stdout. Nothing is replaced unless the user says so."""
    if out == _STDOUT:
        return None
    if out is None:
        ending = "csv" if table.kind == "csv" else table.path.suffix.removeprefix(".")
        stem = table.path.name.partition(".")[0]
        out = Path(f"{stem}-predictions.{ending}")
    if out.exists() and out.resolve() == table.path.resolve():
        raise CommandError(f"--out must not be {table.path} itself.")
    if out.is_dir():
        raise CommandError(f"--out {out} is a folder; name a file in it.")
    if out.exists() and not force:
        raise CommandError(f"{out} exists already; name another file with --out, or add --force.")
    if not out.parent.is_dir():
        raise CommandError(f"--out {out} needs the folder {out.parent}, which is not there.")
    return out


def _check_new(table: TableFile, names: list[str]) -> None:
    taken = [name for name in names if name in table.columns]
    if taken:
        raise CommandError(
            f"{table.path} has a column '{taken[0]}' already; add another word with --prefix."
        )


def _features(table: TableFile, record: Mapping[str, Any]) -> pd.DataFrame:
    """The columns of the run; others, the sensitive ones too, are not needed."""
    kinds: dict[str, str] = record["features"]
    lacking = [name for name in kinds if name not in table.columns]
    if lacking:
        near = nearest(lacking[0], [name for name in table.columns if name not in kinds])
        hint = f"; is '{shown(near)}' meant to be {shown(lacking[0])}?" if near else "."
        raise CommandError(f"{table.path} lacks columns of the run: {listed(lacking)}{hint}")
    text = [name for name, kind in kinds.items() if kind == "text"]
    return like_training(table.read(list(kinds), text), kinds, table.path)


def _load(folder: Path, record: Mapping[str, Any], point: int | None) -> Any:
    from apfex.estimator import load

    clf = load(folder / MODEL)
    known = (clf.classes_.tolist(), [str(name) for name in clf.feature_names_in_])
    if known != (record["classes"], list(record["features"])):
        raise CommandError(
            f"{folder / RUN} is not of the model in {folder / MODEL}: its classes and features "
            "differ; copy the whole folder again."
        )
    if point is None:
        return clf
    if not 0 <= point < len(clf.front_):
        raise CommandError(
            f"--point must be from 0 to {len(clf.front_) - 1}, the points of {folder}, got {point}."
        )
    return clf.use(point)


def _tell(
    target: Path | None,
    point: int,
    decided: np.ndarray,
    record: Mapping[str, Any],
    made_safe: int,
    names: Mapping[str, str],
    screen: Screen,
) -> None:
    say = screen.say if target is not None else screen.aside
    share = 100 * (decided == record["classes"][1]).mean()
    where = "stdout" if target is None else str(target)
    say(
        f"{len(decided):,} rows decided by point {point}: {share:.1f}% "
        f"{shown(record['words'][1], 40)}; columns {names['prediction']} and "
        f"{names['probability']} added in {where}"
    )
    if made_safe:
        screen.warn(
            f"{made_safe:,} cells of text begin with =, +, -, @ or a control character; each was "
            "written with an apostrophe before it, so that no spreadsheet runs it."
        )
    sys.stdout.flush()
