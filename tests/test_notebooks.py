"""What notebooks show: progress that changes in place, and results as tables."""

import html
import re
import warnings
from html.parser import HTMLParser
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient
from sklearn import config_context
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from tests.people import people

from apfex import APFExClassifier, audit, make_biased
from apfex.runs import audit_file, load_run

NASTY = "<script>document.title='hit'</script><img src=x onerror=\"document.title='hit'\">"


class Checked(HTMLParser):
    """Tags that are opened are closed, in turn; which tags there are."""

    def __init__(self, text):
        super().__init__()
        self.open, self.seen, self.words = [], set(), []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attrs):  # noqa: ARG002
        self.open.append(tag)
        self.seen.add(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)


ALLOWED = {
    "section",
    "p",
    "table",
    "caption",
    "thead",
    "tbody",
    "tr",
    "th",
    "td",
    "bdi",
    "ul",
    "li",
}


@pytest.fixture(scope="module")
def clf():
    data = make_biased(400, random_state=0)
    labels = data.y.astype(object)
    labels[data.y == 1] = NASTY
    labels[data.y == 0] = "no"
    made = APFExClassifier(
        model="linear", epochs=2, max_gap=1.0, random_state=0, favorable_label=NASTY
    )
    return made.fit(data.X, labels.astype(str), sensitive_features=data.sensitive)


def fragments(clf, finished):
    groups = {NASTY: ["a", NASTY] * 100, "b": ["x", "x", "y", "z"] * 50}
    found = audit(None, [0, 1, 1, 1] * 50, sensitive_features=groups)
    frame = people().rename(columns={"sex": NASTY})
    audited = audit_file(frame, prediction="hired", positive="hired", sensitive=NASTY)
    history: Any = trained().history
    return {
        "front": clf.front_,
        "run": load_run(finished),
        "audit": found,
        "audit of a file": audited,
        "history": history,
    }


def trained():
    import torch

    from apfex import APFEx

    theta = torch.nn.Parameter(torch.zeros(1))
    optimizer = APFEx(torch.optim.SGD([theta], lr=0.1), window=2)
    for _ in range(20):
        optimizer.backward([(theta - 1).square().sum(), (theta + 1).square().sum()])
        optimizer.step()
    return optimizer


def test_fragments_are_whole_and_hold_nothing_but_tables(clf, finished):
    for name, thing in fragments(clf, finished).items():
        text = thing._repr_html_()
        assert Checked(text).seen <= ALLOWED, name
        assert "style=" not in text  # colours are those of the page, light or dark
    assert html.escape(NASTY) in clf.front_._repr_html_()


def test_the_front_shows_its_figures(clf):
    words = " ".join(Checked(clf.front_._repr_html_()).words)
    for point in clf.front_:
        gap = point.gaps["dp"]
        assert f"{gap.gap:.3f} ({gap.lower:.3f} to {gap.upper:.3f})" in words
    assert words.count("trivial") == sum(point.trivial for point in clf.front_)


def test_a_classifier_keeps_the_picture_of_scikit_learn(clf):
    unfitted = APFExClassifier()
    assert "apfex-front" not in unfitted._repr_html_()
    shown = clf._repr_mimebundle_()
    assert shown["text/plain"] == repr(clf)
    assert "sk-estimator" in shown["text/html"]
    assert "in use" in shown["text/html"]
    assert shown["text/html"].count("apfex-front") == 1 == clf._repr_html_().count("apfex-front")
    assert "<script>document" not in shown["text/html"]
    assert "APFExClassifier" in make_pipeline(FunctionTransformer(), unfitted)._repr_html_()
    with config_context(display="text"):
        assert "text/html" not in clf._repr_mimebundle_()
        assert not hasattr(clf, "_repr_html_")


def test_a_history_says_how_much_there_is():
    history: Any = trained().history
    assert repr(history) == "<History: 10 windows of 2 steps, 2 objectives>"
    assert Checked(history._repr_html_()).words.count("18") == 1  # the last window's first step


def test_a_run_that_was_stopped_is_shown_all_the_same(finished):
    run = load_run(finished)
    stopped = type(run)({**run.record, "finished": False}, run.folder)
    assert "no measured points" in stopped._repr_html_()


@pytest.mark.slow
def test_in_a_kernel_the_bar_changes_in_place_and_results_are_tables(finished, tmp_path):
    book = nbformat.v4.new_notebook()
    cells = [
        "from apfex import APFExClassifier, make_biased\n"
        "data = make_biased(n=3000, random_state=0)\n"
        "clf = APFExClassifier(max_gap=1.0, model='linear', validation='split', random_state=0,"
        " verbose=1)\n"
        "clf.fit(data.X, data.y, sensitive_features=data.sensitive);",
        "clf",
        "clf.front_",
        "clf.audit(data.X, data.y, sensitive_features=data.sensitive)",
        f"from apfex.runs import load_run\nload_run({str(finished)!r})",
    ]
    book.cells = [nbformat.v4.new_code_cell(cell) for cell in cells]
    with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
        NotebookClient(book, timeout=300, kernel_name="python3").execute(cwd=str(tmp_path))
    (bar,) = [out for out in book.cells[0].outputs if out.output_type == "display_data"]
    shown = bar["data"]["text/html"]
    step, steps = (int(number) for number in re.findall(r'value="(\d+)" max="(\d+)"', shown)[0])
    assert step == steps > 1  # one output, which holds the end
    assert "best so far: error 0." in shown
    assert not [out for out in book.cells[0].outputs if out.output_type == "error"]
    for cell, name in zip(book.cells[1:], ("front", "front", "audit", "run"), strict=True):
        assert f'class="apfex-{name}"' in cell.outputs[0]["data"]["text/html"]


@pytest.mark.slow
def test_names_from_data_run_nothing_in_a_browser(clf, finished, browser, tmp_path):
    parts = "<hr>".join(one._repr_html_() for one in fragments(clf, finished).values())
    page_file = tmp_path / "page.html"
    page_file.write_text(f"<!doctype html><title>fine</title>{parts}{clf._repr_html_()}")
    page = browser.new_page()
    page.goto(page_file.as_uri())
    assert page.title() == "fine"
    assert page.locator("img").count() == 0
    assert page.locator("table").count() >= 6
    page.close()
