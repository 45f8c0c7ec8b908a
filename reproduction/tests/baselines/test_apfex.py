"""The paper's method: the optimizer's numbers, its variants, and what it refuses."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from reproduction.tests.baselines.tables import DATA, QUICK

from apfex.objectives import CrossEntropy, FairnessLoss
from apfex.optimizer import APFEx
from apfex.solvers import min_norm
from apfex.strategies import (
    AdaptiveSwitch,
    AdaptiveWeighting,
    ConeProjection,
    EqualWeights,
    SetSampling,
)
from apfex_reproduction.baselines import MMAMO, PaperAPFEx
from apfex_reproduction.baselines._base import fit_together
from apfex_reproduction.baselines._frank_wolfe import one_step_min_norm
from apfex_reproduction.baselines._inputs import read_parts
from apfex_reproduction.baselines._losses import Term
from apfex_reproduction.baselines._networks import Inputs, as_module
from apfex_reproduction.baselines._population import Population
from apfex_reproduction.baselines._train import Budget, Learner, Lesson, train
from apfex_reproduction.baselines._weigh import Plan

TERMS = (Term("dp", 0, "pairs"), Term("tpr", 0, "pairs"))


def lesson(n=192):
    generator = torch.Generator().manual_seed(0)
    codes = torch.randint(3, (1, n), generator=generator)
    x = torch.randn(n, 5, generator=generator)
    y = (x[:, 0] + codes[0] + torch.randn(n, generator=generator) > 1).long()
    return Lesson(x, y, codes, (3,), None)


def learned(plans, budget, *lessons):
    """Learners at their end, and the courses of their members; in step where there are several."""
    learners = [Learner(plans, one, budget) for one in lessons or [lesson()]]
    return learners, train(learners, [lambda *_: None] * len(learners))


def ends(plans, budget):
    """Parameters of all members at the end."""
    (learner,), _ = learned(plans, budget)
    return torch.stack([learner.parameters(member) for member in range(len(plans))])


STRATEGIES = {
    "switch": AdaptiveSwitch(),
    "sampling": SetSampling(),
    "often switching": AdaptiveSwitch(tolerance=1.0, patience=1, imbalance=1.01),
    "cone": ConeProjection(),
}


@pytest.fixture
def double():
    """In float32 two orders of the same sums end far apart: min-norm weights are ill-posed."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("name", STRATEGIES)
def test_it_takes_the_steps_of_the_optimizer(name):
    """The same start, batches and scales, dropout off: the drop-in optimizer ends there too."""
    budget = Budget(8, 64, 1e-2, (6, 4), 0.0, seed=8)
    plan = Plan(TERMS, strategy=STRATEGIES[name], scales="largest")
    learner = Learner([plan], lesson(), budget)
    model = as_module(learner.snapshot(0), 0.0)
    optimizer = APFEx(
        torch.optim.Adam(model.parameters(), lr=1e-2),
        STRATEGIES[name],
        window=3,
        scales=learner.populations[0].scales[0],
        seed=budget.seed,
    )
    ((windows,),) = (course.values() for course in train([learner], [lambda *_: None]))
    losses = [CrossEntropy(), FairnessLoss("dp"), FairnessLoss("tpr")]
    for epoch in range(1, 9):
        for _, rows in learner.batches.of(epoch):
            scores, y = model(lesson().x[rows]).squeeze(1), lesson().y[rows]
            optimizer.backward([f(scores, y, lesson().codes[0, rows]) for f in losses])
            optimizer.step()
    assert optimizer.history is not None
    theirs = optimizer.history.to_frame()
    columns = [f"{stem}{k}" for stem in ("loss", "weight") for k in range(3)]
    np.testing.assert_allclose(windows[columns], theirs[columns], atol=1e-9, rtol=1e-9)
    assert windows["choice"].tolist() == theirs["choice"].tolist()
    everyone = lesson().x
    torch.testing.assert_close(
        learner.scores([Inputs.of(everyone)])[0], model(everyone).squeeze(1), atol=1e-9, rtol=1e-9
    )


@pytest.mark.usefixtures("double")
def test_trials_in_step_learn_what_each_learns_alone():
    """Strategies, solvers and the plain network; of trials that differ in rows and in width."""
    budgets = [Budget(9, 64, 1e-2, (6, 4), 0.2, seed=seed) for seed in (8, 9)]
    plans = [Plan(TERMS, strategy=s, scales="largest") for s in STRATEGIES.values()]
    plans += [Plan(), Plan(TERMS, min_norm), Plan(TERMS, one_step_min_norm, own_passes=True)]
    lessons = [lesson(), replace(lesson(200), x=lesson(200).x[:, :4])]
    made = [Learner(plans, *pair) for pair in zip(lessons, budgets, strict=True)]
    together = train(made, [lambda *_: None] * 2)
    for place, pair in enumerate(zip(lessons, budgets, strict=True)):
        alone = Learner(plans, *pair)
        (courses,) = train([alone], [lambda *_: None])
        assert courses.keys() == together[place].keys() == set(range(7)) - {4}
        for member, windows in courses.items():
            pd.testing.assert_frame_equal(windows, together[place][member], rtol=1e-6, atol=1e-9)
        for member in range(len(plans)):
            torch.testing.assert_close(
                alone.parameters(member), made[place].parameters(member), atol=1e-7, rtol=1e-6
            )


