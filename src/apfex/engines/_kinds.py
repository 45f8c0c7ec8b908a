"""Whether a column is the same in all Parquet files: read as another type it would be changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import PurePath
from typing import Any

from apfex.engines._csv import files_sql, listed_sql
from apfex.plain import listed

_WHOLE = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT")
_WHOLE += ("UINTEGER", "UBIGINT", "UHUGEINT")
_KINDS = {**dict.fromkeys(_WHOLE, "whole numbers"), "VARCHAR": "text", "BOOLEAN": "true and false"}
_KINDS |= {"FLOAT": "numbers", "DOUBLE": "numbers", "DATE": "dates"}
_NUMBERS = ("whole numbers", "numbers", "decimals")
NOTHING = "no values"


def check_kinds(
    files: Sequence[str],
    columns: Sequence[str],
    numbers: Sequence[str],
    rows_of: Callable[[str], list[tuple[Any, ...]]],
) -> None:
    """Refuse files that lack a column, or in which it holds something else than in the first.

    Whole numbers of different widths are the same, and so are floats; a column without any values
    goes with every kind. Columns in ``numbers`` may be any kind of number.
    """
    names = [name for name in columns if not _is_partition(name, files[0])]
    if not names:
        return
    is_url = "://" in files[0]  # whose marks are a pattern still
    rows = rows_of(
        "SELECT file_name, column_id, name, duckdb_type, logical_type, num_children FROM "
        f"parquet_schema({listed_sql(files) if is_url else files_sql(files)})"
    )
    kinds = _by_file(sorted(rows, key=lambda row: row[:2]))
    first: dict[str, tuple[str, str]] = {}
    for file, own in kinds.items():
        for name in names:
            if name not in own:
                raise ValueError(
                    f"{file} has no column {name!r}, which other files have; it has "
                    f"{listed(list(own))}. Leave the file out, or write the column."
                )
            kind = "numbers" if name in numbers and own[name] in _NUMBERS else own[name]
            if kind == NOTHING:
                continue
            known, where = first.setdefault(name, (kind, file))
            if kind != known:
                raise ValueError(
                    f"{name} must hold the same kind of values in all files, got {known} in "
                    f"{where} and {kind} in {file}; write them alike."
                )


def _by_file(rows: Sequence[tuple[Any, ...]]) -> dict[str, dict[str, str]]:
    """Kinds of the columns of each file, from the nodes of its schema."""
    kinds: dict[str, dict[str, str]] = {}
    inner = 0  # nodes of the present column that are still to come
    for file, _, name, stored, logical, children in rows:
        if file not in kinds:  # the root, whose children are the columns
            kinds[file], inner = {}, 0
            continue
        if inner == 0:
            known = "nested values" if children else _kind(str(stored))
            kinds[file][name] = NOTHING if "Null" in str(logical) else known
            inner = 1
        inner += int(children or 0) - 1
    return kinds


def _kind(stored: str) -> str:
    if stored.startswith("DECIMAL"):
        return "decimals"
    return _KINDS.get(stored, stored.lower())


def _is_partition(name: str, file: str) -> bool:
    """Whether a column is a folder such as ``month=5``."""
    return any(part.startswith(f"{name}=") for part in PurePath(file).parts[:-1])
