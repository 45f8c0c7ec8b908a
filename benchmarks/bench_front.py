"""How good a front of error against the crossing's gap does each method give, and at what cost?

Run ``python benchmarks/bench_front.py --tables adult --seeds 0 1 2``; every finished run is one
JSON line under ``--records``, a stopped run goes on where it was, and ``--report`` prints the table
from the records alone. Methods are registered in ``benchmarks/rivals``; ours in
``rivals/apfex_.py``.

Protocol. Same rows, same seeds, same inputs for all: the plain ``TableEncoder()`` and
``TableEncoder(bins="tree")``, both fitted on training rows; a method runs on each, and the better
one counts. Adult and CelebA: one split 70/15/15 per seed, stratified by label and group. COMPAS,
German, Heart: five folds per repeat, 20% of each training part held out as validation rows, and
decisions on the left-out folds pooled, so that test rows are all rows. Of a method's points those
count that are non-dominated on validation rows in (error, gap); the score is the hypervolume of
their (error, gap) on test rows up to (error of the best constant predictor, 0.5), as a share of
that box. Gaps are those of the crossing; groups with fewer than 10 positives among the test rows
are left out of the tpr gap, on validation rows too.

Pooling over folds is by the name of the point where all folds return the same names. Otherwise, and
as a second figure for all methods (``--pooling bound``), it is by bound: for each of 26 bounds each
fold picks, on its own validation rows, the point of least error within the bound.

Seconds are those of one fit of the whole front (mean over folds), decisions included, encoding
not. Memory is the peak above that at the start, each run in a process of its own.
"""

from __future__ import annotations

import argparse
import functools
import json
import math
import multiprocessing
import os
import platform
import resource
import signal
import sys
import time
import warnings
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from rivals import all_methods, own_methods, warm_up
from rivals.common import GAPS, Method, Part, Point
from scipy import stats

from apfex.datasets import Dataset, load_dataset
from apfex.front import hypervolume, non_dominated
from apfex.groups import Groups, make_groups
from apfex.metrics import accuracy, dp_gap, tpr_gap
from apfex.tables import TableEncoder

RECORDS = Path(__file__).parent / "records" / "front"
WORST_GAP, LEAST_POSITIVES, FOLDS = 0.5, 10, 5
BOUNDS = np.linspace(0.0, WORST_GAP, 26)
ENCODINGS: dict[str, dict[str, Any]] = {"plain": {}, "tree": {"bins": "tree"}}
PACKAGES = ("apfex", "torch", "scikit-learn", "fairlearn", "torchjd", "fairret", "oxonfair")


@dataclass(frozen=True)
class Table:
    """A data set with its options, and whether it is judged on folds."""

    dataset: str
    options: dict[str, Any]
    folds: bool


TABLES = {
    "adult": Table("adult", {}, folds=False),
    "adult-10": Table("adult", {"race": "all"}, folds=False),
    "celeba": Table("celeba", {}, folds=False),
    "compas": Table("compas", {"race": "three"}, folds=True),
    "german": Table("german", {}, folds=True),
    "heart": Table("heart", {}, folds=True),
}


@dataclass(frozen=True)
class Run:
    """One cell of the benchmark."""

    table: str
    seed: int
    method: str
    encoding: str


# ---------------------------------------------------------------------------------- data


@dataclass(frozen=True, eq=False)
class Split:
    """Row numbers of the three parts."""

    train: NDArray[np.intp]
    validation: NDArray[np.intp]
    test: NDArray[np.intp]


@functools.cache
def read_table(name: str) -> tuple[Dataset, Groups]:
    table = TABLES[name]
    data = load_dataset(table.dataset, **table.options)
    return data, make_groups(data.sensitive)


