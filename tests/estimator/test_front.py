import copy
import pickle
from dataclasses import replace

import numpy as np
import pytest
from tests.estimator.tables import DATA, FRESH, fitted

from apfex import audit as audit_any
from apfex.estimator import APFExClassifier
from apfex.front import Front, _front
from apfex.metrics import accuracy, dp_gap, tpr_gap


@pytest.fixture(scope="module")
def clf():
    return fitted(n_members=10, epochs=10, criteria=("dp", "tpr"))


def test_the_front_is_a_sequence_by_rising_error(clf):
    front = clf.front_
    assert len(list(front)) == len(front) > 2
    errors = [point.error for point in front]
    assert errors == sorted(errors)
    assert front[-1] is front[len(front) - 1]
    assert front[:2] == [front[0], front[1]]


def test_every_value_is_finite(clf):
    frame = clf.front_.to_frame()
    assert np.isfinite(frame.select_dtypes("number").to_numpy()).all()
    assert not frame.isna().to_numpy().any()
    assert {"error", "dp_gap", "tpr_gap", "dp_upper", "dp_noise_floor", "trivial"} <= {*frame}
    assert "validation rows" in frame.attrs["measured_on"]


def test_no_member_dominates_another():
    """Members are compared by what is shown; rules by resamples of the training rows."""
    front = fitted(search="inprocess", n_members=10, epochs=10, criteria=("dp", "tpr")).front_
    frame = front.to_frame()
    values = frame.loc[~frame["trivial"], ["error", "dp_gap", "tpr_gap"]].to_numpy()
    assert len(values) > 2
    for i, a in enumerate(values):
        others = np.delete(values, i, 0)
        assert not ((others <= a).all(1) & (others < a).any(1)).any()


def test_it_prints_as_a_table(clf):
    text = repr(clf.front_)
    assert text.startswith(f"Front of {len(clf.front_)} points, measured on the validation rows")
    assert "dp_gap" in text
    assert "Point(error=" in repr(clf.front_[0])


def test_at_gives_every_point_as_a_classifier_of_its_own(clf):
    before = clf.predict_proba(FRESH.X)
    decisions = [clf.at(i).predict(FRESH.X) for i in range(len(clf.front_))]
    assert len({tuple(row) for row in decisions}) > 1
    for i, point in enumerate(clf.front_):
        error = 1 - accuracy(FRESH.y, decisions[i])
        assert abs(error - point.error) < 0.12  # of other rows
    other = clf.at(-1)
    other.use(0)
    other.max_gap = 0.5
    assert clf.max_gap == 1.0
    assert (clf.predict_proba(FRESH.X) == before).all()


def test_refitting_one_leaves_the_others_alone(clf):
    first, last = clf.at(0), clf.at(-1)
    before = last.predict_proba(FRESH.X)
    first.fit(FRESH.X, FRESH.y, sensitive_features=FRESH.sensitive)
    assert (last.predict_proba(FRESH.X) == before).all()


def test_use_changes_what_predict_uses(clf):
    mine = clf.at(0)
    assert mine.use(-1) is mine
    assert mine.point_ == len(clf.front_) - 1
    assert (mine.predict(FRESH.X) == clf.at(-1).predict(FRESH.X)).all()


@pytest.mark.parametrize("point", [99, -99])
def test_a_place_off_the_front_is_refused(clf, point):
    for method in (clf.at, clf.use):
        with pytest.raises(IndexError, match=r"point must be a place on the front of \d+ points"):
            method(point)


def test_select_takes_the_most_accurate_point_within_the_bounds(clf):
    gaps = clf.front_.to_frame()["dp_gap"]
    bound = float(gaps.median())
    chosen = clf.select(max_gap={"demographic_parity": bound})
    within = [i for i, p in enumerate(clf.front_) if p.gaps["dp"].gap <= bound and not p.trivial]
    assert chosen.point_ == within[0]
    assert chosen is not clf


@pytest.mark.filterwarnings("ignore:Only models that are nearly constant")
def test_select_by_the_upper_end_is_stricter(clf):
    bound = float(clf.front_.to_frame()["dp_gap"].max())
    assert clf.select({"dp": bound}).point_ == 0
    upper = float(clf.front_.to_frame()["dp_upper"].min())
    sure = clf.select({"dp": upper}, confidence=0.95)
    assert sure.front_[sure.point_].gaps["dp"].upper <= upper
    with pytest.raises(ValueError, match="upper ends of gaps"):
        clf.select({"dp": upper / 2}, confidence=0.95)
    with pytest.raises(ValueError, match=r"confidence must be None or between 0 and 1, got 1"):
        clf.select(0.1, confidence=1)


@pytest.mark.filterwarnings("ignore:Only models that are nearly constant")
def test_a_higher_confidence_asks_for_more(clf):
    for point in clf.front_:
        ends = [point.bounded("dp", confidence) for confidence in (None, 0.5, 0.8, 0.95, 0.99)]
        assert ends == sorted(ends)
        assert ends[3] == point.gaps["dp"].upper
    upper = min(point.bounded("dp", 0.5) for point in clf.front_)
    chosen = clf.select({"dp": upper}, confidence=0.5)
    assert chosen.front_[chosen.point_].bounded("dp", 0.5) <= upper
    with pytest.raises(ValueError, match=r"upper ends of gaps \(confidence 0\.99\)"):
        clf.select({"dp": upper}, confidence=0.99)


