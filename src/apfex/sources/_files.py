"""Several files that make one table: those of a folder or a pattern, and what folders say."""

from __future__ import annotations

import re
from collections.abc import Sequence
from glob import glob, has_magic
from pathlib import Path
from urllib.parse import unquote

from apfex.files import check_apart
from apfex.sources._errors import RunError
from apfex.sources._tables import ENDINGS, format_of

_WHOLE = re.compile("0|-?[1-9][0-9]{0,17}")
_NOTHING = "__HIVE_DEFAULT_PARTITION__"


def is_pattern(path: Path) -> bool:
    """Whether it has a wildcard, as ``new/*.parquet``.

    Examples
    --------
    >>> is_pattern(Path("new/*.parquet")), is_pattern(Path("new/a.parquet"))
    (True, False)
    """
    return has_magic(str(path))


def base_of(pattern: Path) -> Path:
    """The folder that all files of a pattern are below.

    Examples
    --------
    >>> base_of(Path("new/region=*/a.parquet")).as_posix()
    'new'
    """
    while is_pattern(pattern):
        pattern = pattern.parent
    return pattern


def find_files(sources: Sequence[Path]) -> list[Path]:
    """Files of one form, in the order of their names; an error where there are none.

    Names that begin with ``.`` or ``_`` are no data, as Spark's ``_SUCCESS``.
    """
    files = sorted({file for source in sources for file in _files_of(source)})
    try:
        check_apart(files)
    except ValueError as error:
        raise RunError(str(error)) from error
    forms = {file: format_of(file) for file in files}
    first, form = next(iter(forms.items()))
    other = next((file for file, one in forms.items() if one != form), None)
    if other is not None:
        raise RunError(
            f"Files that are read as one table must be of one form, got {first} and {other}; name "
            f"those that are meant, as in {_example(sources[0], first)}.",
            found=other,
        )
    if form == "excel":
        raise RunError(f"{first} is an Excel file, of which one is read at a time.", found=first)
    return files


def _files_of(source: Path) -> list[Path]:
    if not source.is_dir() and (source.exists() or not is_pattern(source)):
        return [source]
    found = [source] if source.is_dir() else [*map(Path, glob(str(source), recursive=True))]
    files = [file for path in found for file in (_below(path) if path.is_dir() else [path])]
    files = [file for file in files if file.name[0] not in "._"]
    if not files:
        what = "is a folder without files" if source.is_dir() else "matches no file"
        raise RunError(f"{source} {what}; name CSV, Parquet or Arrow files.", found=source)
    return files


def _below(folder: Path) -> list[Path]:
    """Files in a folder and in those below it."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return [f for f in files if not any(p[0] in "._" for p in f.relative_to(folder).parts)]


def _example(pattern: Path, file: Path) -> str:
    base = pattern if pattern.is_dir() else base_of(pattern)
    ending = next((one for one in ENDINGS if file.name.lower().endswith(one)), file.suffix)
    return str(base / "**" / f"*{ending}")


def folder_values(files: Sequence[Path]) -> list[dict[str, str | int | None]]:
    """What folders such as ``region=north`` say of each file; whole numbers if all of a name are.

    Examples
    --------
    >>> folder_values([Path("new/year=2024/a.csv"), Path("new/year=2025/a.csv")])
    [{'year': 2024}, {'year': 2025}]
    """
    found = [_pairs(file) for file in files]
    names = dict.fromkeys(name for pairs in found for name in pairs)
    whole = {
        name
        for name in names
        if all(_WHOLE.fullmatch(pairs.get(name) or "0") for pairs in found)
        and any(pairs.get(name) for pairs in found)
    }

    def value(name: str, text: str | None) -> str | int | None:
        return int(text) if text is not None and name in whole else text

    return [{name: value(name, text) for name, text in pairs.items()} for pairs in found]


def _pairs(file: Path) -> dict[str, str | None]:
    parts = [part.partition("=") for part in file.parent.parts]
    pairs = {unquote(name): unquote(value) for name, sign, value in parts if name and sign}
    return {name: None if value == _NOTHING else value for name, value in pairs.items()}
