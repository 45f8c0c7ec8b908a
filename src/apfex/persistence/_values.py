"""Values that come back exactly as they were: type, bits and all, through plain JSON."""

from __future__ import annotations

import dataclasses
import datetime
import math
from collections.abc import Callable, Collection, Mapping
from decimal import Decimal
from typing import Any, NamedTuple, NoReturn, cast, final

import numpy as np
import pandas as pd

from apfex import strategies
from apfex.streams import StreamSettings

_PLAIN = (type(None), bool, int, str)
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


def pack(value: Any, where: str = "value") -> Any:
    """Turn a value into what JSON can hold, so that :func:`unpack` gives it back exactly.

    Parameters
    ----------
    value : None, bool, int, float, str, bytes, Decimal, date, list, tuple, dict, numpy or pandas
        Numpy's scalars and arrays keep their types; of pandas timestamps, timedeltas, periods,
        intervals, missing values and indexes are known. Also NaN and infinities, and the
        strategies and stream settings of this package with plain settings.
    where : str
        What the value is, for messages.

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
    if type(value) is list:
        return [pack(part, f"{where}[{place}]") for place, part in enumerate(value)]
    if type(value) is tuple:
        return {"is": "tuple", "value": pack(list(value), where)}
    if type(value) is dict:
        pairs = [[pack(key, where), pack(part, f"{where}[{key!r}]")] for key, part in value.items()]
        return {"is": "dict", "value": pairs}
    if type(value) in _STRATEGIES.values():
        given = {
            field.name: getattr(value, field.name)
            for field in dataclasses.fields(cast("Any", value))
        }
        return {"is": "strategy", "value": [type(value).__name__, pack(given, where)]}
    if isinstance(value, np.ndarray):
        return {"is": "array", "value": _write_array(value, where)}
    if isinstance(value, pd.Index):
        return {"is": "index", "value": _write_index(value, where)}
    if isinstance(value, np.generic):
        return {"is": "scalar", "value": _write_array(np.asarray(value), where)}
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
    except (KeyError, TypeError, ValueError, OverflowError, MemoryError, AttributeError) as error:
        raise ValueError(
            f"stored must be what pack has made, got {str(stored)[:80]!r} ({error})."
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


def _unpack(stored: Any) -> Any:
    if isinstance(stored, list):
        return [_unpack(part) for part in stored]
    if not isinstance(stored, dict):
        return stored
    name, value = stored["is"], stored["value"]
    if name == "tuple":
        return tuple(_unpack(value))
    if name == "dict":
        return {_unpack(key): _unpack(part) for key, part in value}
    if name == "strategy":
        return _STRATEGIES[value[0]](**_unpack(value[1]))
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


def _name(value: Any) -> str:
    kind = value if hasattr(value, "__qualname__") else type(value)
    return f"{kind.__module__}.{kind.__qualname__}"


_TICKS = "mM"
_DTYPES = "biufUS" + _TICKS
"""Kinds of numpy's types whose values are plain ones, or ticks of a clock."""


def _write_array(array: np.ndarray, where: str) -> list[Any]:
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
    return [dtype, list(array.shape), pack(items.tolist(), where)]


def _read_array(dtype: str, shape: list[int], items: list[Any]) -> np.ndarray:
    values = _unpack(items)
    if dtype == "O":
        array = np.empty(len(values), dtype=object)
        for place, value in enumerate(values):
            array[place] = value
    elif dtype == "T":
        array = np.array(values, dtype=np.dtypes.StringDType())
    else:
        kind = np.dtype(dtype)
        if kind.kind not in _DTYPES:
            raise ValueError(f"{dtype!r} is no type of plain values")
        array = np.array(values, "i8" if kind.kind in _TICKS else kind).astype(kind)
    return array.reshape(shape)


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
    return pd.Index(_unpack(items), dtype=dtype)


def _write_timestamp(value: pd.Timestamp) -> list[Any]:
    return [pack(value.asm8), None if value.tz is None else str(value.tz)]


def _read_timestamp(stored: list[Any]) -> Any:
    moment, zone = pd.Timestamp(_unpack(stored[0])), stored[1]
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
