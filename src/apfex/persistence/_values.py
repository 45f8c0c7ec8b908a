"""Values that come back exactly as they were: type, bits and all, through plain JSON."""

from __future__ import annotations

import dataclasses
import datetime
import math
import re
import reprlib
import zoneinfo
from collections.abc import Callable, Collection, Mapping
from decimal import Decimal
from functools import partial
from typing import Any, NamedTuple, NoReturn, cast, final

import numpy as np
import pandas as pd

from apfex import strategies
from apfex.streams import StreamSettings
from apfex.strict_json import MOST_NESTED

_PLAIN = (type(None), bool, int, str)
_MOST_LEVELS = 12
"""Of lists within each other; each takes several in JSON, whose readers have a limit too."""
_SPARE_BYTES = 2**24
"""A type of text has room for its longest word in each place: few bytes could ask for much."""
_DAMAGES = (
    *(KeyError, IndexError, TypeError, ValueError, AttributeError),
    *(OverflowError, MemoryError, ArithmeticError),
)
"""What forged values make of builders that are not ours."""
_STRATEGIES: dict[str, Any] = {
    name: kind
    for name, kind in vars(strategies).items()
    if name in strategies.__all__ and dataclasses.is_dataclass(kind) and hasattr(kind, "decide")
} | {"StreamSettings": StreamSettings}
"""Those of this package, which are values with settings; and how a stream is fitted."""


class _Form(NamedTuple):
    """How values of exactly one type are written and read."""

    kind: type
    write: Callable[[Any], Any]
    read: Callable[[Any], Any]


def pack(value: Any, where: str = "value", level: int = 0) -> Any:
    """Turn a value into what JSON can hold, so that :func:`unpack` gives it back exactly.

    Parameters
    ----------
    value : None, bool, int, float, str, bytes, Decimal, date, list, tuple, dict, numpy or pandas
        Numpy's scalars and arrays keep their types; of pandas timestamps, timedeltas, periods,
        intervals, missing values and indexes are known. Also NaN and infinities, and the
        strategies and stream settings of this package with plain settings.
    where : str
        What the value is, for messages.
    level : int
        How deep it is within others.

    Returns
    -------
    None, bool, int, float, str, list or dict
        Mappings are marked by ``"is"``.

    Raises
    ------
    TypeError
        Where something would not come back as it was.

    Examples
    --------
    >>> pack([1, "a", None])
    [1, 'a', None]
    >>> unpack(pack((np.float32(0.1), float("inf"), np.array([True]))))
    (np.float32(0.1), inf, array([ True]))
    """
    if type(value) in _PLAIN or (type(value) is float and math.isfinite(value)):
        return value
    if level > _MOST_LEVELS:
        raise TypeError(
            f"{where.split('[')[0]} must have at most {_MOST_LEVELS} lists within each other to be "
            "stored, got more."
        )
    if type(value) is list:
        return [pack(part, f"{where}[{n}]", level + 1) for n, part in enumerate(value)]
    if type(value) is tuple:
        return {"is": "tuple", "value": pack(list(value), where, level + 1)}
    if type(value) is dict:
        pairs = [
            [pack(key, where, level + 1), pack(part, f"{where}[{key!r}]", level + 1)]
            for key, part in value.items()
        ]
        return {"is": "dict", "value": pairs}
    if type(value) in _STRATEGIES.values():
        given = {
            field.name: getattr(value, field.name)
            for field in dataclasses.fields(cast("Any", value))
        }
        return {"is": "strategy", "value": [type(value).__name__, pack(given, where)]}
    if isinstance(value, np.ndarray):
        return {"is": "array", "value": _write_array(value, where, level)}
    if isinstance(value, pd.Index):
        return {"is": "index", "value": _write_index(value, where)}
    if isinstance(value, np.generic):
        return {"is": "scalar", "value": _write_array(np.asarray(value), where, level)}
    for name, form in _FORMS.items():
        if type(value) is form.kind:
            return _checked(value, {"is": name, "value": form.write(value)}, where)
    raise TypeError(
        f"{where} must be of a plain type to be stored, got {_name(value)}; convert it, for "
        "instance to text or a number."
    )


def unpack(stored: Any) -> Any:
    """The value that :func:`pack` was given.

    Parameters
    ----------
    stored : None, bool, int, float, str, list or dict
        As from :func:`pack`, or from JSON.

    Returns
    -------
    Any of the types that :func:`pack` takes

    Examples
    --------
    >>> unpack({"is": "tuple", "value": [1, {"is": "float", "value": "nan"}]})
    (1, nan)
    """
    try:
        return _unpack(stored)
    except (*_DAMAGES, RecursionError) as error:
        raise ValueError(
            f"stored must be what pack has made, got {reprlib.repr(stored)} ({_said(error)})."
        ) from error


