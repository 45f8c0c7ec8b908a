"""Files with the same columns: one schema for all, or an error that names file and column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from apfex.files import kinds_in_words, with_common_decimal
from apfex.plain import nearest, printable
from apfex.sources._csv import told_as_run_errors
from apfex.sources._errors import RunError
from apfex.sources._tables import Table

if TYPE_CHECKING:
    import pyarrow as pa


def common_schema(schemas: Sequence[tuple[str, pa.Schema]]) -> pa.Schema:
    """Columns of all files, in the order of the first.

    Parameters
    ----------
    schemas : sequence of (str, Schema)
        With the names of the files.

    Returns
    -------
    pyarrow.Schema
        Whole numbers in one file and others in the next are numbers, a column without any type has
        that of the others; anything else that differs is an error.

    Examples
    --------
    >>> import pyarrow as pa
    >>> one, two = pa.schema([("n", pa.int64())]), pa.schema([("n", pa.float64())])
    >>> common_schema([("a", one), ("b", two)])
    n: double
    """
    import pyarrow as pa

    first, schema = schemas[0]
    types = dict(zip(schema.names, schema.types, strict=True))
    known_from = dict.fromkeys(types, first)
    for file, other in schemas[1:]:
        _check_columns(first, list(types), file, other.names)
        for name in types:
            found = other.field(name).type
            common = _common_type(types[name], found)
            if common is None:
                here, there = kinds_in_words(found, types[name])
                raise RunError(
                    f"{file}: {printable(name)} holds {here}, but {there} in {known_from[name]}; "
                    "write all files with one type.",
                    found=name,
                )
            if common != types[name]:
                types[name], known_from[name] = common, file
    alone = len(schemas) == 1
    return pa.schema(list(types.items()), schema.metadata if alone else None)


def _check_columns(first: str, known: Sequence[str], file: str, found: Sequence[str]) -> None:
    lacking = [name for name in known if name not in found]
    more = [name for name in found if name not in known]
    if lacking:
        near = nearest(lacking[0], more)
        hint = f"; is '{printable(near)}' meant to be {lacking[0]}?" if near else "."
        raise RunError(
            f"{file} lacks the column {printable(lacking[0])}, which {first} has{hint}",
            found=lacking[0],
            suggestion=near,
        )
    if more:
        raise RunError(
            f"{file} has a column {printable(more[0])}, which {first} lacks; files that are read "
            "as one table must have the same columns.",
            found=more[0],
        )


def _common_type(one: pa.DataType, two: pa.DataType) -> pa.DataType | None:
    """The type that holds the values of both; None where there is none, as for text and numbers."""
    import pyarrow as pa

    if one == two:
        return one
    one, two = (t.value_type if pa.types.is_dictionary(t) else t for t in (one, two))
    if any(map(pa.types.is_binary, (one, two))) and one != two:
        return None
    try:
        parts = [pa.schema([("x", type)]) for type in (one, two)]
        return pa.unify_schemas(parts, promote_options="permissive").field("x").type
    except (pa.ArrowTypeError, pa.ArrowInvalid):
        return None


def to_schema(rows: pa.Table, schema: pa.Schema, file: str) -> pa.Table:
    """Rows of a file with the columns and types of all files."""
    import pyarrow as pa

    columns = []
    for field in schema:
        column = rows[field.name]
        try:
            columns.append(column if column.type == field.type else column.cast(field.type))
        except pa.ArrowInvalid:
            raise RunError(  # Arrow's own words show a value, which may be about people
                f"{file}: {printable(field.name)} has values that cannot be read as "
                f"{kinds_in_words(field.type)[0]}, which it is in other files, without a change; "
                "write all files with one type.",
                found=field.name,
            ) from None
    return pa.Table.from_arrays(columns, schema=schema)


def common_decimal(tables: Sequence[Table]) -> list[Table]:
    """CSV files with one decimal mark: a comma where one of them has that."""
    paths = [table.path for table in tables if table.path is not None and table.dialect]
    dialects = [table.dialect for table in tables if table.dialect]
    with told_as_run_errors():
        known = with_common_decimal(paths, dialects)
    if not known:
        return list(tables)
    return [replace(table, dialect=own) for table, own in zip(tables, known, strict=True)]
