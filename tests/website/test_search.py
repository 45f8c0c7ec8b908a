"""The site's own search, opened from disk in a browser, answers what users ask most."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FAQ = (ROOT / "docs" / "faq.md").read_text(encoding="utf-8")
ANCHORS = re.findall(r"^### .+ \{ #([\w-]+) \}$", FAQ, flags=re.M)
FIRST = 5
"""How many results a reader looks at."""
ASKED = {
    "several-attributes": "multiple sensitive features",
    "more-than-two-values": "privileged unprivileged",
    "missing-group": "missing sensitive attribute",
    "without-attributes": "without protected attributes",
    "at-predict": "sensitive features prediction time",
    "which-metric": "which fairness metric",
    "confidence-intervals": "confidence intervals",
    "four-fifths": "four-fifths rule",
    "more-biased": "more biased after mitigation",
    "xgboost": "random forest xgboost",
    "sample-weight": "estimator sample_weight",
    "pipeline": "pipeline GridSearchCV",
    "pytorch": "pytorch",
    "already-trained": "already trained model",
    "multiclass": "multiclass",
    "constant-classifier": "dummy constant classifier",
    "save-model": "save pickle model deploy",
    "dataset-bias": "bias in the dataset without predictions",
    "dependencies": "tensorflow dependency",
    "regression": "regression",
    "own-dataset": "own dataset csv",
    "predict-proba": "predict_proba",
    "calibration": "probabilities calibrated",
    "random": "predictions randomized",
    "large-data": "large data minibatch",
    "vram": "gpu memory losses",
    "amp": "mixed precision",
    "which-aggregator": "which aggregator",
    "lightning": "lightning",
}
"""What somebody would type who has the question."""
ALSO = {"pytorch": "tutorials/loop.html", "confidence-intervals": "audit.html"}
"""Pages that answer as well as the list of questions does."""


@pytest.fixture(scope="module")
def page(site, browser):
    context = browser.new_context(offline=True)
    page = context.new_page()
    page.goto((site / "index.html").as_uri())
    yield page
    context.close()


def test_there_are_twenty_questions_with_threads_and_words_to_search_for():
    assert len(ANCHORS) >= 20
    assert set(ASKED) == set(ANCHORS)
    for anchor, answer in zip(ANCHORS, FAQ.split("\n### ")[1:], strict=True):
        assert re.search(r"https://github\.com/[\w/-]+/(issues|pull)/\d+", answer), anchor


@pytest.mark.parametrize("anchor", ANCHORS)
def test_the_search_finds_the_answer(page, anchor):
    page.fill("input[name=query]", "")
    page.locator("input[name=query]").press_sequentially(ASKED[anchor])
    found = page.locator(".md-search-result__item a.md-search-result__link:visible")
    wanted = rf"faq\.html.*#{anchor}$|{re.escape(ALSO.get(anchor, 'no page'))}"
    links = []
    for _ in range(50):  # results come as one types
        links = [link.get_attribute("href") or "" for link in found.all()]
        if any(re.search(wanted, link) for link in links[:FIRST]):
            return
        page.wait_for_timeout(100)
    raise AssertionError(f"{ASKED[anchor]!r} finds {links[:10]}")
