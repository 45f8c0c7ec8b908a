"""Lists and records: no values of a table, and refused before they are read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from apfex.files._frames import FOR_GROUPS

if TYPE_CHECKING:
    import pyarrow as pa


def unusable_columns(schema: pa.Schema, columns: Sequence[str]) -> list[str]:
    """Those of some columns that hold lists, records or bytes, or are text for groups alone."""
    import pyarrow as pa

    kinds = (pa.types.is_nested, pa.types.is_binary, pa.types.is_large_binary)
    fields = [schema.field(name) for name in columns]
    return [
        field.name
        for field in fields
        if FOR_GROUPS in (field.metadata or {}) or any(is_one(field.type) for is_one in kinds)
    ]


def check_single(schema: pa.Schema, columns: Sequence[str], table: str) -> None:
    """Refuse lists and records: a few bytes of a file may stand for any number of them."""
    import pyarrow as pa

    for name in columns:
        type = schema.field(name).type
        if pa.types.is_nested(type):
            raise ValueError(
                f"{name} must hold single values, got a column of type {type} in {table}; "
                "leave it out."
            )
