"""No message and no record holds what an address keeps secret."""

import json
import traceback

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from apfex.engines import EngineTable, _addresses, _open, open_engine_table, without_secrets
from apfex.engines._kinds import check_kinds
from apfex.runs import audit_file

SHOWN = {
    "people.csv": "people.csv",
    "data/month=?/*.parquet": "data/month=?/*.parquet",
    "postgres://host/base": "postgres://host/base",
    "postgres://host:5432/base": "postgres://host:5432/base",
    "postgres://me:secret@host/base": "postgres://host/base",
    "postgres://secret@host/base": "postgres://host/base",
    "postgres://me:secret@@host/base": "postgres://host/base",
    "postgres://me:s@secret@host/base": "postgres://host/base",
    "postgres://me:a/secret@host/base": "postgres://host/base",
    "postgres://me:12/secret@host/base": "postgres://host/base",
    "postgres://me:a/secret@secret@host/base": "postgres://host/base",
    "postgres://me:a?secret@host/base": "postgres://...",
    "postgres://me:a#secret@host/base": "postgres://...",
    "postgres://me:s@a?secret@host/base?password=secret": "postgres://...",
    "postgres://host/base?user=me&password=secret": "postgres://host/base?...",
    "postgres://host/base?password=a@secret": "postgres://...",
    "https://host/people.parquet?X-Amz-Signature=secret": "https://host/people.parquet?...",
    "https://host/people.parquet#token=secret": "https://host/people.parquet?...",
    "https://me:secret@host:8080/people.csv": "https://host:8080/people.csv",
    "https://host:8080/data@v1/people.csv": "https://host:8080/data@v1/people.csv",
    "https://me:a/secret@host/people.csv": "https://host/people.csv",
    "s3://bucket/me@home/people.parquet": "s3://bucket/me@home/people.parquet",
    "s3://bucket/people.parquet?s3_secret_access_key=secret": "s3://bucket/people.parquet?...",
    "abfss://box@store.net/people.parquet": "abfss://store.net/people.parquet",
}


@pytest.mark.parametrize(("address", "shown"), SHOWN.items())
def test_an_address_is_shown_without_secrets(address, shown):
    assert without_secrets(address) == shown
    assert without_secrets(shown) == shown


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("Can't read port 'a'", "Can't read port '...'"),
        ('no host "b@host"', 'no host "..."'),
        ("'base' is away", "'base' is away"),
        ("No db://me:a/b@host/base here", "No db://host/base here"),
        ("GET https://host/f.csv?key=b: 403", "GET https://host/f.csv?... 403"),
    ],
)
def test_what_an_engine_says_of_an_address_is_without_its_secrets(said, shown):
    assert _addresses.said_without_secrets(said, ["db://me:a/b@host/base"]) == shown


@pytest.mark.parametrize(
    "source",
    [
        "nowhere://me:kept1@host/base",
        "postgres://me:kept1/1@host/base",
        "https://me:kept1@127.0.0.1:9/people.parquet?X-Amz-Signature=kept1",
        "https://host/people?X-Amz-Signature=kept1",
        ["https://host/people.csv?sig=kept1", "people.csv"],
    ],
)
def test_errors_hold_no_secrets(source, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "people.csv").write_text("y\n1\n")
    with pytest.raises(ValueError, match=r"host|127") as caught:
        open_engine_table(source)
    assert "kept1" not in "".join(traceback.format_exception(caught.value))


def test_files_that_differ_are_named_without_secrets():
    files = [f"https://host/{place}.parquet?sig=secret" for place in range(2)]
    schema = [
        row
        for file, kind in zip(files, ("BIGINT", "VARCHAR"), strict=True)
        for row in ((file, 0, "root", None, None, 1), (file, 1, "y", kind, None, None))
    ]
    for column, said in (("y", "must hold the same kind"), ("g", "has no column 'g'")):
        with pytest.raises(ValueError, match=said) as caught:
            # the columns have values; their kinds alone are looked at
            check_kinds(files, [column], [], lambda q: schema if "schema(" in q else [(1,)])
        assert "secret" not in str(caught.value)


def test_the_record_of_an_audit_holds_no_secrets(tmp_path, monkeypatch):
    """The rows are those of a file here; only the address is that of one elsewhere."""
    address = "https://me:secret@host/people.parquet?X-Amz-Signature=secret"
    path = tmp_path / "people.parquet"
    pq.write_table(pa.table({"decided": [0, 1] * 200, "sex": ["F", "F", "M", "M"] * 100}), path)
    monkeypatch.setattr(_open, "_parquet_query", lambda _: f"FROM read_parquet('{path}')")
    monkeypatch.setattr(EngineTable, "check", lambda *_: None)  # it reads the files' schema
    run = audit_file(address, prediction="decided", sensitive="sex", criteria="dp")
    assert run.data is not None
    folder = run.save(tmp_path / "run")
    texts = [one.read_text(encoding="utf-8") for one in folder.iterdir()]
    assert not [text for text in [*texts, repr(run.data), run.to_markdown()] if "secret" in text]
    record = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    assert record["data"]["name"] == "https://host/people.parquet?..."
    assert record["settings"]["source"] == "https://host/people.parquet?..."
