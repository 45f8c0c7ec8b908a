"""Any table as one of Ibis: files, globs, folders, URLs, database files, frames, other engines."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, final

from apfex.arguments import check_path
from apfex.engines._addresses import (
    has_secrets,
    is_remote,
    local_path,
    said_without_secrets,
    without_secrets,
)
from apfex.engines._csv import CsvFiles, remote_csv_query
from apfex.engines._duckdb import connect_duckdb
from apfex.engines._files import find_files, is_pattern
from apfex.engines._frames import frame_table, is_stream
from apfex.engines._kinds import check_kinds, check_sqlite, columns_of_files, is_half
from apfex.engines._names import alike_in_parquet, alike_names, refuse_alike, unclear_columns
from apfex.engines._query import number_of, quiet
from apfex.engines._sql import files_sql
from apfex.files import typed_codes, typed_words
from apfex.plain import listed, nearest

_VIEW = "apfex_files"
_MOST_CODES = 4_000_000
"""Different cells beyond which a column of CSV stays text: nobody groups by so many."""
_DATABASES = {"sqlite": (b"SQLite format 3\0", slice(16)), "duckdb": (b"DUCK", slice(8, 12))}
"""What stands at the beginning of their files, and where."""


@final
@dataclass(frozen=True, eq=False)
class EngineTable:
    """A table in an engine; made by :func:`open_engine_table`.

    Attributes
    ----------
    name : str
        How messages and records call it: an address without what should stay a secret.
    table : Ibis table
    backend : Ibis backend
        That computes it.
    files : tuple of str
        Where it is read from, if from files.
    format : str
        "parquet", "csv", "duckdb", "sqlite", "database" or "table".
    close : callable
        Gives back what was opened for it; a user's own connections stay.
    alike : tuple of tuples of str
        Names of columns that the engine takes for one; none of them can be asked for.
    every : Ibis table
        All rows, of which ``table`` may hold some.
    csv : CsvFiles or None
        Of files of CSV on this machine.
    decided : dict
        What cells of CSV are in columns that rows are grouped by, once it is known.
    half : frozenset of str
        Columns of a frame that hold floats of 16 bits, and here have 32.
    """

    name: str
    table: Any
    backend: Any
    files: tuple[str, ...] = ()
    format: str = "table"
    close: Callable[[], None] = lambda: None
    alike: tuple[tuple[str, ...], ...] = ()
    every: Any = None
    csv: CsvFiles | None = None
    decided: dict[str, dict[str, Any]] = field(default_factory=dict)
    half: frozenset[str] = frozenset()

    @property
    def columns(self) -> tuple[str, ...]:
        """Names, also of columns that cannot be asked for."""
        unclear = (name for names in self.alike for name in names)
        return tuple(dict.fromkeys([*self.table.columns, *unclear]))

    @property
    def local_files(self) -> tuple[str, ...]:
        """Files of this machine that each query reads anew; databases keep their rows together."""
        is_local = self.format in ("parquet", "csv") and not any(map(is_remote, self.files))
        return self.files if is_local else ()

    @cached_property
    def engine(self) -> str:
        """Name of the backend, as "duckdb"."""
        return str(self.backend.name)

    def column(self, name: str, argument: str) -> str:
        """The name, if there is such a column; an error that suggests the nearest otherwise."""
        refuse_alike(name, argument, self.alike, self.name, self.engine)
        if name in self.columns:
            return name
        near = nearest(str(name), self.columns)
        said = (
            f"did you mean {near!r}?" if near else f"it has {listed(self.columns) or 'no columns'}."
        )
        raise ValueError(f"{argument} must name a column of {self.name}, got {name!r}; {said}")

    def check(self, columns: Sequence[str], numbers: Sequence[str] = ()) -> None:
        """Refuse what cannot be grouped by, and files in which a column holds something else.

        ``numbers`` are columns that are read as numbers, whichever kind of number each file has.
        """
        for name in columns:
            refuse_alike(name, "Each argument", self.alike, self.name, self.engine)
        self.check_files(columns, numbers)
        for name in columns:
            kind = self.table[name].type()
            if kind.is_nested() or kind.is_json():
                raise ValueError(
                    f"{name} must hold single values, got a column of type {kind} in {self.name}."
                )
            if kind.is_interval():
                raise ValueError(
                    f"{name} must hold numbers, text, dates or times, got durations in "
                    f"{self.name}; make text or a number of seconds of them."
                )
        if self.engine == "sqlite":
            check_sqlite(self.table, columns, numbers, self.fetch)

    def check_files(self, columns: Sequence[str], numbers: Sequence[str] = ()) -> None:
        """Refuse files that lack a column, or hold something else in it than others."""
        if columns and self.format == "parquet":
            check_kinds(self.files, columns, numbers, self.rows_of)
        if columns and self.csv is not None:
            self.csv.check(columns)

    def number(self, column: Any) -> Any:
        """A column as float64; cells of text that are no numbers become null."""
        return number_of(column, self.decimal)

    def bits(self, name: str) -> int:
        """Of the floats of a column as it is stored; 64 where it holds other numbers, or text."""
        kind = self.table[name].type()
        if not kind.is_floating():
            return 64
        may_be_half = self.format == "parquet" and kind.nbytes == 4
        if name in self.half or (may_be_half and is_half(name, self.files, self.rows_of)):
            return 16
        return 8 * int(kind.nbytes)

    def key(self, name: str) -> Any:
        """A column as rows are told apart by it; times in SQLite are the text that stands there.

        SQLite has no times: Ibis would read 01.02.2024 as the second of January, and whole numbers
        as seconds.
        """
        column = self.table[name]
        kind = column.type()
        if kind.is_unknown() and "TIME_NS" in str(kind):  # as polars writes times into Parquet
            return column.cast("time")
        is_word = self.engine == "sqlite" and kind.is_temporal()
        return column.cast("string") if is_word else column

    def lacks(self, column: Any) -> Any:
        """Whether a value is missing: null, or the float that stands for it where there is one."""
        from ibis.expr.operations import IsNan

        missing = column.isnull()
        if column.type().is_floating() and self.backend.has_operation(IsNan):
            # DuckDB takes a column of Parquet to have no NaN, as its extremes there leave NaN out;
            # of exponentials, which are NaN where the numbers are, it knows none
            return missing | (column.exp() if self.engine == "duckdb" else column).isnan()
        return missing

    def fetch(self, expression: Any) -> Any:
        """The rows of a query as a table of Arrow; an error in one sentence."""
        try:
            with quiet():
                if self.engine == "pyspark":  # by Arrow, without a detour through pandas
                    return self.backend.raw_sql(self.backend.compile(expression)).toArrow()
                if self.engine == "sqlite":
                    return _by_text(expression, self.backend)
                return self.backend.to_pyarrow(expression)
        except Exception as error:
            raise _unreadable(self, error) from self._cause(error)

    def rows_of(self, query: str) -> list[tuple[Any, ...]]:
        """The rows of a query of our own in the embedded engine."""
        try:
            return self.backend.con.execute(query).fetchall()
        except Exception as error:
            raise _unreadable(self, error) from self._cause(error)

    @property
    def decimal(self) -> str:
        """The mark before decimals in text."""
        return "." if self.csv is None else self.csv.decimal

    def _cause(self, error: Exception) -> Exception | None:
        """An engine's error, unless it may name an address with its secrets."""
        return None if any(map(has_secrets, self.files)) else error

    def values(self, column: Any) -> list[Any]:
        """A column that was fetched, as Python's values; cells of CSV as what all of them are."""
        values = column.to_pylist()
        known = list(dict.fromkeys(value for value in values if value is not None))
        if self.format != "csv" or not known or not isinstance(known[0], str):
            return values
        typed = dict(zip(known, typed_words(known, self.decimal).to_pylist(), strict=True))
        return [None if value is None else typed[value] for value in values]

    def codes(self, name: str, column: Any) -> list[Any]:
        """As :meth:`values`, of a column that rows are grouped by.

        What it holds is decided once, on all rows of all files, whichever are chosen; see
        :func:`~apfex.files.typed_codes`.
        """
        if self.format != "csv":
            return column.to_pylist()
        known = self._decided(name, column if self.every is self.table else None)
        return [known.get(value, value) for value in column.to_pylist()]

    def is_text(self, name: str) -> bool:
        """Whether a column of CSV would be grouped by as text."""
        return any(isinstance(value, str) for value in self._decided(name).values())

    def truths(self, name: str) -> dict[str, bool]:
        """What each cell of CSV says, true or false; none where some say something else."""
        known = self._decided(name)
        return known if all(isinstance(value, bool) for value in known.values()) else {}

    def _decided(self, name: str, column: Any = None) -> dict[str, Any]:
        """What each cell of a column of CSV is; ``column`` has all of them, if it is given."""
        if name not in self.decided:
            if column is None:
                cells = self.every.select(name).distinct().limit(_MOST_CODES + 1)
                column = self.fetch(cells)[name]
            words = column.unique().drop_null().to_pylist()
            few = len(words) <= _MOST_CODES
            typed = typed_codes(words, self.decimal).to_pylist() if few else words
            self.decided[name] = dict(zip(words, typed, strict=True))
        return self.decided[name]