def test_select_names_the_nearest_point_where_there_is_none(clf):
    with pytest.raises(ValueError, match=r"the nearest is point \d+ with gaps .*dp.*use at\(\d+"):
        clf.select(max_gap=0.0)


@pytest.mark.parametrize(
    ("max_gap", "message"),
    [
        ({"fpr": 0.1}, r"max_gap must name criteria of \['dp', 'tpr'\], got \['fpr'\]"),
        (-0.1, "max_gap must be from 0 to 1, got -0.1"),
        (float("nan"), "max_gap must be from 0 to 1, got nan"),
        ("a", r"max_gap must be a number from 0 to 1.*got 'a' for 'dp'; give 0\.05"),
        ({"tpr": None}, r"max_gap must be a number.*got None for 'tpr'; give"),
    ],
)
def test_odd_bounds_are_refused(clf, max_gap, message):
    with pytest.raises(ValueError, match=message):
        clf.select(max_gap)


def test_the_audit_measures_fresh_rows(clf):
    audit = clf.audit(FRESH.X, FRESH.y, sensitive_features=FRESH.sensitive)
    assert audit.gaps["criterion"].tolist() == ["dp"] * 3 + ["tpr"] * 3
    assert audit.gaps["by"].tolist() == ["sex", "origin", "sex x origin"] * 2
    decided = clf.predict(FRESH.X)
    for name, gap in (("dp", dp_gap), ("tpr", tpr_gap)):
        expected = gap(FRESH.y, decided, sensitive_features=FRESH.sensitive)
        row = audit.gaps.query(f"criterion == '{name}' and by == 'sex x origin'")
        assert row["gap"].tolist() == pytest.approx([expected])
    assert (audit.gaps["lower"] <= audit.gaps["gap"]).all()
    assert len(audit.groups) == 2 * (2 + 2 + 4)
    assert "Worst-off groups" in repr(audit)


def test_the_audit_is_that_of_any_model(clf):
    options = {"tolerance": 0.1, "confidence": 0.9, "min_count": 5}
    found = clf.audit(FRESH.X, FRESH.y, sensitive_features=FRESH.sensitive, **options)
    plain = audit_any(
        FRESH.y,
        clf.predict(FRESH.X),
        sensitive_features=FRESH.sensitive,
        criteria=clf.criteria,
        **options,
    )
    assert found.gaps.equals(plain.gaps)
    assert found.groups.equals(plain.groups)
    assert str(found) == str(plain)


def test_the_audit_is_of_the_label_that_the_front_was_made_for(clf):
    other = copy.copy(clf).set_params(favorable_label=0)  # for the next fit
    one = clf.audit(FRESH.X, FRESH.y, sensitive_features=FRESH.sensitive)
    same = other.audit(FRESH.X, FRESH.y, sensitive_features=FRESH.sensitive)
    assert same.gaps.equals(one.gaps)
    assert same.settings.favorable_label == other.front_.favorable_label == 1


def test_the_audit_honours_weights(clf):
    weight = np.where(FRESH.sensitive["sex"] == "male", 2.0, 1.0)
    call = {"sensitive_features": FRESH.sensitive, "sample_weight": weight}
    audit = clf.audit(FRESH.X, FRESH.y, **call)
    expected = dp_gap(None, clf.predict(FRESH.X), **call, grouping="attributes")
    assert audit.gaps["gap"][:2].tolist() == pytest.approx(list(expected.values()))
    assert audit.is_approximate


def test_the_audit_refuses_what_it_cannot_use(clf):
    with pytest.raises(ValueError, match="sensitive_features must be given to audit"):
        clf.audit(FRESH.X, FRESH.y)
    with pytest.raises(ValueError, match=r"y must hold labels of \[0, 1\], got \[5\]"):
        clf.audit(FRESH.X, FRESH.y * 0 + 5, sensitive_features=FRESH.sensitive)
    with pytest.raises(ValueError, match="one row for each of the 600 rows of X, got 599"):
        clf.audit(FRESH.X, FRESH.y, sensitive_features=FRESH.sensitive[1:])


def test_the_audit_says_where_it_cannot_estimate(clf):
    rows = FRESH.y == 0
    audit = clf.audit(FRESH.X[rows], FRESH.y[rows], sensitive_features=FRESH.sensitive[rows])
    assert audit.gaps["gap"].isna().tolist() == [False] * 3 + [True] * 3
    assert audit.gaps["verdict"][3:].tolist() == ["not estimable"] * 3


