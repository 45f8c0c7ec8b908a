"""Populations of networks, and the front of a table, by one process or by several."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from tests.distributed.loops import Result
from torch import nn

from apfex.models import (
    StackedMLP,
    StackedModules,
    TrainingRows,
    TrainingSettings,
    spread_aims,
    train_population,
)
from apfex.strategies import AdaptiveSwitch

N = 200


def rows(n_classes: int, dtype: torch.dtype) -> TrainingRows:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(N, 4, generator=generator, dtype=torch.float64)
    y = (x[:, 0] + 0.5 * x[:, 3] > 0).long()
    y = y + (x[:, 1] > 0.5) if n_classes > 2 else y
    groups = torch.stack([(x[:, 2] > 0).long(), torch.arange(N) % 3])
    weight = torch.rand(N, generator=generator, dtype=torch.float64)
    return TrainingRows(x.to(dtype), y, groups, (2, 3), weight.to(dtype))


def population(n_classes: int, *, own: bool = False, patience: int | None = None) -> Result:
    """Members with aims and bounds, driven by the switch, some of which may stop early."""
    table = rows(n_classes, torch.float64)
    n_outputs = 1 if n_classes == 2 else n_classes
    members: Any = StackedMLP(4, n_outputs, (6,), 8, seed=0)
    if own:
        members = StackedModules(
            lambda d, c: nn.Sequential(nn.Linear(d, 5), nn.Tanh(), nn.Linear(5, c)),
            4,
            n_outputs,
            8,
            0,
        )
    for parameter in members.parameters():
        parameter.data = parameter.data.double()
    settings = TrainingSettings(epochs=10, batch_size=64, learning_rate=0.02, patience=patience)

    def judge(epoch: int) -> torch.Tensor | None:
        if patience is None:
            return None
        return torch.tensor([abs(epoch - 2.0 - member) for member in range(8)])

    trace = train_population(
        members,
        table,
        settings,
        aims=spread_aims(("dp", "tpr"), 8, n_groupings=2),
        strategies=[AdaptiveSwitch()],
        on_epoch=judge,
    )
    assert trace is not None
    return {
        "parameters": torch.cat([p.detach().flatten() for p in members.parameters()]),
        "weights": trace.weights.nan_to_num(7.0),
        "losses": trace.losses.nan_to_num(7.0),
    }


def joint() -> Result:
    """Plain members, as cross-fitted ones: each has weights of its own, and no aim."""
    table = rows(3, torch.float64)
    folds = torch.arange(N) % 4 != torch.arange(4).unsqueeze(1)
    members = StackedMLP(4, 3, (6,), 4, seed=0)
    for parameter in members.parameters():
        parameter.data = parameter.data.double()
    table = replace(
        table, sample_weight=folds.double(), class_weight=torch.tensor([1.0, 2.0, 3.0]).double()
    )
    train_population(members, table, TrainingSettings(epochs=6, batch_size=30))
    return {"parameters": torch.cat([p.detach().flatten() for p in members.parameters()])}


def front(**settings: Any) -> dict[str, torch.Tensor]:
    """Error and gaps of every point, and the scores of the one in use."""
    from apfex.datasets import make_biased
    from apfex.estimator import APFExClassifier

    data = make_biased(n=600, random_state=0)
    clf = APFExClassifier(("dp",), random_state=0, n_points=6, max_gap=0.3, **settings)
    clf.fit(data.X, data.y, sensitive_features=data.sensitive)
    frame = clf.front_.to_frame()
    return {
        "error": torch.tensor(frame["error"].to_numpy()),
        "gap": torch.tensor(frame["dp_gap"].to_numpy()),
        "scores": torch.from_numpy(clf.predict_proba(data.X)[:, 1].copy()),
    }


def writes_folder(out: Path) -> bool:
    """Explore a table from Python; tell whether this worker has written the folder."""
    from apfex.datasets import make_biased
    from apfex.runs import explore

    data = make_biased(n=300, random_state=0)
    table = data.X.assign(hired=data.y, sex=data.sensitive["sex"])
    how: dict[str, Any] = {"criteria": "dp", "model": "linear", "search": "inprocess", "points": 2}
    return explore(table, label="hired", sensitive="sex", **how, out=out).folder is not None


POPULATIONS = {
    "two classes": lambda: population(2),
    "three classes": lambda: population(3),
    "own modules": lambda: population(2, own=True),
    "early stopping": lambda: population(2, patience=2),
    "cross-fitted": joint,
}
FRONTS: dict[str, dict[str, Any]] = {
    "networks": {"model": "mlp", "search": "inprocess", "epochs": 4},
    "rules": {"model": "mlp"},
    "trees": {"model": "boosting", "search": "inprocess"},
}
