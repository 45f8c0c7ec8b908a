"""Methods on one trial: what is recorded, by which rule, and from which rows."""

import dataclasses
import json
import math
from typing import Any

import numpy as np
import pytest
from reproduction.tests.experiments.trials import QUICK, trial
from sklearn.metrics import accuracy_score

from apfex.datasets import make_biased
from apfex.front import non_dominated
from apfex_reproduction.baselines import PlainNetwork, SearchFair
from apfex_reproduction.baselines._base import fit_together
from apfex_reproduction.experiments._ladder import choose_by_rule
from apfex_reproduction.experiments._measure import Ruler
from apfex_reproduction.experiments._methods import METHODS, Network, revision_of
from apfex_reproduction.experiments._protocol import Part, split_dataset
from apfex_reproduction.experiments._run import run_methods

CROSSING = "sex x origin"
FAMILIES = (
    *("always-0", "always-1", "plain", "searchfair-1", "roc-pso", "smamo-1-dp"),
    *("mmamo-1-published", "mmamo-multi-fair", "apfex-2", "apfex-multi", "apfex-inter"),
)
NETWORKS = tuple(key for key in FAMILIES if isinstance(METHODS[key], Network))
LONGER = {"epochs": 25, "batch_size": 64, "learning_rate": 0.02}


def run(*keys: str, on: Any = None, budget: Any = QUICK) -> dict[str, Any]:
    made = run_methods(trial() if on is None else on, keys, budget)
    return {record["method"]: record for record in made}


def timeless(record: Any) -> dict[str, Any]:
    return {name: value for name, value in record.items() if name != "cpu_seconds"}


@pytest.fixture(scope="module")
def records() -> dict[str, Any]:
    return run(*FAMILIES)


@pytest.fixture(scope="module")
def front() -> Any:
    return run("front", on=trial(300))["front"]


def results_of(record: Any) -> list[dict[str, Any]]:
    """Of every rule, and of every point."""
    points = [part for point in record.get("points", ()) for part in point.values()]
    return [*record["results"].values(), *points]


def test_every_method_gives_a_record_of_its_own(records):
    assert set(records) == set(FAMILIES)


@pytest.mark.parametrize("key", [*FAMILIES, "front"])
def test_a_record_is_json_without_nan_and_every_result_has_its_flag(key, records, front):
    record = front if key == "front" else records[key]
    assert json.loads(json.dumps(record, allow_nan=False)) == record
    assert (record["format"], record["split"], record["seed"]) == (1, "70/15/15", 0)
    assert record["attributes"] == ["sex", "origin"]
    assert record["method"] == key
    assert record["cpu_seconds"] >= 0
    assert record["results"]
    for result in results_of(record):
        assert result["constant"] in (True, False)
        assert list(result["gaps"]) == ["sex", "origin", CROSSING]
        shares = [result["accuracy"], result["positive_rate"], result["worst_group_accuracy"]]
        assert all(0 <= share <= 1 for share in shares)
        assert all(0 <= gap <= 1 for gaps in result["gaps"].values() for gap in gaps.values())


def test_each_kind_of_method_has_its_rules_and_settings(records, front):
    rules = {key: list(record["results"]) for key, record in records.items()}
    assert rules["always-0"] == rules["searchfair-1"] == ["chosen"]
    assert rules["plain"] == ["chosen", "last"]
    assert rules["roc-pso"] == list(front["results"]) == ["nearest", "fairest"]
    for key in NETWORKS[1:]:
        assert rules[key] == ["nearest", "fairest", "last"]
        assert records[key]["settings"] == QUICK
    assert records["plain"]["settings"] == QUICK
    assert records["roc-pso"]["settings"] == {**QUICK, "search": "pso"}  # of its network, too


def test_the_same_seed_gives_the_same_record(records):
    keys = ("plain", "roc-pso", "smamo-1-dp", "apfex-inter+random-switch")
    first, again = run(*keys), run(*keys)
    for key, record in first.items():
        assert timeless(record) == timeless(again[key])
    assert run("searchfair-1")["searchfair-1"]["results"] == records["searchfair-1"]["results"]


