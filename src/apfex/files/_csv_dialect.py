"""How a CSV file is written (encoding, separator, decimal mark), and its cells as they stand."""

from __future__ import annotations

import codecs
import csv
import gzip
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, final

from apfex.files._csv_header import separator_of, told_csv_error
from apfex.files._packed import check_gzip

if TYPE_CHECKING:
    import pyarrow as pa

_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",  # before UTF-16, whose mark it begins with
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_SAMPLE = 200
_COMMA, _DOT = re.compile(r"-?\d+,\d+"), re.compile(r"-?\d+\.\d+")


@final
class EncodingError(ValueError):
    """A file is not text of its encoding; ``likely`` is the one that it may have."""

    def __init__(self, path: Path, encoding: str, likely: str) -> None:
        self.path: Path = path
        self.likely: str = likely
        self.encoding: str = encoding.upper().removesuffix("-SIG")
        super().__init__(f"{path} is not {self.encoding} text; save it as UTF-8 or Parquet.")


@final
@dataclass(frozen=True)
class Dialect:
    """What must be known to read the file; the rest of the file is taken to be alike.

    A column without a name, as an index that was written, is called by its number.
    """

    encoding: str
    separator: str
    decimal: str
    columns: tuple[str, ...]

    def describe(self) -> str:
        """In words, where it is not the usual form."""
        words = [] if self.encoding.startswith("utf-8") else [self.encoding.upper()]
        if self.separator != ",":
            words.append(f"separator {'tab' if self.separator == chr(9) else self.separator}")
        if self.decimal != ".":
            words.append("decimal comma")
        return ", ".join(["CSV", *words])


def read_dialect(path: Path, encoding: str | None = None) -> Dialect:
    """Look at the first rows; nothing is guessed that is not certain or told."""
    if path.suffix == ".gz":
        check_gzip(path)
    encoding = encoding or _marked(path)
    with _open_text(path, encoding) as stream:
        head = list(islice(stream, _SAMPLE))
    if not "".join(head).strip():
        raise ValueError(f"{path} is empty: a row of column names and rows below it are needed.")
    if not head[0].strip():
        raise ValueError(f"{path} begins with an empty line; the column names must come first.")
    if "\0" in head[0]:
        raise EncodingError(path, encoding, "utf-16-le")
    separator = separator_of(head)
    rows: list[list[str]] = []
    try:
        rows.extend(csv.reader(head, delimiter=separator))
    except csv.Error as error:
        is_long = rows and max(map(len, head)) > csv.field_size_limit()
        if not is_long:  # else the rows before it tell enough
            raise ValueError(f"{path} has {told_csv_error(error)}.") from error
    columns = (name or f"column {place}" for place, name in enumerate(rows[0], start=1))
    return Dialect(encoding, separator, _decimal(rows, separator), tuple(columns))


@contextmanager
def _open_text(path: Path, encoding: str) -> Iterator[IO[str]]:
    """The file as text, unpacked if it is gzipped; an error says what to do about it."""
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding=encoding, newline="") as stream:
        try:
            yield stream
        except UnicodeError as error:
            raise EncodingError(path, encoding, "cp1252") from error
        except (EOFError, OSError, zlib.error) as error:
            raise ValueError(f"{path} cannot be read: {error}.") from error


def _count_quotes(path: Path, encoding: str) -> int:
    """Read the whole file, so that bytes that do not decode are found, too."""
    with _open_text(path, encoding) as stream:
        return sum(part.count('"') for part in iter(lambda: stream.read(1 << 20), ""))


def check_quotes(path: Path, dialect: Dialect) -> None:
    """Refuse a quote that is never closed: all rows after it would be one cell.

    An odd number of quotes says that there may be one; the rows are then looked at one by one.
    """
    if _count_quotes(path, dialect.encoding) % 2 == 0:
        return
    with _open_text(path, dialect.encoding) as stream:
        try:
            for _ in csv.reader(stream, delimiter=dialect.separator, strict=True):
                pass
        except csv.Error as error:
            if "new-line character" not in str(error):  # a line end of old, which Arrow knows
                raise ValueError(f"{path} has {told_csv_error(error)}.") from error


