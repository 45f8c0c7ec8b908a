"""What does a population of b members cost, beside a single one?

Trains stacked networks (one hidden layer of 32) on random rows of the size of Adult with tree bins
(34,189 x 368, 4 groups, 12 epochs of batches of 1,024): ``python benchmarks/bench_population.py``;
``--json benchmarks/results/population-MACHINE.json`` keeps the figures.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import torch
from front.machine import describe, write_figures

from apfex.models import Aims, StackedMLP, TrainingRows, TrainingSettings, train_population

ROWS, INPUTS, GROUPS = 34_189, 368, 4


def seconds(members: int, rows: TrainingRows, epochs: int) -> float:
    device = rows.x.device
    population = StackedMLP(INPUTS, 1, (32,), members, seed=0).to(device)
    weights = torch.linspace(0, 3, members, device=device).unsqueeze(1).repeat(1, 2)
    settings = TrainingSettings(epochs=epochs)
    start = time.perf_counter()
    train_population(population, rows, settings, aims=Aims(("dp", "tpr"), weights))
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--members", type=int, nargs="+", default=[1, 16, 64])
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--json", type=Path, help="file for the figures")
    arguments = parser.parse_args()
    generator = torch.Generator().manual_seed(0)
    rows = TrainingRows(
        torch.randn(ROWS, INPUTS, generator=generator).to(arguments.device),
        (torch.rand(ROWS, generator=generator) < 0.24).long().to(arguments.device),
        torch.randint(0, GROUPS, (1, ROWS), generator=generator).to(arguments.device),
        (GROUPS,),
    )
    machine = describe(torch.get_num_threads(), ("apfex", "torch"))
    if rows.x.device.type == "cuda":
        machine = f"{torch.cuda.get_device_name()}; {machine}"
    print(f"{machine}; {arguments.epochs} epochs")
    seconds(1, rows, 1)  # warm up
    times = {members: seconds(members, rows, arguments.epochs) for members in arguments.members}
    for members, taken in times.items():
        print(f"{members:6} members {taken:7.2f} s, {taken / times[arguments.members[0]]:5.1f} x")
    if arguments.json:
        write_figures(arguments.json, machine, {"epochs": arguments.epochs, "seconds": times})


if __name__ == "__main__":
    main()
