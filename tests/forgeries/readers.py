"""Every reader of files that somebody else may have written: whole ones, and how they are used."""

from __future__ import annotations

import json
import shutil
import warnings
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from PIL import Image
from sklearn.linear_model import LogisticRegression
from tests.estimator.tables import FRESH
from tests.forgeries import mutations as m
from tests.people import people
from tests.persistence.saved import (
    NEW,
    NEW_NUMBERS,
    NUMBERS,
    SENSITIVE,
    Y,
    fitted_case,
    with_categories,
)
from tests.persistence.test_bundle import forge

from apfex.auditing import Audit, audit_table
from apfex.datasets import load_images, make_biased
from apfex.estimator import APFExClassifier, load
from apfex.models import Trees
from apfex.persistence import _checkpoint as checkpoints
from apfex.report import read_decision
from apfex.runs import audit_file, load_audit, load_run
from apfex.sources._streams import open_stream as open_rows
from apfex.streams import open_stream

Forge = Callable[[Callable, bytes], bytes]


@dataclass(frozen=True)
class Reader:
    """A folder of files, how each is forged, and what is then done with it."""

    use: Callable[[Path], Any]
    forges: Mapping[str, Forge]
    after: Callable[[Path], Any] = lambda _: None


def _use_model(folder: Path, rows: Any = NEW) -> None:
    clf = load(folder)
    groups = FRESH.sensitive.head(150) if clf.fitted_.groups is not None else None
    given = {} if groups is None else {"sensitive_features": groups}
    for place in range(min(3, len(clf.front_))):
        point = clf.at(place)
        point.predict(rows, **given)
        point.predict_proba(rows, **given)
    repr(clf.front_)
    clf.front_.to_frame()


def _use_numbers(folder: Path) -> None:
    _use_model(folder, NEW_NUMBERS)


def _use_categories(folder: Path) -> None:
    _use_model(folder, with_categories(NEW))


def _use_run(folder: Path) -> None:
    run = load_run(folder)
    repr(run)
    run.report(folder / "again.html")
    _ = run.conclusion, run.caveats, run.data, run.decision, run.audit
    run.predict(people(20))


def _use_audit(folder: Path) -> None:
    found = Audit.from_json((folder / "audit.json").read_text(errors="surrogateescape"))
    found.to_markdown()
    str(found)


def _use_audit_run(folder: Path) -> None:
    load_audit(folder).report(folder / "again.html")


def _use_decision(folder: Path) -> None:
    read_decision(folder / "decision.json", n_points=3, sha256="a")


def _use_table(name: str) -> Callable[[Path], None]:
    def use(folder: Path) -> None:
        from apfex.runs import audit_file

        path = folder / name
        given: dict = {"sensitive": ["sex"], "prediction": "decided", "positive": "1"}
        audit_file(path, **given, encoding=None)

    return use


def _use_rows(name: str) -> Callable[[Path], None]:
    def use(folder: Path) -> None:
        from apfex.sources._tables import to_pandas

        stream = open_rows(folder / name)
        for batch in stream.batches(10):
            to_pandas(batch.rows)

    return use


def _use_stream(name: str) -> Callable[[Path], None]:
    def use(folder: Path) -> None:
        stream = open_stream(str(folder / name), folder)
        for frame in stream.frames(stream.columns, 10):
            frame.describe()

    return use


def _use_engine(name: str) -> Callable[[Path], None]:
    def use(folder: Path) -> None:
        audit_table(str(folder / name), prediction="decided", sensitive=["sex"], criteria="dp")

    return use


def _use_images(folder: Path) -> None:
    for part in (None, "train"):
        images = load_images(folder, size=16, part=part)
        for place in range(len(images)):
            images[place]


def _use_arrays(folder: Path) -> None:
    """What XGBoost takes must say what plain arrays say, whose places Python checks."""

    data = (folder / "trees-0.json").read_bytes()
    try:
        trees = Trees.from_json(data)
    except ValueError:
        return
    arrays = trees.to_arrays()
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(200, arrays.n_features)).astype(np.float32)
    types = json.loads(data)["learner"]["feature_types"]
    codes = [place for place, kind in enumerate(types) if kind == "c"]
    rows[:, codes] = rng.integers(0, 6, (200, len(codes)))
    found = trees(torch.from_numpy(rows)).numpy()
    if not np.allclose(found, arrays.margins(rows), atol=1e-3):
        raise AssertionError("XGBoost followed other trees than those that were checked")


def _use_checkpoint(folder: Path) -> None:
    fit_with(CHECKPOINTS[(folder / "kind").read_text()], folder / "checkpoint")


