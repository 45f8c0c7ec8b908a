"""Every method by its key, every ablation, and the strategy that is drawn by lot."""

import copy
import pickle
from typing import Any

import pytest
import torch
from reproduction.tests.experiments.trials import QUICK, trial
from tests.generators import awkward_jacobians, gramian_of
from tests.strategies.test_contract import history_of, view_of

from apfex.history import History
from apfex.strategies import (
    AdaptiveSwitch,
    AdaptiveWeighting,
    Choice,
    ConeProjection,
    SetSampling,
    StepView,
    Strategy,
)
from apfex_reproduction.baselines import MMAMO, SMAMO, PaperAPFEx, PlainNetwork
from apfex_reproduction.experiments import EXPERIMENTS, VARIANTS, read_methods
from apfex_reproduction.experiments._ablations import ABLATIONS, RandomSwitch
from apfex_reproduction.experiments._labels import COLUMNS, CONSTANTS, label_of, works_on
from apfex_reproduction.experiments._methods import METHODS, Convex, Network, PostProcessing
from apfex_reproduction.experiments._run import run_methods

COMMON = {**QUICK, "random_state": 0}
NAMES = ("sex", "origin")


def made(key: str):
    method = METHODS[key]
    assert isinstance(method, Network)
    return method.make(NAMES, COMMON)


def test_every_key_of_an_experiment_is_a_method_and_stands_once():
    for keys in (*EXPERIMENTS.values(), *VARIANTS.values()):
        assert set(keys) <= set(METHODS)
        assert len(set(keys)) == len(keys)
    for name, keys in VARIANTS.items():
        assert not set(keys) & set(EXPERIMENTS[name])


def test_every_method_belongs_to_an_experiment():
    used = {key for keys in (*EXPERIMENTS.values(), *VARIANTS.values()) for key in keys}
    assert set(METHODS) == used


def test_the_tables_have_all_columns_of_the_paper_and_both_constants():
    assert (len(COLUMNS[1]), len(COLUMNS[2])) == (12, 7)
    for number, columns in COLUMNS.items():
        keys = EXPERIMENTS[f"table{number}"]
        assert [key for key in keys if key in columns] == list(columns)
        assert keys[:2] == CONSTANTS
        assert "front" in keys
    assert {"roc-2", "roc-crossing"} <= set(EXPERIMENTS["table1"])


def test_keys_name_what_the_methods_are():
    kinds = {"plain": PlainNetwork, "smamo": SMAMO, "mmamo": MMAMO, "apfex": PaperAPFEx}
    for key, method in METHODS.items():
        if isinstance(method, Network):
            assert type(made(key)) is kinds[key.split("-")[0]]
        assert label_of(key) != key


@pytest.mark.parametrize(
    "key", [key for key in METHODS if works_on(key) in [("first",), ("second",)]]
)
def test_keys_name_the_attribute_by_its_place(key):
    method, place = METHODS[key], ("first", "second").index(works_on(key)[0])
    if isinstance(method, Convex):
        assert method.place == place
    elif isinstance(method, PostProcessing):
        assert method.places == (place,)
    else:
        clf = made(key)
        assert getattr(clf, "attribute", None) == NAMES[place] or clf.attributes == [NAMES[place]]