def test_strategies_differ_and_members_do_not_touch_each_other():
    budget = Budget(8, 64, 1e-2, (6, 4), 0.2, seed=5)
    plans = [Plan(TERMS, strategy=s, scales="largest") for s in STRATEGIES.values()]
    plans.append(Plan(TERMS, strategy=EqualWeights(), scales="mean", steps="sgd"))
    together = ends(plans, budget)
    for member, plan in enumerate(plans):
        (alone,) = ends([plan], budget)
        torch.testing.assert_close(together[member], alone, atol=1e-4, rtol=1e-3)
    distances = torch.cdist(together, together) + torch.eye(len(plans))
    assert distances.min() > 1e-2


def test_unit_steps_of_gradient_descent_have_the_length_of_the_rate():
    budget = Budget(1, None, 0.03, (6, 4), 0.0, seed=5)
    plan = Plan(TERMS, strategy=ConeProjection("unit"), scales="largest", steps="sgd")
    start = Learner([plan], lesson(), budget).parameters(0)
    (end,) = ends([plan], budget)
    assert float((end - start).norm()) == pytest.approx(0.03, rel=1e-4)


def test_scales_are_those_that_are_named():
    budget = Budget(1, 64, 1e-2, (6, 4), 0.2, seed=5)
    plans = [
        Plan((Term("dp", 0, "pairs", task_weight=0.0),), strategy=EqualWeights(), scales=kind)
        for kind in ("mean", "largest", "range", "none")
    ]
    learner = Learner(plans, lesson(), budget)
    (population,) = learner.populations
    mean, largest, ranged, none = population.scales
    seen = []
    for step, rows in learner.batches.of(0):
        population.differentiate(*learner.take(step, rows, dropout=False))
        seen.append(population.losses[3])  # over a scale of 1
    torch.testing.assert_close(largest, torch.stack(seen).amax(0).clamp(min=0.05))
    assert largest[1] == pytest.approx(0.05)  # the floor: there is no gap at the start
    assert mean[1] < 0.05
    assert ranged.tolist() == pytest.approx([0.6931472, 1.0])
    assert none.tolist() == [1.0, 1.0]


def test_variants_look_at_what_they_are_named_for():
    variants = {
        "single": {"attribute": "origin"},
        "multi": {},
        "intersectional": {},
    }
    made = [PaperAPFEx(name, **more, **QUICK) for name, more in variants.items()]  # pyright: ignore[reportArgumentType]
    made.append(PaperAPFEx(criteria=("tpr",), **QUICK))
    fit_together(made, DATA.X, DATA.y, sensitive_features=DATA.sensitive)
    objectives = [clf.objectives_[1:] for clf in made]
    assert objectives == [
        ["dp origin", "tpr origin"],
        ["dp sex", "tpr sex", "dp origin", "tpr origin"],
        ["dp sex x origin", "tpr sex x origin"],
        ["tpr sex x origin"],
    ]
    for clf, names in zip(made, objectives, strict=True):
        assert clf.archive_.values.shape[1] == 1 + len(names)
        assert np.isfinite(clf.windows_["loss0"]).all()
        assert len(clf.windows_) == 9
        assert f"weight{len(names)}" in clf.windows_
        assert f"weight{len(names) + 1}" not in clf.windows_


def terms_of(variant, **more):
    clf = PaperAPFEx(variant, **QUICK, **more)
    parts = read_parts(clf, DATA.X, DATA.y, DATA.sensitive, None, None, 0.2, 0)
    return clf._plan(parts.training).terms


def test_the_columns_have_the_losses_that_the_paper_prints():
    """Attr and Multi: L_DP and L_TPR of two groups; the crossing: L_fair over all pairs."""
    assert {term.form for term in terms_of("single", attribute="sex")} == {"plain"}
    assert {term.form for term in terms_of("multi")} == {"plain"}
    assert {term.form for term in terms_of("intersectional")} == {"pairs"}
    assert {term.form for term in terms_of("multi", losses="pairs")} == {"pairs"}
    assert {(term.rate, term.attribute) for term in terms_of("multi")} == {
        ("dp", 0),
        ("tpr", 0),
        ("dp", 1),
        ("tpr", 1),
    }


def test_two_groups_and_pairs_train_differently():
    made = [PaperAPFEx("multi", losses=losses, **QUICK) for losses in ("two_groups", "pairs", None)]
    fit_together(made, DATA.X, DATA.y, sensitive_features=DATA.sensitive)
    two, pairs, default = (clf.select("last").decision_function(DATA.X) for clf in made)
    np.testing.assert_allclose(two, default, atol=1e-3)
    assert np.abs(two - pairs).max() > 1e-2


