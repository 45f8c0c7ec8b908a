"""Types of Arrow that others have added: JSON is text, and what is unknown is what holds it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import pyarrow as pa

    Rows = TypeVar("Rows", pa.Table, pa.RecordBatch)


def storage_type(type: pa.DataType) -> pa.DataType:
    """The type that holds the values; the type itself where nobody has added to it."""
    import pyarrow as pa

    return type.storage_type if isinstance(type, pa.BaseExtensionType) else type


def with_storage(rows: Rows) -> Rows:
    """The same rows with types that pandas knows: its own of a UUID, else what holds the values."""
    import pyarrow as pa

    for place, one in enumerate(rows.schema):
        if isinstance(one.type, pa.BaseExtensionType) and one.type.extension_name != "arrow.uuid":
            plain = rows.column(place).cast(one.type.storage_type)
            rows = rows.set_column(place, one.name, plain)
    return rows


def whole_with_gaps(column: pa.Array | pa.ChunkedArray) -> Any:
    """Whole numbers of which some are missing, as pandas keeps them whole and does not round."""
    import pandas as pd

    name = str(column.type).replace("uint", "UInt").replace("int", "Int")
    dtype: Any = pd.api.types.pandas_dtype(name)
    return dtype.__from_arrow__(column)
