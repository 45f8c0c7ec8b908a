"""How good a front of error against the crossing's gap does each method give, and at what cost?

Run ``python benchmarks/bench_front.py --tables adult --seeds 0 1 2``; every finished run is one
JSON line under ``--records``, a stopped run goes on where it was, and ``--report`` prints the table
from the records alone. ``--compact FOLDER`` writes them in a form fit for committing, from which
``--records FOLDER --report`` prints the same. Methods are registered in ``benchmarks/rivals``; ours
in ``rivals/apfex_.py``. The parts of this script are in ``benchmarks/front``.

Protocol. Same rows, same seeds, same inputs for all: the plain ``TableEncoder()`` and
``TableEncoder(bins="tree")``, for trees the plain one and ``TableEncoder(categories="codes")``, all
fitted on training rows; a method runs on both of its own, and the better one counts. Adult and
CelebA: one split 70/15/15 per seed, stratified by label and group. COMPAS, German, Heart: five
folds per repeat, 20% of each training part held out as validation rows, and decisions on the
left-out folds pooled, so that test rows are all rows. Of a method's points those count that are
non-dominated on validation rows in (error, gap); the score is the hypervolume of their (error, gap)
on test rows up to (error of the best constant predictor, 0.5), as a share of that box. Gaps are
those of the crossing; groups with fewer than 10 positives among the test rows are left out of the
tpr gap, on validation rows too.

Pooling over folds is by the name of the point where all folds return the same names. Otherwise, and
as a second figure for all methods (``--pooling bound``), it is by bound: for each of 26 bounds each
fold picks, on its own validation rows, the point of least error within the bound.

Seconds are those of one fit of the whole front (mean over folds), decisions included, encoding
not. Memory is the peak above that at the start, each run in a process of its own.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

if __name__ == "__main__":
    # Runs are forked, and CUDA fails in a fork of a process that has used it: hide the GPU.
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    # One thread per run for BLAS too: on two, waiting made fairlearn's CPU seconds four times more.
    os.environ["OMP_NUM_THREADS"] = "1"

import torch
from front.choose import choose
from front.records import Run, read_records, write_compact, write_record
from front.report import report
from front.runner import Limits, run_all
from front.tables import ENCODINGS, TABLES
from rivals import all_methods, own_methods, warm_up
from rivals.common import GAPS, encodings_of

RECORDS = Path(__file__).parent / "records" / "front"


def parse(methods: Sequence[str], given: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tables", nargs="+", choices=list(TABLES), default=list(TABLES))
    parser.add_argument("--methods", nargs="+", choices=methods, default=methods, metavar="NAME")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2, 3, 4])
    parser.add_argument("--encodings", nargs="+", choices=list(ENCODINGS), default=list(ENCODINGS))
    parser.add_argument("--records", type=Path, default=RECORDS, help="folder of the records")
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time")
    parser.add_argument("--limit", type=float, default=900, help="most wall seconds of a run")
    parser.add_argument("--memory", type=float, default=8, help="most gigabytes of a run")
    parser.add_argument("--retry", action="store_true", help="repeat runs that failed")
    parser.add_argument("--again", action="store_true", help="repeat runs that are recorded")
    parser.add_argument("--report", action="store_true", help="print the table, run nothing")
    parser.add_argument(
        "--compact", type=Path, metavar="FOLDER", help="write compact records, run nothing"
    )
    parser.add_argument(
        "--at",
        nargs="+",
        type=float,
        metavar="GAP",
        help="with --report: error and gap of the points chosen within these bounds",
    )
    parser.add_argument("--pooling", choices=["name", "bound"], default="name")
    parser.add_argument("--list", action="store_true", help="print the names of the methods")
    arguments = parser.parse_args(given)
    if arguments.compact and arguments.compact.resolve() == arguments.records.resolve():
        parser.error("--compact must be another folder than --records: it leaves points out.")
    return arguments


def run_missing(arguments: argparse.Namespace) -> None:
    """Run what is asked for and not recorded, and record it."""
    torch.set_num_threads(1)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # takes the run in progress along
    warm_up()
    records = read_records(arguments.records)
    done = {r for r, found in records.items() if not (arguments.retry and "error" in found)}
    methods = all_methods()
    runs = [
        Run(table, seed, method, encoding)
        for table in arguments.tables
        for seed in arguments.seeds
        for encoding in arguments.encodings
        for method in arguments.methods
        if encoding in encodings_of(methods[method])
    ]
    wanted = [run for run in runs if arguments.again or run not in done]
    limits = Limits(arguments.jobs, arguments.limit, arguments.memory)
    for record in run_all(wanted, methods, limits):
        write_record(arguments.records, record)
        what = record.get("error") or f"{record['hypervolume']} in {record['seconds']} s"
        names = (record[key] for key in ("table", "seed", "encoding", "method"))
        print(*names, what, sep=" | ", flush=True)


def main(given: Sequence[str] | None = None) -> None:
    arguments = parse(list(all_methods()), given)
    if arguments.list:
        print("\n".join(all_methods()))
        return
    if arguments.compact:
        found = read_records(arguments.records)
        kept = {run: record for run, record in found.items() if run.table in arguments.tables}
        print(*write_compact(arguments.compact, kept), sep="\n")
        return
    if not arguments.report:
        run_missing(arguments)
    records = read_records(arguments.records)
    print(report(records, arguments.tables, arguments.pooling, own_methods()))
    for table in arguments.tables if arguments.at else ():
        for gap in GAPS:
            print("", choose(records, table, gap, arguments.at, own_methods()), sep="\n")


if __name__ == "__main__":
    main()
