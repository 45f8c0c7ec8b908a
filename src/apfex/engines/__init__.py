"""Tables where they are: files past memory through DuckDB, and any table that Ibis reaches.

:func:`open_engine_table` takes a path, a glob, a folder, a URL, a database file, a frame, a table
of Ibis or a data frame of Spark; only what a query adds up ever comes back.
"""

from apfex.engines._addresses import without_secrets
from apfex.engines._open import EngineTable, is_for_engine, open_engine_table
from apfex.engines._order import OrderStatistics
from apfex.engines._query import exact_sum, literal, place_among
from apfex.engines._where import no_match, where_of

__all__: list[str] = []
