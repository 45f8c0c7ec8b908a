"""Columns of CSV that rows are grouped by: codes such as 01 and 1 stay two groups."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa


def typed_words(words: Iterable[str], decimal: str = ".") -> pa.Array:
    """Different cells of a column as what all of them are: numbers, true and false, or text.

    Dates stay as they stand, not as some calendar reads them.

    Examples
    --------
    >>> typed_words(["1", "02"]).to_pylist(), typed_words(["1", "x"]).to_pylist()
    ([1, 2], ['1', 'x'])
    """
    import pyarrow as pa
    from pyarrow import csv as arrow

    texts = list(words)
    if not texts:
        return pa.nulls(0)
    written = io.StringIO()
    csv.writer(written, quoting=csv.QUOTE_ALL).writerows([text] for text in texts)
    read = arrow.read_csv(
        io.BytesIO(written.getvalue().encode()),
        arrow.ReadOptions(column_names=["value"], block_size=2**30),
        arrow.ParseOptions(newlines_in_values=True),
        arrow.ConvertOptions(null_values=[], strings_can_be_null=False, decimal_point=decimal),
    )["value"].combine_chunks()
    is_number = pa.types.is_integer(read.type) or pa.types.is_floating(read.type)
    known = is_number or pa.types.is_boolean(read.type)
    return read if known else pa.array(texts, pa.string())


def typed_codes(words: Iterable[str], decimal: str = ".") -> pa.Array:
    """As :func:`typed_words`, but text where two spellings would become one number.

    Blanks around a number are no spelling of its own.

    Examples
    --------
    >>> typed_codes(["1", "02"]).to_pylist(), typed_codes(["1", "01"]).to_pylist()
    ([1, 2], ['1', '01'])
    """
    import pyarrow as pa

    texts = list(words)
    typed = typed_words(texts, decimal)
    if not (pa.types.is_integer(typed.type) or pa.types.is_floating(typed.type)):
        return typed
    spelled: dict[Any, str] = {}
    for text, value in zip(texts, typed.to_pylist(), strict=True):
        own = text.strip(" \t")
        if spelled.setdefault(value, own) != own:
            return pa.array(texts, pa.string())
    return typed


def as_codes(cells: pa.ChunkedArray, decimal: str = ".") -> pa.ChunkedArray:
    """A whole column of cells by :func:`typed_codes`; missing ones stay missing."""
    import pyarrow as pa

    words = cells.unique().drop_null()
    typed = typed_codes(words.to_pylist(), decimal)
    if pa.types.is_string(typed.type):
        return cells
    if pa.types.is_null(typed.type):
        return pa.chunked_array([pa.nulls(len(cells))])
    places = [typed.take(_places(chunk, words)) for chunk in cells.chunks]
    return pa.chunked_array(places, typed.type)


def _places(cells: pa.Array, words: pa.Array) -> Any:
    import pyarrow.compute

    compute: Any = pyarrow.compute  # whose functions are made when it is loaded
    return compute.index_in(cells, value_set=words)