@final
class NotStored:
    """Stands for an argument that was not stored with a classifier, as a factory or a module.

    It is callable, as a factory is, but only to say that it is none.

    Parameters
    ----------
    argument : str
    what : str
        What it was.

    Examples
    --------
    >>> NotStored("model", "torch.nn.Linear")
    <model of the saved classifier, not stored: torch.nn.Linear>
    """

    def __init__(self, argument: str, what: str) -> None:
        self.argument, self.what = argument, what

    def __repr__(self) -> str:
        """Show what it was."""
        return f"<{self.argument} of the saved classifier, not stored: {self.what}>"

    def __call__(self, *_: Any) -> NoReturn:
        """Refuse."""
        raise ValueError(
            f"{self.argument} must be given again, as it was not stored with the classifier (it "
            f"was {self.what}); use set_params({self.argument}=...) before fit."
        )


def pack_arguments(arguments: Mapping[str, Any], needed: Collection[str]) -> dict[str, Any]:
    """Arguments by name, and what those were that cannot be stored; those needed must be."""
    stored, others = {}, {}
    for name, value in arguments.items():
        if isinstance(value, NotStored):
            others[name] = value.what
            continue
        try:
            stored[name] = pack(value, name)
        except TypeError:
            if name in needed:
                raise
            # its name alone: what it prints may be long, or tell of data
            others[name] = _name(value)
    return {"stored": stored, "not_stored": others}


