"""One run of the models gives what three calls give, to the last bit."""

import numpy as np
import pytest

from apfex import APFExClassifier, make_biased

KINDS = {
    "rules": {"model": "linear", "epochs": 2},
    "trees": {"model": "boosting", "n_estimators": 5},
    "by group": {"model": "linear", "epochs": 2, "group_thresholds": True},
    "members": {"model": "linear", "epochs": 2, "search": "inprocess"},
    "a function": {"init": lambda X: np.clip(0.5 + 0.1 * X.iloc[:, 0].to_numpy(), 0.01, 0.99)},
}


@pytest.mark.parametrize("kind", KINDS)
def test_together_as_one_by_one(kind):
    data = make_biased(n=300, random_state=0)
    clf = APFExClassifier(max_gap=1.0, random_state=0, **KINDS[kind])
    clf.fit(data.X, data.y, sensitive_features=data.sensitive)
    given = {"sensitive_features": data.sensitive} if kind == "by group" else {}
    for point in (0, len(clf.front_) - 1):
        used = clf.at(point)
        labels, probabilities, margins = used.predict_with_margins(data.X, **given)
        assert (labels == used.predict(data.X, **given)).all()
        assert (probabilities == used.predict_proba(data.X, **given)).all()
        assert (margins == used.decision_function(data.X, **given)).all()


def test_several_classes():
    data = make_biased(n=300, random_state=0)
    y = np.where(data.X.iloc[:, 0] > 1, 2, data.y)
    clf = APFExClassifier(max_gap=1.0, random_state=0, model="linear")
    clf.fit(data.X, y, sensitive_features=data.sensitive)
    labels, probabilities, margins = clf.predict_with_margins(data.X)
    assert (labels == clf.predict(data.X)).all()
    assert (probabilities == clf.predict_proba(data.X)).all()
    assert (margins == clf.decision_function(data.X)).all()
