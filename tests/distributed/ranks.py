"""Starting a few processes that form a group, each with a hard time limit."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from website.console import AT_THE_END

ROOT = Path(__file__).parents[2]
SECONDS = 240
"""After so long every process of a test is killed, whatever it waits for."""
SECONDS_AFTER_A_FAILURE = 90
"""And after so long where one has failed: others hear of it within 30, or wait for nothing."""


@dataclass(frozen=True)
class Ended:
    """How a process has ended; None: it was killed at the time limit."""

    code: int | None
    out: str

    @property
    def is_done(self) -> bool:
        """Whether all was done: an abort after the last line is torch's, and loses nothing."""
        return self.code == 0 or (self.code == -signal.SIGABRT and AT_THE_END in self.out)


def environment() -> dict[str, str]:
    """One thread, and the sources of this checkout first."""
    places = os.pathsep.join([str(ROOT), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    return os.environ | {"PYTHONPATH": places, "OMP_NUM_THREADS": "1"}


def start(command: Sequence[str], folder: Path, number: int) -> list[Ended]:
    """Run a command in each of several processes, and wait for all of them."""
    running = []
    for rank in range(number):
        out = (folder / f"{rank}.out").open("w")
        running.append(
            subprocess.Popen(
                [*command, str(rank), str(number)],
                stdout=out,
                stderr=subprocess.STDOUT,
                env=environment(),
                cwd=folder,
            )
        )
        out.close()
    return [Ended(code, (folder / f"{r}.out").read_text()) for r, code in enumerate(wait(running))]


def wait(running: Sequence[subprocess.Popen]) -> list[int | None]:
    deadline = time.monotonic() + SECONDS
    codes: list[int | None] = []
    try:
        for process in running:
            try:
                codes.append(process.wait(max(0.0, deadline - time.monotonic())))
                if codes[-1]:
                    deadline = min(deadline, time.monotonic() + SECONDS_AFTER_A_FAILURE)
            except subprocess.TimeoutExpired:
                codes.append(None)
    finally:
        for process in running:
            if process.poll() is None:
                process.kill()
                process.wait()
    return codes


def in_group(function: str, folder: Path, number: int) -> list[Ended]:
    """Run ``module:function`` as each rank of a gloo group; it is given rank, number, folder."""
    return start([sys.executable, "-m", "tests.distributed.ranks", function], folder, number)


def main(function: str, rank: int, number: int) -> None:
    import importlib

    torch.set_num_threads(1)
    module, name = function.split(":")
    store = (Path.cwd() / "store").as_uri()
    dist.init_process_group(
        "gloo", init_method=store, rank=rank, world_size=number, timeout=timedelta(seconds=30)
    )
    getattr(importlib.import_module(module), name)(rank, number)
    dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
