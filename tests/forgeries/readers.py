"""Every reader of a file that somebody else may have written: whole files, and how they are used."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.forgeries import mutations as m
from tests.persistence.test_bundle import forge

Forge = Callable[[Callable, bytes], bytes]


@dataclass(frozen=True)
class Reader:
    """A folder of files, how each is forged, and what is then done with it."""

    use: Callable[[Path], Any]
    forges: Mapping[str, Forge]
    after: Callable[[Path], Any] = lambda _: None


def _use_model(folder: Path) -> None:
    from tests.persistence.saved import NEW

    _decide(folder, NEW)


def _use_numbers(folder: Path) -> None:
    from tests.persistence.saved import NEW_NUMBERS

    _decide(folder, NEW_NUMBERS)


def _use_categories(folder: Path) -> None:
    from tests.persistence.saved import NEW, with_categories

    _decide(folder, with_categories(NEW))


def _decide(folder: Path, rows: Any) -> None:
    from apfex.estimator import load

    clf = load(folder)
    people = {"sensitive_features": _people()} if clf.fitted_.groups is not None else {}
    for place in range(min(3, len(clf.front_))):
        point = clf.at(place)
        point.predict(rows, **people)
        point.predict_proba(rows, **people)
    repr(clf.front_)
    clf.front_.to_frame()


def _people() -> Any:
    from tests.estimator.tables import FRESH

    return FRESH.sensitive.head(150)


def _use_run(folder: Path) -> None:
    from tests.people import people

    from apfex.runs import load_run

    run = load_run(folder)
    repr(run)
    run.report(folder / "again.html")
    _ = run.conclusion, run.caveats, run.data, run.decision, run.audit
    run.predict(people(20))


def _use_audit(folder: Path) -> None:
    from apfex.auditing import Audit

    found = Audit.from_json((folder / "audit.json").read_text(errors="surrogateescape"))
    found.to_markdown()
    str(found)


def _use_audit_run(folder: Path) -> None:
    from apfex.runs import load_audit

    load_audit(folder).report(folder / "again.html")


def _use_decision(folder: Path) -> None:
    from apfex.report import read_decision

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
        from apfex.runs._streams import open_stream

        stream = open_stream(folder / name)
        for batch in stream.batches(10):
            batch.rows.to_pandas()

    return use


def _use_stream(name: str) -> Callable[[Path], None]:
    def use(folder: Path) -> None:
        from apfex.streams import open_stream

        stream = open_stream(str(folder / name), folder)
        for frame in stream.frames(stream.columns, 10):
            frame.describe()

    return use


def _use_engine(name: str) -> Callable[[Path], None]:
    def use(folder: Path) -> None:
        from apfex.auditing import audit_table

        audit_table(str(folder / name), prediction="decided", sensitive=["sex"], criteria="dp")

    return use


def _use_images(folder: Path) -> None:
    from apfex.datasets import load_images

    for part in (None, "train"):
        images = load_images(folder, size=16, part=part)
        for place in range(len(images)):
            images[place]


def _resign(folder: Path) -> None:
    """Most forgers know how to compute a sha256."""
    try:
        forge(folder)
    except (ValueError, KeyError, TypeError, AttributeError):
        return


MODEL = {"content.json": m.forge_json, "arrays.safetensors": m.forge_bytes}
RUN = dict.fromkeys(("run.json", "front.json", "audit.json"), m.forge_json)
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
    "classifier": Reader(
        _use_numbers, {"model-0.skops": m.forge_zip, "content.json": m.forge_json}, _resign
    ),
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
"""By name: a model folder of each kind, run folders, audits, decisions, tables, archives, images."""


def prepare(folder: Path, run: Path) -> None:
    """Write what is whole, a folder for each reader, by the names above."""
    _write_models(folder)
    _write_run(folder, run)
    _write_tables(folder)
    _write_images(folder / "images")


def _write_models(folder: Path) -> None:
    import shutil

    from sklearn.linear_model import LogisticRegression
    from tests.persistence.saved import NUMBERS, SENSITIVE, Y, fitted_case

    from apfex.estimator import APFExClassifier

    cases = {
        "rules": "rules",
        "group rules": "group thresholds",
        "members": "linear members",
        "trees": "trees with gaps in the table",
        "category trees": "own trees",
    }
    for name, case in cases.items():
        fitted_case(case)[0].save(folder / name)
    given = {"max_gap": 1.0, "init": LogisticRegression().fit(NUMBERS, Y), "random_state": 0}
    clf = APFExClassifier(**given, n_points=4)
    clf.fit(NUMBERS, Y, sensitive_features=SENSITIVE).save(folder / "classifier")
    shutil.copytree(folder / "rules", folder / "manifest")


def _write_run(folder: Path, run: Path) -> None:
    import shutil

    from apfex.runs import audit_file

    shutil.copytree(run, folder / "run")
    table = _table()
    audit_file(table, prediction="decided", sensitive="sex,town", label="label").save(
        folder / "audit run"
    )
    (folder / "audit").mkdir()
    shutil.copy(run / "audit.json", folder / "audit")
    (folder / "decision").mkdir()
    signed = {"kind": "apfex.decision", "schema_version": 1, "point": 1, "name": "A", "reason": "B"}
    text = json.dumps({**signed, "date": "2024-01-02", "data_sha256": "a", "run_id": "b"})
    (folder / "decision" / "decision.json").write_text(text)


def _table() -> Any:
    import numpy as np
    import pandas as pd

    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "sex": rng.choice(["F", "M"], 60),
            "town": rng.choice(["Bern", "Zürich", None], 60),
            "age": rng.integers(18, 80, 60),
            "income": rng.normal(size=60).round(3),
            "day": pd.date_range("2024-01-01", periods=60),
            "decided": rng.integers(0, 2, 60),
            "label": rng.integers(0, 2, 60),
        }
    )


def _write_tables(folder: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = _table()
    arrow = pa.Table.from_pandas(table.astype({"sex": "category"}), preserve_index=False)
    for name, reader in READERS.items():
        file = next(iter(reader.forges))
        if not file.startswith("t."):
            continue
        path = folder / name / file
        path.parent.mkdir()
        if file.endswith((".csv", ".gz")):
            table.to_csv(path, index=False)
        elif file.endswith(".xlsx"):
            table.to_excel(path, index=False)
        elif file.endswith(".parquet"):
            pq.write_table(arrow, path, row_group_size=25)
        else:
            with pa.ipc.new_file(pa.OSFile(str(path), "wb"), arrow.schema) as writer:
                writer.write_table(arrow, 25)


def _write_images(folder: Path) -> None:
    from PIL import Image

    (folder / "img_align_celeba").mkdir(parents=True)
    for name in ("1.jpg", "2.png"):
        Image.new("RGB", (60, 80), (10, 200, 90)).save(folder / "img_align_celeba" / name)
    rows = "2\nBlack_Hair Male Smiling\n1.jpg -1 -1 1\n2.png 1 -1 -1\n"
    (folder / "list_attr_celeba.txt").write_text(rows)
    (folder / "list_eval_partition.txt").write_text("1.jpg 0\n2.png 0\n")
