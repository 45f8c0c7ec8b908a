"""Malformed input of every kind to every public callable: one rule for what is said of it."""
# pyright: reportArgumentType=false, reportCallIssue=false

import copy
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
import torch
from tests.messages import check, state_of

from apfex import APFEx, APFExClassifier, Constraint, audit, make_biased, make_groups
from apfex.auditing import Audit, AuditSettings, audit_counts, audit_table
from apfex.clusters import use_backend
from apfex.datasets import load_dataset, load_images
from apfex.distributed import all_sum, global_mean
from apfex.estimator import load
from apfex.front import ParetoFront, hypervolume, non_dominated
from apfex.gradients import empirical_scales, jacobian
from apfex.groups import soft_memberships
from apfex.history import History
from apfex.metrics import (
    accuracy,
    balanced_accuracy,
    dp_gap,
    equalized_odds_gap,
    gap_inference,
    gap_interval,
    group_rates,
    of_scores,
    tpr_gap,
    worst_group_accuracy,
)
from apfex.models import Trees, TreeSettings
from apfex.objectives import (
    CrossEntropy,
    DPLoss,
    FairnessLoss,
    MulticlassCCRLoss,
    Objectives,
    TPRLoss,
)
from apfex.rates import count_rows
from apfex.relaxations import ccr_step, smooth_abs, smooth_max, tanh_step
from apfex.report import describe_front, write_audit_page, write_front_page
from apfex.runs import audit_file, check_gates, explore, load_audit, load_run, rerun
from apfex.solvers import kkt_residual, min_norm, nonnegative_qp
from apfex.strategies import (
    AdaptiveSwitch,
    AdaptiveWeighting,
    CAGrad,
    ConeProjection,
    FixedWeights,
    SetSampling,
    SmoothTchebycheff,
)
from apfex.streams import StreamSettings
from apfex.tables import TableEncoder
from apfex.testing import assert_gap

