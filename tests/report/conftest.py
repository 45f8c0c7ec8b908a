"""A front whose groups have the worst of names, its description, and a browser."""

import json
import re
import warnings
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch

from apfex import APFExClassifier
from apfex.front import Front
from apfex.history import History, StepRecord
from apfex.report import describe_front, measure_front, write_audit_page

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


def make_history(steps, members=()):
    """The history of a training with two losses, as a frame."""
    history = History(2, window=1, members=members, trace=True, choice_names=("PCP", "AW"))
    for step in range(steps):
        pair = torch.full((*members, 2), float(step))
        choice = torch.full(members, step % 2)
        history.record(StepRecord(pair, pair, choice, torch.full(members, 1.0)))
    return history.to_frame()


def data_of(page):
    """What a page carries: its description, with fewer digits."""
    (data,) = re.findall(r'id="data">(.*?)</script>', page.read_text(encoding="utf-8"))
    return json.loads(data)


@pytest.fixture
def audit_data(tmp_path):
    """What the page of an audit carries."""
    return lambda result: data_of(write_audit_page(result, tmp_path / "audit.html"))


@pytest.fixture(scope="session")
def front():
    """A front with labels of which 0 is favorable, test rows, and what is told of it."""
    clf = fit(make_people(900, 0), criteria=("dp", "tpr"), favorable_label=0, n_points=6)
    new = make_people(700, 1)
    measured = measure_front(clf, new.X, new.y, sensitive_features=new.sensitive)
    described = measured.describe(
        title="Report of <script>document.title='hacked'</script>",
        source="=1+1 & co",
        command="apfex predict RUN FILE",
    )
    assert len(described["points"]) >= 3
    return SimpleNamespace(clf=clf, new=new, measured=measured, described=described)


@pytest.fixture
def decide(front):
    """Describes two points that decide as they are told, codes [2, n]; 0 is favorable."""

    def described(decided, y, sensitive, points=None, clf=front.clf, **settings):
        clf, n = clf.at(0), len(y)
        points = points or [replace(one, trivial=False) for one in clf.front_[:2]]
        clf.fitted_ = replace(clf.fitted_, front=Front(points, favorable_label=0))
        clf.decide_all = lambda *_, **__: np.asarray(decided)
        X = pd.DataFrame({"u": np.zeros(n), "v": np.zeros(n)})
        return describe_front(clf, X, np.asarray(y), sensitive_features=sensitive, **settings)

    return described
