"""The history of a fit: what is shown is what the rules come to."""

import numpy as np
import pytest
import torch

from apfex import APFExClassifier, make_biased
from apfex.models import GapWeights, OutOfFoldPredictions, fit_rules, rule_scores

DATA = make_biased(600, random_state=0)


def test_the_watched_error_ends_at_that_of_the_rules():
    generator = torch.Generator().manual_seed(0)
    q = torch.rand(300, 2, 2, generator=generator) * torch.tensor([1.0, 0.5])  # a rarer label
    q /= q.sum((1, 2), keepdim=True)
    targets = torch.randint(0, 4, (300,), generator=generator)
    seen = []
    weights = GapWeights(("dp", "tpr"), torch.tensor([[0.0, 0.0], [2.0, 1.0]]))
    rules = fit_rules(
        OutOfFoldPredictions(q, targets),
        weights,
        [torch.arange(2)],
        on_step=lambda *step: seen.append(step),
    )
    assert [step for step, _, _ in seen] == list(range(60))
    last = seen[-1][1]
    decided = (rule_scores(rules, q) > 0).double()
    labels = q.sum(1)
    error = (decided * labels[:, 0] + (1 - decided) * labels[:, 1]).mean(1)
    torch.testing.assert_close(last[:, 0].double(), error.double(), atol=5e-3, rtol=0)
    assert last[1, 1] < last[0, 1] / 5  # the gap that counts is closed
    assert torch.equal(
        fit_rules(OutOfFoldPredictions(q, targets), weights, [torch.arange(2)]), rules
    )


@pytest.mark.parametrize("classes", [2, 3])
def test_every_point_has_its_own_history(classes):
    y = DATA.y if classes == 2 else DATA.y + (np.arange(len(DATA.y)) % 5 == 0)
    clf = APFExClassifier(("dp", "tpr"), epochs=2, max_gap=1.0, n_points=5, random_state=0)
    clf.fit(DATA.X, y, sensitive_features=DATA.sensitive)
    frame = clf.history_
    assert frame is not None
    assert frame.attrs["objectives"] == [
        "error",
        "dp gap by sex x origin",
        "tpr gap by sex x origin",
    ]
    assert set(frame["member"]) == {point.member for point in clf.front_}
    for _, own in frame.groupby("member"):
        assert own["step"].tolist() == list(range(1, 61))
        assert set(own["weight0"]) == {1.0}
        assert len(set(own["weight1"])) == 1
    ends = frame.query("step == 60").sort_values("weight1")
    assert ends["weight1"].iloc[0] < ends["weight1"].iloc[-1]
    assert ends["loss1"].iloc[0] > ends["loss1"].iloc[-1]  # what weighs more ends smaller
    shown = frame[["loss0", "loss1", "loss2", "direction_norm"]].to_numpy()
    assert np.isfinite(shown).all()
    assert ((shown[:, 0] >= 0) & (shown[:, 0] <= 1)).all()


@pytest.mark.parametrize("model", ["mlp", "boosting"])
def test_members_tell_epoch_by_epoch_who_decided(model):
    clf = APFExClassifier(
        ("dp", "tpr"),
        model=model,
        search="inprocess",
        strategy="pcp",
        n_members=8,
        epochs=10,
        max_gap=1.0,
        random_state=0,
    )
    clf.fit(DATA.X, DATA.y, sensitive_features=DATA.sensitive)
    frame = clf.history_
    assert frame is not None
    names = ["cross-entropy", "dp gap by sex x origin", "tpr gap by sex x origin"]
    assert frame.attrs["objectives"] == names
    assert set(frame["member"]) == {point.member for point in clf.front_}
    rounds = 10 if model == "mlp" else 20
    for _, own in frame.groupby("member"):
        assert len(own) == rounds
        assert own["step"].is_monotonic_increasing
        decided = own["strategy"].tolist()
        arrived = decided.index("ConeProjection")
        assert arrived == 0.6 * rounds
        assert decided == ["aim"] * arrived + ["ConeProjection"] * (rounds - arrived)
    columns = ["loss0", "loss2", "weight0", "weight2", "direction_norm", "omega", "omega_active"]
    assert np.isfinite(frame[columns].to_numpy()).all()


def test_rounds_after_a_member_has_stopped_are_not_told():
    clf = APFExClassifier(
        model="boosting", search="inprocess", n_members=6, patience=2, max_gap=1.0, random_state=0
    )
    clf.fit(DATA.X, DATA.y, sensitive_features=DATA.sensitive)
    assert clf.history_ is not None
    lengths = clf.history_.groupby("member").size()
    assert lengths.nunique() > 1
    for point in clf.front_:
        assert lengths[point.member] >= point.epoch
