"""A front whose groups have the worst of names, its description, and a browser."""

import os
import shutil
import warnings
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from apfex import APFExClassifier
from apfex.report import describe_front

HOSTILE = (
    "<img src=x onerror=\"document.title='hacked'\">",
    "</script><script>document.title='hacked'</script>",
    '=HYPERLINK("http://example.invalid","y")',
    "<!-- <script>",
    "line\u2028end",
    "שלום עולם",
    "👩🏽\u200d🚀 crew",
    "turned\u202egnp.exe",
    "n" * 200,
)


def make_people(n, seed, names=HOSTILE):
    """Rows whose label depends on the group, so that the front has points to choose from."""
    draw = np.random.default_rng(seed)
    kind = np.array(names, dtype=object)[draw.integers(0, len(names), n)]
    sex = np.array(["F", "M"], dtype=object)[draw.integers(0, 2, n)]
    y = (draw.random(n) < 0.25 + 0.35 * (sex == "M") + 0.15 * (kind == names[0])).astype(int)
    X = pd.DataFrame({"u": y + draw.normal(size=n), "v": (sex == "M") + draw.normal(size=n)})
    return SimpleNamespace(X=X, y=y, sensitive=pd.DataFrame({"<i>kind</i>": kind, "sex": sex}))


def fit(people, **settings):
    """A small front, without the warning that no point meets a bound."""
    settings = {"epochs": 2, "n_members": 8, "random_state": 0, "max_gap": 0.2} | settings
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return APFExClassifier(**settings).fit(
            people.X, people.y, sensitive_features=people.sensitive
        )


@pytest.fixture(scope="session")
def front():
    """A front with labels of which 0 is favorable, fresh rows, and what is told of it."""
    clf = fit(make_people(900, 0), criteria=("dp", "tpr"), favorable_label=0, n_points=6)
    new = make_people(700, 1)
    described = describe_front(
        clf,
        new.X,
        new.y,
        sensitive_features=new.sensitive,
        title="Report of <script>document.title='hacked'</script>",
        source="=1+1 & co",
        command="apfex predict RUN FILE",
    )
    assert len(described["points"]) >= 3
    return SimpleNamespace(clf=clf, new=new, described=described)


@pytest.fixture(scope="session")
def browser():
    """Chromium of this machine, started once."""
    path = next(
        filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
    )
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="browser tests need Playwright: pip install playwright"
    )
    if path is None:
        pytest.skip("browser tests need Chromium on the path: apt-get install chromium")
    as_root = hasattr(os, "geteuid") and os.geteuid() == 0
    with playwright.sync_playwright() as started:
        chromium = started.chromium.launch(
            executable_path=path, args=["--no-sandbox"] if as_root else []
        )
        yield chromium
        chromium.close()
