"""The plot of a front: one record, drawn by matplotlib and by plotly."""

from typing import Any

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import zero_one_loss
from sklearn.pipeline import make_pipeline

from apfex import APFExClassifier, audit, make_biased
from apfex.front import FrontDisplay

DATA, NEW = make_biased(600, random_state=0), make_biased(500, random_state=1)


@pytest.fixture(scope="module")
def clf():
    made = APFExClassifier(("dp", "tpr"), model="linear", max_gap=1.0, n_points=5, random_state=0)
    return made.fit(DATA.X, DATA.y, sensitive_features=DATA.sensitive)


@pytest.fixture(autouse=True)
def _closed():
    yield
    plt.close("all")


def drawn(ax):
    """What the bars of matplotlib show: middle, left, right and height of each mark."""
    found = []
    for container in ax.containers:
        line, _, (bars,) = container
        for x, y, (left, right) in zip(*line.get_data(), bars.get_segments(), strict=True):
            found.append((x, left[0], right[0], y))
    return sorted(found)


def test_both_libraries_draw_the_figures_of_the_front(clf):
    display = FrontDisplay.from_estimator(clf, criterion="tpr")
    wanted = sorted(
        (p.gaps["tpr"].gap, p.gaps["tpr"].lower, p.gaps["tpr"].upper, p.loss) for p in clf.front_
    )
    np.testing.assert_allclose(drawn(display.ax_), wanted, atol=1e-12)
    figure: Any = display.to_plotly()
    shown = [trace for trace in figure.data if trace.error_x.array is not None]
    marks = sorted(
        (x, x - below, x + above, y)
        for trace in shown
        for x, below, above, y in zip(
            trace.x, trace.error_x.arrayminus, trace.error_x.array, trace.y, strict=True
        )
    )
    np.testing.assert_allclose(marks, wanted, atol=1e-12)


def test_axes_say_what_they_are_and_where_it_is_better(clf):
    display = FrontDisplay.from_estimator(clf)
    ax: Any = display.ax_
    labels = {text.get_text() for text in ax.get_legend().get_texts()}
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("dp gap", "error")
    assert "validation rows" in ax.get_title()
    assert {"expected gap at parity", f"point {clf.point_}, in use"} <= labels
    assert any(text.get_text() == "better" for text in ax.texts)
    assert display.figure_ is ax.figure
    layout: Any = display.to_plotly().layout
    assert "better" in layout.xaxis.title.text
    assert "better" in layout.yaxis.title.text


def test_on_rows_of_the_user_every_point_is_measured_on_them(clf):
    given: dict[str, Any] = {"sensitive_features": NEW.sensitive}
    own = plt.subplots()[1]
    display = FrontDisplay.from_estimator(clf, NEW.X, NEW.y, **given, criterion="tpr", ax=own)
    assert display.ax_ is own
    assert display.measured_on == "500 rows given"
    for place, decided in enumerate(clf.decide_all(NEW.X)):
        found = audit(NEW.y, decided, **given, criteria="tpr").gaps
        gap = found.loc[found["by"] == "sex x origin", "gap"].item()
        assert display.points.loc[place, "gap"] == pytest.approx(gap)
        assert display.points.loc[place, "loss"] == pytest.approx(zero_one_loss(NEW.y, decided))
    assert display.constant == pytest.approx(min(NEW.y.mean(), 1 - NEW.y.mean()))


def test_trivial_points_are_marked(clf):
    display = FrontDisplay.from_front(clf.front_)
    display.points["trivial"] = [True, *[False] * (len(display.points) - 1)]
    drawn_on: Any = display.plot().ax_
    legend = drawn_on.get_legend().get_texts()
    assert "trivial, 95% interval" in {text.get_text() for text in legend}
    trivial = next(t for t in display.to_plotly().data if t.name.startswith("trivial"))
    assert len(trivial.x) == 1
    assert "point 0:" in trivial.text[0]


def test_rows_without_labels_are_refused(clf):
    with pytest.raises(ValueError, match="X and y must both be given, or neither"):
        FrontDisplay.from_estimator(clf, NEW.X)
    with pytest.raises(ValueError, match=r"criterion must be one of \['dp', 'tpr'\]"):
        FrontDisplay.from_front(clf.front_, "fpr")


def test_a_front_without_an_estimate_is_drawn_all_the_same(clf):
    display = FrontDisplay.from_front(clf.front_)
    display.points.loc[0, ["gap", "lower", "upper"]] = np.nan
    display.plot().figure_.canvas.draw()
    assert display.to_plotly().to_json()


def test_a_pipeline_is_drawn_as_the_classifier_it_ends_in(clf):
    same = ColumnTransformer([], remainder="passthrough", verbose_feature_names_out=False)
    steps = make_pipeline(same.set_output(transform="pandas").fit(DATA.X), clf)
    given = {"y": NEW.y, "sensitive_features": NEW.sensitive}
    alone = FrontDisplay.from_estimator(clf, NEW.X, **given)
    pd.testing.assert_frame_equal(FrontDisplay.from_estimator(steps).points, _of(clf).points)
    piped = FrontDisplay.from_estimator(steps, NEW.X, **given)
    pd.testing.assert_frame_equal(piped.points, alone.points)


def _of(clf):
    return FrontDisplay.from_front(clf.front_)


def test_what_has_no_front_is_named():
    with pytest.raises(NotFittedError, match="APFExClassifier"):
        FrontDisplay.from_estimator(APFExClassifier())
    with pytest.raises(TypeError, match=r"ends in one, got LogisticRegression\."):
        FrontDisplay.from_estimator(LogisticRegression())
    assert not hasattr(APFExClassifier(), "front_")