def _by_text(expression: Any, backend: Any) -> Any:
    """Rows whose whole numbers come as text: beside missing ones Ibis would make floats of them."""
    whole = [name for name, type in expression.schema().items() if type.is_integer()]
    words = expression.mutate(**{name: expression[name].cast("string") for name in whole})
    found = backend.to_pyarrow(words)
    for name in whole:
        place = found.schema.get_field_index(name)
        found = found.set_column(place, name, found[name].cast("int64"))
    return found


def is_for_engine(source: Any) -> bool:
    """Whether a source is one for an engine: Parquet, several files, a database, a URL."""
    if not isinstance(source, str | os.PathLike):
        kind = f"{type(source).__module__}.{type(source).__name__}"
        is_query = kind.startswith(("ibis.", "pyspark.")) or kind.endswith(".LazyFrame")
        return is_query or is_stream(source)
    check_path("source", source)
    text = os.fspath(source)
    path = Path(text)
    if path.is_file():
        return path.suffix.lower() in (".parquet", ".pq") or _database(path) is not None
    return "://" in text or is_pattern(text) or path.is_dir()


def open_engine_table(
    source: Any, table: str | None = None, encoding: str | None = None
) -> EngineTable:
    """Look at a table: what computes it, and which columns it has.

    Parameters
    ----------
    source : path, glob, folder, URL, list of these, table of Ibis, data frame, stream of Arrow
        Files are Parquet or CSV; a folder holds Parquet files, also in partitions such as
        ``month=5``. A file of DuckDB or SQLite, or a URL such as ``postgres://``, has tables. URLs
        of files of this machine (``file://``, ``duckdb://``, ``sqlite://``) are their paths.
    table : str, optional
        Which table of a database, if it has several.
    encoding : str, optional
        Of CSV files of this machine; by default what their marks say, or UTF-8.
    """
    import ibis

    with quiet():
        if isinstance(source, str | os.PathLike):
            check_path("source", source)
            opened = _open_path(local_path(os.fspath(source)), table, encoding)
        elif _is_list_of_paths(source):
            for one in source:
                check_path("source", one)
            opened = _open_files([local_path(os.fspath(one)) for one in source], encoding)
        elif isinstance(source, ibis.Table):
            backend = ibis.get_backend(source)
            alike = alike_names(source.columns, str(backend.name))
            opened = EngineTable("the table", source, backend, alike=alike)
        else:
            found = frame_table(source)
            alike = alike_names(found.columns, str(found.backend.name))
            opened = EngineTable(
                found.name,
                found.table,
                found.backend,
                close=found.close,
                alike=alike,
                half=found.half,
            )
    if table is not None and opened.format not in ("duckdb", "sqlite", "database"):
        raise ValueError(
            f"{opened.name} is no database, and has no table {table!r}; leave the name out."
        )
    return opened


