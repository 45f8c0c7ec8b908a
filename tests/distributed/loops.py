"""Training loops that one worker runs on whole batches, and several on parts of the same."""

import copy
import warnings
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from apfex.constraints import Constraint
from apfex.distributed import global_mean
from apfex.gradients import empirical_scales
from apfex.groups import make_groups
from apfex.objectives import (
    CrossEntropy,
    DPLoss,
    FairnessLoss,
    MulticlassCCRLoss,
    Objectives,
    SquaredError,
    TPRLoss,
)
from apfex.optimizer import APFEx
from apfex.strategies import (
    AdaptiveSwitch,
    AdaptiveWeighting,
    ConeProjection,
    SetSampling,
    UPGrad,
)

N = 36
Part = Callable[[Tensor], Tensor]
"""Rows of a worker, of those of a batch."""
Wrap = Callable[[nn.Module], Any]
Result = dict[str, Tensor]


def batch(n_classes: int = 2) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Inputs, labels, groups (sorted, so that parts lack some of them) and weights."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(N, 3, generator=generator, dtype=torch.float64)
    noise = 0.4 * torch.randn(N, generator=generator, dtype=torch.float64)
    y = (x[:, 0] + noise > 0).long()
    if n_classes > 2:
        y = y + (x[:, 1] > 0.3)
    weight = torch.rand(N, generator=generator, dtype=torch.float64)
    return x, y, torch.arange(N) * 5 // N, weight


def network(n_outputs: int = 1) -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(3, 6), nn.Tanh(), nn.Linear(6, n_outputs)).double()


def outcome(net: nn.Module, optimizer: APFEx) -> Result:
    """All that must not depend on the number of workers."""
    history = optimizer.history
    assert history is not None
    scales = optimizer.scales
    assert scales is not None
    return {
        "parameters": torch.cat([whole(p).flatten() for p in net.parameters()]),
        "losses": history.losses,
        "weights": history.weights,
        "choices": history.last_choices(99).double(),
        "harmful": history.harmful_share,
        "norms": history.largest_norms,
        "scales": scales,
    }


def whole(parameter: Tensor) -> Tensor:
    own: Any = parameter.detach()
    return own.full_tensor() if hasattr(own, "full_tensor") else own.clone()


def adam(model: nn.Module, strategy: Any = None, **more: Any) -> APFEx:
    return APFEx(torch.optim.Adam(model.parameters(), lr=0.05), strategy, window=2, **more)


def train(
    part: Part,
    wrap: Wrap,
    strategy: Any,
    *,
    outputs: bool,
    space: Any = "auto",
    clips: bool = True,
) -> Result:
    """The plain loop; every other batch has other rows."""
    x, y, groups, _ = batch()
    net = network()
    model = wrap(net)
    optimizer = adam(model, strategy, space=space)
    for step in range(8):
        rows = part(torch.arange(N)[step % 2 * 6 :])
        scores = model(x[rows]).squeeze(1)
        losses = [
            CrossEntropy()(scores, y[rows]),
            FairnessLoss("dp")(scores, y[rows], groups[rows]),
            FairnessLoss("tpr", aggregate="max")(scores, y[rows], groups[rows]),
        ]
        optimizer.backward(losses, outputs=scores if outputs else None)
        if clips:
            torch.nn.utils.clip_grad_norm_(net.parameters(), 0.5)
        optimizer.step()
    return outcome(net, optimizer)


