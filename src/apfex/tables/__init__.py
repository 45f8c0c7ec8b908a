"""Mixed-type tables to one float matrix: fitted in one mergeable pass, stored as JSON."""

from apfex.tables._encoder import TableEncoder
from apfex.tables._masks import unmasked
from apfex.tables._plans import FARTHEST
from apfex.tables._sampling import stratified_sample
from apfex.tables._summary import TableSummary, summarise

__all__ = [
    "FARTHEST",
    "TableEncoder",
    "TableSummary",
    "stratified_sample",
    "summarise",
    "unmasked",
]