def _open_path(text: str, table: str | None, encoding: str | None) -> EngineTable:
    path = Path(text)
    database = _database(path) if path.is_file() else None
    if database is not None:
        return _open_database(text, database, table)
    if "://" in text and not is_remote(text):
        return _open_database(text, "database", table)
    return _open_files([text], encoding)


def _is_list_of_paths(source: Any) -> bool:
    is_list = isinstance(source, list | tuple) and len(source) > 0
    return is_list and all(isinstance(one, str | os.PathLike) for one in source)


def _open_files(texts: Sequence[str], encoding: str | None) -> EngineTable:
    first, others = without_secrets(texts[0]), len(texts) - 1
    name = f"{first} and {others:,} more" if others else first
    files, format = find_files(*texts)
    csv = CsvFiles(files, encoding) if format == "csv" and not is_remote(files[0]) else None
    backend, close = connect_duckdb()
    opened = EngineTable(name, None, backend, files, format, csv=csv)
    try:
        alike: tuple[tuple[str, ...], ...] = ()
        if csv is not None:
            alike = csv.alike
            backend.con.register(_VIEW, csv.dataset())
        else:
            query = _parquet_query(files) if format == "parquet" else remote_csv_query(files)
            backend.con.execute(f"CREATE TEMP VIEW {_VIEW} AS {query}")
        found = backend.table(_VIEW)
        if format == "parquet":
            every = found.columns
            alike = alike_in_parquet(every, files, lambda: columns_of_files(files, opened.rows_of))
            found = found.drop(unclear_columns(every, alike))
    except Exception as error:
        told = _unreadable(opened, error)
        close()
        raise told from opened._cause(error)
    return replace(opened, table=found, every=found, close=close, alike=alike)


