"""Whether a column is the same in all Parquet files: read as another type it would be changed.

And whether SQLite, which takes any value anywhere, holds what it says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import Any
from urllib.parse import unquote

from apfex.engines._addresses import without_secrets
from apfex.engines._sql import column_sql, files_sql
from apfex.plain import listed

_WHOLE = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT")
_WHOLE += ("UINTEGER", "UBIGINT", "UHUGEINT")
_KINDS = {**dict.fromkeys(_WHOLE, "whole numbers"), "VARCHAR": "text", "BOOLEAN": "true and false"}
_KINDS |= {"FLOAT": "numbers", "DOUBLE": "numbers", "DATE": "dates"}
_NUMBERS = ("whole numbers", "numbers", "decimals")
NOTHING = "no values"
_EXACT, _EXACT_SINGLE = 53, 24
"""Bits of whole numbers beyond which they are not all floats, of double and of single precision."""
_NO_FOLDER = "__HIVE_DEFAULT_PARTITION__"


def check_kinds(
    files: Sequence[str],
    columns: Sequence[str],
    numbers: Sequence[str],
    rows_of: Callable[[str], list[tuple[Any, ...]]],
) -> None:
    """Refuse files that lack a column, or in which it holds something else than in the first.

    Numbers are numbers, whole in one file or not; a column without any values goes with every
    kind. Columns in ``numbers`` may also be decimals. What the folder of a file says of a column
    must be what the file itself holds, if it holds it.
    """
    rows = _schemas(files, rows_of)
    kinds = {file: dict(own) for file, own in _by_file(rows).items()}
    for name in columns:
        if _folder_value(name, files[0]) is not None and any(name in own for own in kinds.values()):
            _check_partitions(kinds, name, rows_of)
    names = [name for name in columns if _folder_value(name, files[0]) is None]
    for file, own in kinds.items():
        for name in names:
            if name not in own:
                raise ValueError(
                    f"{without_secrets(file)} has no column {name!r}, which other files have; "
                    f"it has {listed(list(own))}. Leave the file out, or write the column."
                )
    mixed = []
    for name in names:
        held = {file: own[name] for file, own in kinds.items() if own[name] != NOTHING}
        if name in numbers:
            held = {file: "numbers" if kind in _NUMBERS else kind for file, kind in held.items()}
        if "text" in held.values():  # what is read with text is text, also a gap
            held = {
                file: kind
                for file, kind in held.items()
                if kind == "text" or _has_values(name, file, rows_of)
            }
        _check_alike(name, held)
        if len(set(held.values())) > 1:
            mixed.append(name)
    doubles = {name for _, _, name, stored, *_ in rows if stored == "DOUBLE"}
    for name in mixed:
        whole = [file for file, own in kinds.items() if own[name] == "whole numbers"]
        bits = _EXACT if name in doubles else _EXACT_SINGLE
        _check_exact(name, files_sql(whole), bits, rows_of)


def _check_alike(name: str, held: Mapping[str, str]) -> None:
    """Refuse another kind than that of the first file; whole numbers are numbers."""
    where, known = next(iter(held.items()), ("", ""))
    for file, kind in held.items():
        if kind != known and {kind, known} != {"numbers", "whole numbers"}:
            raise ValueError(
                f"{name} must hold the same kind of values in all files, got {known} in "
                f"{without_secrets(where)} and {kind} in {without_secrets(file)}; write them alike."
            )


def _has_values(name: str, file: str, rows_of: Callable[[str], list[tuple[Any, ...]]]) -> bool:
    """Whether a column has a value in a file at all."""
    query = f"SELECT count({column_sql(name)}) FROM read_parquet({files_sql([file])})"
    ((values,),) = rows_of(query)
    return values > 0


def columns_of_files(
    files: Sequence[str], rows_of: Callable[[str], list[tuple[Any, ...]]]
) -> list[list[str]]:
    """Names of the columns of each file as it has them, a name twice where it has it twice."""
    return [[name for name, _ in own] for own in _by_file(_schemas(files, rows_of)).values()]


def is_half(
    name: str, files: Sequence[str], rows_of: Callable[[str], list[tuple[Any, ...]]]
) -> bool:
    """Whether a column of Parquet files is of floats of 16 bits, which DuckDB reads as 32."""
    own = [logical for _, _, column, _, logical, _ in _schemas(files, rows_of) if column == name]
    return bool(own) and all("Float16" in str(logical) for logical in own)


def _schemas(
    files: Sequence[str], rows_of: Callable[[str], list[tuple[Any, ...]]]
) -> list[tuple[Any, ...]]:
    """Nodes of the schemas of Parquet files, file by file and in order."""
    from_files = files_sql(files)
    rows = rows_of(
        "SELECT file_name, column_id, name, duckdb_type, logical_type, num_children FROM "
        f"parquet_schema({from_files})"
    )
    return sorted(rows, key=lambda row: row[:2])


def _check_partitions(
    files: Iterable[str], name: str, rows_of: Callable[[str], list[tuple[Any, ...]]]
) -> None:
    """Refuse files that hold other values in a column than their folder's name tells."""
    column = column_sql(name)
    for file in files:
        told = _folder_value(name, file)
        query = f"SELECT DISTINCT {column} FROM read_parquet({files_sql([file])}, "
        for (value,) in rows_of(f"{query}hive_partitioning=false) LIMIT 3"):
            if told is not None and not _is_same(value, told):
                raise ValueError(
                    f"{name} must be in {without_secrets(file)} what its folder says, {told}, got "
                    f"{value!r} in the column of that name; rename the folder or the column."
                )


