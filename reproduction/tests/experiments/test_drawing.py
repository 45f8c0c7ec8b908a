"""Both drawings are written whole, alike every time, and disturb nobody."""

import matplotlib as mpl
import pytest
from matplotlib._pylab_helpers import Gcf

from apfex_reproduction.experiments._figure import draw_figure
from apfex_reproduction.experiments._workflow import draw_workflow

TRACE = {
    "step": [5, 10],
    "strategy": ["AW", "PSS"],
    "losses": {"cross-entropy": [0.7, 0.6], "dp": [0.2, 0.1]},
    "weights": {"cross-entropy": [0.5, 0.4], "dp": [0.5, 0.6]},
    "norm": [1.0, 0.5],
}


def figure(path=None):
    return draw_figure({"heart": TRACE}, path)


def settings():
    return {key: mpl.rcParams[key] for key in mpl.rcParams if key != "backend"}


DRAWINGS = pytest.mark.parametrize("draw", [figure, draw_workflow])


@DRAWINGS
@pytest.mark.parametrize(
    ("suffix", "start"),
    [
        ("png", b"\x89PNG"),
        ("svg", b"<?xml"),
        pytest.param("PDF", b"%PDF", marks=pytest.mark.slow),  # fonts take a second each
    ],
)
def test_the_suffix_says_the_format_and_bytes_repeat(draw, tmp_path, suffix, start):
    first, second = tmp_path / f"one.{suffix}", tmp_path / f"two.{suffix}"
    draw(first)
    draw(str(second))
    assert first.read_bytes().startswith(start)
    assert first.read_bytes() == second.read_bytes()
    assert sorted(tmp_path.iterdir()) == [first, second]


@DRAWINGS
def test_an_unknown_suffix_is_refused(draw, tmp_path):
    with pytest.raises(ValueError, match=r"one of \.png, \.svg, \.pdf, got 'figure.jpeg'"):
        draw(tmp_path / "figure.jpeg")


@DRAWINGS
def test_a_missing_folder_is_named(draw, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"folder that exists, got .*nowhere"):
        draw(tmp_path / "nowhere" / "figure.png")


def test_a_file_that_cannot_be_written_leaves_nothing_behind(tmp_path):
    taken = tmp_path / "figure.png"
    taken.mkdir()
    with pytest.raises(OSError, match=r"figure\.png"):
        figure(taken)
    assert list(tmp_path.iterdir()) == [taken]


@DRAWINGS
def test_nothing_of_the_user_is_touched(draw):
    before = settings()
    with mpl.rc_context({"font.size": 30, "axes.facecolor": "black"}):
        drawn = draw()
    assert settings() == before
    assert not Gcf.figs
    assert drawn.axes[0].get_facecolor() == (1, 1, 1, 1)
    assert max(text.get_fontsize() for text in drawn.axes[0].texts) < 12
