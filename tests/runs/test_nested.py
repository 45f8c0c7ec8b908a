"""Lists and records in files and frames."""

import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from apfex import explore
from apfex.sources._tables import Table

NESTED = {"lists": [["a"]] * 8, "records": [{"a": 1}] * 8}


@pytest.mark.parametrize("source", ["t.parquet", "t.arrow", "frame"])
@pytest.mark.parametrize("label", ["y", *NESTED])
@pytest.mark.parametrize("drop", [[], [*NESTED]])
def test_lists_and_records_are_refused_unread(tmp_path, monkeypatch, source, label, drop):
    """Of a few bytes any number of them may come, and no value they would be."""
    table = pa.table({"y": [0, 1] * 4, "sex": list("ffmm") * 2, "x": range(8), **NESTED})
    pq.write_table(table, tmp_path / "t.parquet")
    feather.write_feather(table, tmp_path / "t.arrow")
    path = table.to_pandas() if source == "frame" else tmp_path / source
    monkeypatch.setattr(Table, "_read", lambda *_: pytest.fail("is read"))
    left = [name for name in NESTED if name not in (*drop, label)]
    message = rf"{label} must hold single values, got a column of type (list|struct)<.*; leave"
    if left:
        message = rf"neither numbers.*: {', '.join(left)}\. Leave them out: drop=\["
    elif label == "y":
        message = "is read"
    with pytest.raises(BaseException, match=message):  # pytest.fail is no Exception
        explore(path, label=label, sensitive=["sex"], drop=[one for one in drop if one != label])


def test_lists_and_records_of_a_stream_are_refused_unread(tmp_path):
    table = pa.table({"y": [0, 1] * 4, "sex": list("ffmm") * 2, **NESTED})
    pq.write_table(table, tmp_path / "t.parquet")
    for label in NESTED:
        drop = [name for name in NESTED if name != label]
        with pytest.raises(ValueError, match=rf"{label} must hold single values, got .*; leave it"):
            explore(tmp_path / "t.parquet", label=label, sensitive=["sex"], drop=drop, stream=True)