def _check_exact(
    name: str, from_files: str, bits: int, rows_of: Callable[[str], list[tuple[Any, ...]]]
) -> None:
    """Refuse whole numbers that no float is equal to, where other files hold floats."""
    column = column_sql(name)
    ((most,),) = rows_of(
        f"SELECT max(abs({column}::HUGEINT)) FROM read_parquet({from_files}, union_by_name=true)"
    )
    if most is not None and most > 2**bits:
        raise ValueError(
            f"{name} must hold whole numbers up to 2^{bits} where other files hold floats of "
            f"{32 if bits == _EXACT_SINGLE else 64} bits, got larger ones; write it as text in "
            "all files."
        )


def check_sqlite(
    table: Any, columns: Sequence[str], numbers: Sequence[str], fetch: Callable[[Any], Any]
) -> None:
    """Refuse values of another kind than their column's: SQLite keeps any, and misreads them.

    It counts text as 0, 0.7 among whole numbers as 0 and 2 among truths as true, and bytes and
    numbers would be taken for the text that they look like. Columns in ``numbers`` may hold any.
    """
    types = {name: table[name].type() for name in columns}
    counts = {}
    for name, type in types.items():
        kind = table[name].typeof()
        rows = {one: kind == one for one in _OF_SQLITE}
        if type.is_boolean():
            rows["integer"] &= table[name].cast("int64").notin([0, 1])
        counts |= {f"{one} {name}": chosen.sum() for one, chosen in rows.items()}
    (found,) = fetch(table.aggregate(**counts)).to_pylist()
    for name, type in types.items():
        wanted, strange = _rule_of(type, is_number=name in numbers)
        if wanted == "text" and not found[f"text {name}"]:
            continue  # nothing but numbers, which are text of one form
        for kind in strange:
            if rows := found[f"{kind} {name}"]:
                raise ValueError(
                    f"{name} must hold {wanted}, as its type {type} says, got {_OF_SQLITE[kind]} "
                    f"in {rows:,} rows; write {wanted}, or declare the column as what it holds."
                )


_OF_SQLITE = {"text": "text", "blob": "bytes", "real": "other numbers", "integer": "whole numbers"}
"""What a value is by ``typeof`` of SQLite."""


def _rule_of(type: Any, *, is_number: bool) -> tuple[str, tuple[str, ...]]:
    """What a column of a type must hold, and which values of SQLite are something else."""
    if type.is_boolean():
        return "1 and 0", ("text", "blob", "real", "integer")
    if type.is_integer() and not is_number:
        return "whole numbers", ("text", "blob", "real")
    if type.is_numeric():
        return "numbers", ("text", "blob")
    return ("text", ("blob", "real", "integer")) if type.is_string() else ("values", ())


def _is_same(value: Any, told: str) -> bool:
    """Whether a stored value is that of a folder's name, as a number where both are."""
    if value is None:
        return told == _NO_FOLDER
    if isinstance(value, bool):
        return str(value).lower() == told.lower()
    try:
        return float(value) == float(told)
    except (TypeError, ValueError):
        return str(value) == told


def _by_file(rows: Sequence[tuple[Any, ...]]) -> dict[str, list[tuple[str, str]]]:
    """Columns of each file and their kinds, from the nodes of its schema."""
    kinds: dict[str, list[tuple[str, str]]] = {}
    inner = 0  # nodes of the present column that are still to come
    for file, _, name, stored, logical, children in rows:
        if file not in kinds:  # the root, whose children are the columns
            kinds[file], inner = [], 0
            continue
        if inner == 0:
            known = "nested values" if children else _kind(str(stored))
            kinds[file].append((name, NOTHING if "Null" in str(logical) else known))
            inner = 1
        inner += int(children or 0) - 1
    return kinds


def _kind(stored: str) -> str:
    if stored.startswith("DECIMAL"):
        return "decimals"
    return _KINDS.get(stored, stored.lower())


def _folder_value(name: str, file: str) -> str | None:
    """What a folder such as ``month=5`` says of a column; None where none does."""
    parts = (part.partition("=") for part in PurePath(file).parts[:-1])
    found = [unquote(value) for key, sign, value in parts if sign and unquote(key) == name]
    return found[-1] if found else None