def single(part: Part, wrap: Wrap) -> Result:
    """One loss and ``loss.backward()``, which the wrapper itself averages."""
    x, y, groups, weight = batch()
    net = network()
    model = wrap(net)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(4):
        rows = part(torch.arange(N))
        loss = FairnessLoss("dp")(model(x[rows]), y[rows], groups[rows], weight[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return {"parameters": torch.cat([p.detach().flatten() for p in net.parameters()])}


def weighted(part: Part, wrap: Wrap) -> Result:
    """Sample weights, several groupings at once, and names of groups."""
    x, y, groups, weight = batch()
    named = make_groups({"a": groups % 2, "b": groups // 2})
    net = network()
    model = wrap(net)
    optimizer = adam(model, AdaptiveSwitch())
    objectives = Objectives(
        [
            SquaredError(),
            FairnessLoss("fpr"),
            FairnessLoss("dp", "ccr"),
            DPLoss(beta=0.1),
            TPRLoss(),
        ]
    )
    for _ in range(6):
        rows = part(torch.arange(N))
        pair = (groups[rows] > 1).long()
        crossing = named.take(rows.numpy())
        scores = model(x[rows]).squeeze(1)
        losses = objectives(
            scores, y[rows], [None, groups[rows], crossing, pair, pair], weight[rows]
        )
        optimizer.backward(losses)
        optimizer.step()
    return outcome(net, optimizer)


def multiclass(part: Part, wrap: Wrap) -> Result:
    """Three classes, memberships that are learned, a loss and a penalty of the user's own."""
    x, y, groups, weight = batch(3)
    net = network(3)
    model = wrap(net)
    optimizer = adam(model, ConeProjection())
    shares = F.one_hot(groups, 5).double() * 0.9 + 0.05
    for _ in range(6):
        rows = part(torch.arange(N))
        scores = model(x[rows])
        each = F.cross_entropy(scores, y[rows], reduction="none")
        penalty = sum(p.square().sum() for p in net.parameters())
        losses = [
            global_mean(each, weight[rows]),
            FairnessLoss("dp")(scores, y[rows], groups[rows]) + 0.01 * penalty,
            MulticlassCCRLoss("tpr")(scores, y[rows], shares[rows]),
        ]
        optimizer.backward(losses)
        optimizer.step()
    return outcome(net, optimizer)


def constrained(part: Part, wrap: Wrap) -> Result:
    x, y, groups, _ = batch()
    net = network()
    model = wrap(net)
    optimizer = adam(model, AdaptiveWeighting())
    for _ in range(6):
        rows = part(torch.arange(N))
        scores = model(x[rows]).squeeze(1)
        gap = FairnessLoss("dp", task_weight=0.0)(scores, y[rows], groups[rows])
        bounds = [Constraint(gap, 0.02), Constraint(gap, 10.0)]
        optimizer.backward([CrossEntropy()(scores, y[rows])], constraints=bounds)
        optimizer.step()
    return outcome(net, optimizer)


def accumulated(part: Part, wrap: Wrap, *, outputs: bool) -> Result:
    """Three micro-batches a step."""
    x, y, groups, _ = batch()
    net = network()
    model = wrap(net)
    optimizer = adam(model, AdaptiveSwitch(), accumulate=True)
    for _ in range(5):
        for micro in torch.arange(N).split(12):
            rows = part(micro)
            scores = model(x[rows]).squeeze(1)
            task = CrossEntropy()(scores, y[rows])
            gap = FairnessLoss("dp")(scores, y[rows], groups[rows])
            optimizer.backward([task / 3, gap / 3], outputs=scores if outputs else None)
        optimizer.step()
    return outcome(net, optimizer)


def scaled(part: Part, wrap: Wrap) -> Result:
    """A GradScaler, whose first scale overflows."""
    x, y, groups, _ = batch()
    net = network().float()
    model = wrap(net)
    optimizer = adam(model, AdaptiveSwitch())
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**127, growth_interval=3)
    for _ in range(10):
        rows = part(torch.arange(N))
        scores = model(x[rows].float()).squeeze(1)
        task = CrossEntropy()(scores, y[rows])
        optimizer.backward([task, FairnessLoss("dp")(scores, y[rows], groups[rows])], scaler=scaler)
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(net.parameters(), 0.5)
        scaler.step(optimizer)
        scaler.update()
    return outcome(net, optimizer) | {"scale": torch.tensor(scaler.get_scale())}


def overflow(part: Part, wrap: Wrap, factor: float) -> Result:
    """A loss of one's own, whose gradient overflows where the factor is large."""
    x, y, _, _ = batch()
    net = network().float()
    before = whole(next(net.parameters()))
    model = wrap(net)
    optimizer = adam(model, AdaptiveWeighting(), scales="none")
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**64)
    rows = part(torch.arange(N))
    scores = model(x[rows].float()).squeeze(1)
    optimizer.backward([CrossEntropy()(scores, y[rows]), factor * scores.mean()], scaler=scaler)
    scaler.step(optimizer)
    scaler.update()
    moved = (whole(next(net.parameters())) - before).abs().sum()
    counted = float(optimizer.history is not None)
    return {"scale": torch.tensor(scaler.get_scale()), "moved": moved + counted}


def in_half_precision(part: Part, wrap: Wrap) -> Result:
    """bfloat16 by autocast, together with micro-batches."""
    x, y, groups, _ = batch()
    net = network().float()
    model = wrap(net)
    optimizer = adam(model, ConeProjection(), accumulate=True)
    for _ in range(4):
        for micro in torch.arange(N).split(18):
            rows = part(micro)
            with torch.autocast("cpu", torch.bfloat16):
                scores = model(x[rows].float()).squeeze(1)
                task = CrossEntropy()(scores, y[rows])
                gap = FairnessLoss("dp")(scores, y[rows], groups[rows])
                optimizer.backward([task / 2, gap / 2])
        optimizer.step()
    return outcome(net, optimizer)


def compiled(part: Part, wrap: Wrap, backend: str = "aot_eager") -> Result:
    """A compiled model and a scaler, compared at the outputs."""
    from torch._functorch import config as functorch

    x, y, groups, _ = batch()
    net = network()
    with warnings.catch_warnings(), functorch.patch(donated_buffer=False):
        warnings.simplefilter("ignore")
        torch.compiler.reset()
        model = torch.compile(wrap(net), backend=backend)
        optimizer = adam(net, AdaptiveSwitch())
        scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
        for _ in range(6):
            rows = part(torch.arange(N))
            scores = model(x[rows]).squeeze(1)
            task = CrossEntropy()(scores, y[rows])
            gap = FairnessLoss("dp")(scores, y[rows], groups[rows])
            optimizer.backward([task, gap], outputs=scores, scaler=scaler)
            scaler.step(optimizer)
            scaler.update()
    return outcome(net, optimizer)


def resumed(parts: list[Part], wrap: Wrap) -> Result:
    """Twice a few steps, each with its own number of workers, by way of a checkpoint."""
    x, y, groups, _ = batch()
    states: list[Any] = [None, None]
    net, optimizer = network(), None
    for part in parts:
        net = network()
        model = wrap(net)
        optimizer = adam(model, SetSampling())
        if states[0] is not None:
            net.load_state_dict(states[0])
            optimizer.load_state_dict(states[1])
        for _ in range(5):
            rows = part(torch.arange(N))
            scores = model(x[rows]).squeeze(1)
            task = CrossEntropy()(scores, y[rows])
            optimizer.backward([task, FairnessLoss("dp")(scores, y[rows], groups[rows])])
            optimizer.step()
        states = copy.deepcopy([net.state_dict(), optimizer.state_dict()])
    assert optimizer is not None
    return outcome(net, optimizer)


KINDS = ("max", "per_example_max", "mean", "range")


def scales(part: Part, kind: Any) -> Tensor:
    """What losses are divided by, as measured before training."""
    x, y, groups, _ = batch()
    halves = [part(rows) for rows in torch.arange(N).split(N // 2)]
    batches = [(x[rows], y[rows], groups[rows]) for rows in halves]
    return empirical_scales([CrossEntropy(), FairnessLoss("dp")], network(), batches, kind)


STRATEGIES = {
    "switch": AdaptiveSwitch(),
    "aw": AdaptiveWeighting(),
    "pcp": ConeProjection(),
    "pss": SetSampling(),
    "upgrad": UPGrad(),
}
LOOPS: dict[str, Callable[[Part, Wrap], Result]] = {
    **{
        f"{name} {'at the outputs' if outputs else 'by parameters'}": (
            lambda part, wrap, s=strategy, o=outputs: train(part, wrap, s, outputs=o)
        )
        for name, strategy in STRATEGIES.items()
        for outputs in (False, True)
    },
    "weighted": weighted,
    "multiclass": multiclass,
    "constrained": constrained,
    "accumulated": lambda part, wrap: accumulated(part, wrap, outputs=False),
    "accumulated at the outputs": lambda part, wrap: accumulated(part, wrap, outputs=True),
    "scaled": scaled,
    "half precision": in_half_precision,
}
COMPILED: dict[str, Callable[[Part, Wrap], Result]] = {
    "compiled": compiled,
    "compiled to machine code": lambda part, wrap: compiled(part, wrap, "inductor"),
}
"""Slow, as the compiler is."""
TOLERANCES = {"scaled": 2e-5, "half precision": 3e-2}
"""Beyond float64."""
