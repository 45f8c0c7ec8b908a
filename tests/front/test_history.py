"""The history of a fit: what is shown is what the rules come to."""

import numpy as np
import pytest

from apfex import APFExClassifier, make_biased

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
    assert set(frame["member"]) == {point.member for point in clf.front_}
    for _, own in frame.groupby("member"):
        assert own["step"].tolist() == list(range(1, 93))
        assert set(own["strategy"][:60]) == {"aim"}
        assert set(own["strategy"][60:]) <= {"PCP", "AW", "PSS"}
    shown = frame[["loss0", "loss1", "loss2", "direction_norm", "omega"]].to_numpy()
    assert np.isfinite(shown).all()
    assert ((shown[:, 0] >= 0) & (shown[:, 0] <= 1)).all()


def test_members_have_none():
    clf = APFExClassifier(search="inprocess", n_members=2, epochs=1, max_gap=1.0, random_state=0)
    clf.fit(DATA.X, DATA.y, sensitive_features=DATA.sensitive)
    assert clf.history_ is None