def test_another_seed_gives_another(records):
    other = run("plain", "smamo-1-dp", on=trial(seed=1))
    for key, record in other.items():
        assert record["seed"] == 1
        assert record["results"] != records[key]["results"]


@pytest.mark.parametrize("key", ["plain", "mmamo-1-published", "apfex-inter", "roc-pso"])
def test_a_record_does_not_depend_on_who_runs_beside(key, records):
    """But for rounding, which may move a row across the threshold."""
    (alone,) = run(key).values()
    assert alone["results"].keys() == records[key]["results"].keys()
    for rule, result in alone["results"].items():
        beside = records[key]["results"][rule]
        assert result["accuracy"] == pytest.approx(beside["accuracy"], abs=2 / 60 + 1e-6)
        assert result.get("epoch") == beside.get("epoch")
    if "trace" in alone:
        for part in ("losses", "weights"):
            for name, values in alone["trace"][part].items():
                np.testing.assert_allclose(values, records[key]["trace"][part][name], rtol=5e-3)


def test_constants_are_what_they_are(records):
    share = trial().test.y.mean()
    for decision in (0, 1):
        result = records[f"always-{decision}"]["results"]["chosen"]
        right = share if decision else 1 - share
        assert result["accuracy"] == pytest.approx(right, abs=1e-6)
        assert result["constant"] is True
        assert {gap for gaps in result["gaps"].values() for gap in gaps.values()} == {0.0}


# Which rows do what.
def other_part(n: int) -> Part:
    """Rows of another table, with labels that have nothing to do with them."""
    part = split_dataset(make_biased(n, random_state=99), "70/15/15", 7).training
    return Part(part.X, 1 - part.y, part.sensitive)


CHOSEN = ("epoch", "met", "threshold", "margin", "beta", "lam", "gap", "point")


def test_test_rows_choose_nothing(records):
    other = dataclasses.replace(trial(), test=other_part(100))
    found = run(*FAMILIES, on=other)
    for key, record in found.items():
        for rule, result in record["results"].items():
            expected = records[key]["results"][rule]
            assert result["accuracy"] != expected["accuracy"], "the rows must differ"
            assert [result.get(name) for name in CHOSEN] == [expected.get(n) for n in CHOSEN], key
        assert record.get("trace") == records[key].get("trace")


@pytest.mark.slow
def test_test_rows_choose_no_point_of_the_front(front):
    other = dataclasses.replace(trial(300), test=other_part(100))
    found = run("front", on=other)["front"]
    for rule, result in found["results"].items():
        assert result["point"] == front["results"][rule]["point"]
    for point, expected in zip(found["points"], front["points"], strict=True):
        assert point["validation"] == expected["validation"]
        assert point["test"] != expected["test"]


def test_nobody_learns_from_validation_rows(records):
    other = dataclasses.replace(trial(), validation=other_part(100))
    found = run("plain", "smamo-1-dp", "apfex-inter", on=other)
    assert found["apfex-inter"]["trace"] == records["apfex-inter"]["trace"]
    for key, record in found.items():
        last = records[key]["results"]["last"]
        assert record["results"]["last"] == last, "the last epoch is nobody's choice"


@pytest.mark.slow
def test_the_front_does_not_learn_from_validation_rows(front):
    other = dataclasses.replace(trial(300), validation=other_part(100))
    found = run("front", on=other)["front"]
    for point, expected in zip(found["points"], front["points"], strict=True):
        assert point["test"] == expected["test"]


