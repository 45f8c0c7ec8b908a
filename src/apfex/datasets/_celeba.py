"""CelebA attributes: row count, names, then per image its file name and 40 values -1 or 1."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from apfex.datasets._dataset import Parts

_LABEL = "Smiling"
_HAIR = {"Black_Hair": "Black", "Blond_Hair": "Blond", "Brown_Hair": "Brown", "Gray_Hair": "Gray"}


def parse(paths: Sequence[Path], *, include_sensitive: bool, hair: str, hide_hair: bool) -> Parts:
    """Read the rows; see the registry for the options."""
    rows = _read(paths[0])
    y = (rows.pop(_LABEL) == 1).to_numpy(np.int64)
    sensitive = pd.DataFrame({"Male": np.where(rows["Male"] == 1, "Male", "Not male")})
    if hair == "five":
        sensitive["hair"] = _hair_colour(rows)
    else:
        sensitive["Black_Hair"] = np.where(rows["Black_Hair"] == 1, "Black hair", "Other hair")
    hidden = set() if include_sensitive else {"Male", "Black_Hair"}
    if hide_hair:
        hidden |= _HAIR.keys()
    return Parts(rows.drop(columns=sorted(hidden)), y, sensitive)


def _read(path: Path) -> pd.DataFrame:
    with path.open(encoding="ascii") as stream:
        stream.readline()
        names = stream.readline().split()
        return pd.read_csv(stream, sep=r"\s+", names=["image", *names], usecols=names, dtype="int8")


def _hair_colour(rows: pd.DataFrame) -> NDArray[np.str_]:
    """Return the one colour whose flag is set, or Other."""
    flags = rows[list(_HAIR)].to_numpy() == 1
    colour = np.array(list(_HAIR.values()))[flags.argmax(axis=1)]
    return np.where(flags.sum(axis=1) == 1, colour, "Other")
