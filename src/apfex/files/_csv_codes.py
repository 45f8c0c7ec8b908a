"""Columns of CSV that rows are grouped by: codes such as 01 stay what they are."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

_WHOLE = re.compile("0|-?[1-9][0-9]*")
"""Whole numbers as Python writes them, however long."""


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
    """As :func:`typed_words`, but text where a cell may be a code, and no number or truth value.

    Such are numbers in another spelling than their usual one, and two spellings of one value.
    Blanks around a number are no spelling of its own.

    Examples
    --------
    >>> typed_codes(["1", "2.5"]).to_pylist(), typed_codes(["01", "2"]).to_pylist()
    ([1.0, 2.5], ['01', '2'])
    >>> typed_codes(["True", "0"]).to_pylist(), typed_codes(["True", "1"]).to_pylist()
    ([True, False], ['True', '1'])
    """
    import pyarrow as pa

    texts = list(words)
    typed = typed_words(texts, decimal)
    if pa.types.is_string(typed.type):
        return typed
    spelled: dict[Any, str] = {}
    for text, value in zip(texts, typed.to_pylist(), strict=True):
        own = text.strip(" \t")
        if not _is_usual(own, value, decimal) or spelled.setdefault(value, own) != own:
            return pa.array(texts, pa.string())
    return typed


def is_code(word: str) -> bool:
    """Whether a word is a number, but not in its usual spelling.

    Examples
    --------
    >>> is_code("01"), is_code("1"), is_code("a")
    (True, False, False)
    """
    import pyarrow as pa

    is_number = not pa.types.is_string(typed_words([word]).type)
    return is_number and pa.types.is_string(typed_codes([word]).type)


def _is_usual(text: str, value: bool | float, decimal: str) -> bool:
    """Whether Python writes a number so: 1, -3 or 2.5, but not 01, 1.50, +5, 1e3 or .5."""
    if isinstance(value, bool):
        return True
    if _WHOLE.fullmatch(text):
        return int(text) == value  # beyond 64 bits a float may be another number
    return isinstance(value, float) and repr(value).replace(".", decimal) == text


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
