"""Mixed-type tables to one float matrix, stored as JSON; and samples of rows."""

from apfex.tables._arrays import in_memory
from apfex.tables._columns import matrix_of, read_table, unmasked
from apfex.tables._encoder import TableEncoder
from apfex.tables._indexes import check_indexes
from apfex.tables._inferred import inferred
from apfex.tables._plans import FARTHEST, Fill
from apfex.tables._sampling import stratified_sample, systematic_sample
from apfex.tables._summary import TableSummary, summarize

__all__ = ["TableEncoder"]