# The rules.
@pytest.fixture(scope="module")
def fitted() -> dict[str, Any]:
    """The same networks, fitted beside the runner, with room to choose."""
    rows = trial(400, kind="marginal")
    keys = ("plain", "smamo-1-dp", "apfex-1", "mmamo-1")
    networks = [METHODS[key] for key in keys]
    made = [
        network.make(rows.attributes, {**LONGER, "random_state": 0})
        for network in networks
        if isinstance(network, Network)
    ]
    held = rows.validation
    fit_together(
        made,
        rows.training.X,
        rows.training.y,
        sensitive_features=rows.training.sensitive,
        validation=(held.X, held.y, held.sensitive),
    )
    return {"rows": rows, "records": run(*keys, on=rows, budget=LONGER)} | dict(
        zip(keys, made, strict=True)
    )


def seen_on_validation(clf: Any, rows: Any) -> list[dict[str, Any]]:
    """Every epoch of the archive, measured anew."""
    ruler = Ruler(rows.validation, rows.groupings)
    decided = clf.predict_archive(rows.validation.X)
    epochs = [point.payload.place for point in clf.archive_]
    return [
        ruler.measure(one) | {"epoch": epoch} for one, epoch in zip(decided, epochs, strict=True)
    ]


AIMS = {"smamo-1-dp": ("dp",), "apfex-1": ("dp", "tpr"), "mmamo-1": ("dp", "tpr")}


def test_the_plain_network_is_that_of_the_most_accurate_epoch(fitted):
    history = fitted["plain"].history_
    chosen = fitted["records"]["plain"]["results"]["chosen"]
    error = dict(zip(history["epoch"], history["error"], strict=True))
    assert error[chosen["epoch"]] == min(error.values())
    assert fitted["records"]["plain"]["results"]["last"]["epoch"] == LONGER["epochs"]


@pytest.mark.parametrize("key", AIMS)
def test_fairest_is_the_least_gap_within_two_points_of_the_plain_network(key, fitted):
    rows, clf = fitted["rows"], fitted[key]
    held = rows.validation
    best = 1 - fitted["plain"].history_["error"].min()
    assert accuracy_score(held.y, fitted["plain"].predict(held.X)) == pytest.approx(best)
    seen = seen_on_validation(clf, rows)
    usable = [s for s in seen if s["accuracy"] >= best - 0.02 - 1e-6 and not s["constant"]]
    assert bool(usable) == (key != "apfex-1"), "both cases must occur"

    def unfair(one: dict[str, Any]) -> float:
        return max(one["gaps"]["sex"][rate] for rate in AIMS[key])

    result = fitted["records"][key]["results"]["fairest"]
    (chosen,) = [one for one in seen if one["epoch"] == result["epoch"]]
    assert result["met"] is bool(usable)
    if usable:
        assert chosen in usable
        assert unfair(chosen) == pytest.approx(min(map(unfair, usable)), abs=1e-6)
        assert min(map(unfair, usable)) > min(map(unfair, seen)), "accuracy must have its price"
    else:
        assert chosen["accuracy"] == max(one["accuracy"] for one in seen)


@pytest.mark.parametrize("key", AIMS)
def test_nearest_is_the_least_distance_from_no_error_and_no_gap(key, fitted):
    seen = seen_on_validation(fitted[key], fitted["rows"])

    def distance(one: dict[str, Any]) -> float:
        gaps = [one["gaps"]["sex"][rate] for rate in AIMS[key]]
        return math.hypot(1 - one["accuracy"], *gaps)

    result = fitted["records"][key]["results"]["nearest"]
    (chosen,) = [one for one in seen if one["epoch"] == result["epoch"]]
    assert distance(chosen) == pytest.approx(min(map(distance, seen)), abs=1e-6)


@pytest.mark.parametrize("key", ["plain", *AIMS])
def test_results_are_the_decisions_of_that_epoch_on_test_rows(key, fitted):
    rows, record = fitted["rows"], fitted["records"][key]
    rule = "accurate" if key == "plain" else "nearest"
    decided = fitted[key].select(rule).predict(rows.test.X)
    expected = Ruler(rows.test, rows.groupings).measure(decided)
    result = record["results"]["chosen" if key == "plain" else "nearest"]
    assert {name: result[name] for name in expected} == expected
    assert record["results"]["last"]["epoch"] == LONGER["epochs"]