pytestmark = pytest.mark.filterwarnings("ignore")
N = 60
Y, PEOPLE = [0, 1] * (N // 2), ["F", "M", "M"] * (N // 3)
X = np.random.default_rng(0).normal(size=(N, 2))
T = torch.tensor

COLUMNS: dict[str, tuple[Any, str]] = {
    "a number": (3, "int"),
    "a text": ("yes", "str"),
    "bytes": (b"01" * 30, "bytes"),
    "a set": ({0, 1}, "set"),
    "a mapping of nothing": ({}, ""),
    "a generator": ((i for i in Y), "generator"),
    "a function": (len, "builtin_function"),
    "a class": (float, "type"),
    "no rows": ([], "0"),
    "a row too few": (Y[1:], "59"),
    "a row too many": ([*Y, 1], "61"),
    "three dimensions": (np.zeros((N, 1, 1)), "3"),
    "lists in some rows": ([*Y[1:], [1]], "list"),
    "dicts": ([{}] * N, "dict"),
    "records": (np.zeros(N, dtype=[("a", int)]), "records"),
    "a lazy frame": (pl.LazyFrame({"a": Y}), "LazyFrame"),
    "bfloat16": (T(Y, dtype=torch.bfloat16), "bfloat16"),
    "a sparse tensor": (T(Y).to_sparse(), "sparse"),
    "a tensor without values": (torch.empty(N, device="meta"), "meta"),
}
"""Columns that nothing takes, and what a message shows of them."""
LABELS: dict[str, tuple[Any, str]] = {
    "missing": ([np.nan, *Y[1:]], "1"),
    "None": (np.array([None, *Y[1:]], dtype=object), "1"),
    "infinity": ([np.inf, *Y[1:]], "inf"),
    "scores": (np.linspace(0, 1, N), "0.01"),
    "complex": ([1j, *Y[1:]], "complex"),
    "two columns": (np.zeros((N, 2)), "2"),
}
NUMBERS: dict[str, tuple[Any, str]] = {
    "missing": ([np.nan, *Y[1:]], "nan"),
    "infinity": ([np.inf, *Y[1:]], "inf"),
    "dates": (pd.date_range("2020", periods=N), "datetime64"),
    "durations": (pd.to_timedelta(Y, unit="D"), "timedelta64"),
    "complex": ([1j, *Y[1:]], "complex128"),
    "text": (["x"] * N, "str"),
}
WEIGHTS = {**NUMBERS, "negative": ([-1.0, *Y[1:]], "-1"), "zeros": ([0.0] * N, "zeros")}
GROUPS = {name: one for name, one in COLUMNS.items() if name != "three dimensions"}
NO_X = {
    "None": (None, "NoneType"),
    "a number": (3, "int"),
    "a mapping": ({"a": Y}, "dict"),
    "one column": (X[:, 0], "1"),
    "three dimensions": (X[None], "3"),
    "no columns": (X[:, :0], "0"),
    "complex": (X * 1j, "Complex"),
    "infinity": (np.where(X[3, 1] == X, np.inf, X), "inf in row 3"),
    "sparse": (scipy.sparse.csr_matrix(X), "sparse"),
    "names twice": (pd.DataFrame(X, columns=["a", "a"]), "'a'"),
    "names alike as text": (pd.DataFrame(X, columns=pd.Index([1, "1"])), "'1'"),
    "dates": (pd.DataFrame({"d": pd.date_range("2020", periods=N)}), "datetime64"),
    "lists": (pd.DataFrame({"d": [[1]] * N}), "list"),
    "objects": (pd.DataFrame({"d": [object()] * N}), "object"),
    "bytes": (pd.DataFrame({"d": [b"x"] * N}), "bytes"),
    "mixed": (pd.DataFrame({"d": [1, "a"] * (N // 2)}), "int, str"),
    **{name: COLUMNS[name] for name in COLUMNS if name in ("a lazy frame", "bfloat16", "records")},
}


def quick(**changes: Any) -> APFExClassifier:
    given: dict[str, Any] = {"model": "linear", "n_points": 2, "epochs": 1, "random_state": 0}
    return APFExClassifier(**(given | changes))


def fit(X: Any = X, y: Any = Y, sensitive_features: Any = PEOPLE, weight: Any = None, **changes):
    return quick(**changes).fit(X, y, sensitive_features=sensitive_features, sample_weight=weight)


@cache
def fitted() -> APFExClassifier:
    data = make_biased(120, random_state=0)
    people = data.sensitive["sex"]
    return quick(max_gap=1.0).fit(data.X[["merit_1", "merit_2"]].to_numpy(), data.y,
                                  sensitive_features=people)  # fmt: skip


@cache
def audited() -> Audit:
    return audit(Y, Y, sensitive_features=PEOPLE)


def audit_of(**changes: Any) -> Audit:
    given: dict[str, Any] = {"y_true": Y, "y_pred": Y, "sensitive_features": PEOPLE}
    given |= changes
    return audit(given.pop("y_true"), given.pop("y_pred"), **given)


def cases_of_columns() -> dict[str, tuple[str, str, Any]]:
    """Awkward columns in the place of each argument that is one."""
    tables = {
        "y_true": COLUMNS | LABELS,
        "y_pred": COLUMNS | LABELS,
        "y_score": COLUMNS | NUMBERS,
        "sample_weight": COLUMNS | WEIGHTS,
        "sensitive_features": GROUPS,
        "control_features": GROUPS,
    }
    found: dict[str, tuple[str, str, Any]] = {}
    for argument, table in tables.items():
        for name, (value, shown) in table.items():
            # Where two columns differ in length the message names both.
            found[f"audit {argument}: {name}"] = (
                argument, shown, lambda a=argument, v=value: audit_of(**{a: v})
            )  # fmt: skip
    in_fit = {
        "y": COLUMNS | LABELS,
        "sensitive_features": GROUPS,
        "weight": COLUMNS | WEIGHTS,
        "X": NO_X,
    }
    for argument, table in in_fit.items():
        said = "sample_weight" if argument == "weight" else argument
        for name, (value, shown) in table.items():
            found[f"fit {said}: {name}"] = (
                said, shown, lambda a=argument, v=value: fit(**{a: v})
            )  # fmt: skip
    for name, (value, shown) in NO_X.items():
        if name not in ("no columns", "dates", "lists", "objects", "bytes", "mixed"):
            found[f"predict X: {name}"] = ("X", shown, lambda v=value: fitted().predict(v))
    return found


SETTINGS: dict[str, list[tuple[Any, str]]] = {
    "criteria": [("dpp", "Did you mean 'dp'?"), (3, "3"), (None, "None"), ([], "[]")],
    "grouping": [("intersection", "Did you mean 'intersectional'?")],
    "model": [("bosting", "Did you mean 'boosting'?"), (3, "3"), (("mlp", "mlp"), "mlp")],
    "scoring": [("accuracyy", "Did you mean 'accuracy'?"), ("roc_auc", "roc_auc"), (3, "3")],
    "cost_matrix": [("a", "'a'"), ([[0, 1], [2]], "[2]"), ([[0, -1], [1, 0]], "-1"),
                    ([[0, 1, 2]] * 3, "(3, 3)")],
    "class_weight": [("bal", "'bal'"), ({0: -1}, "-1"), ({7: 1.0}, "7")],
    "strategy": [("switchh", "Did you mean 'switch'?"), (3, "3")],
    "search": [("postproces", "Did you mean 'postprocess'?")],
    "init": [("x", "str"), (3, "int")],
    "n_points": [(0, "0"), (2.5, "2.5"), ("3", "'3'"), (True, "True")],
    "max_gap": [("a", "'a'"), (-1, "-1"), (np.nan, "nan"), ({"dpp": 0.1}, "Did you mean 'dp'?"),
                (True, "True")],
    "favorable_label": [(7, "7"), ("yes", "'yes'"), ([1], "[1]")],
    "validation_fraction": [(0, "0"), (1, "1"), ("a", "'a'"), (np.nan, "nan")],
    "device": [("gpu", "'gpu'"), ("cuda:77", "'cuda:77'"), (None, "None"), ("meta", "'meta'")],
    "random_state": [("a", "'a'"), (-1, "-1"), (1.5, "1.5")],
    "n_members": [(1, "1"), ("a", "'a'")],
    "batch_size": [(0, "0")],
    "epochs": [(0, "0"), ("a", "'a'"), (1.5, "1.5")],
    "learning_rate": [(-1, "-1"), ("a", "'a'"), (np.nan, "nan")],
    "weight_decay": [(-1, "-1"), ("a", "'a'")],
    "patience": [(3, "3")],
    "hidden": [((3, 0), "(3, 0)"), ("a", "'a'"), (None, "None")],
    "bins": [("zz", "'zz'")],
    "monotone_constraints": [({"a": 2}, "2"), (3, "3")],
    "selection_rate": [(0, "0"), (2, "2"), ("a", "'a'")],
    "max_error_increase": [(-1, "-1"), ("a", "'a'")],
    "group_thresholds": [("no", "'no'"), (3, "3")],
    "include_sensitive": [("yes", "'yes'"), (True, "sensitive_features")],
    "validation": [("x", "'x'")],
    "n_jobs": [("a", "'a'"), (0, "0"), (1.5, "1.5")],
    "verbose": [("loud", "str")],
    "streaming": [(3, "int")],
    "sensitive": [(["sex"], "both")],
}  # fmt: skip
DECISIONS = pd.DataFrame({"y": Y, "p": Y, "sex": PEOPLE})


def of_table(**changes: Any) -> Any:
    given: dict[str, Any] = {"prediction": "p", "sensitive": "sex", "label": "y"}
    return audit_table(DECISIONS, **(given | changes))


def of_run(source: Any = DECISIONS, **changes: Any) -> Any:
    return explore(source, **({"label": "y", "sensitive": "sex"} | changes))


def adam(**changes: Any) -> APFEx:
    return APFEx(torch.optim.SGD(torch.nn.Linear(2, 1).parameters(), lr=0.1), **changes)


def loss(**changes: Any) -> torch.Tensor:
    given: dict[str, Any] = {"scores": torch.zeros(6), "y": T([0, 1] * 3), "groups": T([0, 1] * 3)}
    given |= changes
    return FairnessLoss("dp")(given.pop("scores"), given.pop("y"), given.pop("groups"), **given)


one_group = {"sex": ["F"] * N}
clf = fitted
OTHERS: dict[str, tuple[str, str, Any]] = {
    # metrics and audits
    "tolerance text": ("tolerance", "'5%'", lambda: audit_of(tolerance="5%")),
    "tolerance": ("tolerance", "5", lambda: audit_of(tolerance=5)),
    "confidence": ("confidence", "95", lambda: audit_of(confidence=95)),
    "min_count": ("min_count", "0", lambda: audit_of(min_count=0)),
    "favorable": ("favorable_label", "7", lambda: audit_of(favorable_label=7)),
    "metrics": ("metrics", "'f2'", lambda: audit_of(metrics="f2")),
    "metrics kind": ("metrics", "3", lambda: audit_of(metrics=3)),
    "metrics without scores": ("y_score", "None", lambda: audit_of(metrics="auc")),
    "labels in other words": ("y_pred", "'yes'", lambda: audit_of(y_pred=["no", "yes"] * 30)),
    "indexes": ("y_pred", "index", lambda: audit_of(
        y_true=pd.Series(Y), y_pred=pd.Series(Y, index=range(1, N + 1)))),
    "dp grouping": ("grouping", "'x'", lambda: dp_gap(Y, Y, sensitive_features=PEOPLE,
                                                    grouping="x")),
    "dp min_count": ("min_count", "'a'", lambda: dp_gap(Y, Y, sensitive_features=PEOPLE,
                                                      min_count="a")),
    "dp pos_label": ("pos_label", "7", lambda: dp_gap(Y, Y, sensitive_features=PEOPLE,
                                                     pos_label=7)),
    "tpr without labels": ("y_true", "None", lambda: tpr_gap(None, Y, sensitive_features=PEOPLE)),
    "odds without labels": ("y_true", "None",
                            lambda: equalized_odds_gap(None, Y, sensitive_features=PEOPLE)),
    "rate": ("rate", "'tprr'", lambda: group_rates(Y, Y, rate="tprr",
                                                  sensitive_features=PEOPLE)),
    "accuracy": ("y_pred", "59", lambda: accuracy(Y, Y[1:])),
    "balanced accuracy": ("y_pred", "NoneType", lambda: balanced_accuracy(Y, None)),
    "worst group": ("sensitive_features", "NoneType",
                    lambda: worst_group_accuracy(Y, Y, sensitive_features=None)),
    "counts as text": ("successes", "'a'", lambda: gap_interval(["a"], [20])),
    "counts above": ("successes", "30 of 20", lambda: gap_interval([30, 1], [20, 20])),
    "counts negative": ("successes", "-1", lambda: gap_interval([-1, 1], [20, 20])),
    "counts in parts": ("successes", "0.5", lambda: gap_interval([0.5, 1], [20, 20])),
    "interval confidence": ("confidence", "'a'", lambda: gap_interval([1, 2], [5, 5],
                                                   confidence="a")),
    "interval draws": ("n_draws", "3", lambda: gap_interval([1, 2], [5, 5], n_draws=3)),
    "interval draws kind": ("n_draws", "'a'", lambda: gap_interval([1, 2], [5, 5],
                                                       n_draws="a")),
    "interval seed": ("random_state", "'a'", lambda: gap_interval([1, 2], [5, 5],
                                                  random_state="a")),
    "inference seed": ("random_state", "'a'", lambda: gap_inference(Y, Y, rate="dp",
                       sensitive_features=PEOPLE, random_state="a")),
    "of_scores": ("function", "int", lambda: of_scores(3)),
    "worst n": ("n", "0", lambda: audited().worst(0)),
    "worst by": ("by", "'sexx'", lambda: audited().worst(by="sexx")),
    "worst by kind": ("by", "3", lambda: audited().worst(by=3)),
    "plan": ("max_gap", "'a'", lambda: audited().plan("a")),
    "plan power": ("power", "'a'", lambda: audited().plan(power="a")),
    "diff": ("earlier", "int", lambda: audited().diff(3)),
    "ends": ("criterion", "Did you mean 'tpr'?", lambda: audited().ends("tprr", "attribute0")),
    "exceeds row": ("row", "9", lambda: audited().exceeds([(9, 0.1)])),
    "exceeds bound": ("bound", "'a'", lambda: audited().exceeds([(0, "a")])),
    "thresholds without scores": ("y_score", "None", lambda: audited().rates_by_threshold()),
    "to_frame": ("table", "'x'", lambda: audited().to_frame("x")),
    "from_json text": ("text", "none", lambda: Audit.from_json("x")),
    "from_json kind": ("text", "int", lambda: Audit.from_json(3)),
    "from_json other": ("text", "something else", lambda: Audit.from_json("[]")),
    "counts": ("counts", "int", lambda: audit_counts(3, AuditSettings())),
    "settings": ("settings", "int", lambda: audit_counts(audited().counts, 3)),
    "count_rows": ("groups", "int", lambda: count_rows(None, np.array([0]), 3)),
    "assert_gap": ("audit", "int", lambda: assert_gap(3)),
    "assert_gap bound": ("max_gap", "'a'", lambda: assert_gap(audited(),
                                                  max_gap="a")),
    "assert_gap end": ("end", "'x'", lambda: assert_gap(audited(), end="x")),
    "assert_gap by": ("by", "'x'", lambda: assert_gap(audited(), by="x")),
    "gates": ("audit", "int", lambda: check_gates(3, "violation")),
    "gate rule": ("fail_on", "'dp_gap > a'", lambda: check_gates(audited(), "dp_gap > a")),
    "gate unknown": ("fail_on", "did you mean 'dp_gap'?",
                     lambda: check_gates(audited(), "dpp_gap > 0.1")),
    "table prediction": ("prediction", "'pp'", lambda: of_table(prediction="pp")),
    "table prediction kind": ("prediction", "NoneType", lambda: of_table(prediction=None)),
    "table sensitive": ("sensitive", "did you mean 'sex'?", lambda: of_table(sensitive="sx")),
    "table sensitive kind": ("sensitive", "3", lambda: of_table(sensitive=3)),
    "table threshold": ("threshold", "'a'", lambda: of_table(threshold="a")),
    "table metrics": ("metrics", "auc", lambda: of_table(metrics="auc")),
    "table where": ("where", "'zz'", lambda: of_table(where={"zz": 1})),
    "table itself": ("table", "int", lambda: audit_table(3, prediction="p", sensitive="s")),
    # groups, tables and data
    "groups of nothing": ("sensitive_features", "none", lambda: make_groups({})),
    "groups of two lengths": ("sensitive_features", "'b': 2",
                              lambda: make_groups({"a": [1], "b": [1, 2]})),
    "parent": ("attributes", "'x'", lambda: make_groups(PEOPLE).parent("x")),
    "parent kind": ("attributes", "3", lambda: make_groups(PEOPLE).parent(3)),
    "encode": ("sensitive_features", "'sx'",
               lambda: make_groups({"sex": PEOPLE}).encode({"sx": PEOPLE})),
    "memberships": ("scores", "list", lambda: soft_memberships([1])),
    "rows": ("n", "0", lambda: make_biased(0)),
    "kind": ("kind", "'x'", lambda: make_biased(50, kind="x")),
    "strength": ("strength", "3", lambda: make_biased(50, strength=3)),
    "base_rate": ("base_rate", "'a'", lambda: make_biased(50, base_rate="a")),
    "seed": ("random_state", "'a'", lambda: make_biased(50, random_state="a")),
    "data set": ("name", "did you mean 'adult'?", lambda: load_dataset("adullt")),
    "data set kind": ("name", "3", lambda: load_dataset(3)),
    "images": ("folder", "nofolder", lambda: load_images("nofolder")),
    "images kind": ("folder", "int", lambda: load_images(3)),
    "encoder": ("categories", "'x'", lambda: TableEncoder(categories="x").fit(X)),
    "encoder bins": ("bins", "'x'", lambda: TableEncoder(bins="x").fit(X)),
    "encoder count": ("min_count", "0", lambda: TableEncoder(min_count=0).fit(X)),
    "stream rows": ("rule_rows", "0", lambda: StreamSettings(rule_rows=0)),
    "stream chunks": ("chunk_rows", "'a'", lambda: StreamSettings(chunk_rows="a")),
    # folders, runs and pages
    "load": ("nofolder", "nothing of this name", lambda: load("nofolder")),
    "load kind": ("folder", "int", lambda: load(3)),
    "load_run": ("run", "nofolder", lambda: load_run("nofolder")),
    "load_run kind": ("run", "int", lambda: load_run(3)),
    "load_audit": ("run", "docs", lambda: load_audit("docs")),
    "rerun": ("run", "docs", lambda: rerun("docs")),
    "explore label": ("label", "did you mean 'y'?", lambda: of_run(label="yy")),
    "explore sensitive": ("sensitive", "did you mean 'sex'?", lambda: of_run(sensitive="sx")),
    "explore nothing": ("label", "sensitive", lambda: explore(DECISIONS)),
    "explore twice": ("label", "different", lambda: of_run(sensitive="y")),
    "explore criteria": ("criteria", "did you mean 'dp'?", lambda: of_run(criteria="ddp")),
    "explore no rows": ("rows", "no", lambda: of_run(DECISIONS.head(0))),
    "audit_file": ("prediction", "'pp'", lambda: audit_file(DECISIONS, prediction="pp",
                                                          sensitive="sex")),
    "audit page": ("audit", "int", lambda: write_audit_page(3, "x")),
    "audit page path": ("path", "int", lambda: write_audit_page(audited(), 3)),
    "front page": ("described", "int", lambda: write_front_page(3, "x")),
    "front page of another": ("described", "None", lambda: write_front_page({}, "x")),
    "describe": ("clf", "int", lambda: describe_front(3, X, Y)),
    # a fitted classifier
    "select": ("max_gap", "'a'", lambda: clf().select("a")),
    "select unknown": ("max_gap", "Did you mean 'dp'?", lambda: clf().select({"dpp": 0.1})),
    "select confidence": ("confidence", "'a'",
                          lambda: clf().select(0.1, confidence="a")),
    "select increase": ("max_error_increase", "-1",
                        lambda: clf().select(0.1, max_error_increase=-1)),
    "at": ("point", "99", lambda: clf().at(99)),
    "at kind": ("point", "'a'", lambda: clf().at("a")),
    "at part": ("point", "1.5", lambda: clf().at(1.5)),
    "use": ("point", "True", lambda: clf().use(True)),
    "compare": ("point", "99", lambda: clf().compare(0, 99, X)),
    "audit without people": ("sensitive_features", "None", lambda: clf().audit(X, Y)),
    "audit of other labels": ("y", "7", lambda: clf().audit(X, [7] * N,
                                                          sensitive_features=PEOPLE)),
    "predict with people": ("sensitive_features", "some",
                            lambda: clf().predict(X, sensitive_features=PEOPLE)),
    "score": ("y", "59", lambda: clf().score(X, Y[1:])),
    "choose": ("bounds", "Did you mean 'dp'?", lambda: clf().front_.choose({"dpp": 1})),
    "choose kind": ("bounds", "str", lambda: clf().front_.choose("a")),
    "save": ("folder", "int", lambda: clf().save(3)),
    "to_onnx": ("path", "int", lambda: clf().to_onnx(3)),
    "one class": ("y", "[1]", lambda: fit(y=[1] * N)),
    "one group": ("sensitive_features", "sex=F", lambda: fit(sensitive_features=one_group)),
    "a group a row": ("sensitive_features", "60 groups",
                      lambda: fit(sensitive_features=list(range(N)))),
    "sensitive without names": ("sensitive", "sex", lambda: quick(sensitive=["sex"]).fit(X, Y)),
    "sensitive not there": ("sensitive", "sx",
                            lambda: quick(sensitive=["sx"]).fit(DECISIONS, Y)),
    # loops, losses and strategies
    "optimizer": ("optimizer", "int", lambda: APFEx(3)),
    "strategy": ("strategy", "'pcp'", lambda: adam(strategy="pcp")),
    "window": ("window", "0", lambda: adam(window=0)),
    "scales": ("scales", "'x'", lambda: adam(scales="x")),
    "space": ("space", "'x'", lambda: adam(space="x")),
    "optimizer seed": ("seed", "'a'", lambda: adam(seed="a")),
    "floor": ("floor", "'a'", lambda: adam(floor="a")),
    "trace": ("trace", "'no'", lambda: adam(trace="no")),
    "accumulate": ("accumulate", "'no'", lambda: adam(accumulate="no")),
    "losses": ("losses", "3", lambda: adam().backward(3)),
    "no losses": ("losses", "none", lambda: adam().backward([])),
    "a loss of text": ("losses[0]", "float", lambda: adam().backward([1.0])),
    "detached": ("losses[0]", "gradient", lambda: adam().backward([T(1.0)])),
    "bound": ("bound", "'a'", lambda: Constraint(T(1.0), bound="a")),
    "soft": ("soft", "int", lambda: Constraint(3, bound=0.1)),
    "margin": ("margin", "-1", lambda: Constraint(T(1.0), bound=0.1, margin=-1)),
    "loss rate": ("rate", "'x'", lambda: FairnessLoss("x")),
    "loss weight": ("task_weight", "'a'", lambda: FairnessLoss(task_weight="a")),
    "loss count": ("min_count", "'a'", lambda: FairnessLoss(min_count="a")),
    "loss aggregate": ("aggregate", "'x'", lambda: FairnessLoss(aggregate="x")),
    "beta": ("beta", "'a'", lambda: DPLoss(beta="a")),
    "steepness": ("steepness", "-1", lambda: TPRLoss(steepness=-1)),
    "ccr threshold": ("threshold", "str",
                      lambda: MulticlassCCRLoss(threshold="a")),
    "members": ("members", "3", lambda: Objectives(3)),
    "scores": ("scores", "list", lambda: loss(scores=[1.0])),
    "whole scores": ("scores", "int64", lambda: loss(scores=T([1] * 6))),
    "labels short": ("y", "5", lambda: loss(y=T([0, 1, 0, 1, 0]))),
    "labels beyond": ("y", "2", lambda: CrossEntropy()(torch.zeros(2), T([0, 2]))),
    "groups short": ("groups", "5", lambda: loss(groups=T([0, 1, 0, 1, 0]))),
    "groups below": ("groups", "-5", lambda: loss(groups=T([-5] * 6))),
    "groups of text": ("groups", "list", lambda: loss(groups=["a"] * 6)),
    "weights negative": ("sample_weight", "-1", lambda: loss(sample_weight=-torch.ones(6))),
    "fixed weights": ("weights", "[-1, 1]", lambda: FixedWeights([-1, 1])),
    "radius": ("radius", "'a'", lambda: CAGrad("a")),
    "cone": ("form", "'x'", lambda: ConeProjection("x")),
    "weighting": ("rate", "'a'", lambda: AdaptiveWeighting("a")),
    "sampling": ("blend", "2", lambda: SetSampling(2)),
    "tchebycheff": ("ideal", "'a'", lambda: SmoothTchebycheff(ideal="a")),
    "switch": ("cone", "int", lambda: AdaptiveSwitch(cone=3)),
    "switch patience": ("patience", "'a'", lambda: AdaptiveSwitch(patience="a")),
    "gramian": ("gramian", "list", lambda: min_norm([[1.0]])),
    "gramian shape": ("gramian", "[1]", lambda: min_norm(T([1.0]))),
    "qp": ("linear", "[1]", lambda: nonnegative_qp(torch.eye(2), T([1.0]))),
    "kkt": ("gramian", "int", lambda: kkt_residual(3, 3)),
    "jacobian": ("values", "int", lambda: jacobian(3, [T(1.0)])),
    "jacobian detached": ("values", "gradient", lambda: jacobian(T([1.0]), [T([1.0])])),
    "no batches": ("batches", "none",
                   lambda: empirical_scales([CrossEntropy()], torch.nn.Linear(2, 1), [])),
    "history": ("n_objectives", "'a'", lambda: History("a", 2)),
    "ccr": ("x", "list", lambda: ccr_step([1.0])),
    "tanh": ("steepness", "0", lambda: tanh_step(T([1.0]), steepness=0)),
    "abs": ("width", "str", lambda: smooth_abs(T([1.0]), width="a")),
    "max": ("x", "list", lambda: smooth_max([1.0])),
    "trees": ("booster", "int", lambda: Trees(3)),
    "tree depth": ("max_depth", "'a'", lambda: TreeSettings(max_depth="a")),
    "tree share": ("subsample", "2", lambda: TreeSettings(subsample=2)),
    "hypervolume": ("values", "'a'", lambda: hypervolume("a", [1, 2])),
    "reference": ("reference", "inf", lambda: hypervolume([[1, 2]], [np.inf, 1])),
    "non_dominated": ("values", "1 NaN", lambda: non_dominated([[np.nan, 1]])),
    "front": ("points", "3", lambda: ParetoFront(3)),
    "front of two sizes": ("values", "got 1", lambda: ParetoFront([[1, 2], [1]])),
    "backend": ("backend", "'x'", lambda: use_backend("x").__enter__()),
    "backend jobs": ("n_jobs", "'a'", lambda: use_backend(n_jobs="a").__enter__()),
    "all_sum": ("values", "int", lambda: all_sum(3)),
    "global_mean": ("values", "int", lambda: global_mean(3)),
    "global_mean weights": ("sample_weight", "-1", lambda: global_mean(T([1.0, 2]), T([-1.0, 3]))),
}  # fmt: skip

CASES = {
    **cases_of_columns(),
    **{
        f"setting {name}={value!r}": (name, shown, lambda n=name, v=value: fit(**{n: v}))
        for name, values in SETTINGS.items()
        for value, shown in values
    },
    **OTHERS,
}
BOTH = {"a row too few", "a row too many"}
"""Of two columns of different lengths it is the other one that may be named first."""


@pytest.mark.parametrize("name", CASES)
def test_what_is_said_of_bad_input(name):
    argument, shown, call = CASES[name]
    if name.split(": ")[-1] in BOTH and name.startswith("audit y_"):
        argument = ""
    check(call, argument, shown)


def test_there_are_many_cases():
    assert len(CASES) >= 200


UNCHANGED = {
    "fit y": lambda clf: clf.fit(X, None),
    "fit setting": lambda clf: clf.set_params(n_points=0).fit(X, Y, sensitive_features=PEOPLE),
    "fit X": lambda clf: clf.fit(X * np.inf, Y, sensitive_features=PEOPLE),
    "fit sensitive": lambda clf: clf.fit(X, Y, sensitive_features=PEOPLE[1:]),
    "predict": lambda clf: clf.predict(X * np.inf),
    "select": lambda clf: clf.select(-1),
    "use": lambda clf: clf.use(99),
    "audit": lambda clf: clf.audit(X, [7] * N, sensitive_features=PEOPLE),
    "save": lambda clf: clf.save(3),
}


@pytest.mark.parametrize("name", UNCHANGED)
def test_a_failed_call_leaves_a_classifier_as_it_was(name):
    one = copy.deepcopy(fitted())
    if name == "fit setting":
        one.set_params(n_points=0)
    before, decided = state_of(one), one.predict(X)
    with pytest.raises((ValueError, TypeError, IndexError)):
        UNCHANGED[name](one)
    assert state_of(one) == before
    assert (one.predict(X) == decided).all()


def test_a_failed_step_leaves_the_parameters_as_they_were():
    model = torch.nn.Linear(2, 1)
    optimizer = APFEx(torch.optim.SGD(model.parameters(), lr=0.1))
    before = [p.clone() for p in model.parameters()]
    for losses in (3, [], [T(1.0)], [model(torch.ones(2)).sum() * torch.nan]):
        with pytest.raises((ValueError, TypeError)):
            optimizer.backward(losses)  # pyright: ignore[reportArgumentType]
    assert all(torch.equal(p, q) for p, q in zip(model.parameters(), before, strict=True))
    assert all(p.grad is None for p in model.parameters())