def test_keys_name_the_criterion_the_kernel_the_search_and_the_solver():
    assert [made(f"smamo-{k}-{notion}").notion for k in (1, 2) for notion in ("dp", "tpr")] == [
        *("dp", "tpr"),
        *("dp", "tpr"),
    ]
    assert made("apfex-inter-dp").criteria == ("dp",)
    assert made("apfex-inter-tpr").criteria == ("tpr",)
    assert made("apfex-multi").variant == "multi"
    assert made("apfex-inter").variant == "intersectional"
    assert made("mmamo-multi-fair").losses == "pairs"
    for key in METHODS:
        method = METHODS[key]
        if isinstance(method, Convex):
            clf = method.make(3)
            assert clf.kernel == ("rbf" if key.endswith("rbf") else "linear")
            assert clf.notion == ("tpr" if key.endswith("tpr") else "dp")
            assert clf.random_state == 3
        if isinstance(method, PostProcessing):
            clf = method.make(PlainNetwork(), 3)
            assert (clf.search, clf.prefit) == ("pso" if key == "roc-pso" else "nsga2", True)
        if isinstance(method, Network) and "mamo" in key:
            assert made(key).solver == ("published" if key.endswith("published") else "converged")
    crossing = METHODS["roc-crossing"]
    assert isinstance(crossing, PostProcessing)
    assert crossing.places == (0, 1)


def test_gradient_methods_have_the_same_budget_and_seed():
    for key, method in METHODS.items():
        if isinstance(method, Network):
            settings = made(key).get_params()
            assert {name: settings[name] for name in COMMON} == COMMON
            assert settings["hidden"] == (60, 25)
            assert settings["dropout"] == 0.2


def test_ablations_differ_from_the_default_and_from_each_other():
    def shown(clf: PaperAPFEx) -> tuple[str, ...]:
        strategy = AdaptiveSwitch() if clf.strategy is None else clf.strategy
        names = ("variant", "criteria", "scales", "relaxation", "task_weight", "steps")
        return (repr(strategy), *(repr(getattr(clf, name)) for name in names))

    settings = [shown(made("apfex-inter"))]
    settings += [shown(made(f"apfex-inter+{name}")) for name in ABLATIONS]
    assert len(set(settings)) == len(ABLATIONS) + 1


def test_the_ablations_are_those_of_the_specification():
    wanted = {
        *("pcp", "aw", "pss", "equal", "random-switch", "cone-first", "pss-each-step"),
        *("literal-pcp", "scales-mean", "scales-range", "ccr", "identity", "no-task-share"),
        *("tau-1", "tau-100", "delta-1e-4", "delta-1e-2", "beta-1.2", "beta-5"),
    }
    assert wanted <= set(ABLATIONS)
    assert made("apfex-inter+tau-100").strategy.weighting.rate == 100
    assert made("apfex-inter+delta-1e-4").strategy.tolerance == 1e-4
    assert made("apfex-inter+beta-5").strategy.imbalance == 5
    assert made("apfex-inter+literal-pcp").steps == "sgd"
    assert made("apfex-inter+no-task-share").task_weight == 0


def test_all_ablations_run():
    keys = [f"apfex-inter+{name}" for name in ABLATIONS]
    budget = {**QUICK, "epochs": 1, "batch_size": 70}
    records = list(run_methods(trial(200), keys, budget))
    assert [record["method"] for record in records] == keys
    for record in records:
        assert record["results"].keys() == {"nearest", "fairest", "last"}
        assert len(record["trace"]["step"]) > 0


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["plane"], "methods must be among .*, got 'plane'; did you mean 'plain'?"),
        (["plain", "xyz"], r"got 'xyz'\.$"),
        (["apfex-inter+beta1.2"], r"did you mean 'apfex-inter\+beta-1.2'"),
    ],
)
def test_a_wrong_key_is_named_with_the_nearest(names, message):
    with pytest.raises(ValueError, match=message):
        read_methods(names, tuple(METHODS))


def test_keys_are_read_in_the_order_of_the_table_each_once():
    assert read_methods(["roc", "plain", "roc"], ("plain", "roc", "front")) == ("plain", "roc")
    assert read_methods([], ("plain", "roc")) == ("plain", "roc")


# What every strategy promises (tests/strategies), of the one that is drawn by lot.
def draw(view: StepView) -> Any:
    return RandomSwitch().decide(view)


