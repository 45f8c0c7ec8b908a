"""Files from elsewhere: how CSV is written, what packed ones hold, and folders of a process."""

from apfex.files._apart import check_apart
from apfex.files._csv_cells import CellTypes, to_values, typed_cells
from apfex.files._csv_codes import as_codes, is_code, typed_codes, typed_words
from apfex.files._csv_dialect import (
    CSV_ENDINGS,
    NO_VALUE,
    Dialect,
    check_quotes,
    csv_dataset,
    csv_options,
    first_line,
    read_dialect,
    read_dialects,
    reading_csv,
    stream_csv,
    told_fault,
    with_common_decimal,
)
from apfex.files._csv_quotes import EncodingError
from apfex.files._empty_floats import empty_floats, of_no_type
from apfex.files._extension_types import whole_with_gaps, with_storage
from apfex.files._frames import frame_to_arrow
from apfex.files._held import clean_up_left, hold, new_held_folder, remove_held_folder
from apfex.files._kinds import kinds_in_words
from apfex.files._nested import check_single, unusable_columns
from apfex.files._packed import check_zip, unpacked_size
from apfex.files._repeated_text import check_places, check_text, read_parquet_batches
from apfex.files._unchanged import unchanged

__all__: list[str] = []
