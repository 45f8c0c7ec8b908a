"""The whole study: every run once, in the order of what matters, with what it takes."""

import pytest

from apfex_reproduction.experiments import DATASETS, EXPERIMENTS, VARIANTS, plan_of, whole_study
from apfex_reproduction.experiments._whole import minutes_of

PARTS = whole_study()


def test_the_tables_come_first_and_whole():
    tables = {*EXPERIMENTS["table1"], *EXPERIMENTS["table2"]}
    run = {
        method
        for part in PARTS[:4]
        if part.sweep.split == "70/15/15"
        for method in part.sweep.methods
    }
    assert run == tables
    assert all(set(part.sweep.datasets) == set(DATASETS) for part in PARTS if part is not PARTS[1])


def test_nothing_is_forgotten():
    run = {method for part in PARTS for method in part.sweep.methods}
    wanted = {m for methods in (*EXPERIMENTS.values(), *VARIANTS.values()) for m in methods}
    assert run == wanted


def test_mamos_split_has_the_gradient_methods_and_both_families_of_losses():
    (mamo,) = (part.sweep for part in PARTS if part.sweep.split == "mamo")
    assert set(mamo.datasets) == {"adult", "compas"}
    assert {"apfex-multi", "apfex-multi+pairs", "mmamo-1-published"} <= set(mamo.methods)
    assert not [m for m in mamo.methods if m.startswith(("searchfair", "roc", "front"))]


def test_a_run_that_two_parts_need_is_planned_once():
    runs = sum(runs for _, runs, _ in plan_of(PARTS, []))
    keys = {key for part in PARTS for key in part.sweep.keys}
    assert runs == len(keys)
    assert sum(minutes for _, _, minutes in plan_of(PARTS, [])) == pytest.approx(minutes_of(keys))
    assert all(runs == 0 for _, runs, _ in plan_of(PARTS, keys))
