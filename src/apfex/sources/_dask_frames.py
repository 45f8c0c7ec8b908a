"""A Dask DataFrame as files: brought over one partition at a time, then read in chunks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from apfex.sources._errors import RunError
from apfex.streams import full_disk, spool_folder


@contextmanager
def stored_frame(frame: Any) -> Iterator[Path]:
    """A folder of Parquet files with the partitions of a frame; it is removed at the end.

    They are written here and not by workers, whose disks may be those of other machines.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    with spool_folder() as folder:
        rows = 0
        for place in range(frame.npartitions):
            table = pa.Table.from_pandas(frame.partitions[place].compute(), preserve_index=False)
            rows += table.num_rows
            path = folder / f"{place:06d}.parquet"
            try:
                if table.num_rows:
                    pq.write_table(table, path)
            except OSError as error:
                raise full_disk(error, path) from error
        if not rows:
            raise RunError("The Dask DataFrame has column names, but no rows.")
        yield folder
