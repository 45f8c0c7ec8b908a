"""Pictures that are drawn from records show what the records hold."""

import pytest
from matplotlib.figure import Figure
from PIL import Image
from website.figures import FOLDER
from website.record_figures import RECORD_FIGURES, fingerprint


@pytest.mark.parametrize("name", RECORD_FIGURES)
def test_the_picture_is_that_of_the_record(name):
    with Image.open(FOLDER / f"{name}.png") as picture:
        kept = picture.info["Comment"]
    assert kept == fingerprint(RECORD_FIGURES[name]()), f"python -m website.figures {name}"


@pytest.mark.parametrize("name", RECORD_FIGURES)
def test_axes_say_what_they_show_in_words_that_a_phone_can_show(name):
    figure = RECORD_FIGURES[name]()
    assert figure.get_figwidth() <= 4.6
    told = [figure.get_supxlabel(), figure.get_supylabel()]
    assert any(told) or all(axis.get_ylabel() for axis in figure.axes)
    assert any(told) or figure.axes[-1].get_xlabel()
    assert all(float(label.get_fontsize()) >= 8 for axis in figure.axes for label in axis.texts)


def test_a_fingerprint_tells_of_a_number_and_of_a_word():
    def drawn(number, word):
        figure = Figure()
        axis = figure.subplots()
        axis.plot([0, 1], [0, number])
        axis.set_xlabel(word)
        return fingerprint(figure)

    assert drawn(1, "rows") == drawn(1, "rows")
    assert len({drawn(1, "rows"), drawn(2, "rows"), drawn(1, "groups")}) == 3
