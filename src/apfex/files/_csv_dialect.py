"""How a CSV file is written (encoding, separator, decimal mark), and its cells as they stand."""

from __future__ import annotations

import codecs
import csv
import gzip
import re
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

from apfex.files import _csv_quotes as _quotes
from apfex.files._csv_quotes import EncodingError, open_text, told_csv_error
from apfex.files._packed import check_gzip

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.dataset as ds

NO_VALUE = ("", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "NULL", "null", "<NA>")
"""What stands for no value in CSV. "None" does not: it can be the name of a group."""
CSV_ENDINGS = (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz")
_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",  # before UTF-16, whose mark it begins with
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_SAMPLE = 200
_BLOCK = 1 << 22
_SEPARATORS = (",", ";", "\t", "|")
_COMMA, _DOT = re.compile(r"-?\d+,\d+"), re.compile(r"-?\d+\.\d+")


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
    if path.suffix.lower() == ".gz":
        check_gzip(path)
    encoding = encoding or _marked(path)
    with open_text(path, encoding) as stream:
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


def read_dialects(paths: Sequence[Path], encoding: str | None = None) -> list[Dialect]:
    """Of files that make one table; no name may stand for two columns of a file."""
    dialects = [read_dialect(path, encoding) for path in paths]
    for path, dialect in zip(paths, dialects, strict=True):
        repeated = sorted(name for name, n in Counter(dialect.columns).items() if n > 1)
        if repeated:
            raise ValueError(f"{path} has two columns named '{repeated[0]}'; rename one.")
    return with_common_decimal(paths, dialects)


def with_common_decimal(paths: Sequence[Path], dialects: Sequence[Dialect]) -> list[Dialect]:
    """Dialects of files that make one table: a comma in the numbers of one is that of all."""
    comma = next((p for p, d in zip(paths, dialects, strict=True) if d.decimal == ","), None)
    if comma is None:
        return list(dialects)
    for path, dialect in zip(paths, dialects, strict=True):
        if dialect.separator == ",":
            raise ValueError(
                f"{path} has commas between cells, but {comma} has them in numbers; write all "
                "files in one form."
            )
    return [replace(dialect, decimal=",") for dialect in dialects]


def check_quotes(path: Path, dialect: Dialect) -> None:
    """Refuse quotes that programs understand in different ways, as one that is never closed."""
    _quotes.check_quotes(path, dialect.encoding, dialect.separator)


def separator_of(lines: Sequence[str]) -> str:
    """The one of comma, semicolon, tab and bar that parts the names of columns most.

    Parameters
    ----------
    lines : sequence of str
        From the first on; a name in quotes may have several.

    Examples
    --------
    >>> separator_of(["sex;race;age, in years"])
    ';'
    """
    return max(_SEPARATORS, key=lambda mark: _count_names(lines, mark))


def _count_names(lines: Sequence[str], separator: str) -> int:
    """How many names there are; one where so many letters are in one that Python reads none."""
    try:
        return len(next(csv.reader(lines, delimiter=separator)))
    except csv.Error:
        return 1


def csv_dataset(
    paths: Sequence[Path], dialects: Sequence[Dialect], without: Sequence[str] = ()
) -> ds.Dataset:
    """Files as one table of text, which an engine reads as often as it likes.

    Each is read as its dialect says. A column that a file lacks has no values there; those in
    ``without`` are left out.
    """
    import pyarrow as pa
    import pyarrow.dataset as ds

    names = dict.fromkeys(name for dialect in dialects for name in dialect.columns)
    schema = pa.schema([(name, pa.string()) for name in names if name not in without])
    alike: dict[Dialect, list[str]] = {}
    for path, dialect in zip(paths, dialects, strict=True):
        if _has_rows(path, dialect):
            alike.setdefault(dialect, []).append(str(path))
    parts = []
    for dialect, files in alike.items():
        types = dict.fromkeys(dialect.columns, pa.string())
        reading, parsing, converting = csv_options(dialect, (), types, NO_VALUE, _BLOCK)
        form = ds.CsvFileFormat(parsing, convert_options=converting, read_options=reading)
        parts.append(ds.dataset(files, schema, form))
    return ds.dataset(parts) if parts else ds.dataset(schema.empty_table())


def _has_rows(path: Path, dialect: Dialect) -> bool:
    """Whether there is more than names, which Arrow cannot read without an end."""
    with open_text(path, dialect.encoding) as stream:
        return len(list(islice(stream, 2))) == 2


def stream_csv(
    path: Path,
    dialect: Dialect,
    columns: Sequence[str] | None = None,
    *,
    block_size: int = _BLOCK,
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

    if not _has_rows(path, dialect):
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
            include_columns=list(columns),  # none: as a reader asks for them
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
        told = told_fault(error, [path], [dialect])
        if told is not None:
            raise told from None
        raise ValueError(f"{path} cannot be read as CSV: {first_line(error)}.") from error


def told_fault(
    error: Exception, paths: Sequence[Path], dialects: Sequence[Dialect]
) -> ValueError | None:
    """What an error of Arrow is about, with file and line, if it is of cells or of the encoding.

    What the row holds is left out: it may be about people.
    """
    said = str(error)
    if "invalid UTF8" in said:
        for path, dialect in zip(paths, dialects, strict=True):
            if not _decodes(path, dialect):
                return EncodingError(path, dialect.encoding, "cp1252")
    if "straddling object" in said:
        return _long_row(paths, dialects)
    cells = re.search(r"Expected (\d+) columns, got (\d+)", said)
    if cells is None:
        return None
    for path, dialect in zip(paths, dialects, strict=True):
        try:
            check_quotes(path, dialect)
        except ValueError as unclear:
            return unclear
    for path, dialect in zip(paths, dialects, strict=True):
        found = _uneven_line(path, dialect)
        if found is not None:
            return ValueError(
                f"{path} cannot be read as CSV: line {found[0]:,}: Expected "
                f"{len(dialect.columns)} columns, got {found[1]}."
            )
    about = f"{paths[0]} cannot" if len(paths) == 1 else "The files cannot"
    return ValueError(f"{about} be read as CSV: Expected {cells[1]} columns, got {cells[2]}.")


def _long_row(paths: Sequence[Path], dialects: Sequence[Dialect]) -> ValueError:
    """A row that is longer than what is read at a time; which file has it, as far as lines tell."""
    lengths = []
    for path, dialect in zip(paths, dialects, strict=True):
        with open_text(path, dialect.encoding) as stream:
            lengths.append(max(map(len, stream), default=0))
    path = paths[lengths.index(max(lengths))]
    return ValueError(
        f"{path} has a row that is longer than can be read at a time ({max(lengths):,} characters "
        "in one line); leave out its long column, or write the table as Parquet."
    )


def _decodes(path: Path, dialect: Dialect) -> bool:
    try:
        with open_text(path, dialect.encoding) as stream:
            while stream.read(_BLOCK):
                pass
    except EncodingError:
        return False
    return True


def _uneven_line(path: Path, dialect: Dialect) -> tuple[int, int] | None:
    """Where the first row ends that has not as many cells as there are columns, and how many.

    Arrow tells no place of a row where several threads read.
    """
    with open_text(path, dialect.encoding) as stream:
        rows = csv.reader(stream, delimiter=dialect.separator)
        try:
            uneven = (row for row in rows if row and len(row) != len(dialect.columns))
            return next(((rows.line_num, len(row)) for row in uneven), None)
        except csv.Error:
            return None


def first_line(error: Exception) -> str:
    """What a library said, if it said much."""
    said = str(error).splitlines()[0].removeprefix("CSV parse error: ")
    return said[:120] + ("..." if len(said) > 120 else "")


def _marked(path: Path) -> str:
    with gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb") as stream:
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
