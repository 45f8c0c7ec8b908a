"""Columns of floats without any value, as pandas stores what is empty: they are of no type."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa


def empty_floats(
    schemas: Sequence[pa.Schema],
    is_empty: Callable[[int, str], bool],
    categories: Collection[str] = (),
) -> Iterator[tuple[int, str]]:
    """Which schemas say floats of a column that is empty, and in other files something else.

    Parameters
    ----------
    schemas : sequence of Schema
        Of files that are read as one table.
    is_empty : callable
        Of the place of a file and the name of a column: whether that has no value there.
    categories : collection of str
        Columns of which also other numbers are something else.
    """
    import pyarrow as pa

    for name in schemas[0].names:
        told = [
            (place, one.field(name).type) for place, one in enumerate(schemas) if name in one.names
        ]
        types = {type for _, type in told} - {pa.null()}
        if len(types) < 2 or (name not in categories and all(map(_is_number, types))):
            continue
        for place, type in told:
            if pa.types.is_floating(type) and is_empty(place, name):
                yield place, name


def of_no_type(schema: pa.Schema, name: str) -> pa.Schema:
    """A schema with one column, if it is there, of no type."""
    import pyarrow as pa

    place = schema.get_field_index(name)
    return schema if place < 0 else schema.set(place, pa.field(name, pa.null()))


def _is_number(type: pa.DataType) -> bool:
    import pyarrow as pa

    return pa.types.is_integer(type) or pa.types.is_floating(type)
