"""What does one APFEx step cost, beside one plain cross-entropy step on the same model?

Run ``python benchmarks/bench_step.py``; ``--json
benchmarks/results/step.json`` keeps the figures. All methods take turns
within each round, so that a busy moment of the machine hits them alike, and every figure is the
median over rounds of a ratio within the round. ``--cpu`` counts processor time on one thread, which
others on the machine disturb least.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch
from front.machine import describe, write_figures
from torch import Tensor, nn
from torchjd.aggregation import MGDA as TorchJDMGDA
from torchjd.aggregation import UPGrad as TorchJDUPGrad
from torchjd.autojac import backward as torchjd_backward
from torchjd.autojac import jac_to_grad

from apfex.objectives import CrossEntropy, FairnessLoss, Objectives
from apfex.optimizer import APFEx
from apfex.solvers import min_norm
from apfex.strategies import AdaptiveSwitch, AdaptiveWeighting, ConeProjection, SetSampling

ROWS, INPUTS = 4096, 104


class Task:
    """One model, one batch, and the objectives: cross-entropy, and dp and tpr per grouping."""

    def __init__(self, m: int, hidden: int) -> None:
        generator = torch.Generator().manual_seed(0)
        torch.manual_seed(0)
        self.x = torch.randn(ROWS, INPUTS, generator=generator)
        self.y = (torch.rand(ROWS, generator=generator) < 0.3).long()
        groupings = [torch.randint(0, 4, (ROWS,), generator=generator) for _ in range(m // 2)]
        losses = [FairnessLoss(rate) for _ in groupings for rate in ("dp", "tpr")]
        self.objectives = Objectives([CrossEntropy(), *losses])
        self.groups = [None, *(grouping for grouping in groupings for _ in range(2))]
        self.model = nn.Sequential(
            nn.Linear(INPUTS, hidden),
            nn.ReLU(),
            nn.Linear(hidden, hidden),
            nn.ReLU(),
            nn.Linear(hidden, 1),
        )

    def adam(self) -> torch.optim.Optimizer:
        return torch.optim.Adam(self.model.parameters(), lr=1e-3)

    def scores(self) -> Tensor:
        return self.model(self.x).squeeze(1)

    def losses(self, scores: Tensor) -> Tensor:
        return self.objectives(scores, self.y, self.groups)


def plain(task: Task) -> Callable[[], None]:
    adam, labels = task.adam(), task.y.float()

    def step() -> None:
        adam.zero_grad()
        nn.functional.binary_cross_entropy_with_logits(task.scores(), labels).backward()
        adam.step()

    return step


def apfex(strategy: object, prediction: bool) -> Callable[[Task], Callable[[], None]]:
    def make(task: Task) -> Callable[[], None]:
        optimizer = APFEx(task.adam(), strategy, space="prediction" if prediction else "parameter")

        def step() -> None:
            scores = task.scores()
            optimizer.backward(task.losses(scores), outputs=scores if prediction else None)
            optimizer.step()

        return step

    return make


def readme(task: Task) -> Callable[[], None]:
    """The loop of README: each loss is called by itself."""
    optimizer = APFEx(task.adam(), AdaptiveWeighting())
    first, *others = task.objectives
    groups = task.groups[1:]

    def step() -> None:
        scores = task.scores()
        gaps = [loss(scores, task.y, own) for loss, own in zip(others, groups, strict=True)]
        optimizer.backward([first(scores, task.y), *gaps])
        optimizer.step()

    return step


def bare(task: Task) -> Callable[[], None]:
    """The floor of APFEx: m losses that cost nothing to compute, one backward pass."""
    optimizer, labels, m = APFEx(task.adam(), AdaptiveWeighting()), task.y.float(), len(task.groups)

    def step() -> None:
        loss = nn.functional.binary_cross_entropy_with_logits(task.scores(), labels)
        optimizer.backward(loss.expand(m))
        optimizer.step()

    return step


def torchjd(aggregator: type) -> Callable[[Task], Callable[[], None]]:
    def make(task: Task) -> Callable[[], None]:
        adam, aggregate = task.adam(), aggregator()

        def step() -> None:
            adam.zero_grad()
            torchjd_backward(task.losses(task.scores()))
            jac_to_grad(task.model.parameters(), aggregate)
            adam.step()

        return step

    return make


def loop(task: Task) -> Callable[[], None]:
    """What one writes by hand: a gradient per loss, then the exact min-norm weights."""
    adam, parameters = task.adam(), list(task.model.parameters())

    def step() -> None:
        losses = task.losses(task.scores())
        rows = [
            torch.cat([g.flatten() for g in torch.autograd.grad(x, parameters, retain_graph=True)])
            for x in losses
        ]
        jacobian = torch.stack(rows)
        combined = min_norm(jacobian @ jacobian.T) @ jacobian
        offset = 0
        for p in parameters:
            p.grad = combined[offset : offset + p.numel()].view_as(p)
            offset += p.numel()
        adam.step()

    return step


METHODS: dict[str, Callable[[Task], Callable[[], None]]] = {
    "plain cross-entropy": plain,
    "APFEx AW": apfex(AdaptiveWeighting(), False),
    "APFEx AW, loop of README": readme,
    "APFEx AW, cross-entropy only": bare,
    "APFEx PSS": apfex(SetSampling(), False),
    "APFEx switch, prediction": apfex(AdaptiveSwitch(), True),
    "APFEx PCP, prediction": apfex(ConeProjection(), True),
    "APFEx PCP, parameter": apfex(ConeProjection(), False),
    "TorchJD MGDA": torchjd(TorchJDMGDA),
    "TorchJD UPGrad": torchjd(TorchJDUPGrad),
    "loop of autograd.grad": loop,
}


Clock = Callable[[], float]


def step_ratios(
    m: int, hidden: int, rounds: int, clock: Clock = time.perf_counter
) -> dict[str, float]:
    """Median time of a step over that of a plain one, in the same round."""
    steps = {name: make(Task(m, hidden)) for name, make in METHODS.items()}
    ratios: dict[str, list[float]] = {name: [] for name in steps}
    for index in range(rounds + 10):
        times = {}
        for name, step in steps.items():
            start = clock()
            step()
            times[name] = clock() - start
        if index >= 10:
            for name, seconds in times.items():
                ratios[name].append(seconds / times["plain cross-entropy"])
    return {name: statistics.median(values) for name, values in ratios.items()}


def group_ratios(rounds: int, clock: Clock = time.perf_counter) -> dict[str, float]:
    """Median time of a fairness loss and its gradient at k groups over that at 4."""
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(ROWS, generator=generator, requires_grad=True)
    y = (torch.rand(ROWS, generator=generator) < 0.3).long()
    ratios = {}
    for aggregate in ("smooth_mean", "mean", "max", "smooth_max"):
        loss = FairnessLoss("dp", aggregate=aggregate)
        codes = {k: torch.arange(ROWS) % k for k in (4, 32, 256, 1024)}
        times: dict[int, list[float]] = {k: [] for k in codes}
        for _ in range(rounds):
            for k, groups in codes.items():
                start = clock()
                torch.autograd.grad(loss(scores, y, groups), scores)
                times[k].append(clock() - start)
        base = times[4]
        for k in (32, 256, 1024):
            pairs = zip(times[k], base, strict=True)
            ratios[f"{aggregate}, {k}"] = statistics.median(a / b for a, b in pairs)
    return ratios


ALLOCATOR = {
    "MALLOC_MMAP_THRESHOLD_": str(1 << 30),
    "MALLOC_TRIM_THRESHOLD_": str(1 << 32),
    "MALLOC_TOP_PAD_": str(1 << 28),
}
"""Keeps freed memory. By default glibc hands large blocks back to the system at times, and the
page faults of the next step then hit one method or another, and outweigh what is measured."""


def main() -> None:
    if not ALLOCATOR.keys() <= os.environ.keys():
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **ALLOCATOR})
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--hidden", type=int, default=64, help="width of the two hidden layers")
    parser.add_argument("--json", type=Path, help="file for the figures")
    parser.add_argument("--cpu", action="store_true", help="processor time, on one thread")
    arguments = parser.parse_args()
    clock = time.process_time if arguments.cpu else time.perf_counter
    if arguments.cpu:
        torch.set_num_threads(1)
    hidden, rounds = arguments.hidden, arguments.rounds
    table = {m: step_ratios(m, hidden, rounds, clock) for m in (3, 5, 9)}
    machine = describe(torch.get_num_threads(), ("apfex", "torch", "torchjd"))
    print(machine)
    print(f"\n{'step over plain step':30}" + "".join(f"{f'm = {m}':>9}" for m in table))
    for name in METHODS:
        print(f"{name:30}" + "".join(f"{table[m][name]:9.2f}" for m in table))
    groups = group_ratios(rounds, clock)
    print("\nfairness loss and gradient, k groups over 4")
    for name, ratio in groups.items():
        print(f"{name:28}{ratio:9.2f}")
    if arguments.json:
        settings = {"rounds": arguments.rounds, "hidden": arguments.hidden}
        write_figures(arguments.json, machine, {**settings, "step": table, "groups": groups})


if __name__ == "__main__":
    main()