def fit_with(settings: Mapping[str, Any], checkpoint: Path) -> APFExClassifier:
    """A fit that goes on from a checkpoint."""
    given = {"random_state": 0, "n_jobs": 1, "n_members": 3, "max_gap": 1.0, **settings}
    clf = APFExClassifier(**given)
    data = make_biased(n=160, random_state=0)
    X, sensitive = data.X[list(data.X)[:3]], data.sensitive
    return clf.fit(X, data.y, sensitive_features=sensitive, checkpoint=checkpoint)


_NETWORKS = {"model": "mlp", "search": "inprocess", "hidden": (4,), "batch_size": 64}
CHECKPOINTS: dict[str, dict[str, Any]] = {
    "networks": _NETWORKS | {"epochs": 12, "patience": 2, "strategy": ("pss", "switch")},
    "bounded networks": _NETWORKS | {"epochs": 12, "criteria": ("dp", "tpr"), "max_gap": 0.1},
    "tree rules": {"model": "boosting", "n_estimators": 4},
    "own trees": {"model": "boosting", "search": "inprocess", "n_estimators": 4},
    "own classifiers": {"model": LogisticRegression()},
    "linear rules": {"model": "linear", "epochs": 3},
}
"""Fits that keep what is finished."""
_STOPPED = 8
"""Epochs of twelve after which a training is stopped."""
_STATES = {
    "networks": ("training",),
    "bounded networks": ("training",),
    "tree rules": ("learner0-trees0-0", "learner0-trees1-1", "rules", "decisions", "seed"),
    "own trees": ("base", "rounds"),
    "own classifiers": ("model-0", "model-1"),
    "linear rules": ("learner0-training",),
}