def stream_csv(
    path: Path,
    dialect: Dialect,
    columns: Sequence[str] | None = None,
    *,
    block_size: int = 1 << 22,
    use_threads: bool = True,
) -> Iterator[pa.RecordBatch]:
    """Cells as they stand, as text, some rows at a time: memory does not grow with the file.

    Parameters
    ----------
    path : Path
    dialect : Dialect
    columns : sequence of str, optional
        The only ones that are needed.
    block_size : int
        Bytes that are read at a time.
    use_threads : bool
        Whether blocks are parsed ahead.
    """
    import pyarrow as pa
    from pyarrow import csv

    with _open_text(path, dialect.encoding) as stream:
        if len(list(islice(stream, 2))) < 2:  # names alone, which Arrow cannot read without an end
            return
    wanted = dialect.columns if columns is None else columns
    types = dict.fromkeys(dialect.columns, pa.string())
    options = csv_options(dialect, wanted, types, (), block_size, use_threads=use_threads)
    with reading_csv(path, dialect):
        yield from csv.open_csv(str(path), *options)


def csv_options(
    dialect: Dialect,
    columns: Sequence[str],
    types: Mapping[str, pa.DataType],
    missing: Sequence[str],
    block_size: int | None = None,
    *,
    use_threads: bool = True,
) -> tuple[Any, Any, Any]:
    """How Arrow reads, parses and converts such a file; ``missing`` stands for no value."""
    from pyarrow import csv

    return (
        csv.ReadOptions(
            column_names=list(dialect.columns),
            skip_rows_after_names=1,
            encoding="utf8" if dialect.encoding.startswith("utf-8") else dialect.encoding,
            block_size=block_size,
            use_threads=use_threads,
        ),
        csv.ParseOptions(delimiter=dialect.separator, newlines_in_values=True),
        csv.ConvertOptions(
            include_columns=list(columns),
            column_types=dict(types),
            null_values=list(missing),
            strings_can_be_null=bool(missing),
            decimal_point=dialect.decimal,
        ),
    )


@contextmanager
def reading_csv(path: Path, dialect: Dialect) -> Iterator[None]:
    """What Arrow says of a file that is no CSV, in one sentence."""
    import pyarrow as pa

    try:
        yield
    except UnicodeError as error:
        raise EncodingError(path, dialect.encoding, "cp1252") from error
    except (pa.ArrowInvalid, OSError) as error:
        cells = re.search(r"Expected (\d+) columns, got (\d+)", str(error))
        if cells is None:
            raise ValueError(f"{path} cannot be read as CSV: {first_line(error)}.") from error
        # What the row holds is left out, of the traceback, too: it may be about people.
        line = _uneven_line(path, dialect)
        said = "" if line is None else f"line {line:,}: "
        said += f"Expected {cells[1]} columns, got {cells[2]}"
        raise ValueError(f"{path} cannot be read as CSV: {said}.") from None


def _uneven_line(path: Path, dialect: Dialect) -> int | None:
    """Where the first row ends that has not as many cells as there are columns, if Python sees it.

    Arrow tells no place of a row where several threads read.
    """
    with _open_text(path, dialect.encoding) as stream:
        rows = csv.reader(stream, delimiter=dialect.separator)
        try:
            return next(
                (rows.line_num for row in rows if row and len(row) != len(dialect.columns)), None
            )
        except csv.Error:
            return None


def first_line(error: Exception) -> str:
    """What a library said, if it said much."""
    said = str(error).splitlines()[0].removeprefix("CSV parse error: ")
    return said[:120] + ("..." if len(said) > 120 else "")


def _marked(path: Path) -> str:
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as stream:
        try:
            start = stream.read(4)
        except (OSError, EOFError, zlib.error) as error:
            raise ValueError(f"{path} cannot be read: {error}.") from error
    return next((name for mark, name in _MARKS.items() if start.startswith(mark)), "utf-8")


def _decimal(rows: Sequence[Sequence[str]], separator: str) -> str:
    """A comma where numbers have one; it needs another separator."""
    if separator == ",":
        return "."
    cells = [cell.strip() for row in rows[1:] for cell in row]
    commas, dots = (sum(1 for c in cells if form.fullmatch(c)) for form in (_COMMA, _DOT))
    return "," if commas > dots else "."
