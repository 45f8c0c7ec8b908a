"""What a column holds, in words for messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa


def kinds_in_words(*types: pa.DataType) -> list[str]:
    """What columns of these types hold; with the types where the words alone are the same.

    Examples
    --------
    >>> import pyarrow as pa
    >>> kinds_in_words(pa.large_string(), pa.float32())
    ['text', 'numbers']
    >>> kinds_in_words(pa.timestamp("s"), pa.timestamp("ms"))
    ['times (timestamp[s])', 'times (timestamp[ms])']
    """
    words = [_kind(one) for one in types]
    if len(set(words)) == len(set(types)):
        return words
    return [f"{word} ({one})" for word, one in zip(words, types, strict=True)]


def _kind(type: pa.DataType) -> str:
    from pyarrow import types

    if types.is_dictionary(type):
        return _kind(type.value_type)
    known = {
        "no values": types.is_null,
        "whole numbers": types.is_integer,
        "numbers": types.is_floating,
        "decimals": types.is_decimal,
        "true and false": types.is_boolean,
        "dates": types.is_date,
        "times": types.is_timestamp,
        "nested values": types.is_nested,
    }
    texts = (types.is_string, types.is_large_string, types.is_string_view)
    if any(check(type) for check in texts):
        return "text"
    return next((word for word, check in known.items() if check(type)), str(type))
