"""The plot of an audit: one record, drawn by matplotlib and by plotly."""

from typing import Any

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from apfex import APFExClassifier, audit, make_biased
from apfex.auditing import VERDICTS, GapDisplay

DATA = make_biased(800, random_state=0)
X = DATA.X.select_dtypes("number")
GIVEN: dict[str, Any] = {"sensitive_features": DATA.sensitive}


@pytest.fixture(autouse=True)
def _closed():
    yield
    plt.close("all")


def test_any_classifier_is_audited_and_drawn():
    model = LogisticRegression().fit(X, DATA.y)
    own = plt.subplots()[1]
    display = GapDisplay.from_estimator(model, X, DATA.y, **GIVEN, ax=own, tolerance=0.1)
    wanted = audit(DATA.y, model.predict(X), **GIVEN, tolerance=0.1).gaps
    shown = display.gaps.set_index(["criterion", "by"]).sort_index()
    assert shown["gap"].to_dict() == wanted.set_index(["criterion", "by"])["gap"].to_dict()
    assert (display.ax_, display.tolerance) == (own, 0.1)
    ranks = [VERDICTS.index(verdict) for verdict in display.gaps["verdict"]]
    assert ranks == sorted(ranks)


def test_our_classifier_audits_itself():
    clf = APFExClassifier(("tpr",), model="linear", epochs=2, max_gap=1.0, random_state=0)
    clf.fit(DATA.X, DATA.y, **GIVEN)
    display = GapDisplay.from_estimator(clf, DATA.X, DATA.y, **GIVEN)
    assert set(display.gaps["criterion"]) == {"tpr"}


def test_plotly_shows_what_matplotlib_shows():
    found = audit(DATA.y, X.iloc[:, 0] > 0, **GIVEN)
    display = GapDisplay.from_audit(found).plot()
    figure: Any = display.to_plotly()
    order = [text.get_text() for text in display.ax_.get_yticklabels()]
    assert list(figure.layout.yaxis.categoryarray) == order[::-1]
    drawn = {
        name: gap
        for trace in figure.data
        if trace.name in VERDICTS
        for name, gap in zip(trace.y, trace.x, strict=True)
    }
    rows = found.gaps.to_dict("records")
    assert drawn == {f"{row['criterion']} by {row['by']}": row["gap"] for row in rows}
    assert "better to the left" in figure.layout.xaxis.title.text
    assert "better to the left" in display.ax_.get_xlabel()
    lines: list[Any] = [one for one in display.ax_.lines if one.get_label() == "tolerance"]
    assert lines[0].get_xdata()[0] == found.settings.tolerance


def test_names_from_data_are_text_in_plotly():
    name = "<a href='javascript:alert(1)'>x</a>"
    groups = {name: np.repeat(["a", "<b>b</b>"], 200)}
    found = audit(None, [0, 1] * 200, sensitive_features=groups, criteria="dp")
    figure: Any = found.to_plotly()
    assert "<a" not in "".join(figure.data[0].y)
    assert "<b>" not in "".join(figure.data[0].text)
    found.plot().figure.canvas.draw()
