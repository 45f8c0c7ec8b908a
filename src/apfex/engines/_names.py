"""Names of columns that differ only in case: engines take them for one, and read the wrong one."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import PurePath
from typing import Any
from urllib.parse import unquote

from apfex.plain import listed

_CASELESS = ("duckdb", "sqlite", "pyspark", "mysql", "mssql", "bigquery")
_COUNTED = re.compile(r"(?:_\d+)+\Z")
"""What DuckDB adds to the second of two names that it takes for one."""
_PATTERN = re.compile(r"\^.*\$", re.DOTALL)


def alike_names(columns: Iterable[str], engine: str = "duckdb") -> tuple[tuple[str, ...], ...]:
    """Names that an engine takes for one; only letters of ASCII have a case there.

    Polars takes a name such as ``*`` or ``^a.*$`` for a pattern of names.

    Examples
    --------
    >>> alike_names(["Y", "y", "sex"])
    (('Y', 'y'),)
    """
    if engine == "polars":
        return tuple((name,) for name in columns if name == "*" or _PATTERN.fullmatch(name))
    alike: dict[bytes, list[str]] = {}
    for name in columns if engine in _CASELESS else ():
        alike.setdefault(_caseless(name), []).append(name)
    return tuple(tuple(names) for names in alike.values() if len(names) > 1)


def alike_in_parquet(
    columns: Sequence[str],
    files: Sequence[str],
    columns_of: Callable[[], Iterable[Sequence[str]]],
) -> tuple[tuple[str, ...], ...]:
    """Names in Parquet files, and in those of their folders, that DuckDB takes for one.

    ``columns`` are those of DuckDB, which calls the second of two otherwise; only where some are
    called so, or folders name columns, the columns of each file are looked at.
    """
    known = {_caseless(name) for name in columns}
    counted = any(_caseless(_COUNTED.sub("", n)) in known for n in columns if _COUNTED.search(n))
    folders = {key for file in files for key in _folder_keys(file)}
    if not counted and not folders:
        return ()
    found: set[tuple[str, ...]] = set()
    for own in columns_of():
        both = [*own, *(key for key in sorted(folders) if key not in own)]
        for names in alike_names(both):
            found.add((*names, *(name for name in both if _is_counted(name, [names]))))
    return tuple(sorted(found))


def unclear_columns(columns: Iterable[str], alike: Sequence[Sequence[str]]) -> list[str]:
    """Columns of DuckDB that nobody can ask for, also as it calls a second one."""
    hidden = {name for names in alike for name in names}
    return [name for name in columns if name in hidden or _is_counted(name, alike)]


def refuse_alike(
    name: str, argument: str, alike: Iterable[Sequence[str]], table: str, engine: str
) -> None:
    """Refuse a name that the engine takes for that of another column, too."""
    for names in alike:
        if name in names and engine == "polars":
            raise ValueError(
                f"{argument} must name one column of {table}, got {name!r}, which polars takes for "
                "a pattern of names; rename the column."
            )
        if name in names:
            others = [other for other in names if other != name] or [name]
            raise ValueError(
                f"{argument} must name one column of {table}, got {name!r}, which {engine} cannot "
                f"tell from {listed([repr(other) for other in others])}; rename one, or read the "
                "rows into memory and give their columns to audit."
            )


def _caseless(name: str) -> bytes:
    return name.encode("utf-8", "surrogatepass").lower()


def _is_counted(name: str, alike: Sequence[Sequence[str]]) -> bool:
    """Whether DuckDB may call the second of two columns so."""
    base = _caseless(_COUNTED.sub("", name))
    return _COUNTED.search(name) is not None and any(base == _caseless(own[0]) for own in alike)


def _folder_keys(file: str) -> list[str]:
    """Columns that folders such as ``month=5`` name; what another machine says is no folder."""
    parts: list[Any] = [part.partition("=") for part in PurePath(file).parts[:-1]]
    return [] if "://" in file else [unquote(key) for key, sign, _ in parts if sign]