def lot(seed: int, windows: int = 40, window: int = 1) -> list[int]:
    """Choices of the first windows."""
    history = History(2, window)
    views = [
        StepView.of(torch.eye(2), torch.ones(2), history, step, torch.tensor(seed))
        for step in range(windows * window)
    ]
    return [int(draw(view).choice) for view in views]


@pytest.mark.parametrize("m", [2, 3, 5])
def test_the_lot_gives_finite_weights_on_the_simplex(m):
    for kind, jacobian in awkward_jacobians(m).items():
        for step in range(4):
            weights = draw(view_of(jacobian, step=step)).weights
            assert weights.shape == (m,), kind
            assert weights.isfinite().all(), kind
            assert (weights >= 0).all(), kind
            assert weights.sum().item() == pytest.approx(1), kind


def test_the_lot_decides_as_the_strategy_it_has_drawn():
    jacobian = awkward_jacobians(3)["random"]
    drawn = set()
    for step in range(30):
        view = view_of(jacobian, step=step)
        decision = draw(view)
        choice = Choice(int(decision.choice))
        by_choice = {
            Choice.PCP: ConeProjection(),
            Choice.AW: AdaptiveWeighting(),
            Choice.PSS: SetSampling(),
        }
        expected = by_choice[choice].decide(view)
        torch.testing.assert_close(decision.weights, expected.weights)
        assert float(decision.blend) == (0.5 if choice == Choice.PSS else 1.0)
        drawn.add(choice)
    assert drawn == set(Choice)


def test_the_lot_depends_on_seed_and_window_only():
    jacobian = awkward_jacobians(4)["random"]
    view = view_of(jacobian)
    before = copy.deepcopy(view.history.state_dict())
    first, second = draw(view), draw(view_of(jacobian))
    assert torch.equal(first.weights, second.weights)
    after = view.history.state_dict()
    assert after["step"] == before["step"]
    assert all(map(torch.equal, after["closed"]["losses"], before["closed"]["losses"]))
    assert lot(1) == lot(1) != lot(2)
    held = lot(1, 8, window=5)
    assert held == [choice for choice in lot(1, 8) for _ in range(5)]


def test_the_lot_is_fair():
    shares = torch.bincount(torch.tensor([c for s in range(8) for c in lot(s)])) / 320
    assert (abs(shares - 1 / 3) < 0.1).all()  # four standard deviations


def test_reordering_objectives_reorders_the_weights_of_the_lot():
    jacobian = awkward_jacobians(3)["random"]
    order = torch.tensor([2, 0, 1])
    for step in range(12):
        view = view_of(jacobian, step=step)
        decision = draw(view)
        shuffled = StepView.of(
            gramian_of(jacobian[order]),
            view.losses[order],
            history_of(view.history.losses[..., order]),
            step,
            view.seeds,
        )
        if decision.choice != Choice.PSS:  # draws are by position
            found = draw(shuffled).weights
            torch.testing.assert_close(found, decision.weights[order], atol=1e-7, rtol=1e-7)


def test_a_population_draws_lots_as_its_members_alone():
    generator = torch.Generator().manual_seed(2)
    view = view_of(torch.randn(3, 4, 3, 9, generator=generator, dtype=torch.float64))
    together = draw(view)
    assert together.weights.shape == (3, 4, 3)
    assert set(together.choice.flatten().tolist()) == {0, 1, 2}
    for i in range(3):
        for j in range(4):
            alone = draw(
                StepView.of(
                    view.gramian[i, j],
                    view.losses[i, j],
                    history_of(view.history.losses[:, i, j]),
                    view.step,
                    view.seeds[i, j],
                )
            )
            torch.testing.assert_close(together.weights[i, j], alone.weights)
            assert together.blend[i, j] == alone.blend
            assert together.choice[i, j] == alone.choice


def test_the_lot_survives_pickle_and_meets_the_protocol():
    assert isinstance(RandomSwitch(), Strategy)
    assert pickle.loads(pickle.dumps(RandomSwitch())) == RandomSwitch()
