"""Something is wrong on one worker: what each of them is told, and that nothing has changed."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from tests.distributed.loops import N, adam, batch, network
from tests.distributed.populations import rows
from tests.optimizer.loops import same, snapshot
from torch import Tensor

from apfex.constraints import Constraint
from apfex.datasets import make_biased
from apfex.distributed import all_sum, global_mean, share_batches
from apfex.estimator import APFExClassifier
from apfex.groups import make_groups
from apfex.models import StackedMLP, TrainingRows, TrainingSettings, train_population
from apfex.objectives import CrossEntropy, FairnessLoss
from apfex.optimizer import APFEx
from apfex.strategies import AdaptiveWeighting, ConeProjection


class Trainer:
    """A model in mid-training, and a step of it."""

    def __init__(self, rank: int, number: int, **more: Any) -> None:
        self.rank, self.number = rank, number
        self.net = network()
        self.optimizer = adam(self.net, more.pop("strategy", ConeProjection()), **more)
        self.rows = torch.arange(N).tensor_split(number)[rank]

    def scores(self, rows: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
        x, y, groups, _ = batch()
        rows = self.rows if rows is None else rows
        return self.net(x[rows]).squeeze(1), y[rows], groups[rows]

    def losses(self) -> list[Tensor]:
        scores, y, groups = self.scores()
        return [CrossEntropy()(scores, y), FairnessLoss("dp")(scores, y, groups)]

    def step(self) -> None:
        self.optimizer.backward(self.losses())
        self.optimizer.step()


def nan_in_rows(t: Trainer) -> None:
    scores, y, groups = t.scores()
    scores = scores + (torch.nan if t.rank == 1 else 0.0)
    t.optimizer.backward([CrossEntropy()(scores, y), FairnessLoss("dp")(scores, y, groups)])


def nan_in_own_loss(t: Trainer) -> None:
    own = t.scores()[0].mean() * (torch.nan if t.rank == 1 else 1.0)
    t.optimizer.backward([own, t.losses()[1]])


def wrong_label(t: Trainer) -> None:
    scores, y, _ = t.scores()
    CrossEntropy()(scores, y + (2 if t.rank == 2 else 0))


def skipped_batch(t: Trainer) -> None:
    if t.rank == 0:
        t.losses()  # of a batch that is left at that
    t.step()


def other_losses(t: Trainer) -> None:
    t.optimizer.backward(t.losses()[: 1 + (t.rank == 0)])


def no_rows(t: Trainer) -> None:
    scores, y, _ = t.scores(torch.arange(0))
    CrossEntropy()(scores, y)


def no_weight(t: Trainer) -> None:
    global_mean(t.scores()[0], torch.zeros(len(t.rows)))


def wrong_rows(t: Trainer) -> None:
    scores, _, _ = t.scores()
    global_mean(scores.unsqueeze(1) if t.rank == 0 else scores)


def other_sizes(t: Trainer) -> None:
    all_sum(torch.ones(2 + t.rank))


def groups_of_parts(t: Trainer) -> None:
    scores, y, groups = t.scores()
    FairnessLoss("dp")(scores, y, make_groups({"group": groups}))


def kinds_of_groups(t: Trainer) -> None:
    scores, y, groups = t.scores()
    shares = torch.nn.functional.one_hot(groups, 5 + (t.rank == 1)).double()
    FairnessLoss("dp")(scores, y, shares)


def other_bounds(t: Trainer) -> None:
    losses = t.losses()
    t.optimizer.backward(losses, constraints=Constraint(losses[1], 0.01, value=0.1 + 0.1 * t.rank))


def active_on_one(t: Trainer) -> None:
    losses = t.losses()
    t.optimizer.backward(losses, constraints=Constraint(losses[1], 0.05, value=0.1 * t.rank))


def other_parameters(t: Trainer) -> None:
    if t.rank == 1:
        with torch.no_grad():
            next(t.net.parameters()).add_(1.0)
    t.optimizer.backward(t.losses())


def other_settings(t: Trainer) -> None:
    t.optimizer.seed = t.rank
    t.optimizer.backward(t.losses())


def too_many_micro_batches(t: Trainer) -> None:
    for _ in range(2 if t.rank == 0 else 1):
        t.optimizer.backward(t.losses())
    if t.rank:
        t.optimizer.step()
        t.optimizer.backward(t.losses())


def other_order(t: Trainer) -> None:
    table = rows(2, torch.float64)
    table = table.take(torch.arange(len(table.y)).flip(0)) if t.rank == 1 else table
    with share_batches(dist.group.WORLD):
        train_population(StackedMLP(4, 1, (), 2, seed=0), table, TrainingSettings(epochs=1))


def train_others(t: Trainer, change: Callable[[TrainingRows], TrainingRows]) -> None:
    """Worker 1 trains on rows of its own."""
    table = rows(2, torch.float64)
    with share_batches(dist.group.WORLD):
        train_population(
            StackedMLP(4, 1, (), 2, seed=0),
            change(table) if t.rank == 1 else table,
            TrainingSettings(epochs=1),
        )


def other_inputs(t: Trainer) -> None:
    train_others(t, lambda table: replace(table, x=table.x[:, [1, 0, 2, 3]]))


def other_sign(t: Trainer) -> None:
    train_others(t, lambda table: replace(table, x=-table.x))


def other_weights(t: Trainer) -> None:
    train_others(t, lambda table: replace(table, sample_weight=table.weights().flip(0)))


def more_inputs(t: Trainer) -> None:
    train_others(t, lambda table: replace(table, x=torch.cat([table.x, table.x], 1)))


def fit_others(t: Trainer, **changes: Callable[[Any], Any]) -> None:
    """Worker 1 is given another table."""
    data = make_biased(n=120, random_state=0)
    weight = np.linspace(1.0, 2.0, 120)
    given = {
        "X": data.X,
        "y": data.y,
        "sensitive_features": data.sensitive,
        "sample_weight": weight,
    }
    if t.rank == 1:
        given |= {name: change(given[name]) for name, change in changes.items()}
    with share_batches(dist.group.WORLD):
        APFExClassifier(model="mlp", epochs=1, n_points=2, random_state=0).fit(**given)


def fit_rows(t: Trainer) -> None:
    fit_others(
        t, **dict.fromkeys(("X", "y", "sensitive_features", "sample_weight"), lambda v: v[1:])
    )


def fit_columns(t: Trainer) -> None:
    fit_others(t, X=lambda X: X[X.columns[::-1]])


def fit_fewer_columns(t: Trainer) -> None:
    fit_others(t, X=lambda X: X.drop(columns="town"))


def fit_levels(t: Trainer) -> None:
    swapped = {"Dover": "Corby", "Corby": "Dover"}
    fit_others(t, X=lambda X: X.assign(town=X["town"].replace(swapped)))


def fit_missing(t: Trainer) -> None:
    fit_others(t, X=lambda X: X.assign(merit_1=X["merit_1"].mask(X.index == 3)))


def fit_labels(t: Trainer) -> None:
    fit_others(t, y=lambda y: np.append(1 - y[:1], y[1:]))


def fit_groups(t: Trainer) -> None:
    fit_others(t, sensitive_features=lambda s: s.assign(sex=s["sex"].mask(s.index == 0, "x")))


def fit_weights(t: Trainer) -> None:
    fit_others(t, sample_weight=lambda weight: weight[::-1])


def fit_infinite(t: Trainer) -> None:
    fit_others(t, X=lambda X: X.assign(merit_1=X["merit_1"].mask(X.index == 3, np.inf)))


def fit_trees(t: Trainer, **changes: Any) -> None:
    """Worker 1 has another setting; trees are not shared, so that nothing else would tell."""
    data = make_biased(n=120, random_state=0)
    given = {
        "model": "boosting",
        "n_estimators": 2,
        "n_points": 2,
        "random_state": 0,
        "max_gap": 0.5,
    }
    clf = APFExClassifier(**given | (changes if t.rank == 1 else {}))
    with share_batches(dist.group.WORLD):
        clf.fit(data.X, data.y, sensitive_features=data.sensitive)


def fit_settings(t: Trainer) -> None:
    fit_trees(t, max_gap=0.1, n_estimators=3, n_jobs=2)


def fit_seed(t: Trainer) -> None:
    fit_trees(t, random_state=1)


def fit_stream(t: Trainer) -> None:
    """Worker 1 is given another level in a row of a table that is read in chunks."""
    data = make_biased(n=5_200, random_state=0)
    table = data.X.assign(hired=data.y, **dict(data.sensitive))
    if t.rank == 1:
        table.loc[3, "town"] = "Dover" if table.loc[3, "town"] == "Corby" else "Corby"
    clf = APFExClassifier(model="mlp", epochs=1, n_points=2, random_state=0)
    with share_batches(dist.group.WORLD):
        clf.fit(iter([table]), y="hired", sensitive_features=list(data.sensitive))


def fit_stream_labels(t: Trainer) -> None:
    """Worker 1 is given other labels in a table that is read in chunks."""
    data = make_biased(n=5_200, random_state=0)
    y = 1 - data.y if t.rank == 1 else data.y
    clf = APFExClassifier(model="mlp", epochs=1, n_points=2, random_state=0)
    with share_batches(dist.group.WORLD):
        table = data.X.assign(hired=y, **dict(data.sensitive))
        clf.fit(iter([table]), y="hired", sensitive_features=list(data.sensitive))


def sharded_without_outputs(t: Trainer) -> None:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    sharded: Any = fully_shard(network(), mesh=init_device_mesh("cpu", (t.number,)))
    optimizer = adam(sharded, ConeProjection())
    x, y, groups, _ = batch()
    scores = sharded(x[t.rows]).squeeze(1)
    losses = [
        CrossEntropy()(scores, y[t.rows]),
        FairnessLoss("dp")(scores, y[t.rows], groups[t.rows]),
    ]
    optimizer.backward(losses)


def other_whole_parameters(t: Trainer) -> None:
    """One layer is sharded, and copies of the other one differ."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    net: Any = network()
    fully_shard(net[0], mesh=init_device_mesh("cpu", (t.number,)))
    with torch.no_grad():
        net[2].bias.add_(t.rank)
    optimizer = adam(net, AdaptiveWeighting())
    x, y, _, _ = batch()
    optimizer.backward([CrossEntropy()(net(x[t.rows]).squeeze(1), y[t.rows])])


