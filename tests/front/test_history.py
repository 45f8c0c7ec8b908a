"""The history of a fit: what is shown is what the rules come to."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from apfex import APFExClassifier, make_biased
from apfex.models import spread_aims

DATA = make_biased(600, random_state=0)


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
    assert frame["member"].unique().tolist() == list(range(26))  # of the front or not
    assert not frame.isna().all().any()  # nothing that is never measured
    assert {point.epoch for point in clf.front_} <= set(frame["step"])
    aims = spread_aims(("dp", "tpr"), 26, limits=[1.0, 1.0])
    for member, own in frame.groupby("member"):
        assert own["step"].tolist() == list(range(1, 93))
        arriving, exploring = set(own["strategy"][:60]), set(own["strategy"][60:])
        if member in aims.bounded.tolist():
            assert arriving == exploring == {"bound"}
        else:
            weighs = bool(aims.weights[int(str(member))].any())
            assert arriving == {"aim"}
            assert exploring <= ({"PCP", "AW", "PSS"} if weighs else {"aim"})
    assert {"aim", "bound"} < set(frame["strategy"])
    shown = frame[["loss0", "loss1", "loss2", "direction_norm", "omega"]].to_numpy()
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
    assert frame["member"].unique().tolist() == list(range(8))
    rounds = 10 if model == "mlp" else 20
    aims, arrived = spread_aims(("dp", "tpr"), 8, limits=[1.0, 1.0]), round(0.6 * rounds)
    for member, own in frame.groupby("member"):
        assert len(own) == rounds
        assert own["step"].is_monotonic_increasing
        first, last = "aim", "PCP" if aims.weights[int(str(member))].any() else "aim"
        if member in aims.bounded.tolist():
            first = last = "bound"
        assert own["strategy"].tolist() == [first] * arrived + [last] * (rounds - arrived)
    assert "PCP" in set(frame["strategy"])
    columns = ["loss0", "loss2", "weight0", "weight2", "direction_norm", "omega", "omega_active"]
    assert np.isfinite(frame[columns].to_numpy()).all()


def test_rounds_after_a_member_has_stopped_are_not_told():
    clf = APFExClassifier(
        model="boosting", search="inprocess", n_members=6, patience=2, max_gap=1.0, random_state=0
    )
    clf.fit(DATA.X, DATA.y, sensitive_features=DATA.sensitive)
    assert clf.history_ is not None
    members = clf.history_["member"].tolist()
    lengths = {member: members.count(member) for member in set(members)}
    assert min(lengths.values()) < 20
    for point in clf.front_:
        assert lengths[point.member] >= point.epoch


def test_steps_of_a_long_training_are_epochs_as_those_of_points():
    """Two batches an epoch, and means of two epochs in a row."""
    clf = APFExClassifier(
        model="linear", search="inprocess", epochs=320, batch_size=256, n_members=3, random_state=0
    )
    clf.set_params(max_gap=1.0).fit(DATA.X, DATA.y, sensitive_features=DATA.sensitive)
    assert clf.history_ is not None
    for _, own in clf.history_.groupby("member"):
        assert own["step"].tolist() == list(range(2, 321, 2))
    assert max(point.epoch for point in clf.front_) > 160


def test_a_model_that_was_given_has_no_history():
    past = make_biased(600, random_state=1)
    numbers = ["merit_1", "merit_2"]
    init = LogisticRegression().fit(past.X[numbers], past.y)
    clf = APFExClassifier(init=init, max_gap=1.0, random_state=0)
    clf.fit(DATA.X[numbers], DATA.y, sensitive_features=DATA.sensitive)
    (own,) = [point for point in clf.front_ if point.epoch == 0]
    assert own.member == -1
    assert clf.history_ is not None
    assert min(clf.history_["member"].tolist()) == 0
    assert all(point.member > 0 for point in clf.front_ if point is not own)
