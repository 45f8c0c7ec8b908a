"""Pictures of pages that no code on a page draws: ``website/figures.py NAME ...``, or all."""

import sys
from collections.abc import Callable
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "docs" / "figures"
FIGURES: dict[str, Callable[[Path], None]] = {}
"""For each name what writes ``docs/figures/NAME.png``."""


if __name__ == "__main__":
    for name in sys.argv[1:] or FIGURES:
        FIGURES[name](FOLDER / f"{name}.png")
        print(name)
