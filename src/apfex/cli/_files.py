"""Tables on disk: CSV, Parquet and Arrow files, of which only the columns asked for are read."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, final

from apfex.cli._dialect import Dialect, read_dialect
from apfex.cli._errors import CommandError, listed, nearest
from apfex.cli._readers import read_csv, read_stored, stored_columns, to_pandas
from apfex.cli._screen import shown

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

Kind = Literal["csv", "parquet", "arrow"]
ENDINGS: dict[str, Kind] = {
    **dict.fromkeys((".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz"), "csv"),
    **dict.fromkeys((".parquet", ".pq"), "parquet"),
    **dict.fromkeys((".arrow", ".feather", ".ipc"), "arrow"),
}


@final
@dataclass(frozen=True)
class TableFile:
    """A table that can be read; made by :func:`open_table`."""

    path: Path
    kind: Kind
    columns: tuple[str, ...]
    dialect: Dialect | None = None

    def describe(self) -> str:
        """Name and form."""
        form = self.dialect.describe() if self.dialect else self.kind.capitalize()
        return f"{shown(self.path.name)} ({form})"

    def column(self, name: str, option: str) -> str:
        """The name, if there is such a column; an error that suggests the nearest otherwise."""
        if name in self.columns:
            return name
        near = nearest(name, self.columns)
        hint = f"did you mean '{shown(near)}'?" if near else f"it has {listed(self.columns)}."
        raise CommandError(f"{self.path} has no column '{shown(name)}' ({option}); {hint}")

    def names(self, given: Sequence[str], option: str) -> list[str]:
        """Columns from values that are names, or names with commas between."""
        parts: list[str] = []
        for value in given:
            whole = [value] if value in self.columns else value.split(",")
            parts += [part if part in self.columns else part.strip() for part in whole]
        found = [self.column(part, option) for part in parts if part]
        if given and not found:
            raise CommandError(f"{option} must name columns, got nothing.")
        repeated = [name for name, n in Counter(found).items() if n > 1]
        if repeated:
            raise CommandError(f"{option} must name a column once, got '{repeated[0]}' twice.")
        return found

    def read(self, columns: Sequence[str] | None = None, text: Collection[str] = ()) -> Any:
        """A pandas frame of some columns, or of all; those in ``text`` as text whatever they hold.

        Rows are numbered from 0.
        """
        wanted = list(self.columns if columns is None else columns)
        return to_pandas(self._read(wanted, text), text)

    def read_verbatim(self) -> pd.DataFrame:
        """All columns as they stand: cells of CSV are text, also the empty ones."""
        return self._read(self.columns, self.columns, verbatim=True).to_pandas(ignore_metadata=True)

    def read_arrow(self) -> pa.Table:
        """All columns with their types."""
        return self._read(self.columns)

    def sha256(self) -> str:
        """Of the bytes of the file."""
        with self.path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()

    def _read(
        self, columns: Sequence[str], text: Collection[str] = (), *, verbatim: bool = False
    ) -> pa.Table:
        if self.dialect:
            table = read_csv(self.path, self.dialect, columns, text, verbatim=verbatim)
        else:
            table = read_stored(self.path, self.kind, columns)
        if not table.num_rows:
            raise CommandError(f"{self.path} has column names, but no rows.")
        return table


def open_table(path: Path, encoding: str | None = None) -> TableFile:
    """Look at a file: what it is, and which columns it has."""
    _check_there(path)
    kind = kind_of(path)
    try:
        if kind == "csv":
            dialect = read_dialect(path, encoding)
            table = TableFile(path, kind, dialect.columns, dialect)
        else:
            table = TableFile(path, kind, stored_columns(path, kind))
    except PermissionError as error:
        raise CommandError(f"{path} may not be read: {error.strerror}.") from error
    repeated = sorted(name for name, count in Counter(table.columns).items() if count > 1)
    if repeated:
        raise CommandError(f"{path} has two columns named '{shown(repeated[0])}'; rename one.")
    return table


def kind_of(path: Path) -> Kind:
    """The form of a file by the end of its name."""
    ending = "".join(path.suffixes[-2:]) if path.suffix == ".gz" else path.suffix
    kind = ENDINGS.get(ending.lower())
    if kind is None:
        raise CommandError(
            f"{path} must end in {', '.join(ENDINGS)}, so that its form is known; save a "
            "spreadsheet as CSV."
        )
    return kind


def _check_there(path: Path) -> None:
    if path.is_dir():
        raise CommandError(f"{path} is a folder; name a CSV, Parquet or Arrow file.")
    if not path.exists():
        near = nearest(path.name, _neighbours(path))
        hint = f"; did you mean {path.with_name(near)}?" if near else "."
        raise CommandError(f"There is no file {path}{hint}")


def _neighbours(path: Path) -> list[str]:
    try:
        return [other.name for other in path.parent.iterdir() if other.is_file()]
    except OSError:
        return []
