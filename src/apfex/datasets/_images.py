"""CelebA's images: the folder that a user downloads, with the attribute file beside it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

from apfex.arguments import as_names, as_path
from apfex.datasets._registry import CELEBA
from apfex.extras import need_extra

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

    from apfex.datasets._image_dataset import ImageDataset

Part = Literal["train", "validation", "test"]
"""In the order of their numbers in the partition file."""
_ATTRIBUTES, _PARTITION = "list_attr_celeba.txt", "list_eval_partition.txt"
_IMAGE_FOLDERS = ("img_align_celeba", "Img/img_align_celeba", ".")
_FILE_FOLDERS = (".", "Anno", "Eval")
"""Unpacked side by side, or as the site has them."""
_SUFFIXES = (".jpg", ".jpeg", ".png")
_WHERE = f"Download it from {CELEBA.homepage}: the licence lets nobody else hand it out."


def load_images(
    folder: str | os.PathLike[str],
    *,
    attributes: str | os.PathLike[str] | None = None,
    size: int = 64,
    label: str = "Smiling",
    sensitive: str | Sequence[str] = ("Male", "Black_Hair"),
    part: Part | None = None,
    limit: int | None = None,
) -> ImageDataset:
    r"""Load CelebA's images, for a network of one's own.

    The licence forbids passing the images on, so you download them yourself: the aligned and
    cropped ones, ``list_attr_celeba.txt`` and, for ``part``, ``list_eval_partition.txt``.

    Parameters
    ----------
    folder : path
        Holds ``img_align_celeba``, or the images themselves.
    attributes : path, optional
        The attribute file; otherwise looked for in ``folder`` and the two folders above it, also
        in ``Anno`` there.
    size : int, default 64
        Images are cropped to the largest square in the middle and scaled to this side.
    label : str, default "Smiling"
        The attribute to predict.
    sensitive : str or sequence of str, default ("Male", "Black_Hair")
        Attributes whose crossing makes the groups.
    part : "train", "validation" or "test", optional
        The official split; all images by default.
    limit : int, optional
        Only the first so many.

    Returns
    -------
    torch.utils.data.Dataset
        Of (pixels, label, group): a float tensor [3, size, size] between 0 and 1, and two whole
        numbers. Images are decoded when asked for, also by the workers of a ``DataLoader``.
        ``y`` [n], ``sensitive`` (a pandas.DataFrame) and ``groups`` hold labels and groups of all
        images; group codes are the same in every part.

    Notes
    -----
    The tables of the paper use the attributes alone, :func:`load_dataset` with "celeba".

    Examples
    --------
    Two made-up images in the layout of CelebA:

    >>> import tempfile
    >>> from pathlib import Path
    >>> from PIL import Image
    >>> from apfex.datasets import load_images
    >>> folder = Path(tempfile.mkdtemp())
    >>> (folder / "img_align_celeba").mkdir()
    >>> for name, colour in (("000001.jpg", "white"), ("000002.jpg", "black")):
    ...     Image.new("RGB", (178, 218), colour).save(folder / "img_align_celeba" / name)
    >>> rows = "2\nBlack_Hair Male Smiling\n000001.jpg -1 -1 1\n000002.jpg 1 -1 -1\n"
    >>> _ = (folder / "list_attr_celeba.txt").write_text(rows)
    >>> images = load_images(folder, size=32)
    >>> images
    <ImageDataset: 2 images of 32 x 32, label: Smiling, sensitive: Male, Black_Hair>
    >>> pixels, label, group = images[0]
    >>> pixels.shape, float(pixels.min()), label, images.groups.names[group]
    (torch.Size([3, 32, 32]), 1.0, 1, 'Male=Not male, Black_Hair=Other hair')
    """
    import numpy as np
    import pandas as pd

    columns = list(as_names("sensitive", sensitive))
    _check(label, columns, size, part, limit)
    root = as_path("folder", folder).absolute()
    images = _find_images(root)
    rows = _read_attributes(_find_file(root, _ATTRIBUTES, attributes), label, columns)
    names = rows["image"].to_numpy(str)
    places = np.arange(len(names))
    if part is not None:
        places = places[_read_part(_find_file(root, _PARTITION), names, part)]
    places = places[:limit]
    _require_images(images, names[places])

    from apfex.datasets._image_dataset import ImageDataset
    from apfex.groups import make_groups

    flags = rows == 1
    groups_of_all = pd.DataFrame({name: _levels(name, flags[name].to_numpy()) for name in columns})
    return ImageDataset(
        folder=images,
        names=names[places],
        size=size,
        label=label,
        y=flags[label].to_numpy(np.int64)[places],
        sensitive=groups_of_all.iloc[places].reset_index(drop=True),
        groups=make_groups(groups_of_all).take(places),  # the same codes in every part
    )


def _check(label: str, columns: list[str], size: int, part: str | None, limit: int | None) -> None:
    need_extra("images", "PIL", "load_images", "pillow")  # better now than at the first image
    if not columns or len({label, *columns}) <= len(columns):
        raise ValueError(
            f"sensitive must name distinct attributes other than the label {label!r}, got "
            f"{columns}."
        )
    for name, value in (("size", size), ("limit", limit)):
        if value is not None and (not isinstance(value, int) or value < 1):
            raise ValueError(f"{name} must be a whole number of at least 1, got {value!r}.")
    if part is not None and part not in get_args(Part):
        raise ValueError(f"part must be one of {', '.join(get_args(Part))}, got {part!r}.")


def _levels(name: str, flags: NDArray[np.bool_]) -> NDArray[np.str_]:
    """Words for yes and no; for hair those of the attribute table."""
    import numpy as np

    yes = name.replace("_", " ").capitalize()
    no = "Other hair" if name.endswith("_Hair") else f"Not {yes.lower()}"
    return np.where(flags, yes, no)


def _find_images(root: Path) -> Path:
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


def _find_file(root: Path, name: str, given: str | os.PathLike[str] | None = None) -> Path:
    """The given file, or the one of that name in the folder or up to two above it."""
    if given is not None:
        if not as_path("attributes", given).is_file():
            raise FileNotFoundError(f"attributes must be a file, got {str(given)!r}.")
        return Path(given)
    for folder in (root, *root.parents[:2]):
        for place in _FILE_FOLDERS:
            if (folder / place / name).is_file():
                return folder / place / name
    raise FileNotFoundError(
        f"folder must hold {name}, or a folder above it, got {str(root)!r} without it. {_WHERE}"
    )


def _require_images(folder: Path, names: NDArray[np.str_]) -> None:
    """Refuse now what would otherwise fail in the middle of a training."""
    present = {file.name for file in os.scandir(folder)}
    missing = [name for name in names if name not in present]
    if missing:
        raise FileNotFoundError(
            f"{folder} must hold all {len(names):,} images asked for, got none for "
            f"{len(missing):,}, the first is {missing[0]}; download them, set limit, or give "
            "attributes a file that lists only the images you have."
        )


def _read_attributes(path: Path, label: str, sensitive: Sequence[str]) -> pd.DataFrame:
    """Columns "image", label and sensitive; the first line says how many rows there must be."""
    import pandas as pd

    columns = [label, *sensitive]
    with path.open(encoding="ascii", errors="replace") as stream:
        announced, names = stream.readline().strip(), stream.readline().split()
        if not announced.isdecimal() or len(announced) > 12:
            raise ValueError(
                f"{path} must begin with its number of rows, as {_ATTRIBUTES} does, got "
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


def _read_part(path: Path, images: NDArray[np.str_], part: Part) -> NDArray[np.bool_]:
    """Whether each image belongs to a part of the official split."""
    import numpy as np
    import pandas as pd

    try:
        split = pd.read_csv(path, sep=r"\s+", names=["image", "part"])
    except (ValueError, OverflowError) as error:
        raise ValueError(f"{path} must have an image and its part in each row: {error}.") from error
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