def deal(
    strata: NDArray[np.int64], pattern: Sequence[int], rng: np.random.Generator
) -> NDArray[np.int64]:
    """Give every row a part, each stratum in the proportions of the pattern."""
    order = np.lexsort((rng.random(len(strata)), strata))
    blocks = -(-len(strata) // len(pattern))
    parts = rng.permuted(np.tile(pattern, (blocks, 1)), axis=1).ravel()[: len(strata)]
    dealt = np.empty(len(strata), np.int64)
    dealt[order] = parts
    return dealt


def make_splits(name: str, seed: int) -> list[Split]:
    """One split, or one for each fold."""
    data, groups = read_table(name)
    strata = 2 * groups.codes + data.y
    rng = np.random.default_rng([seed, 20])
    if not TABLES[name].folds:
        parts = deal(strata, [0] * 14 + [1] * 3 + [2] * 3, rng)
        return [Split(*(np.flatnonzero(parts == part) for part in range(3)))]
    folds, splits = deal(strata, range(FOLDS), rng), []
    for fold in range(FOLDS):
        rest = np.flatnonzero(folds != fold)
        held = deal(strata[rest], [0, 0, 0, 0, 1], rng)
        splits.append(Split(rest[held == 0], rest[held == 1], np.flatnonzero(folds == fold)))
    return splits


@functools.lru_cache(maxsize=2 * FOLDS)
def make_parts(name: str, seed: int, fold: int, encoding: str) -> tuple[Part, Part, Part]:
    """Training, validation and test rows, encoded."""
    data, groups = read_table(name)
    split = make_splits(name, seed)[fold]
    encoder = TableEncoder(**ENCODINGS[encoding])
    encoder.fit(data.X.iloc[split.train], data.y[split.train])

    def part(rows: NDArray[np.intp]) -> Part:
        table = data.X.iloc[rows]
        return Part(
            np.ascontiguousarray(encoder.transform(table), np.float32),
            data.y[rows],
            groups.codes[rows],
            len(groups),
            table,
            data.sensitive.iloc[rows],
            encoding,
        )

    return part(split.train), part(split.validation), part(split.test)


# ---------------------------------------------------------------------------------- judging


@dataclass(frozen=True, eq=False)
class Judge:
    """Error and gaps of decisions on some rows of a table."""

    y: NDArray[np.int64]
    group: NDArray[np.int64]
    tpr_groups: NDArray[np.int64]

    def values(self, rows: NDArray[np.intp], decided: NDArray[Any]) -> tuple[float, float, float]:
        """Error, dp gap, tpr gap; a gap of 1 where fewer than two groups tell."""
        decided = np.asarray(decided).astype(np.int64)
        y, group = self.y[rows], self.group[rows]
        if decided.shape != y.shape or not np.isin(decided, (0, 1)).all():
            raise ValueError(f"A point must hold {len(y)} decisions of 0 or 1 for these rows.")
        known = np.isin(group, self.tpr_groups)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            dp = dp_gap(y, decided, sensitive_features=group)
            tpr = tpr_gap(y[known], decided[known], sensitive_features=group[known])
        return 1 - accuracy(y, decided), *(1.0 if math.isnan(gap) else gap for gap in (dp, tpr))


def make_judge(name: str, splits: Sequence[Split]) -> Judge:
    data, groups = read_table(name)
    test = np.concatenate([split.test for split in splits])
    positives = np.bincount(groups.codes[test], data.y[test], minlength=len(groups))
    return Judge(data.y, groups.codes, np.flatnonzero(positives >= LEAST_POSITIVES))


def score(values: NDArray[np.float64], constant_error: float) -> float:
    """Hypervolume of (error, gap) as a share of the box."""
    return hypervolume(values, (constant_error, WORST_GAP)) / (constant_error * WORST_GAP)


def judge_points(name: str, seed: int, fronts: Sequence[Sequence[Point]]) -> dict[str, Any]:
    """Everything a record says of the points; one list of points for each fold."""
    splits = make_splits(name, seed)
    judge = make_judge(name, splits)
    test = np.concatenate([split.test for split in splits])
    share = float(judge.y[test].mean())
    constant_error = min(share, 1 - share)
    names = [[point.name for point in front] for front in fronts]
    for found in names:
        if not found or len(set(found)) < len(found):
            raise ValueError("A method must return at least one point, each with its own name.")
    by_name = all(sorted(found) == sorted(names[0]) for found in names)
    by_bound = _by_bound(judge, splits, fronts, constant_error) if len(splits) > 1 else {}
    points = _pool_by_name(judge, splits, fronts) if by_name else []
    scores = _by_name(points, constant_error) if by_name else by_bound
    constant = [np.ptp(np.asarray(p.test).astype(int)) == 0 for front in fronts for p in front]
    return {
        "hypervolume": scores,
        "hypervolume_by_bound": by_bound,
        "pooled_by": "name" if by_name else "bound",
        "n_points": sum(map(len, fronts)) / len(fronts),
        "n_constant": sum(map(int, constant)) / len(fronts),
        "constant_error": round(constant_error, 6),
        "tpr_groups": len(judge.tpr_groups),
        "points": points,
    }


def _pool_by_name(
    judge: Judge, splits: Sequence[Split], fronts: Sequence[Sequence[Point]]
) -> list[dict[str, Any]]:
    """Values of each named point on the validation and on the test rows of all folds."""
    validation = np.concatenate([split.validation for split in splits])
    test = np.concatenate([split.test for split in splits])
    pooled = []
    for name in [point.name for point in fronts[0]]:
        found = [next(point for point in front if point.name == name) for front in fronts]
        chosen_by = judge.values(validation, np.concatenate([p.validation for p in found]))
        scored_by = judge.values(test, np.concatenate([p.test for p in found]))
        pooled.append(
            {
                "name": name,
                "validation": [round(value, 6) for value in chosen_by],
                "test": [round(value, 6) for value in scored_by],
            }
        )
    return pooled


def _by_name(points: Sequence[dict[str, Any]], constant_error: float) -> dict[str, float]:
    validation = np.array([point["validation"] for point in points])
    test = np.array([point["test"] for point in points])
    scores = {}
    for column, gap in enumerate(GAPS, start=1):
        kept = non_dominated(validation[:, [0, column]])
        scores[gap] = round(score(test[kept][:, [0, column]], constant_error), 6)
    return scores


def _by_bound(
    judge: Judge,
    splits: Sequence[Split],
    fronts: Sequence[Sequence[Point]],
    constant_error: float,
) -> dict[str, float]:
    test = np.concatenate([split.test for split in splits])
    known = [
        np.array([judge.values(split.validation, point.validation) for point in front])
        for split, front in zip(splits, fronts, strict=True)
    ]
    scores = {}
    for column, gap in enumerate(GAPS, start=1):
        picked: dict[tuple[int, ...], tuple[float, ...]] = {}
        for bound in BOUNDS:
            choice = tuple(_pick(values[:, 0], values[:, column], bound) for values in known)
            if choice not in picked:
                chosen = zip(choice, fronts, strict=True)
                decided = np.concatenate([front[index].test for index, front in chosen])
                picked[choice] = judge.values(test, decided)
        values = np.array(list(picked.values()))[:, [0, column]]
        scores[gap] = round(score(values, constant_error), 6)
    return scores


def _pick(errors: NDArray[np.float64], gaps: NDArray[np.float64], bound: float) -> int:
    """Least error within the bound; least gap where none is within."""
    within = gaps <= bound
    if not within.any():
        return int(np.lexsort((errors, gaps))[0])
    return int(np.where(within, errors, np.inf).argmin())


# ---------------------------------------------------------------------------------- running


def execute(run: Run, method: Method) -> dict[str, Any]:
    """Run one cell: fit on every fold, then judge."""
    n_folds = FOLDS if TABLES[run.table].folds else 1
    parts = [make_parts(run.table, run.seed, fold, run.encoding) for fold in range(n_folds)]
    before = _peak_megabytes()
    fronts, wall, process = [], 0.0, 0.0
    for train, validation, test in parts:
        start, start_process = time.perf_counter(), time.process_time()
        fronts.append(method(train, validation, test, run.seed))
        process += time.process_time() - start_process
        wall += time.perf_counter() - start
    cost = {
        "seconds": round(process / n_folds, 3),
        "wall_seconds": round(wall / n_folds, 3),
        "peak_megabytes": round(_peak_megabytes() - before, 1),
        "n_inputs": int(parts[0][0].x.shape[1]),
    }
    return {**cost, **judge_points(run.table, run.seed, fronts)}


def _peak_megabytes() -> float:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)


