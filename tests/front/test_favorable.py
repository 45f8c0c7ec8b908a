"""Of two labels all rates are those of the favorable one, wherever they are shown."""

import numpy as np
import pytest
import torch
from tests.estimator.tables import DATA, FRESH, quick
from tests.front.test_candidates import make_validation

from apfex import audit, make_biased, metrics
from apfex.front import Criteria, Scoring
from apfex.front._candidates import evaluate
from apfex.front._point import gap_of
from apfex.rates import OTHER_LABEL, RATES

WORDS = np.array(["declined", "approved"])  # sorted the other way round
CRITERIA = ("dp", "tpr", "fpr", "ppv", "equalized_odds")


@pytest.mark.parametrize("name", RATES)
def test_the_other_label_has_the_same_gap_by_another_rate(name):
    generator = np.random.default_rng(0)
    y, decided, group = generator.integers(0, 2, (3, 200))
    gap, other = (getattr(metrics, f"{of}_gap") for of in (name, OTHER_LABEL[name]))
    expected = gap(y, decided, sensitive_features=group, pos_label=0)
    assert other(y, decided, sensitive_features=group) == pytest.approx(expected)


@pytest.mark.parametrize("favorable", [0, 1])
@pytest.mark.parametrize("weighted", [False, True])
def test_points_are_measured_by_the_favorable_label(favorable, weighted):
    validation = make_validation(c=2, weighted=weighted)
    decisions = torch.randint(
        0, 2, (3, len(validation.y)), generator=torch.Generator().manual_seed(0)
    )
    criteria = Criteria.of(CRITERIA).for_label(favorable, 2)
    values = evaluate(decisions, validation, criteria, Scoring()).values
    for member, decided in enumerate(decisions.numpy()):
        counts = validation.count(decided, favorable)
        groupings = [grouping.attributes for grouping in validation.groupings]
        for place, name in enumerate(CRITERIA):
            expected = max(
                getattr(metrics, f"{name}_gap")(
                    validation.y,
                    decided,
                    sensitive_features=grouping,
                    sample_weight=validation.sample_weight,
                    pos_label=favorable,
                )
                for grouping in validation.groupings
            )
            assert values[member, 1 + place] == pytest.approx(expected)
            assert gap_of(counts, name, groupings).gap == pytest.approx(expected)


@pytest.mark.parametrize("favorable", ["approved", "declined", None])
@pytest.mark.parametrize("search", ["postprocess", "inprocess"])
def test_the_audit_of_a_classifier_is_that_of_its_decisions(favorable, search):
    clf = quick(criteria=CRITERIA, favorable_label=favorable, search=search)
    clf.fit(DATA.X, WORDS[DATA.y], sensitive_features=DATA.sensitive)
    label = favorable or "declined"
    own = clf.audit(FRESH.X, WORDS[FRESH.y], sensitive_features=FRESH.sensitive)
    other = audit(
        WORDS[FRESH.y],
        clf.predict(FRESH.X),
        sensitive_features=FRESH.sensitive,
        criteria=CRITERIA,
        favorable_label=label,
    )
    for table in ("gaps", "groups", "overall"):
        assert getattr(own, table).equals(getattr(other, table))
    assert own.settings == other.settings
    assert own.share_favored == other.share_favored
    assert own.diff(other).gaps["verdict"].unique().tolist() == ["no clear change"]
    assert clf.front_.favorable_label == label
    assert clf.front_.to_frame().attrs["favorable_label"] == label
    assert f"favorable: {label!r}" in repr(clf.front_)


def test_training_closes_the_gap_of_the_favorable_label():
    """The same rows with the labels exchanged are the same problem."""
    data = make_biased(2_000, kind="marginal", strength=0.8, random_state=0)
    objectives = []
    for favorable, y in ((0, 1 - data.y), (1, data.y)):
        clf = quick(criteria="tpr", favorable_label=favorable, model="linear", bins=None)
        clf.set_params(n_members=16, epochs=None, batch_size=1024)
        clf.fit(data.X, y, sensitive_features=data.sensitive)
        own, other = (
            metrics.tpr_gap(
                y, clf.at(-1).predict(data.X), sensitive_features=data.sensitive, pos_label=label
            )
            for label in (favorable, 1 - favorable)
        )
        assert own < other / 2
        assert clf.history_ is not None
        objectives.append(clf.history_.attrs["objectives"])
    assert objectives[0] == objectives[1] == ["error", "tpr gap by sex x origin"]