def flat_parameters(_: Trainer) -> None:
    from torch.distributed.fsdp import FullyShardedDataParallel

    flat = FullyShardedDataParallel(network(), device_id=torch.device("cpu"))
    APFEx(torch.optim.SGD(flat.parameters(), lr=0.1))


FAILURES: dict[str, Callable[[Trainer], None]] = {
    function.__name__: function
    for function in (
        nan_in_rows,
        nan_in_own_loss,
        wrong_label,
        skipped_batch,
        other_losses,
        no_rows,
        no_weight,
        wrong_rows,
        other_sizes,
        groups_of_parts,
        kinds_of_groups,
        other_bounds,
        active_on_one,
        other_parameters,
        other_settings,
        too_many_micro_batches,
        other_order,
        other_inputs,
        other_sign,
        other_weights,
        more_inputs,
        fit_rows,
        fit_columns,
        fit_fewer_columns,
        fit_levels,
        fit_missing,
        fit_labels,
        fit_groups,
        fit_weights,
        fit_infinite,
        fit_settings,
        fit_seed,
        fit_stream,
        fit_stream_labels,
    )
}
OF_SHARDS: dict[str, Callable[[Trainer], None]] = {
    function.__name__: function
    for function in (sharded_without_outputs, other_whole_parameters, flat_parameters)
}


