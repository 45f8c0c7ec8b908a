"""CelebA's images: the folder that a user downloads, with the attribute file beside it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from apfex.datasets._image_files import (
    ATTRIBUTES,
    PARTITION,
    Part,
    find_file,
    find_images,
    read_attributes,
    read_part,
    require_images,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from apfex.datasets._image_dataset import ImageDataset


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

    columns = [sensitive] if isinstance(sensitive, str) else list(sensitive)
    _check(label, columns, size, part, limit)
    root = Path(folder).absolute()
    images = find_images(root)
    rows = read_attributes(find_file(root, ATTRIBUTES, attributes), label, columns)
    names = rows["image"].to_numpy(str)
    places = np.arange(len(names))
    if part is not None:
        places = places[read_part(find_file(root, PARTITION), names, part)]
    places = places[:limit]
    require_images(images, names[places])

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
    try:
        import PIL  # noqa: F401 - better now than at the first image
    except ImportError as error:
        raise ImportError("load_images needs Pillow: pip install pillow.") from error
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
