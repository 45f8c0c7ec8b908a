"""Mixed-type tables to one float matrix: fitted in one mergeable pass, stored as JSON."""

from ._encoder import TableEncoder
from ._summary import TableSummary, summarise

__all__ = ["TableEncoder", "TableSummary", "summarise"]
