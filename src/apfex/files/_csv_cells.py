"""Cells of CSV as values: each by itself, so that it means the same in whatever part of a file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, final

from apfex.files._csv_dialect import NO_VALUE

if TYPE_CHECKING:
    import pyarrow as pa

_YES, _NO = ("1", "true", "True", "TRUE"), ("0", "false", "False", "FALSE")


def to_values(cells: pa.ChunkedArray, kind: str | None, decimal: str = ".") -> pa.ChunkedArray:
    """Cells of one column as "number", "boolean", or text; text where some cell is none.

    Examples
    --------
    >>> import pyarrow as pa
    >>> to_values(pa.chunked_array([["1", " 2.5", "NA"]]), "number").to_pylist()
    [1.0, 2.5, None]
    >>> to_values(pa.chunked_array([["1", "two"]]), "number").to_pylist()
    ['1', 'two']
    """
    import pyarrow as pa

    known = _without_missing(cells)
    types = {"number": pa.float64(), "boolean": pa.bool_()}
    found = _cast(known, types[kind], decimal) if kind in types else None
    return known if found is None else found


@final
class CellTypes:
    """The types of columns of cells, found part by part: those that every cell of a column has.

    They are the ones that reading the whole file at once finds: whole numbers, true and false,
    numbers, else text (dates too, as they stand).

    Parameters
    ----------
    columns : sequence of str
    decimal : str

    Attributes
    ----------
    with_gaps : set of str
        Columns of which some cells are missing; of text they are not looked for.

    Examples
    --------
    >>> import pyarrow as pa
    >>> types = CellTypes(["a"], ".")
    >>> types.see(pa.table({"a": ["1", "NA"]}))
    >>> types.see(pa.table({"a": ["2.5", ""]}))
    >>> types.schema()
    a: double
    """

    def __init__(self, columns: Sequence[str], decimal: str) -> None:
        import pyarrow as pa

        types = (pa.null(), pa.int64(), pa.bool_(), pa.float64())
        self._possible = {name: list(types) for name in columns}
        self._decimal = decimal
        self.with_gaps: set[str] = set()

    def see(self, cells: pa.Table) -> None:
        """Rule out what the cells of one more part are not."""
        for name, possible in self._possible.items():
            if possible:
                known = _without_missing(cells[name])
                if known.null_count:
                    self.with_gaps.add(name)
                known = known.drop_null()
                kept = [t for t in possible if _cast(known, t, self._decimal) is not None]
                self._possible[name] = kept

    def schema(self) -> pa.Schema:
        """Types of all columns by what was seen."""
        import pyarrow as pa

        return pa.schema([(name, (ts or [pa.string()])[0]) for name, ts in self._possible.items()])


def typed_cells(cells: pa.Table, schema: pa.Schema, decimal: str) -> pa.Table:
    """Cells as values of types that :class:`CellTypes` has found."""
    import pyarrow as pa

    columns: dict[str, pa.ChunkedArray] = {}
    for field in schema:
        known = _without_missing(cells[field.name])
        found = _cast(known, field.type, decimal)
        if found is None:  # though all parts were seen before
            raise ValueError(
                f"{field.name} held {field.type} when its types were looked at, and now does not: "
                "somebody writes to the files that are read; wait for the end of it."
            )
        columns[field.name] = found
    return pa.table(columns, schema=schema)


def _compute() -> Any:
    """Arrow's functions, which are made when it is loaded, so that no type checker knows them."""
    import pyarrow.compute

    return pyarrow.compute


def _without_missing(cells: pa.ChunkedArray) -> pa.ChunkedArray:
    import pyarrow as pa

    pc = _compute()
    missing = pc.is_in(cells, pa.array(NO_VALUE))
    return pc.if_else(missing, pa.scalar(None, pa.string()), cells)


def _cast(known: pa.ChunkedArray, type: pa.DataType, decimal: str) -> pa.ChunkedArray | None:
    """Text as another type, as Arrow reads it from CSV; None where some of it is not."""
    import pyarrow as pa

    pc = _compute()
    if pa.types.is_string(type):
        return known
    if pa.types.is_null(type):
        return pa.chunked_array([pa.nulls(len(known))]) if known.null_count == len(known) else None
    if pa.types.is_boolean(type):
        is_word = pc.is_in(known.drop_null(), pa.array(_YES + _NO))
        found = pc.if_else(known.is_valid(), pc.is_in(known, pa.array(_YES)), None)
        return found if pc.all(is_word, min_count=0).as_py() else None
    text = pc.utf8_trim(known, " \t")
    if decimal != "." and pa.types.is_floating(type):
        text = pc.replace_substring(pc.replace_substring(text, ".", "no number"), decimal, ".")
    try:
        return pc.cast(text, type)
    except pa.ArrowInvalid:
        return None
