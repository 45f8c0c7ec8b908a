"""CSV files for an engine: read as everywhere else, each cell as text."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, final

from apfex.engines._names import alike_names
from apfex.engines._sql import listed_sql
from apfex.files import NO_VALUE, check_quotes, csv_dataset, read_dialects, told_fault
from apfex.plain import listed


@final
class CsvFiles:
    """CSV files of this machine that make one table.

    Parameters
    ----------
    files : sequence of str
    encoding : str, optional
        By default what the mark of each file says, or UTF-8.

    Attributes
    ----------
    decimal : str
        Mark before decimals.
    alike : tuple of tuples of str
        Names of columns of a file that DuckDB takes for one.
    """

    def __init__(self, files: Sequence[str], encoding: str | None = None) -> None:
        self._paths = [Path(file) for file in files]
        self._dialects = read_dialects(self._paths, encoding)
        self._checked = False
        self.decimal: str = self._dialects[0].decimal
        alike = {names for one in self._dialects for names in alike_names(one.columns)}
        self.alike: tuple[tuple[str, ...], ...] = tuple(sorted(alike))

    def dataset(self) -> Any:
        """All columns but those that DuckDB takes for one, as a dataset of Arrow."""
        unclear = [name for names in self.alike for name in names]
        return csv_dataset(self._paths, self._dialects, unclear)

    def check(self, columns: Sequence[str]) -> None:
        """Refuse files that lack a column: its cells would all be missing; and unclear quotes."""
        for path, dialect in zip(self._paths, self._dialects, strict=True):
            for name in columns:
                if name not in dialect.columns:
                    raise ValueError(
                        f"{path} has no column {name!r}, which other files have; it has "
                        f"{listed(dialect.columns)}. Leave the file out, or write the column."
                    )
        if not self._checked:
            for path, dialect in zip(self._paths, self._dialects, strict=True):
                check_quotes(path, dialect)
            self._checked = True

    def fault(self, error: Exception) -> ValueError | None:
        """What an error of the engine says of a file, with its line."""
        return told_fault(error, self._paths, self._dialects)


def remote_csv_query(urls: Sequence[str]) -> str:
    """A query for DuckDB, which finds out itself how files elsewhere part their cells."""
    return (
        f"SELECT * FROM read_csv({listed_sql(urls)}, all_varchar=true, header=true, quote='\"', "
        f"escape='\"', nullstr={listed_sql(NO_VALUE)}, allow_quoted_nulls=true, strict_mode=true)"
    )