def test_whose_decision_flips_between_two_points(clf):
    last = len(clf.front_) - 1
    first, second = clf.at(0).predict(FRESH.X), clf.at(last).predict(FRESH.X)
    found = clf.compare(0, last, FRESH.X, sensitive_features=FRESH.sensitive)
    for row in found.to_dict("records"):
        parts = dict(part.split("=") for part in row["group"].split(", "))
        rows = np.all([FRESH.sensitive[name] == level for name, level in parts.items()], axis=0)
        assert row["count"] == rows.sum()
        assert row["gained"] == (rows & (first == 0) & (second == 1)).sum()
        assert row["lost"] == (rows & (first == 1) & (second == 0)).sum()
        assert row["changed"] == row["gained"] + row["lost"]
        assert row["net_share"] == (row["gained"] - row["lost"]) / row["count"]
    assert found["changed"].sum() == (first != second).sum() > 0
    back = clf.compare(-1, 0, FRESH.X, sensitive_features=FRESH.sensitive)
    assert back["gained"].tolist() == found["lost"].tolist()
    whole = clf.compare(0, last, FRESH.X)
    assert whole["group"].tolist() == ["all rows"]
    assert whole["changed"].tolist() == [found["changed"].sum()]
    unlike = copy.copy(clf)
    unlike.fitted_ = replace(clf.fitted_, front=Front(list(clf.front_), favorable_label=0))
    assert unlike.compare(0, last, FRESH.X)["gained"].tolist() == whole["lost"].tolist()


def test_compare_refuses_what_it_cannot_use(clf):
    with pytest.raises(IndexError, match="point must be a place on the front"):
        clf.compare(0, 99, FRESH.X)
    with pytest.raises(ValueError, match="one row for each of the 600 rows of X, got 599"):
        clf.compare(0, 1, FRESH.X, sensitive_features=FRESH.sensitive[1:])


def test_noise_gives_trivial_points_that_are_flagged():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(2000, 2)), (rng.random(2000) < 0.1).astype(int)
    clf = APFExClassifier(epochs=40, n_members=3, random_state=0, bins=None)
    with pytest.warns(UserWarning, match="better than one decision for everybody"):
        clf.fit(X, y, sensitive_features=rng.integers(0, 2, 2000))
    assert all(point.trivial for point in clf.front_)
    with pytest.raises(ValueError, match="non-trivial point"):
        clf.select(max_gap=1.0)


def test_a_trivial_point_is_never_chosen_by_default():
    clf = fitted(max_gap={"dp": 1.0})
    points = list(clf.front_)
    worse = max(points, key=lambda p: p.error)
    flagged = copy.copy(points[0])
    object.__setattr__(flagged, "trivial", True)
    front = Front([flagged, worse])
    assert front.choose({"dp": 1.0}) == 1
    assert front.nearest({"dp": 0.0}) == 1


def test_an_unmeetable_bound_gives_one_warning_and_the_nearest_point():
    with pytest.warns(UserWarning, match="No model meets max_gap .* comes closest") as caught:
        clf = fitted(max_gap=0.0, n_members=2, epochs=2)
    assert len(caught) == 1
    assert caught[0].filename.endswith("tables.py")  # the line that called fit
    floor = round(clf.front_[clf.point_].gaps["dp"].noise_floor, 3)
    assert f"chance alone makes gaps of about {{'dp': {floor}}}" in str(caught[0].message)
    usable = [point for point in clf.front_ if not point.near_constant]
    assert clf.front_[clf.point_] is min(usable, key=lambda point: point.gaps["dp"].gap)


def test_plot_draws_every_point(clf):
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    ax = clf.front_.plot()
    assert ax.get_xlabel() == "dp gap"
    drawn = sum(len(container[0].get_xdata()) for container in ax.containers)
    assert drawn == len(clf.front_)
    assert clf.front_.plot("tpr", ax=ax) is ax
    with pytest.raises(ValueError, match=r"criterion must be one of \['dp', 'tpr'\], got 'fpr'"):
        clf.front_.plot("fpr")
    plt.close("all")


def test_plot_names_the_extra_where_matplotlib_is_missing(clf, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r'pip install "apfex\[plot\]"'):
        clf.front_.plot()


def test_it_survives_pickle(clf):
    again = pickle.loads(pickle.dumps(clf))
    assert again.front_.to_frame().equals(clf.front_.to_frame())
    for i in range(len(clf.front_)):
        assert (again.at(i).predict_proba(DATA.X) == clf.at(i).predict_proba(DATA.X)).all()


@pytest.mark.parametrize("changes", [{}, {"group_thresholds": True}, {"search": "inprocess"}])
def test_prediction_takes_a_chunk_of_rows_at_a_time_and_copies_no_module(changes, monkeypatch):
    clf = fitted(**changes)
    given = {"sensitive_features": FRESH.sensitive} if changes.get("group_thresholds") else {}
    whole = clf.decision_function(FRESH.X, **given)
    sizes, point = [], clf.front_[clf.point_]
    point.module.register_forward_hook(
        lambda module, inputs, _: sizes.append((module is point.module, *map(len, inputs)))
    )
    monkeypatch.setattr(_front, "_CHUNK", 250)
    found = clf.decision_function(FRESH.X, **given)
    np.testing.assert_allclose(found, whole, rtol=1e-12)
    assert sizes == [(True, *[n] * (1 + len(given))) for n in (250, 250, 100)]
