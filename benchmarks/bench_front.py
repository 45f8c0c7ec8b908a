"""How good are the trade-offs that each method hands out, and at what cost?

Run ``python benchmarks/bench_front.py --tables adult --seeds 0 1 2``. Every finished run is one
JSON line under ``--records``, a stopped sweep goes on where it was, and ``--report`` prints the
tables from the records alone. ``--plan`` prints the core seconds of each method and table. Methods
are registered in ``benchmarks/rivals``, ours in ``rivals/apfex_.py``; the parts of this script are
in ``benchmarks/front``.

Protocol, version 2 (``PROTOCOL`` in ``front/records.py``; every record names it, and records of
another version are not read). Version 1 was written down before any run that is quoted. What
changed since, after a look at the quoted splits, concerns ours and "both" alone: as many points as
the union of a rival's (they were half as many), and how those of folds are matched. Records of
rivals are the same in both versions.

**Problems.** "dp": error against the gap of demographic parity. "tpr": against the gap of true
positive rates. "eo": against equalized odds, the larger of the gaps of true and of false positive
rates. "both": error against the dp gap and the tpr gap at once. Gaps are differences between the
largest and the smallest rate over the crossing of all sensitive attributes.

**Rows.** A method is given the rows to learn from, with the sensitive attributes, and hands out
decisions on test rows. What it holds out, and whether it cross-fits, is its own business. The
attributes are not among the inputs, except in tables "with attributes".

- Adult (4 groups; 10 groups; sex x race x age) and CelebA: a random split 70/30 for each seed,
  stratified by group and label.
- COMPAS, German, Heart: five folds for each seed, each in turn the test rows, and decisions on the
  five folds are pooled, so that all rows are test rows. 30% of Heart would be 90 rows in four
  groups: the gap of a perfectly fair rule would come out as 0.2 by chance.
- Two synthetic tables, "made-even" and "made-uneven": 10,000 new rows for each seed, and 6,000 test
  rows that are the same for all seeds. P(group, label | x) is known there, so error and gaps are
  expectations without noise of labels, and scores are shares of the score of the best decisions
  that do not read the attribute, found by linear programming on the true probabilities.

Seeds 0 to 9 are quoted. Development uses seeds from 100 on.

**Points.** A method hands out at most 16 points for a problem, and all of them count. Ours are the
points of ``APFExClassifier(criteria=...).front_``, 16 for each criterion by default. A rival with a
bound on the gap is asked for the 16 bounds of ``LADDER`` (``rivals/common.py``). One that trains a
model or more for every point has fewer: ExponentiatedGradient 4 bounds, networks 8 weights and the
plain model; GridSearch hands out up to 16 of its grid. For "both" a rival that takes one criterion
at a time is given the union of its points for dp and for tpr, as many as ours. Where folds are
pooled, points are matched by the bound or weight that was asked for; ours, and those of a grid, by
their place along the front (ours for "both": so that the error and gaps that the fronts themselves
show are nearest in all, one to one).

**Score.** Hypervolume of (error, gap), or of (error, dp gap, tpr gap), on test rows up to (error of
the best constant decision, 0.5, ...), as a share of that box. Groups with fewer than 10 positives
(negatives) among the test rows do not count for true (false) positive rates.

**At a bound.** Error and gap on test rows when the user asks for a gap of .02, .05 or .1. Ours:
``select(max_gap=bound)``, and where it refuses the nearest non-trivial point, which ``fit`` would
take. Rivals with a bound: the point fitted for it (fairlearn's reductions bound the distance from
the overall rate, so half of it). Networks and grids: they hold out 20% of their rows, and the point
of least error within the bound on those rows is taken, or that of the least gap if none is within.
For "both" the bound holds for both gaps; it is asked only of methods that take two bounds.

**Base models.** Methods on trees: scikit-learn's histogram boosting (HGB) with the settings of
``rivals/base_models.py``, and a small XGBoost below reductions, which fit fifty models for a point.
Post-processing (LinearPost, error-parity, ThresholdOptimizer, OxonFair)
is fitted to out-of-fold scores of five folds on all rows, and decides new rows by the mean of the
five models, as ours does. "LinearPost + our q" is given the out-of-fold probabilities and the
models that our own rules were fitted to in the same fit. Networks and linear models get
``TableEncoder(bins="tree")`` from 5,000 rows on and the plain encoder below, trees get
``TableEncoder(categories="codes")``.

**Which rivals count.** A rival counts on a table for a problem if it finished every seed that it
was asked to run there: seeds 0 to 9; 0 to 2 on CelebA and on the variants of Adult, and for
methods marked slow (networks, reductions, all that read the attribute but are no post-processing of
HGB, and ours in other forms than the default). A run
ends after 300 seconds, or at 8 GB. The best rival of a table and problem is the one with the
highest mean over its seeds, in hindsight, so that what luck there is is on their side. Slow methods
run on Adult (4 groups), COMPAS, German and Heart only; FairGBM has no dp. Rivals are *blind* if
they need no attribute at prediction.

**Intervals.** Ratios are paired over seeds: geometric mean, and a 95% t interval of the logarithms
with the correction of Nadeau and Bengio (2003) for splits that share rows (``front/intervals.py``).

**Packages.** The extra ``bench``, fairlearn, and ``pip install --no-deps error-parity ecos
fairgbm``: the first asks for an older numpy than it needs. FairGBM is called by its own ``train``,
as its scikit-learn layer does not work with today's scikit-learn. OxonFair with guessed groups is
left out: it ran out of memory.

**Cost.** CPU seconds of one thread: of the whole run with all four problems, and of the first one,
dp, alone. Encoding is not counted for rivals; ours encodes by itself, and it is.
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
from front.plan import plan
from front.records import Run, read_records, write_record
from front.report import report
from front.runner import Limits, run_all
from front.tables import TABLES
from rivals import all_methods, own_methods, warm_up
from rivals.common import is_slow

RECORDS = Path(__file__).parent / "results" / "front"
SEEDS, FEW_SEEDS = range(10), range(3)


def parse(methods: Sequence[str], given: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tables", nargs="+", choices=list(TABLES), default=list(TABLES))
    parser.add_argument("--methods", nargs="+", choices=methods, default=methods, metavar="NAME")
    parser.add_argument("--seeds", nargs="+", type=int, help="those of the protocol by default")
    parser.add_argument("--records", type=Path, default=RECORDS, help="folder of the records")
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time")
    parser.add_argument("--limit", type=float, default=300, help="most wall seconds of a run")
    parser.add_argument("--memory", type=float, default=8, help="most gigabytes of a run")
    parser.add_argument("--retry", action="store_true", help="repeat runs that failed")
    parser.add_argument("--again", action="store_true", help="repeat runs that are recorded")
    parser.add_argument("--report", action="store_true", help="print the tables, run nothing")
    parser.add_argument("--plan", action="store_true", help="print core seconds, run nothing")
    parser.add_argument("--list", action="store_true", help="print the names of the methods")
    return parser.parse_args(given)


def runs_of(arguments: argparse.Namespace) -> list[Run]:
    """Runs that are asked for, those of slow methods last, so that a sweep may be cut short there.

    Where seeds are given, they are taken as they are.
    """
    methods, runs = all_methods(), []
    for table in arguments.tables:
        for method in arguments.methods:
            slow = is_slow(methods[method])
            if slow and not TABLES[table].for_slow:
                continue
            seeds = FEW_SEEDS if slow or TABLES[table].few_seeds else SEEDS
            runs += [(slow, Run(table, seed, method)) for seed in arguments.seeds or seeds]
    return [run for _, run in sorted(runs, key=lambda pair: pair[0])]


def run_missing(arguments: argparse.Namespace) -> None:
    """Run what is asked for and not recorded, and record it."""
    torch.set_num_threads(1)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # takes the run in progress along
    warm_up()
    records = read_records(arguments.records)
    done = {r for r, found in records.items() if not (arguments.retry and "error" in found)}
    wanted = [run for run in runs_of(arguments) if arguments.again or run not in done]
    limits = Limits(arguments.jobs, arguments.limit, arguments.memory)
    for number, record in enumerate(run_all(wanted, all_methods(), limits), start=1):
        write_record(arguments.records, record)
        scores = {p: found["hypervolume"] for p, found in record.get("problems", {}).items()}
        what = record.get("error") or f"{scores} in {record['seconds']} s"
        names = (record[key] for key in ("table", "seed", "method"))
        print(f"{number}/{len(wanted)}", *names, what, sep=" | ", flush=True)


def main(given: Sequence[str] | None = None) -> None:
    arguments = parse(list(all_methods()), given)
    if arguments.list:
        print("\n".join(all_methods()))
        return
    if arguments.plan:
        print(plan(read_records(arguments.records), runs_of(arguments)))
        return
    if not arguments.report:
        run_missing(arguments)
    asked = runs_of(argparse.Namespace(**{**vars(arguments), "methods": list(all_methods())}))
    print(report(read_records(arguments.records), arguments.tables, own_methods(), asked))


if __name__ == "__main__":
    main()