@pytest.mark.parametrize("key", ["plain", *AIMS])
def test_the_front_of_a_run_is_what_its_epochs_reach_on_test_rows(key, fitted):
    import moocore

    rows, record = fitted["rows"], fitted["records"][key]
    decided = fitted[key].predict_archive(rows.test.X)
    values = Ruler(rows.test, rows.groupings).trade_offs(decided)
    expected = np.unique(values[non_dominated(values)], axis=0)
    np.testing.assert_allclose(record["front"], expected, atol=1e-6)
    volume = moocore.hypervolume(values, ref=[1.0, 1.0, 1.0])
    assert record["hypervolume"] == pytest.approx(volume, abs=1e-6)


def test_the_reject_option_decides_by_group_near_the_threshold():
    rows = trial()
    result = run("roc-pso", on=rows)["roc-pso"]["results"]["nearest"]
    plain = PlainNetwork(**QUICK, random_state=0).fit(
        rows.training.X,
        rows.training.y,
        sensitive_features=rows.training.sensitive,
        validation=(rows.validation.X, rows.validation.y, rows.validation.sensitive),
    )
    sexes = rows.validation.sensitive["sex"].to_numpy()
    chosen = plain.predict(rows.validation.X) == 1
    low = {sex for sex in set(sexes) if chosen[sexes == sex].mean() < chosen.mean()}
    p = plain.predict_proba(rows.test.X)[:, 1]
    lifted = np.isin(rows.test.sensitive["sex"].to_numpy(), list(low))
    t, m = result["threshold"], result["margin"]
    decided = np.where(lifted, p >= t - m, p > t + m).astype(int)
    accuracy = accuracy_score(rows.test.y, decided)
    assert result["accuracy"] == pytest.approx(accuracy, abs=1 / 60 + 1e-6)  # m, t are rounded


@pytest.mark.filterwarnings("ignore:No beta and gamma")
def test_searchfair_is_chosen_by_validation_rows_of_its_attribute(records):
    rows = trial()
    clf = SearchFair("dp", beta=(1e-4, 1e-3, 1e-2), random_state=0).fit(
        rows.training.X,
        rows.training.y,
        sensitive_features=rows.training.sensitive["sex"],
        validation=(rows.validation.X, rows.validation.y, rows.validation.sensitive["sex"]),
    )
    result = records["searchfair-1"]["results"]["chosen"]
    assert (result["beta"], result["lam"]) == pytest.approx((clf.beta_, clf.lam_), abs=1e-8)
    expected = Ruler(rows.test, rows.groupings).measure(clf.predict(rows.test.X))
    assert {name: result[name] for name in expected} == expected


# Our own front.
def test_points_of_the_front_are_chosen_by_validation_rows(front):
    seen = [point["validation"] for point in front["points"]]

    def costs(one: dict[str, Any]) -> tuple[float, ...]:
        return (1 - one["accuracy"], *one["gaps"][CROSSING].values())

    open_to_choice = [place for place, one in enumerate(seen) if not one["constant"]]
    nearest = min(open_to_choice, key=lambda place: math.hypot(*costs(seen[place])))
    assert front["results"]["nearest"]["point"] == nearest
    least = min(costs(seen[place])[0] for place in open_to_choice)
    near = [place for place in open_to_choice if costs(seen[place])[0] <= least + 0.02 + 1e-9]
    fairest = min(near, key=lambda place: max(costs(seen[place])[1:]))
    assert front["results"]["fairest"]["point"] == fairest
    for result in front["results"].values():
        place = result["point"]
        assert {n: v for n, v in result.items() if n != "point"} == front["points"][place]["test"]


