"""How long does the whole study of the paper take on this machine, by the wall clock?

``python benchmarks/bench_study.py FOLDER --json benchmarks/results/study/two-cores.json`` runs
``apfex reproduce all`` from nothing, as it is typed, into a folder that must be empty or new, and
then ``apfex reproduce table2 --datasets heart --seeds 1``. ``python reproduction/pages.py pack
FOLDER`` takes the records over.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from front.machine import PACKAGES, describe, write_figures

from apfex_reproduction.experiments import RecordFolder, whole_study


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="for the records; empty or new")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes")
    parser.add_argument("--json", type=Path, help="file for the figures")
    given = parser.parse_args()
    if given.folder.exists() and any(given.folder.iterdir()):
        parser.error(f"FOLDER must be empty or new, got {given.folder} with files in it.")
    before = os.getloadavg()[0]
    whole = timed("all", "--jobs", str(given.jobs), "--out", str(given.folder))
    done = sum(1 for _ in RecordFolder(given.folder).read())
    expected = len({key for part in whole_study() for key in part.sweep.keys})
    if done != expected:
        sys.exit(f"The study must have {expected} runs, got {done} in {given.folder}.")
    with tempfile.TemporaryDirectory() as other:
        first = timed("table2", "--datasets", "heart", "--seeds", "1", "--out", f"{other}/heart")
    figures = {"processes": given.jobs, "runs": done, "load_before": round(before, 2)}
    figures |= {"whole": whole, "heart": first}
    print(figures)
    if given.json:
        write_figures(given.json, describe(1, PACKAGES), figures)


def timed(*words: str) -> dict[str, Any]:
    """Seconds of a command by the wall clock, and of the processors."""
    start, used = time.perf_counter(), used_seconds()
    command = [sys.executable, "-m", "apfex", "reproduce", *words]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return {
        "wall_seconds": round(time.perf_counter() - start, 1),
        "processor_seconds": round(used_seconds() - used, 1),
    }


def used_seconds() -> float:
    """Processor seconds of all children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