def test_windows_tell_omega_and_norms_as_means_over_their_steps(monkeypatch):
    """Held against the gradients themselves: equal weights, so that nothing else interferes."""
    budget = Budget(1, 64, 1e-2, (6, 4), 0.0, seed=3)
    plan = Plan(TERMS, strategy=EqualWeights(), scales="largest")
    learner = Learner([plan], lesson(), budget)
    norms, omegas, aligned = [], [], []

    def look(self, weights, shares):
        (pulled,) = self.gradients.double()
        products = pulled @ pulled.T
        norms.append(pulled.norm(dim=1))
        omegas.append((min_norm(products) @ pulled).norm())
        aligned.append((products > 0)[[0, 0, 1], [1, 2, 2]].double().mean())
        return moved(self, weights, shares)

    moved = Population.move
    monkeypatch.setattr(Population, "move", look)
    ((frame,),) = (course.values() for course in train([learner], [lambda *_: None]))
    expected = torch.stack(norms).mean(0).tolist()
    assert frame.loc[0, ["norm0", "norm1", "norm2"]].tolist() == pytest.approx(expected, rel=1e-4)
    assert frame.loc[0, "omega"] == pytest.approx(float(torch.stack(omegas).mean()), rel=1e-4)
    assert frame.loc[0, "aligned"] == pytest.approx(float(torch.stack(aligned).mean()))
    assert len(frame) == 1


def test_mamo_tells_its_course_too():
    made = [MMAMO(**QUICK), MMAMO(losses="pairs", **QUICK), PaperAPFEx("multi", **QUICK)]
    fit_together(made, DATA.X, DATA.y, sensitive_features=DATA.sensitive)
    for clf in made:
        assert clf.objectives_ == made[2].objectives_
        assert len(clf.windows_) == 9
        weights = clf.windows_[[f"weight{k}" for k in range(5)]].sum(axis=1)
        np.testing.assert_allclose(weights, 1.0, atol=1e-6)
    shortest = made[0].windows_
    np.testing.assert_allclose(shortest["omega"], shortest["direction_norm"], rtol=1e-3)
    unblended = made[2].windows_.query("strategy != 'PSS'")
    assert (unblended["omega"] <= unblended["direction_norm"] * 1.001).all()


def test_a_single_attribute_is_its_own_crossing():
    cells, alone = (
        PaperAPFEx(variant, losses="pairs", **QUICK).fit(
            DATA.X, DATA.y, sensitive_features=DATA.sensitive["sex"]
        )
        for variant in ("intersectional", "single")
    )
    assert cells.objectives_ == alone.objectives_
    np.testing.assert_array_equal(cells.decision_function(DATA.X), alone.decision_function(DATA.X))


def test_settings_make_a_difference():
    base = {"strategy": AdaptiveWeighting(), "scales": "range", **QUICK}
    made = [
        PaperAPFEx(**base),
        PaperAPFEx(relaxation="ccr", **base),
        PaperAPFEx(relaxation="identity", **base),
        PaperAPFEx(task_weight=0.0, **base),
        PaperAPFEx(**{**base, "scales": "largest"}),
        PaperAPFEx(steps="sgd", **base),
    ]
    fit_together(made, DATA.X, DATA.y, sensitive_features=DATA.sensitive)
    last = np.stack([clf.select("last").decision_function(DATA.X) for clf in made])
    apart = np.abs(last[:, None] - last).max(-1) + np.eye(len(made))
    assert apart.min() > 1e-3


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"variant": "both"}, "variant must be one of .*, got 'both'"),
        ({"criteria": "dp"}, "criteria must be a sequence of 'dp' and 'tpr', got 'dp'"),
        ({"criteria": ("fpr",)}, "criteria must be a sequence of 'dp' and 'tpr'"),
        ({"variant": "single"}, r"attribute must name one .* got None; they are \['sex', 'origin'"),
        ({"variant": "single", "attribute": "Sex"}, r"got \['Sex'\]"),
        ({"attribute": "sex"}, "attribute is for variant='single' only, got 'sex'"),
        ({"losses": "three"}, "losses must be one of .*, got 'three'"),
        ({"losses": "two_groups"}, "must be two-valued .* PaperAPFEx, got 4 values of 'sex x ori"),
        ({"scales": "max"}, "scales must be one of .*, got 'max'"),
        ({"relaxation": "step"}, "relaxation must be one of"),
        ({"steps": "adamw"}, "steps must be one of"),
        ({"task_weight": -1}, "task_weight must be at least 0, got -1"),
    ],
)
def test_bad_settings_are_named(changes, message):
    with pytest.raises(ValueError, match=message):
        PaperAPFEx(**{**QUICK, **changes}).fit(DATA.X, DATA.y, sensitive_features=DATA.sensitive)


def test_a_strategy_is_needed():
    with pytest.raises(TypeError, match="strategy must have a decide method, got 'pcp'"):
        PaperAPFEx(strategy="pcp", **QUICK).fit(  # pyright: ignore[reportArgumentType]
            DATA.X, DATA.y, sensitive_features=DATA.sensitive
        )