@pytest.mark.parametrize(
    ("values", "constant", "nearest", "fairest"),
    [
        ([[0.2, 0.1, 0.1], [0.1, 0.5, 0.0]], [False, False], 0, 1),
        ([[0.3, 0.0, 0.0], [0.2, 0.4, 0.4]], [True, False], 1, 1),  # a constant is no choice
        ([[0.3, 0.0, 0.0], [0.2, 0.4, 0.4]], [True, True], 0, 1),  # unless there is no other
        ([[0.2, 0.4, None], [0.21, 0.1, None]], [False, False], 1, 0),  # the worst there is
        ([[0.20, 0.4, 0.1], [0.22, 0.1, 0.3], [0.23, 0.0, 0.0]], [False] * 3, 2, 1),
    ],
)
def test_choices_among_points_worked_out_by_hand(values, constant, nearest, fairest):
    points = [
        {"validation": {"accuracy": 1 - e, "gaps": {"": {"dp": d, "tpr": t}}, "constant": c}}
        for (e, d, t), c in zip(values, constant, strict=True)
    ]
    assert choose_by_rule(points, "nearest", "") == nearest
    assert choose_by_rule(points, "fairest", "") == fairest


# What the figure draws.
@pytest.mark.parametrize("key", ["apfex-2", "apfex-multi", "apfex-inter"])
def test_traces_have_a_value_for_every_window_and_objective(key, records):
    trace, shares = records[key]["trace"], records[key]["shares"]
    steps = trace["step"]
    assert steps == [4, 8, 12]  # 3 epochs of 4 batches of 64 of 280 rows, the rest left out
    names = {
        "apfex-2": ["dp origin", "tpr origin"],
        "apfex-multi": ["dp sex", "tpr sex", "dp origin", "tpr origin"],
        "apfex-inter": [f"dp {CROSSING}", f"tpr {CROSSING}"],
    }
    for part in ("losses", "weights"):
        assert list(trace[part]) == ["cross-entropy", *names[key]]
        assert {len(values) for values in trace[part].values()} == {len(steps)}
    assert len(trace["norm"]) == len(trace["strategy"]) == len(steps)
    np.testing.assert_allclose(np.sum(list(trace["weights"].values()), 0), 1, atol=1e-3)
    assert trace["strategy"][0] == "AW"
    for name in shares:
        assert shares[name] == pytest.approx(trace["strategy"].count(name) / len(steps), abs=1e-4)
    assert sum(shares.values()) == pytest.approx(1, abs=1e-3)


def test_strategies_drawn_by_lot_have_the_names_of_the_three():
    key = "apfex-inter+random-switch"
    record = run(key, on=trial(200), budget={**QUICK, "epochs": 12})[key]
    assert set(record["trace"]["strategy"]) == set(record["shares"]) == {"PCP", "AW", "PSS"}


def test_methods_that_weigh_several_losses_have_a_trace(records):
    for key, record in records.items():
        weighs = key.startswith(("apfex", "mmamo"))
        assert ("trace" in record) == ("shares" in record) == weighs
        assert record["revision"] == revision_of(key)


def test_omega_norms_and_the_family_of_losses_are_on_record(records):
    for key, record in records.items():
        if "trace" in record:
            trace, windows = record["trace"], len(record["trace"]["step"])
            assert len(trace["omega"]) == len(trace["aligned"]) == windows
            assert list(trace["norms"]) == list(trace["losses"])
            shortest = np.min(list(trace["norms"].values()), 0)
            assert (np.array(trace["omega"]) <= shortest * 1.001).all()
            assert record["constraints"] == 0
            pairs = "inter" in key or "fair" in key or "+pairs" in key
            assert record["losses"] == ("pairs" if pairs else "two_groups")


# What is refused.
def test_an_unknown_method_and_a_missing_budget_are_refused():
    with pytest.raises(ValueError, match=r"methods must be among .* did you mean 'plain'"):
        run("plian")
    with pytest.raises(ValueError, match=r"budget must be given .* got None for 'biased-crossing'"):
        run("plain", budget=None)
    assert run("always-0", budget=None)  # needs none


def test_a_run_that_diverges_says_so():
    with pytest.raises(ValueError, match="learning_rate must be small enough"):
        run("plain", budget={**QUICK, "learning_rate": 1e30})
