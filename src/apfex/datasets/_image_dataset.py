"""Images, decoded when they are asked for, with label and group of each."""

from __future__ import annotations

from pathlib import Path
from typing import final

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import Dataset

from apfex.groups import Groups

_MOST_PIXELS = 2**25
"""Of an image, decoded: few bytes may say that there are many more."""


@final
class ImageDataset(Dataset[tuple[Tensor, int, int]]):
    """Images in a folder as (pixels, label, group); made by ``load_images``.

    It holds names only, so that copies for the workers of a ``DataLoader`` are small.

    Attributes
    ----------
    folder : Path
    names : array of n str
        File of each image.
    size : int
        Side of the square that images are cropped and scaled to.
    label : str
        Name of the attribute that is the label.
    y : int64 array of shape [n]
    sensitive : pandas.DataFrame with n rows
    groups : Groups
        Cells of the crossing of the sensitive attributes, for the n rows.
    """

    folder: Path
    names: NDArray[np.str_]
    size: int
    label: str
    y: NDArray[np.int64]
    sensitive: pd.DataFrame
    groups: Groups

    def __init__(
        self,
        folder: Path,
        names: NDArray[np.str_],
        size: int,
        label: str,
        y: NDArray[np.int64],
        sensitive: pd.DataFrame,
        groups: Groups,
    ) -> None:
        self.folder, self.names, self.size = folder, names, size
        self.label, self.y = label, y
        self.sensitive, self.groups = sensitive, groups

    def __len__(self) -> int:
        """Return the number of images n."""
        return len(self.names)

    def __getitem__(self, index: int) -> tuple[Tensor, int, int]:
        """Pixels [3, size, size] between 0 and 1, label, and code of the group."""
        pixels = _decode(self.folder / str(self.names[index]), self.size)
        return pixels, int(self.y[index]), int(self.groups.codes[index])

    def __repr__(self) -> str:
        """Return sizes and names in one line."""
        return (
            f"<ImageDataset: {len(self):,} images of {self.size} x {self.size}, "
            f"label: {self.label}, sensitive: {', '.join(self.sensitive.columns)}>"
        )


def _decode(path: Path, size: int) -> Tensor:
    """The largest square in the middle, scaled."""
    from PIL import Image, ImageOps

    try:
        with Image.open(path, formats=("JPEG", "PNG")) as image:  # others may call programs
            image.draft("RGB", (size, size))  # a JPEG is decoded no larger than needed
            if image.width * image.height > _MOST_PIXELS:
                raise ValueError(f"it has {image.width:,} x {image.height:,} pixels")
            square = ImageOps.fit(image.convert("RGB"), (size, size), Image.Resampling.BILINEAR)
    except Exception as error:  # a damaged or forged image fails in many ways, none of them ours
        raise OSError(
            f"{path} cannot be read as an image ({error}); download it again, or take its row out "
            "of the attribute file."
        ) from error
    return torch.from_numpy(np.array(square)).permute(2, 0, 1).float().div(255)
