"""Reading a table: any frame or 2-D array becomes a list of checked, typed columns.

Everything that can be wrong with a table is found here, once, so that encoders can trust the
columns they are handed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from numbers import Real
from typing import Any, Literal

import narwhals as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from apfex.tables._arrays import in_memory

Kind = Literal["number", "level", "empty"]


@dataclass(frozen=True, eq=False)
class Column:
    """One checked column: finite numbers, or codes into a list of levels; or no value at all."""

    name: str
    kind: Kind
    numbers: NDArray[np.float64]  # [n], NaN where missing; used by "number"
    codes: NDArray[np.intp]  # [n], -1 where missing; used by "level"
    levels: tuple[str, ...]

    def __len__(self) -> int:
        """Return the number of rows."""
        return max(len(self.numbers), len(self.codes))

    def require(self, kind: Kind) -> None:
        """Refuse a column that is not of the kind seen in ``fit``; one without values is of any."""
        if self.kind not in (kind, "empty"):
            raise TypeError(
                f"Column {self.name!r} of X must hold {kind}s as it did in fit, got {self.kind}s; "
                "convert it to the type it had then."
            )

    def places(self, levels: Sequence[str], other: float, missing: float) -> NDArray[Any]:
        """Return each code's place in ``levels``, or ``other`` if it has none.

        The last entry is where code -1, a missing value, looks itself up: ``missing``.
        """
        place = {level: j for j, level in enumerate(levels)}
        return np.array([*(place.get(level, other) for level in self.levels), missing])


@dataclass(frozen=True, eq=False)
class Table:
    """Checked columns, and whether their names came with the data or were made up."""

    columns: tuple[Column, ...]
    n_rows: int
    has_names: bool

    @property
    def names(self) -> tuple[str, ...]:
        """Column names in the order of the data."""
        return tuple(column.name for column in self.columns)


def read_table(X: Any) -> Table:
    """Check ``X`` and split it into columns.

    Examples
    --------
    >>> table = read_table(pd.DataFrame({"age": [20, 30], "town": ["Bern", None]}))
    >>> [(column.name, column.kind) for column in table.columns]
    [('age', 'number'), ('town', 'level')]
    """
    X = in_memory("X", X)
    is_lazy = hasattr(X, "collect")  # asked first: a lazy frame must work to know its columns
    if not is_lazy and getattr(X, "columns", None) is None:
        return _read_array(X)
    _check_names([] if is_lazy else [str(name) for name in X.columns])
    if isinstance(X, pd.DataFrame):
        own = tuple(_read_pandas(str(name), column) for name, column in X.items())
        return Table(own, n_rows=len(X), has_names=True)
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame):
        raise TypeError(
            f"X must be a data frame in memory or a 2-D array, got {type(X).__name__}; "
            "collect a lazy frame first."
        )
    columns = tuple(_read_series(str(name), frame.get_column(name)) for name in frame.columns)
    return Table(columns, n_rows=len(frame), has_names=True)


def _read_array(X: Any) -> Table:
    if hasattr(X, "toarray"):
        raise TypeError("X must be dense, got a sparse matrix; convert it with X.toarray().")
    values = matrix_of("X", X)
    columns = tuple(_read_column(f"x{j}", values[:, j], False) for j in range(values.shape[1]))
    return Table(columns, n_rows=values.shape[0], has_names=False)


def match_columns(table: Table, names: Sequence[str], by_name: bool) -> list[Column]:
    """Return the columns called ``names``, in that order; by position where names are no guide."""
    if by_name and table.has_names:
        found = dict(zip(table.names, table.columns, strict=True))
        known = set(names)
        lacking = [name for name in names if name not in found]
        unknown = [name for name in found if name not in known]
        if lacking or unknown:
            raise ValueError(
                f"Columns of X must be those of fit; missing: {lacking or 'none'}, unknown: "
                f"{unknown or 'none'}. Add or drop them."
            )
        return [found[name] for name in names]
    if len(names) != len(table.columns):
        raise ValueError(
            f"X has {len(table.columns)} features, but TableEncoder is expecting {len(names)} "
            "features as input; columns without names are matched by position."
        )
    return [replace(c, name=name) for c, name in zip(table.columns, names, strict=True)]


def matrix_of(name: str, X: Any) -> NDArray[Any]:
    """A 2-D array of rows; a word on what to do with anything else.

    Examples
    --------
    >>> matrix_of("X", [[1, 2], [3, 4]]).shape
    (2, 2)
    """
    values = unmasked(in_memory(name, X))
    if values.ndim == 0:
        raise TypeError(
            f"{name} must be a table or an array of rows with 2 dimensions, got "
            f"{type(X).__name__}; a mapping of columns is a table as pd.DataFrame(mapping)."
        )
    if values.ndim != 2:
        raise ValueError(
            f"{name} must have 2 dimensions, got {values.ndim}. Reshape your data: "
            f"{name}.reshape(-1, 1) for a single column, {name}.reshape(1, -1) for a single row."
        )
    return values


def _check_names(names: Sequence[str]) -> None:
    repeated = sorted(name for name, count in Counter(names).items() if count > 1)
    if repeated:
        raise ValueError(
            f"Column names of X must be unique, got {repeated} more than once; rename or drop one."
        )


def _read_series(name: str, series: nw.Series[Any]) -> Column:
    is_category = series.dtype in (nw.Categorical, nw.Enum)
    return _read_column(name, series.to_numpy(), is_category)


def _read_pandas(name: str, series: pd.Series) -> Column:
    """What :func:`_read_series` makes of it, without a detour for what pandas is sure of."""
    dtype = series.dtype
    if _is_text(dtype):
        return _text_column(name, series)
    if isinstance(dtype, np.dtype) and dtype.kind in "iu" and len(series):
        return Column(name, "number", series.to_numpy(np.float64), np.empty(0, np.intp), ())
    if isinstance(dtype, np.dtype) and dtype.kind in "iuf":
        return _read_column(name, series.to_numpy(), False)
    return _read_series(name, nw.from_native(series, series_only=True))


def _is_text(dtype: Any) -> bool:
    """Whether pandas itself says that all values are text."""
    of = dtype.categories.dtype if isinstance(dtype, pd.CategoricalDtype) else dtype
    return isinstance(of, pd.StringDtype)


def _text_column(name: str, series: pd.Series) -> Column:
    """What :func:`_level_column` makes of text, without an object for every row."""
    if isinstance(series.dtype, pd.CategoricalDtype):
        codes, words = np.asarray(series.cat.codes, np.intp), series.cat.categories
        used = np.bincount(codes + 1, minlength=len(words) + 1)[1:] > 0
        places = np.append(np.cumsum(used) - 1, -1)  # the last is for a missing value, code -1
        codes, words = places[codes], words[used]
    elif getattr(series.dtype, "storage", None) == "pyarrow":
        codes, words = _arrow_text(series.array)
    else:
        found, words = pd.factorize(series)
        codes = np.asarray(found, np.intp)
    if not len(words):
        return _empty(name, len(series))
    return Column(name, "level", np.empty(0), codes, tuple(map(str, words.tolist())))


def _arrow_text(values: Any) -> tuple[NDArray[np.intp], NDArray[Any]]:
    """What ``pd.factorize`` makes of text that Arrow holds, in a third of its time for few rows."""
    encoded = values.__arrow_array__().dictionary_encode()
    if hasattr(encoded, "combine_chunks"):
        encoded = encoded.chunk(0) if encoded.num_chunks == 1 else encoded.combine_chunks()
    codes = encoded.indices if not encoded.null_count else encoded.indices.fill_null(-1)
    return codes.to_numpy().astype(np.intp), encoded.dictionary.to_numpy(zero_copy_only=False)


def _read_column(name: str, values: NDArray[Any], is_category: bool) -> Column:
    if values.ndim != 1:  # of a column of structs, or of arrays of one length
        raise _unreadable(name, "several values in each row")
    missing = np.asarray(pd.isna(values))
    if missing.all():
        return _empty(name, len(values))
    kind = "level" if is_category else _kind(name, values, missing)
    if kind == "level":
        return _level_column(name, values, missing)
    return _number_column(name, values, missing)


def _kind(name: str, values: NDArray[Any], missing: NDArray[np.bool_]) -> Kind:
    by_dtype: dict[str, Kind] = {"b": "level", "i": "number", "u": "number", "f": "number"}
    if values.dtype.kind in by_dtype:
        return by_dtype[values.dtype.kind]
    if values.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: column {name!r} of X; take its real part.")
    if values.dtype.kind not in "OUT":
        raise _unreadable(name, str(values.dtype))
    types = set(map(type, values[~missing].tolist()))
    if all(issubclass(t, str) for t in types) or types <= {bool, np.bool_}:
        return "level"
    if all(issubclass(t, Real | Decimal) and t is not bool for t in types):
        return "number"
    if len(types) > 1:
        found = ", ".join(sorted(t.__name__ for t in types))
        raise TypeError(
            f"Each column of the X argument must be all strings, all numbers or all booleans, got "
            f"a mixture of {found} in column {name!r}; convert it, for instance with astype(str)."
        )
    raise _unreadable(name, types.pop().__name__)


def _unreadable(name: str, found: str) -> TypeError:
    return TypeError(
        f"Column {name!r} of X must hold numbers, text, booleans or categories, got {found}; "
        "convert it to a number or to text first, or drop it."
    )


def _number_column(name: str, values: NDArray[Any], missing: NDArray[np.bool_]) -> Column:
    if values.dtype.kind == "O":
        numbers = np.full(len(values), np.nan)
        numbers[~missing] = [float(v) for v in values[~missing]]
    else:
        numbers = values.astype(np.float64, copy=False)
    infinite = np.flatnonzero(np.isinf(numbers))
    if len(infinite):
        raise ValueError(
            f"Column {name!r} of X must be finite, got {numbers[infinite[0]]} in row "
            f"{infinite[0]} (infinity in {len(infinite)} of {len(numbers)} rows); "
            "replace it by NaN or by a bound."
        )
    return Column(name, "number", numbers, np.empty(0, np.intp), ())


def _level_column(name: str, values: NDArray[Any], missing: NDArray[np.bool_]) -> Column:
    codes = np.full(len(values), -1, np.intp)
    found, uniques = pd.factorize(values[~missing])
    codes[~missing] = found
    levels = tuple(_level_name(level) for level in uniques)
    alike = sorted(level for level, count in Counter(levels).items() if count > 1)
    if alike:
        raise TypeError(
            f"Levels of column {name!r} of X must read differently, got {alike} for values of "
            "several types; convert the column, for instance with astype(str)."
        )
    return Column(name, "level", np.empty(0), codes, levels)


def _level_name(level: object) -> str:
    # Integer categories arrive as floats from a column with missing values, as integers otherwise.
    return str(int(level)) if isinstance(level, float) and level.is_integer() else str(level)


def _empty(name: str, n_rows: int) -> Column:
    return Column(name, "empty", np.full(n_rows, np.nan), np.full(n_rows, -1, np.intp), ())


def unmasked(values: Any) -> np.ndarray:
    """An array whose masked entries are missing: NaN among numbers, None among all else.

    ``np.asarray`` alone would bring back whatever lies under a mask. Text of NumPy's
    ``StringDType``, which few libraries know, comes as objects.

    Examples
    --------
    >>> unmasked(np.ma.masked_equal([1, 2, -99], -99))
    array([ 1.,  2., nan])
    >>> unmasked(np.ma.array(["a", "b"], mask=[False, True])).tolist()
    ['a', None]
    """
    if isinstance(values, list | tuple) and any(isinstance(v, np.ma.MaskedArray) for v in values):
        return np.asarray([None if v is np.ma.masked else unmasked(v) for v in values])
    if not isinstance(values, np.ma.MaskedArray):
        found = np.asarray(values)
        return found.astype(object) if found.dtype.kind == "T" else found
    hidden = np.ma.getmaskarray(values)
    if not hidden.any():
        return np.asarray(values.data)
    if values.dtype.kind in "fiu":
        return np.where(hidden, np.nan, values.data)
    found = values.data.astype(object)
    found[hidden] = None
    return found