Told = dict[str, dict[str, Any]]


def failures(rank: int, number: int, wanted: dict[str, Callable[[Trainer], None]]) -> Told:
    """The error of each worker, and whether all is as before."""
    told = {}
    for name, fail in wanted.items():
        accumulates = name == "too_many_micro_batches"
        trainer = Trainer(rank, number, accumulate=accumulates, strategy=AdaptiveWeighting())
        trainer.step()
        if name in ("other_parameters", "other_settings", "too_many_micro_batches"):
            trainer.step()  # up to the start of a window
        before = snapshot(trainer.net, trainer.optimizer)
        error = None
        try:
            fail(trainer)
        except Exception as raised:
            error = raised
        told[name] = {
            "type": type(error).__name__,
            "message": str(error),
            "unchanged": same(snapshot(trainer.net, trainer.optimizer), before),
        }
        dist.barrier()
        with share_batches(dist.group.WORLD):
            Trainer(rank, number).step()  # all are in step again
    return told


def dies(rank: int, number: int) -> Told:
    """The last worker fails in code of its own, and the others wait for it."""
    trainer = Trainer(rank, number)
    trainer.step()
    if rank == number - 1:
        raise SystemExit("The disk is full.")
    try:
        trainer.step()
    except Exception as error:
        return {"dies": {"type": type(error).__name__, "message": str(error)}}
    return {}
