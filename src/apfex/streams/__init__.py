"""Tables that do not fit into memory: read in chunks, again and again, and kept on disk between."""

from apfex.streams._open import is_stream, open_stream
from apfex.streams._records import RecordFile, full_disk
from apfex.streams._samples import RowSample, column_of, count_cells, joined
from apfex.streams._settings import StreamSettings
from apfex.streams._source import Stream, open_files, paths_of
from apfex.streams._spool import spool_folder

__all__ = ["StreamSettings"]
