"""How does a step grow with rows, groups, objectives and parameters, and an audit with groups?

One quantity grows at a time, the others stay as they are: batches of 4,096 rows with 104 inputs, a
network of two hidden layers of 64, 4 groups, cross-entropy with dp and tpr, the switching rule in
prediction space. ``python benchmarks/bench_scaling.py --json
benchmarks/results/scaling/MACHINE.json`` keeps the figures, ``--workers 1 2`` also takes the same
steps in so many processes (gloo, one thread each). ``docs/scaling.md`` says what follows for a
billion rows, with a picture by ``website/record_figures.py``.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
import torch.distributed
import torch.multiprocessing
from front.machine import describe, write_figures
from torch import nn

from apfex.auditing import AuditSettings, audit_counts
from apfex.groups import make_groups
from apfex.objectives import CrossEntropy, FairnessLoss, Objectives
from apfex.optimizer import APFEx
from apfex.rates import count_rows
from apfex.strategies import AdaptiveSwitch


@dataclass(frozen=True)
class Size:
    """Of a step: rows of a batch, groups of a grouping, groupings, width of the hidden layers."""

    rows: int = 4_096
    groups: int = 4
    groupings: int = 1
    hidden: int = 64

    @property
    def objectives(self) -> int:
        return 1 + 2 * self.groupings

    @property
    def parameters(self) -> int:
        return sum(p.numel() for p in network(self.hidden).parameters())


INPUTS, LEAST_ROUNDS, WORKERS_ROWS = 104, 10, 16_384
GROWING: dict[str, list[Size]] = {
    "rows": [Size(rows=rows) for rows in (1_024, 4_096, 16_384, 65_536, 262_144)],
    "groups": [Size(rows=65_536, groups=k) for k in (4, 64, 1_024, 10_000)],
    "objectives": [Size(groupings=count) for count in (1, 2, 4, 8)],
    "parameters": [Size(hidden=width) for width in (64, 256, 1_024, 2_048)],
}


def network(hidden: int) -> nn.Module:
    return nn.Sequential(
        nn.Linear(INPUTS, hidden),
        nn.ReLU(),
        nn.Linear(hidden, hidden),
        nn.ReLU(),
        nn.Linear(hidden, 1),
    )


def steps_of(size: Size, device: str) -> dict[str, Callable[[], None]]:
    """A plain step and one of ours on the same network and rows."""
    torch.manual_seed(0)
    x = torch.randn(size.rows, INPUTS, device=device)
    y = (torch.rand(size.rows, device=device) < 0.3).long()
    groupings = [
        torch.randint(0, size.groups, (size.rows,), device=device) for _ in range(size.groupings)
    ]
    losses = [FairnessLoss(rate) for _ in groupings for rate in ("dp", "tpr")]
    objectives = Objectives([CrossEntropy(), *losses])
    groups = [None, *(grouping for grouping in groupings for _ in range(2))]
    ours, theirs = network(size.hidden).to(device), network(size.hidden).to(device)
    optimizer = APFEx(torch.optim.Adam(ours.parameters()), AdaptiveSwitch(), space="prediction")
    adam = torch.optim.Adam(theirs.parameters())

    def apfex() -> None:
        scores = ours(x).squeeze(1)
        optimizer.backward(objectives(scores, y, groups), outputs=scores)
        optimizer.step()

    def plain() -> None:
        adam.zero_grad()
        nn.functional.binary_cross_entropy_with_logits(theirs(x).squeeze(1), y.float()).backward()
        adam.step()

    return {"plain": plain, "apfex": apfex}


def milliseconds(steps: dict[str, Callable[[], None]], device: str) -> dict[str, float]:
    """Median over rounds in which the steps take turns."""
    taken: dict[str, list[float]] = {name: [] for name in steps}
    spent = 0.0
    while len(taken["plain"]) < LEAST_ROUNDS + 3 or (spent < 1.0 and len(taken["plain"]) < 100):
        for name, step in steps.items():
            start = time.perf_counter()
            step()
            if device == "cuda":
                torch.cuda.synchronize()
            taken[name].append(time.perf_counter() - start)
            spent += taken[name][-1]
    return {name: 1e3 * statistics.median(times[3:]) for name, times in taken.items()}


def growth(device: str) -> dict[str, list[dict[str, float]]]:
    found: dict[str, list[dict[str, float]]] = {}
    for quantity, sizes in GROWING.items():
        found[quantity] = []
        for size in sizes:
            times = milliseconds(steps_of(size, device), device)
            found[quantity].append({quantity: getattr(size, quantity), **times})
            print(f"{quantity:11}{getattr(size, quantity):>12,}  {shown(times)}", flush=True)
    return found


def shown(times: dict[str, float]) -> str:
    ratio = times["apfex"] / times["plain"]
    return f"plain {times['plain']:9.2f} ms   APFEx {times['apfex']:9.2f} ms ({ratio:.2f} x)"


def audits(sizes: Iterable[int] = (4, 64, 1_024, 10_000)) -> list[dict[str, float]]:
    """Seconds from counts of 100 rows a group to an audit; rows are counted before."""
    found = []
    for k in sizes:
        generator = np.random.default_rng(0)
        codes = np.repeat(np.arange(k), 100)
        side = max(2, round(k**0.5))
        groups = make_groups({"a": codes % side, "b": codes // side})
        y, decided = generator.integers(0, 2, (2, len(codes)))
        counts = count_rows(y, decided, groups)
        start = time.perf_counter()
        audit_counts(counts, AuditSettings())
        found.append({"groups": k, "seconds": time.perf_counter() - start})
        print(f"audit of counts {k:>7,} groups {found[-1]['seconds']:8.2f} s", flush=True)
    return found


def work(rank: int, size: int, place: str, out: str) -> None:
    """What each of several workers does: steps on its part of a batch."""
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", f"file://{place}", rank=rank, world_size=size)
    found = []
    for whole in GROWING["parameters"]:
        own = replace(whole, rows=WORKERS_ROWS // size)
        step = steps_of(own, "cpu")["apfex"]
        taken = []
        for _ in range(LEAST_ROUNDS):
            torch.distributed.barrier()
            start = time.perf_counter()
            step()
            taken.append(time.perf_counter() - start)
        found.append({"parameters": whole.parameters, "apfex": 1e3 * statistics.median(taken[3:])})
    if rank == 0:
        Path(out).write_text(json.dumps(found))
    torch.distributed.destroy_process_group()


def workers(sizes: Sequence[int]) -> dict[int, list[dict[str, float]]]:
    """Milliseconds of a step on 16,384 rows that so many processes share."""
    found = {}
    for size in sizes:
        with tempfile.TemporaryDirectory() as folder:
            given = (size, f"{folder}/meet", f"{folder}/out.json")
            torch.multiprocessing.spawn(work, given, nprocs=size)
            found[size] = json.loads(Path(given[2]).read_text())
        for point in found[size]:
            count, taken = int(point["parameters"]), point["apfex"]
            print(f"{size} workers {count:>12,} parameters {taken:9.2f} ms", flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--json", type=Path, help="file for the figures")
    parser.add_argument("--workers", type=int, nargs="+", default=[], help="processes")
    arguments = parser.parse_args()
    machine = describe(torch.get_num_threads(), ("apfex", "torch"))
    if arguments.device == "cuda":
        machine = f"{torch.cuda.get_device_name()}; {machine}"
    print(machine)
    figures = {"steps": growth(arguments.device), "audits": audits()}
    figures["workers"] = workers(arguments.workers)
    if arguments.json:
        write_figures(arguments.json, machine, figures)


if __name__ == "__main__":
    main()