def _write_checkpoint(folder: Path, kind: str) -> None:
    """What a fit has kept that was stopped when it was nearly done."""
    folder.mkdir(parents=True)
    (folder / "kind").write_text(kind)
    keeper, write = checkpoints.FolderCheckpoint, checkpoints.FolderCheckpoint.write

    def stopping(self: Any, name: str, state: Any) -> None:
        write(self, name, state)
        if isinstance(state, dict) and state.get("epochs") == _STOPPED:
            raise KeyboardInterrupt

    with (
        mock.patch.multiple(checkpoints, _SECONDS=0.0, _TIMES=0.0),
        mock.patch.object(keeper, "write", stopping),
        suppress(KeyboardInterrupt),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        fit_with(CHECKPOINTS[kind], folder / "checkpoint")


def _resign(folder: Path) -> None:
    """Most forgers know how to compute a sha256."""
    try:
        forge(folder)
    except (ValueError, KeyError, TypeError, AttributeError):
        return


MODEL = {"content.json": m.forge_json, "arrays.safetensors": m.forge_bytes}
RUN: dict[str, Forge] = dict.fromkeys(("run.json", "front.json", "audit.json"), m.forge_json)
READERS = {
    "rules": Reader(_use_model, MODEL, _resign),
    "group rules": Reader(_use_model, MODEL, _resign),
    "members": Reader(_use_model, MODEL, _resign),
    "trees": Reader(
        _use_model, {"trees-0.json": m.forge_json, "content.json": m.forge_json}, _resign
    ),
    "category trees": Reader(
        _use_categories, {"trees-0.json": m.forge_json, "trees-1.json": m.forge_json}, _resign
    ),
    "tree arrays": Reader(_use_arrays, {"trees-0.json": m.forge_places}),
    "classifier": Reader(
        _use_numbers, {"model-0.skops": m.forge_zip, "content.json": m.forge_json}, _resign
    ),
    **{
        f"checkpoint of {kind}": Reader(
            _use_checkpoint,
            {"checkpoint/checkpoint.json": m.forge_json}
            | {f"checkpoint/{name}.state": m.forge_state for name in names},
        )
        for kind, names in _STATES.items()
    },
    "manifest": Reader(_use_model, {"manifest.json": m.forge_json}),
    "run": Reader(_use_run, RUN),
    "audit": Reader(_use_audit, {"audit.json": m.forge_json}),
    "audit run": Reader(_use_audit_run, {"run.json": m.forge_json, "audit.json": m.forge_json}),
    "decision": Reader(_use_decision, {"decision.json": m.forge_json}),
    "csv": Reader(_use_table("t.csv"), {"t.csv": m.forge_text}),
    "csv rows": Reader(_use_rows("t.csv"), {"t.csv": m.forge_text}),
    "csv engine": Reader(_use_engine("t.csv"), {"t.csv": m.forge_text}),
    "gzip": Reader(_use_table("t.csv.gz"), {"t.csv.gz": m.forge_gzip}),
    "gzip rows": Reader(_use_rows("t.csv.gz"), {"t.csv.gz": m.forge_gzip}),
    "gzip engine": Reader(_use_engine("t.csv.gz"), {"t.csv.gz": m.forge_gzip}),
    "excel": Reader(_use_table("t.xlsx"), {"t.xlsx": m.forge_zip}),
    "parquet": Reader(_use_rows("t.parquet"), {"t.parquet": m.forge_bytes}),
    "parquet engine": Reader(_use_engine("t.parquet"), {"t.parquet": m.forge_bytes}),
    "parquet stream": Reader(_use_stream("t.parquet"), {"t.parquet": m.forge_bytes}),
    "arrow": Reader(_use_rows("t.arrow"), {"t.arrow": m.forge_bytes}),
    "arrow table": Reader(_use_table("t.arrow"), {"t.arrow": m.forge_bytes}),
    "arrow stream": Reader(_use_stream("t.arrow"), {"t.arrow": m.forge_bytes}),
    "images": Reader(
        _use_images,
        {
            "img_align_celeba/1.jpg": m.forge_bytes,
            "img_align_celeba/2.png": m.forge_bytes,
            "list_attr_celeba.txt": m.forge_text,
            "list_eval_partition.txt": m.forge_text,
        },
    ),
}
"""By name: model folders of each kind, run folders, audits, decisions, tables, archives, images."""


def prepare(folder: Path, run: Path, names: Iterable[str] = tuple(READERS)) -> None:
    """Write what is whole, a folder for each reader; a run is taken from elsewhere."""
    for name in names:
        place = folder / name
        file = next(iter(READERS[name].forges))
        if file.startswith("t."):
            place.mkdir(parents=True)
            _write_table(place / file)
        elif name in _CASES:
            _write_model(place, _CASES[name])
        else:
            _write_other(place, name, run)


_CASES = {
    "rules": "rules",
    "manifest": "rules",
    "group rules": "group thresholds",
    "members": "linear members",
    "trees": "trees with gaps in the table",
    "category trees": "own trees",
    "tree arrays": "own trees",
}


def _write_model(folder: Path, case: str) -> None:
    fitted_case(case)[0].save(folder)


def _write_other(folder: Path, name: str, run: Path) -> None:
    if name == "run":
        shutil.copytree(run, folder)
    elif name == "audit run":
        given: dict = {"prediction": "decided", "sensitive": "sex,town", "label": "label"}
        audit_file(_table(), **given).save(folder)
    elif name == "audit":
        folder.mkdir(parents=True)
        shutil.copy(run / "audit.json", folder)
    elif name == "decision":
        folder.mkdir(parents=True)
        signed = {"kind": "apfex.decision", "schema_version": 1, "point": 1, "name": "A"}
        text = {**signed, "reason": "B", "date": "2024-01-02", "data_sha256": "a", "run_id": "b"}
        (folder / "decision.json").write_text(json.dumps(text))
    elif name.startswith("checkpoint of "):
        _write_checkpoint(folder, name.removeprefix("checkpoint of "))
    elif name == "classifier":
        _write_classifier(folder)
    else:
        _write_images(folder)


def _write_classifier(folder: Path) -> None:
    given = {"max_gap": 1.0, "init": LogisticRegression().fit(NUMBERS, Y), "random_state": 0}
    clf = APFExClassifier(**given, n_points=4)
    clf.fit(NUMBERS, Y, sensitive_features=SENSITIVE).save(folder)


def _table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "sex": rng.choice(["F", "M"], 60),
            "town": np.array(["Bern", "Zürich", None], dtype=object)[rng.integers(0, 3, 60)],
            "age": rng.integers(18, 80, 60),
            "income": rng.normal(size=60).round(3),
            "day": pd.date_range("2024-01-01", periods=60),
            "decided": rng.integers(0, 2, 60),
            "label": rng.integers(0, 2, 60),
        }
    )


def _write_table(path: Path) -> None:
    table = _table()
    arrow = pa.Table.from_pandas(table.astype({"sex": "category"}), preserve_index=False)
    if path.suffix in (".csv", ".gz"):
        table.to_csv(path, index=False)
    elif path.suffix == ".xlsx":
        table.to_excel(path, index=False)
    elif path.suffix == ".parquet":
        pq.write_table(arrow, path, row_group_size=25)
    else:
        with pa.ipc.new_file(pa.OSFile(str(path), "wb"), arrow.schema) as writer:
            writer.write_table(arrow, 25)


def _write_images(folder: Path) -> None:
    (folder / "img_align_celeba").mkdir(parents=True)
    for name in ("1.jpg", "2.png"):
        Image.new("RGB", (60, 80), (10, 200, 90)).save(folder / "img_align_celeba" / name)
    rows = "2\nBlack_Hair Male Smiling\n1.jpg -1 -1 1\n2.png 1 -1 -1\n"
    (folder / "list_attr_celeba.txt").write_text(rows)
    (folder / "list_eval_partition.txt").write_text("1.jpg 0\n2.png 0\n")
