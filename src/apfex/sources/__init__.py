"""Tables as users have them: files, folders of files, frames; whole, or some rows at a time."""

from apfex.sources._csv import check_encoding, told_as_run_errors
from apfex.sources._dask_frames import stored_frame
from apfex.sources._errors import RunError, RunWarning, hint, named, path_of, unknown
from apfex.sources._streams import Batch, TableStream, open_stream
from apfex.sources._tables import (
    ENDINGS,
    Table,
    ending_of,
    nearest_file,
    open_table,
    stored_schema,
    to_pandas,
)
from apfex.sources._writers import open_writer

__all__: list[str] = []