def _parquet_query(files: Sequence[str]) -> str:
    several = len(files) > 1 or is_remote(files[0])
    union = ", union_by_name=true" if several else ""
    return f"SELECT * FROM read_parquet({files_sql(files)}{union})"


def _database(path: Path) -> str | None:
    """Whose file it is, by its first bytes."""
    with path.open("rb") as stream:
        start = stream.read(16)
    return next((name for name, (mark, at) in _DATABASES.items() if start[at] == mark), None)


def _open_database(text: str, kind: str, table: str | None) -> EngineTable:
    import ibis

    try:
        if kind == "duckdb":
            backend, close = connect_duckdb(text)
        else:
            backend = ibis.sqlite.connect(text) if kind == "sqlite" else ibis.connect(text)
            close = backend.disconnect
        tables = sorted(_tables(backend) if kind == "duckdb" else backend.list_tables())
    except Exception as error:
        said = _first_line(error, text)
        lacks = "missing dependencies" in said
        remedy = f" Install ibis-framework[{text.split(':')[0]}]." if lacks else ""
        shown, cause = without_secrets(text), None if has_secrets(text) else error
        raise ValueError(f"{shown} cannot be opened: {said}{remedy}") from cause
    address, text, files = text, without_secrets(text), (text,) if kind != "database" else ()
    if table is None and len(tables) != 1:
        has = f"{len(tables)} tables ({listed(tables)}); name the one that is meant"
        raise ValueError(f"{text} has {has if tables else 'no tables'}.")
    chosen = tables[0] if table is None else table
    if chosen not in tables:
        near = nearest(chosen, tables)
        said = f"did you mean {near!r}?" if near else f"it has {listed(tables) or 'none'}."
        raise ValueError(f"{text} has no table {chosen!r}; {said}")
    name = f"{text} ({chosen})"
    try:
        chosen_table = backend.table(chosen)
    except Exception as error:  # as of a view that says it is a file
        cause = None if has_secrets(address) else error
        raise ValueError(f"{name} cannot be read: {_first_line(error, address)}") from cause
    return EngineTable(name, chosen_table, backend, files, kind, close)


def _tables(backend: Any) -> list[str]:
    """Tables and views of a file of DuckDB."""
    query = (
        "SELECT table_name FROM information_schema.tables WHERE table_catalog = current_database() "
        "AND table_schema = current_schema()"
    )
    return [name for (name,) in backend.con.execute(query).fetchall()]


def _unreadable(opened: EngineTable, error: Exception) -> Exception:
    """What an engine said, in one sentence."""
    if "out of memory" in str(error).lower():
        return MemoryError(
            f"{opened.name} has more groups, or longer words, than memory: "
            f"{_first_line(error, *opened.files)} Put numbers into bins, or leave a column out."
        )
    if is_remote(opened.name) and "extension" in str(error):
        return ValueError(
            f"{opened.name} needs an extension of DuckDB that is not installed here: run `INSTALL "
            "httpfs` in DuckDB once, with a network, or copy the files to this machine."
        )
    if "Internal Arrow Type e" in str(error):
        return ValueError(
            f"{opened.name} has a column of floats of 16 bits, which {opened.engine} does not "
            "read; make floats of 32 bits of it."
        )
    fault = None if opened.csv is None else opened.csv.fault(error)
    if fault is not None:
        return fault
    said = _first_line(error, *opened.files).rstrip(".")
    return ValueError(f"{opened.name} cannot be read by {opened.engine}: {said}.")


def _first_line(error: Exception, *addresses: str) -> str:
    """What an error says first, without the secrets of addresses that it was about."""
    said = (str(error).strip() or type(error).__name__).splitlines()[0]
    said = said_without_secrets(said, addresses)
    return said[:300] + ("..." if len(said) > 300 else "")
