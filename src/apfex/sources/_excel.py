"""Excel files: a sheet whose first row has the column names, read as it would be from CSV."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from apfex.extras import need_extra
from apfex.files import NO_VALUE, check_zip
from apfex.plain import listed, printable
from apfex.sources._errors import RunError, hint, unknown

if TYPE_CHECKING:
    import pyarrow as pa

_MOST_ROWS = 2**20
_SPARE_CELLS, _MOST_EMPTY = 2**20, 100
"""Cells that a sheet may have, and empty ones for each that is filled."""
_ERRORS = ("#DIV/0!", "#NAME?", "#NULL!", "#NUM!", "#REF!", "#VALUE!", "#SPILL!", "#CALC!")


def read_sheet(path: Path, sheet: str | None) -> tuple[str, pa.Table]:
    """The name of the sheet that is meant, and its rows.

    Parameters
    ----------
    path : Path
    sheet : str, optional
        Needed where there are several; nothing is guessed.

    Notes
    -----
    Of formulas the values are read that were stored with them. A column has the type that all its
    values have; numbers among text are text, as in CSV.
    """
    name, cells = _read_cells(path, sheet)
    if not cells:
        raise RunError(f"{path} is empty: a row of column names and rows below it are needed.")
    if all(cell is None for cell in cells[0]):
        raise RunError(f"{path} begins with an empty row; the column names must come first.")
    import pyarrow as pa

    columns = [list(column) for column in zip(*cells, strict=True)]
    while columns and all(cell is None for cell in columns[-1]):
        columns.pop()
    names = [_column_name(column[0], place) for place, column in enumerate(columns, start=1)]
    values = [_column(path, n, column[1:]) for n, column in zip(names, columns, strict=True)]
    return name, pa.Table.from_arrays(values, names=names)


def _read_cells(path: Path, sheet: str | None) -> tuple[str, list[Sequence[Any]]]:
    """Rows of equal length, up to the last that is not empty."""
    try:
        need_extra("excel", "openpyxl", f"{path} is an Excel file, which")
    except ImportError as error:
        raise RunError(f"{error} Or save it as CSV.") from error
    try:
        check_zip(path)
    except ValueError as error:
        raise RunError(str(error), found=path) from error
    from openpyxl import load_workbook

    try:
        book = load_workbook(path, read_only=True, data_only=True)
    except Exception as error:  # a damaged file fails in many ways, none of them ours
        raise RunError(f"{path} is no Excel file, or a damaged one.") from error
    try:
        name = _choose(path, book.sheetnames, sheet)
        rows = _rows(path, book[name])
    except RunError:
        raise
    except Exception as error:
        raise RunError(f"{path} is no Excel file, or a damaged one.") from error
    finally:
        book.close()
    width = max(map(len, rows), default=0)
    return name, [[*row, *[None] * (width - len(row))] for row in rows]


def _rows(path: Path, sheet: Any) -> list[list[Any]]:
    """Rows up to their last cell; a cell far from all others would make a table of nothing."""
    sheet.reset_dimensions()  # what the file says of its size may be anything
    rows: list[list[Any]] = []
    filled = width = length = 0
    for number, cells in enumerate(sheet.iter_rows(values_only=True), start=1):
        if number > _MOST_ROWS:
            raise RunError(f"{path} has more than the {_MOST_ROWS:,} rows that Excel knows.")
        row = list(cells)
        while row and row[-1] is None:
            row.pop()
        rows.append(row)
        if row:
            filled += sum(cell is not None for cell in row)
            width, length = max(width, len(row)), number
        if length * width > _SPARE_CELLS + _MOST_EMPTY * filled:
            raise RunError(
                f"{path} has cells up to row {length:,} and column {width:,}, but next to none of "
                "them are filled: empty those that are far from the table, and save it again."
            )
    return rows[:length]


def _choose(path: Path, names: Sequence[str], sheet: str | None) -> str:
    if sheet is None and len(names) == 1:
        return names[0]
    if sheet is None:
        raise RunError(
            f"{path} has {len(names)} sheets ({listed(names)}): say which one to read, for "
            f"instance {hint('sheet')}",
            sheet=names[0],
            found=tuple(names),
        )
    if sheet not in names:
        raise unknown(
            sheet, names, f"{path} has no sheet '{sheet}' ({hint('sheet')})", there="it has"
        )
    return sheet


def _column_name(cell: Any, place: int) -> str:
    return f"column {place}" if cell is None or str(cell) == "" else _as_text(cell)


def _column(path: Path, name: str, cells: Sequence[Any]) -> pa.Array:
    """Values of one type; what stands for no value in CSV does here."""
    import pyarrow as pa

    values: list[Any] = [
        None if isinstance(cell, str) and cell in NO_VALUE else cell for cell in cells
    ]
    for place, value in enumerate(values, start=2):
        if isinstance(value, str) and value in _ERRORS:
            raise RunError(
                f"{path}: {printable(name, 40)} has the error {value} of a formula in row {place}; "
                "mend or empty that cell.",
                found=value,
            )
    kinds = {type(value) for value in values if value is not None}
    if not kinds:
        return pa.nulls(len(values))
    if kinds == {bool}:
        return pa.array(values, pa.bool_())
    if kinds <= {int, float} and all(value is None or abs(value) < 2**1000 for value in values):
        is_whole = all(value is None or float(value).is_integer() for value in values)
        fits = is_whole and all(value is None or abs(value) < 2**53 for value in values)
        kind, type_of = (int, pa.int64()) if fits else (float, pa.float64())
        return pa.array([None if value is None else kind(value) for value in values], type_of)
    if kinds == {datetime}:
        is_day = all(value is None or value.time() == time() for value in values)
        days = [value and value.date() for value in values] if is_day else values
        return pa.array(days, pa.date32() if is_day else pa.timestamp("us"))
    return pa.array([None if value is None else _as_text(value) for value in values], pa.string())


def _value(cell: Any) -> Any:
    return None if isinstance(cell, str) and cell in NO_VALUE else cell


def _as_text(value: Any) -> str:
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, datetime):
        return str(value.date()) if value.time() == time() else str(value)
    return str(value)