def _child(run: Run, method: Method, gigabytes: float, answer: Connection) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    limit = int(gigabytes * 2**30)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    try:
        result = execute(run, method)
    except BaseException as error:  # whatever it is, it is listed
        result = {"error": f"{type(error).__name__}: {error}".strip()[:500]}
    answer.send(result)


def run_all(runs: Iterable[Run], arguments: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Records of runs as they finish, each run in a process forked from this one."""
    methods, context, machine = all_methods(), multiprocessing.get_context("fork"), describe()
    waiting, active = list(runs)[::-1], {}
    while waiting or active:
        while waiting and len(active) < arguments.jobs:
            run = waiting.pop()
            for fold in range(FOLDS if TABLES[run.table].folds else 1):  # kept for the next method
                make_parts(run.table, run.seed, fold, run.encoding)
            receiver, sender = context.Pipe(duplex=False)
            process = context.Process(
                target=_child,
                args=(run, methods[run.method], arguments.memory, sender),
                daemon=True,
            )
            process.start()
            sender.close()
            active[receiver] = (run, process, time.monotonic() + arguments.limit)
        nearest = min(deadline for _, _, deadline in active.values())
        ready = wait(list(active), timeout=max(0.0, nearest - time.monotonic()))
        late = [r for r, (_, _, deadline) in active.items() if deadline <= time.monotonic()]
        for receiver in {*ready, *late}:
            run, process, _ = active.pop(receiver)
            try:
                if receiver not in ready:
                    process.kill()
                    result = {"error": f"Stopped after {arguments.limit:g} seconds."}
                else:
                    result = receiver.recv()
            except EOFError:
                process.join()
                result = {"error": f"The process ended with code {process.exitcode}."}
            process.join()
            marked = getattr(methods[run.method], "needs_attribute", False)
            yield {**vars(run), "needs_attribute": marked, **result, "machine": machine}


def describe() -> str:
    """The machine and the packages."""
    model = platform.processor() or platform.machine()
    if Path("/proc/cpuinfo").exists():
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next((x.split(":")[1].strip() for x in lines if x.startswith("model name")), model)
    found = []
    for package in PACKAGES:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            found.append(f"{package} missing")
    python = f"Python {platform.python_version()}"
    return f"{model}, {os.cpu_count()} cores, 1 thread per run; {python}, {', '.join(found)}"


# ---------------------------------------------------------------------------------- records


def read_records(folder: Path) -> dict[Run, dict[str, Any]]:
    """Latest record of every run; a half-written last line is ignored."""
    records = {}
    for path in sorted(folder.glob("*.jsonl")):
        for line in path.read_text().splitlines():
            try:
                record = json.loads(line)
            except json.JSONDecodeError:
                continue
            key = Run(record["table"], record["seed"], record["method"], record["encoding"])
            records[key] = record
    return records


def write_record(folder: Path, record: dict[str, Any]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{record['table']}.jsonl"
    broken = path.exists() and not path.read_bytes().endswith(b"\n")
    with path.open("a") as file:
        file.write(("\n" if broken else "") + json.dumps(record, separators=(",", ":")) + "\n")


# ---------------------------------------------------------------------------------- report


@dataclass(frozen=True, eq=False)
class Row:
    """One method on one table, with the better encoding for each gap."""

    method: str
    needs_attribute: bool
    encoding: dict[str, str]  # by gap
    scores: dict[str, dict[int, float]]  # by gap and seed
    records: dict[str, list[dict[str, Any]]]  # by encoding

    def mean(self, gap: str) -> float:
        return float(np.mean(list(self.scores[gap].values())))

    def cost(self, field: str) -> str:
        """Mean of a field; two of them where the two gaps have different encodings."""
        used = dict.fromkeys(self.encoding[gap] for gap in GAPS)
        return "/".join(_short(np.mean([r[field] for r in self.records[e]])) for e in used)


def _short(value: float) -> str:
    return f"{value:.1f}" if value < 100 else f"{value:.0f}"


def make_row(method: str, records: Sequence[dict[str, Any]], pooling: str) -> Row | None:
    """Choose the better encoding for each gap by the mean over seeds; None if nothing ran."""
    by_encoding: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for record in records:
        if "error" not in record:
            by_encoding[record["encoding"]].append(record)
    if not by_encoding:
        return None
    # An encoding that failed for some seeds does not win by the easier ones.
    most = max(map(len, by_encoding.values()))
    by_encoding = {e: found for e, found in by_encoding.items() if len(found) == most}
    encoding, scores = {}, {}
    for gap in GAPS:
        found = {
            e: {r["seed"]: _score_of(r, gap, pooling) for r in sorted(rs, key=lambda r: r["seed"])}
            for e, rs in by_encoding.items()
        }
        encoding[gap] = max(found, key=lambda e: np.mean(list(found[e].values())))
        scores[gap] = found[encoding[gap]]
    return Row(method, records[0]["needs_attribute"], encoding, scores, by_encoding)


def _score_of(record: dict[str, Any], gap: str, pooling: str) -> float:
    by_bound = pooling == "bound" and record["hypervolume_by_bound"]
    return record["hypervolume_by_bound" if by_bound else "hypervolume"][gap]


def ratio(ours: dict[int, float], theirs: dict[int, float]) -> str:
    """Paired ratio over common seeds: geometric mean and 95% interval (t on logarithms)."""
    seeds = sorted(ours.keys() & theirs.keys())
    a, b = np.array([ours[s] for s in seeds]), np.array([theirs[s] for s in seeds])
    if not len(seeds) or (a <= 0).any() or (b <= 0).any():
        return "-"  # no logarithm
    logs = np.log(a / b)
    middle = logs.mean()
    if len(seeds) < 2:
        return f"{math.exp(middle):.3f}"
    half = stats.t.ppf(0.975, len(seeds) - 1) * logs.std(ddof=1) / math.sqrt(len(seeds))
    return f"{math.exp(middle):.3f} [{math.exp(middle - half):.3f}, {math.exp(middle + half):.3f}]"


def report(records: dict[Run, dict[str, Any]], tables: Sequence[str], pooling: str) -> str:
    """The table, from the records alone."""
    own, lines = own_methods(), []
    for name in tables:
        by_method: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for run, record in records.items():
            if run.table == name:
                by_method[run.method].append(record)
        if by_method:
            lines += _report_table(name, by_method, own, pooling)
    machines = sorted({record["machine"] for record in records.values()})
    return "\n".join([*lines, *(f"Machine: {machine}." for machine in machines)])


def _report_table(
    name: str, by_method: dict[str, list[dict[str, Any]]], own: frozenset[str], pooling: str
) -> list[str]:
    rows = [row for m, found in by_method.items() if (row := make_row(m, found, pooling))]
    failed = {m: [r for r in found if "error" in r] for m, found in by_method.items()}
    rivals = [row for row in rows if row.method not in own]
    blind = [row for row in rivals if not row.needs_attribute]
    best = {gap: max(rivals, key=lambda row: row.mean(gap), default=None) for gap in GAPS}
    best_blind = {gap: max(blind, key=lambda row: row.mean(gap), default=None) for gap in GAPS}
    any_record = next((r for found in by_method.values() for r in found if "error" not in r), None)
    lines = [f"## {name}", ""]
    if any_record:
        lines += [
            f"Constant predictor's error {any_record['constant_error']:.4f} (one seed); tpr gap "
            f"over {any_record['tpr_groups']} groups with at least {LEAST_POSITIVES} test "
            "positives. *: needs the attribute at prediction; (o): ours. Inputs: the encoding that "
            "counts, dp/tpr. Ratios to the best rival, and to the best that needs no attribute at "
            "prediction, paired over seeds, 95% interval. CPU s: of one fit of the whole front.",
            "",
        ]
    head = ("method", "seeds", "HV dp", "ratio", "ratio, no attr.", "HV tpr", "ratio")
    head += ("ratio, no attr.", "inputs", "CPU s", "wall s", "MB", "points", "constant")
    cells = [head]
    for row in sorted(rows, key=lambda row: -row.mean("dp")):
        mark = " (o)" if row.method in own else " *" if row.needs_attribute else ""
        line = [row.method + mark, str(len(row.scores["dp"]))]
        for gap in GAPS:
            line.append(f"{row.mean(gap):.4f}")
            for other in (best[gap], best_blind[gap]):
                same = other is None or other is row
                line.append("best" if same else ratio(row.scores[gap], other.scores[gap]))
        line.append("/".join(dict.fromkeys(row.encoding[gap] for gap in GAPS)))
        fields = ("seconds", "wall_seconds", "peak_megabytes", "n_points", "n_constant")
        cells.append((*line, *(row.cost(field) for field in fields)))
    widths = [max(len(line[i]) for line in cells) for i in range(len(head))]
    rule = tuple("-" * width for width in widths)
    for line in (cells[0], rule, *cells[1:]):
        padded = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        lines.append("| " + " | ".join(padded) + " |")
    for method, found in failed.items():
        for text in dict.fromkeys(f"{r['encoding']} inputs: {r['error']}" for r in found):
            seeds = [r["seed"] for r in found if text == f"{r['encoding']} inputs: {r['error']}"]
            lines.append(f"- Could not run: {method}, {text} (seeds {seeds})")
    return [*lines, ""]


# ---------------------------------------------------------------------------------- command


def parse(methods: Sequence[str]) -> argparse.Namespace:
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
    parser.add_argument("--pooling", choices=["name", "bound"], default="name")
    parser.add_argument("--list", action="store_true", help="print the names of the methods")
    return parser.parse_args()


def main() -> None:
    arguments = parse(list(all_methods()))
    if arguments.list:
        print("\n".join(all_methods()))
        return
    records = read_records(arguments.records)
    if not arguments.report:
        torch.set_num_threads(1)
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # takes the run in progress along
        warm_up()
        runs = [
            Run(table, seed, method, encoding)
            for table in arguments.tables
            for seed in arguments.seeds
            for encoding in arguments.encodings
            for method in arguments.methods
        ]
        done = {r for r, found in records.items() if not (arguments.retry and "error" in found)}
        for record in run_all((r for r in runs if arguments.again or r not in done), arguments):
            write_record(arguments.records, record)
            what = record.get("error") or f"{record['hypervolume']} in {record['seconds']} s"
            names = (record[key] for key in ("table", "seed", "encoding", "method"))
            print(*names, what, sep=" | ", flush=True)
        records = read_records(arguments.records)
    print(report(records, arguments.tables, arguments.pooling))


if __name__ == "__main__":
    main()
