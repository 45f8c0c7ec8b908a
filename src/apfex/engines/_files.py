"""Which files are meant by a path, a glob, a folder or a URL."""

from __future__ import annotations

import glob
from pathlib import Path

from apfex.engines._addresses import is_remote, without_secrets
from apfex.files import CSV_ENDINGS, check_apart
from apfex.plain import listed, nearest

_PARQUET = (".parquet", ".pq")
_HIDDEN = ("_", ".")  # what Spark writes beside its files


def is_pattern(text: str) -> bool:
    """Whether it is a glob, and no file of that name."""
    return any(mark in text for mark in "*?[") and not Path(text).exists()


def find_files(*texts: str) -> tuple[tuple[str, ...], str]:
    """Files, and their format: "parquet" or "csv"."""
    files = tuple(dict.fromkeys(path for text in texts for path in _named(text)))
    some_remote = any(map(is_remote, files))
    if some_remote and not all(map(is_remote, files)):
        raise ValueError(
            f"A list of files must be of URLs or of files of this machine, got "
            f"{listed([without_secrets(file) for file in files])}; copy the others here."
        )
    if not some_remote:
        check_apart(files)
    formats = {_format(path) for path in files}
    if len(formats) > 1:
        said = f"{without_secrets(texts[0])} must match" if len(texts) == 1 else "A list must be of"
        raise ValueError(f"{said} files of one form, got Parquet and CSV; narrow it.")
    return files, formats.pop()


def _named(text: str) -> tuple[str, ...]:
    """The files that are meant by a path, a pattern, a folder or a URL."""
    if is_remote(text):
        return (text,)
    if is_pattern(text):
        found = (path for path in sorted(glob.glob(text, recursive=True)) if Path(path).is_file())
        files = tuple(path for path in found if not Path(path).name.startswith(_HIDDEN))
        if not files:
            raise ValueError(f"{text} must match files, got none; look at the folder's name.")
        return files
    return _in_folder(Path(text)) if Path(text).is_dir() else (_existing(Path(text)),)


def _in_folder(folder: Path) -> tuple[str, ...]:
    """All Parquet files below, whether in partitions or not."""
    every = sorted(path for path in folder.rglob("*") if path.is_file())
    seen = [p for p in every if not any(x.startswith(_HIDDEN) for x in p.relative_to(folder).parts)]
    files = tuple(str(path) for path in seen if path.suffix.lower() in _PARQUET)
    csv = [path for path in seen if path.name.lower().endswith(CSV_ENDINGS)]
    if not files:
        remedy = f"; for its CSV files name {folder / '*.csv'}" if csv else ""
        raise ValueError(f"{folder} must hold Parquet files, got a folder without any{remedy}.")
    if csv:
        raise ValueError(
            f"{folder} must hold Parquet files alone, got {csv[0]} beside them; name those that "
            f"are meant, as {folder / '**' / '*.parquet'}."
        )
    return files


def _existing(path: Path) -> str:
    if not path.exists():
        beside = [one.name for one in path.parent.iterdir()] if path.parent.is_dir() else []
        near = nearest(path.name, beside)
        said = f"; did you mean {path.with_name(near)}?" if near else "."
        raise ValueError(f"There is no file {path}{said}")
    return str(path)


def _format(path: str) -> str:
    name = path.split("?")[0].lower()
    if name.endswith(_PARQUET):
        return "parquet"
    if name.endswith(CSV_ENDINGS):
        return "csv"
    raise ValueError(
        f"{without_secrets(path)} must end in {listed([*_PARQUET, *CSV_ENDINGS])}, so that its "
        "form is known, or be a file of DuckDB or SQLite."
    )
