"""What the drawings share: a look of their own, and files that are written whole."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from apfex.persistence import write_bytes_atomically
from apfex.strategies import Choice

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BANDS: dict[str, dict[str, Any]] = {
    Choice.PCP.name: {"facecolor": "#b3d7f2"},
    Choice.AW.name: {"facecolor": "#fff5dc"},
    Choice.PSS.name: {"facecolor": "#dedede", "hatch": "/////"},
}
"""Blue, sand and hatched grey: apart in hue, in lightness, and the shortest one in texture."""
HATCH = "#b0b0b0"
_FORMATS = ("png", "svg", "pdf")
_STYLE: dict[str, Any] = {
    "font.size": 8,
    "axes.titlesize": 9,
    "axes.labelsize": 8,
    "axes.linewidth": 0.6,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 7,
    "lines.linewidth": 0.9,
    "lines.markersize": 3.6,
    "hatch.linewidth": 0.6,
    "pdf.fonttype": 42,  # publishers refuse the bitmap-like Type 3
    "svg.hashsalt": "apfex",  # the same drawing, the same bytes
    "savefig.dpi": 300,
}
_UNDATED = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {}}


@contextmanager
def own_style() -> Iterator[None]:
    """Draw alike whatever the user's settings are, and leave those as they were."""
    from matplotlib import style

    with style.context(["default", _STYLE]):
        yield


def new_figure(width: float, height: float, **options: Any) -> Figure:
    """An empty figure of so many inches that no window system knows of."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), **options)
    FigureCanvasAgg(figure)
    return figure


def check_path(path: str | os.PathLike[str] | None) -> Path | None:
    """Refuse, before anything is drawn, a file that could not be written."""
    if path is None:
        return None
    file = Path(path)
    if file.suffix.lower().removeprefix(".") not in _FORMATS:
        known = ", ".join(f".{name}" for name in _FORMATS)
        raise ValueError(f"path must end with one of {known}, got {file.name!r}.")
    if not file.parent.is_dir():
        raise FileNotFoundError(f"path must lie in a folder that exists, got {str(file)!r}.")
    return file


def save(figure: Figure, file: Path) -> None:
    """Write the file whole or not at all; the same drawing always gives the same bytes."""
    kind = file.suffix.lower().removeprefix(".")
    content = BytesIO()
    figure.savefig(content, format=kind, metadata=_UNDATED[kind])
    write_bytes_atomically(file, content.getvalue())
