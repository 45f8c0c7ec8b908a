"""Partitions of a Dask DataFrame are on disk for as long as a run reads them."""

import tempfile
import warnings

import pandas as pd
import pyarrow.parquet as pq
import pytest

from apfex.sources._dask_frames import stored_frame
from apfex.streams import spool_folder

dd = pytest.importorskip("dask.dataframe", reason="needs the extra dask")


def test_its_rows_stay_while_a_fit_makes_a_folder_beside_them(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    frame = pd.DataFrame({"x": range(10)})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with stored_frame(dd.from_pandas(frame, npartitions=2)) as folder:
            with spool_folder() as other:
                assert other.parent == folder.parent
            assert pq.read_table(folder).column("x").to_pylist() == [*range(10)]
    assert not list(tmp_path.iterdir())
