"""Where CelebA's files lie, and what they say."""

from __future__ import annotations

import os
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

from apfex.datasets._registry import CELEBA

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

Part = Literal["train", "validation", "test"]
"""In the order of their numbers in the partition file."""
ATTRIBUTES, PARTITION = "list_attr_celeba.txt", "list_eval_partition.txt"
_IMAGE_FOLDERS = ("img_align_celeba", "Img/img_align_celeba", ".")
_FILE_FOLDERS = (".", "Anno", "Eval")
"""Unpacked side by side, or as the site has them."""
_SUFFIXES = (".jpg", ".jpeg", ".png")
_WHERE = f"Download it from {CELEBA.homepage}: the licence lets nobody else hand it out."


def find_images(root: Path) -> Path:
    """The folder with the images: the given one, or a usual one inside it."""
    if not root.is_dir():
        raise FileNotFoundError(f"folder must be there, got {str(root)!r}. {_WHERE}")
    for name in _IMAGE_FOLDERS:
        images = root / name
        if images.is_dir() and any(file.suffix.lower() in _SUFFIXES for file in images.iterdir()):
            return images
    raise FileNotFoundError(
        f"folder must hold images ({', '.join(_SUFFIXES)}), itself or in {_IMAGE_FOLDERS[0]}, got "
        f"{str(root)!r} without any. {_WHERE}"
    )


def find_file(root: Path, name: str, given: str | os.PathLike[str] | None = None) -> Path:
    """The given file, or the one of that name in the folder or up to two above it."""
    if given is not None:
        if not Path(given).is_file():
            raise FileNotFoundError(f"attributes must be a file, got {str(given)!r}.")
        return Path(given)
    for folder in (root, *root.parents[:2]):
        for place in _FILE_FOLDERS:
            if (folder / place / name).is_file():
                return folder / place / name
    raise FileNotFoundError(
        f"folder must hold {name}, or a folder above it, got {str(root)!r} without it. {_WHERE}"
    )


def require_images(folder: Path, names: NDArray[np.str_]) -> None:
    """Refuse now what would otherwise fail in the middle of a training."""
    present = {file.name for file in os.scandir(folder)}
    missing = [name for name in names if name not in present]
    if missing:
        raise FileNotFoundError(
            f"{folder} must hold all {len(names):,} images asked for, got none for "
            f"{len(missing):,}, the first is {missing[0]}; download them, set limit, or give "
            "attributes a file that lists only the images you have."
        )


def read_attributes(path: Path, label: str, sensitive: Sequence[str]) -> pd.DataFrame:
    """Columns "image", label and sensitive; the first line says how many rows there must be."""
    import pandas as pd

    columns = [label, *sensitive]
    with path.open(encoding="ascii", errors="replace") as stream:
        announced, names = stream.readline().strip(), stream.readline().split()
        if not announced.isdecimal():
            raise ValueError(
                f"{path} must begin with its number of rows, as {ATTRIBUTES} does, got "
                f"{announced[:40]!r}."
            )
        for argument, name in zip(["label", *["sensitive"] * len(sensitive)], columns, strict=True):
            _check_name(argument, name, names)
        try:
            rows = pd.read_csv(
                stream,
                sep=r"\s+",
                names=["image", *names],
                usecols=["image", *columns],
                dtype={"image": str, **dict.fromkeys(columns, "int8")},
            )
        except (ValueError, OverflowError) as error:
            raise ValueError(f"{path} must have -1 or 1 throughout: {error}.") from error
    if len(rows) != int(announced):
        raise ValueError(
            f"{path} must have the {int(announced):,} rows that its first line announces, got "
            f"{len(rows):,}; download it again, or correct that line."
        )
    if not rows[columns].isin([-1, 1]).to_numpy().all():
        raise ValueError(f"{path} must have -1 or 1 throughout, got other numbers.")
    return rows


def read_part(path: Path, images: NDArray[np.str_], part: Part) -> NDArray[np.bool_]:
    """Whether each image belongs to a part of the official split."""
    import numpy as np
    import pandas as pd

    split = pd.read_csv(path, sep=r"\s+", names=["image", "part"])
    places = pd.Index(split["image"]).get_indexer(pd.Index(images))
    if (places < 0).any():
        lost = images[places < 0][0]
        raise ValueError(f"{path} must have a row for every image, got none for {lost}.")
    chosen = np.asarray(split["part"])[places] == get_args(Part).index(part)
    if not chosen.any():
        raise ValueError(f"part must be one that {path.name} has images of, got {part!r}.")
    return chosen


def _check_name(argument: str, name: str, names: Sequence[str]) -> None:
    if name not in names:
        near = get_close_matches(name, names, n=1, cutoff=0.4)
        hint = f"; did you mean {near[0]!r}?" if near else f"; it has {', '.join(names)}."
        raise ValueError(f"{argument} must be in the attribute file, got {name!r}{hint}")