def unpack_arguments(content: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments by name, with :class:`NotStored` for those that could not be stored."""
    stored = {name: unpack(value) for name, value in content["stored"].items()}
    others = {name: NotStored(name, str(what)) for name, what in content["not_stored"].items()}
    return stored | others


def _unpack(stored: Any, level: int = 0) -> Any:
    if level > MOST_NESTED:  # how deep Python goes is set by whoever runs it
        raise ValueError(f"it is nested deeper than {MOST_NESTED} levels")
    inner = partial(_unpack, level=level + 1)
    if isinstance(stored, list):
        return [inner(part) for part in stored]
    if not isinstance(stored, dict):
        return stored
    name, value = stored["is"], stored["value"]
    if name == "tuple":
        return tuple(inner(value))
    if name == "dict":
        return {inner(key): inner(part) for key, part in value}
    if name == "strategy":
        return _STRATEGIES[value[0]](**inner(value[1]))
    if name in ("array", "scalar"):
        array = _read_array(*value)
        return array if name == "array" else array[()]
    return _read_index(*value) if name == "index" else _FORMS[name].read(value)


def _checked(value: Any, stored: Any, where: str) -> Any:
    """Refuse a value that would not come back as it was, as one with a time zone of its own."""
    back = unpack(stored)
    same = type(back) is type(value) and repr(back) == repr(value)
    if not same:
        raise TypeError(
            f"{where} must come back as it was, got {_name(value)} {value!r}, of which {back!r} "
            "would be left; convert it, for instance to text."
        )
    return stored


def _said(error: BaseException) -> str:
    """What an error says; the bare name of a key says little."""
    return f"{error} is missing" if isinstance(error, KeyError) else str(error)[:200]


def _name(value: Any) -> str:
    kind = value if hasattr(value, "__qualname__") else type(value)
    return f"{kind.__module__}.{kind.__qualname__}"


_TICKS = "mM"
_DTYPES = "biufUS" + _TICKS
_DTYPE = re.compile(r"[<>|=]?[biufUSmM][0-9]{0,9}(\[[0-9]{0,9}[A-Za-z]{1,2}\])?", re.ASCII)
"""Kinds of numpy's types whose values are plain ones, or ticks of a clock."""


def _write_array(array: np.ndarray, where: str, level: int) -> list[Any]:
    kind, flat = array.dtype.kind, array.ravel()
    wide = kind == "f" and array.dtype.itemsize > 8  # wider than any plain number
    odd = kind == "T" and array.dtype != np.dtypes.StringDType()  # with a missing value of its own
    if type(array) is not np.ndarray or kind not in _DTYPES + "OT" or wide or odd:
        raise TypeError(
            f"{where} must be of a plain type to be stored, got {_name(array)} of {array.dtype}; "
            "convert it, for instance to text or a number."
        )
    items = flat.astype("i8") if kind in _TICKS else flat
    dtype = kind if kind in "OT" else array.dtype.str
    if _is_roomy(array.dtype, items.tolist()):
        raise TypeError(
            f"{where} must be of a type about as wide as its words to be stored, got "
            f"{array.dtype}; convert it to text of its own width."
        )
    return [dtype, list(array.shape), pack(items.tolist(), where, level + 1)]


def _read_array(dtype: str, shape: list[int], items: list[Any]) -> np.ndarray:
    values = _unpack(items)
    if not isinstance(values, list):
        raise ValueError("values of an array must be a list")
    if not all(type(n) is int and n >= 0 for n in shape) or math.prod(shape) != len(values):
        raise ValueError(f"an array of shape {shape} has {len(values)} values")
    if dtype == "O":
        array = np.empty(len(values), dtype=object)
        for place, value in enumerate(values):
            array[place] = value
    elif dtype == "T":
        array = np.array(values, dtype=np.dtypes.StringDType())
    else:
        kind = _dtype(dtype)
        if _is_roomy(kind, values):
            raise ValueError(f"{kind} takes far more room than the text that it is for")
        array = np.array(values, "i8" if kind.kind in _TICKS else kind).astype(kind)
    return array.reshape(shape)


def _dtype(name: str) -> np.dtype:
    """A type of plain values by its name, of which numpy knows more."""
    if not isinstance(name, str) or not _DTYPE.fullmatch(name):
        raise ValueError(f"{name!r} is no type of plain values")
    return np.dtype(name)


def _is_roomy(kind: np.dtype, values: list[Any]) -> bool:
    """Whether a type of text takes far more room than the text that it is for."""
    if kind.kind not in "US":
        return False
    room, found = kind.itemsize * max(1, len(values)), sum(len(value) for value in values)
    return room > _SPARE_BYTES + 64 * found


_ZONED = re.compile(r"datetime64\[[a-z]{1,2}, (.+)\]")
_OFFSET = re.compile(r"UTC([+-]\d\d:\d\d(:\d\d)?)?", re.ASCII)
_INDEX_DTYPE = re.compile(
    r"object|str|string|string\[[a-z_]+\]|bool|boolean|U?[iI]nt\d{1,2}|uint\d{1,2}|[fF]loat\d{1,2}"
    r"|(datetime64|timedelta64)\[[a-z]{1,2}\]|period\[[A-Za-z0-9-]{1,20}\]"
    r"|interval\[[a-z0-9]{1,10}(\[[a-z]{1,2}\])?, (left|right|both|neither)\]",
    re.ASCII,
)
"""Types of pandas' indexes that come back; others, as with zones or code of others, do not."""


def _write_index(index: pd.Index, where: str) -> list[Any]:
    stored = [str(index.dtype), [pack(item, where) for item in index.tolist()]]
    try:
        back = _read_index(*stored)
        same = back.dtype == index.dtype and index.name is None and back.equals(index)
        same = same and type(back) is type(index)
    except (TypeError, ValueError):
        same = False
    if not same:
        raise TypeError(
            f"{where} must come back as it was, got a pandas index of {index.dtype}; convert it, "
            "for instance to text."
        )
    return stored


def _read_index(dtype: str, items: list[Any]) -> pd.Index:
    zoned = _ZONED.fullmatch(dtype) if isinstance(dtype, str) else None
    if zoned:
        _check_zone(zoned[1])
    elif not isinstance(dtype, str) or not _INDEX_DTYPE.fullmatch(dtype):
        raise ValueError(f"{dtype!r} is no type of an index")
    return pd.Index(_unpack(items), dtype=dtype)


def _check_zone(name: Any) -> None:
    """Refuse what is no name of a time zone: pandas would open a file that is named so."""
    if isinstance(name, str) and _OFFSET.fullmatch(name):
        return
    try:
        zoneinfo.ZoneInfo(name)  # which looks into the folder of zones alone
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{name!r} is no time zone") from error


def _write_timestamp(value: pd.Timestamp) -> list[Any]:
    return [pack(value.asm8), None if value.tz is None else str(value.tz)]


def _read_timestamp(stored: list[Any]) -> Any:
    moment, zone = pd.Timestamp(_unpack(stored[0])), stored[1]
    if zone is not None:
        _check_zone(zone)
    return moment if zone is None else moment.tz_localize("UTC").tz_convert(zone)


_FORMS = {
    "float": _Form(float, str, float),
    "bytes": _Form(bytes, bytes.hex, bytes.fromhex),
    "decimal": _Form(Decimal, str, Decimal),
    "datetime": _Form(
        datetime.datetime, datetime.datetime.isoformat, datetime.datetime.fromisoformat
    ),
    "date": _Form(datetime.date, datetime.date.isoformat, datetime.date.fromisoformat),
    "timedelta": _Form(
        datetime.timedelta,
        lambda value: [value.days, value.seconds, value.microseconds],
        lambda stored: datetime.timedelta(*stored),
    ),
    "timestamp": _Form(pd.Timestamp, _write_timestamp, _read_timestamp),
    "difference": _Form(
        pd.Timedelta,
        lambda value: pack(value.asm8),
        lambda stored: pd.Timedelta(_unpack(stored)),
    ),
    "period": _Form(
        pd.Period,
        lambda value: [value.ordinal, value.freqstr],
        lambda stored: pd.Period(ordinal=stored[0], freq=stored[1]),
    ),
    "interval": _Form(
        pd.Interval,
        lambda value: [pack(value.left), pack(value.right), value.closed],
        lambda stored: pd.Interval(_unpack(stored[0]), _unpack(stored[1]), stored[2]),
    ),
    "NA": _Form(type(pd.NA), str, lambda _: pd.NA),
    "NaT": _Form(type(pd.NaT), str, lambda _: pd.NaT),
}
