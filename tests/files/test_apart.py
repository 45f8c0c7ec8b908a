"""A file that comes twice, as a link beside what it leads to, is refused by all who read files."""

import os

import pandas as pd
import pytest

from apfex.auditing import audit_table
from apfex.sources import RunError, open_stream
from apfex.streams import open_files

READERS = {
    "predict": open_stream,
    "explore": open_files,
    "audit": lambda files: audit_table(files, prediction="yhat", sensitive="sex"),
}


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("make", [os.symlink, os.link])
@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
def test_the_rows_of_a_file_count_once(tmp_path, read, make, ending):
    first, last = tmp_path / f"may.{ending}", tmp_path / f"zlatest.{ending}"
    frame = pd.DataFrame({"sex": ["F", "M"] * 40, "yhat": [0, 1, 1, 1] * 20})
    frame.to_csv(first, index=False) if ending == "csv" else frame.to_parquet(first)
    make(first, last)
    with pytest.raises(ValueError, match=rf"zlatest.{ending} is the same file as .*may.{ending}"):
        read(str(tmp_path / f"*.{ending}"))
    last.unlink()
    os.symlink(first.rename(tmp_path / "kept"), last)  # by the link alone
    read(str(tmp_path / f"*.{ending}"))


def test_a_run_says_so_in_its_own_error(tmp_path):
    (tmp_path / "may.csv").write_text("a\n1\n")
    os.symlink("may.csv", tmp_path / "zlatest.csv")
    with pytest.raises(RunError, match="same file"):
        open_stream(tmp_path)
