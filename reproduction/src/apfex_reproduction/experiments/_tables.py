"""Records of runs to a table: means, spreads and per-run values, the paper's numbers beside."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from apfex_reproduction.experiments._labels import COLUMNS, CONSTANTS, FRONT, belongs_to, label_of
from apfex_reproduction.experiments._paper import defects_of_row, printed
from apfex_reproduction.experiments._results import Record, result_of, summarise
from apfex_reproduction.experiments._rows import Measure, Part, Row, Table


def make_table(
    records: Iterable[Record],
    number: int,
    dataset: str,
    rule: str = "nearest",
    split: str = "70/15/15",
    seeds: Sequence[int] | None = None,
    methods: Sequence[str] | None = None,
) -> Table:
    """A table of the paper from the records of runs.

    Parameters
    ----------
    records : iterable of mappings
        Others than of this data set and split are passed over.
    number : 1 or 2
    dataset : str
    rule : {"nearest", "fairest", "last"}
        How a model is chosen among a run's epochs. Methods with one model show that one.
    split : {"70/15/15", "mamo"}
    seeds : sequence of int, optional
        Those that there should be, others are passed over; those of any record by default.
    methods : sequence of str, optional
        Rows to show, in this order, with records or without; by default the paper's columns and
        everything else that has records.

    Examples
    --------
    >>> from apfex_reproduction.experiments import make_table
    >>> gaps = {"age": {"dp": 0.1, "tpr": 0.2}, "sex": {"dp": 0.0, "tpr": 0.1}}
    >>> gaps["age x sex"] = {"dp": 0.3, "tpr": None}
    >>> figures = dict(accuracy=0.8, balanced_accuracy=0.79, positive_rate=0.4)
    >>> result = figures | dict(worst_group_accuracy=0.7, constant=False, gaps=gaps)
    >>> record = dict(dataset="heart", split="70/15/15", seed=0, method="plain")
    >>> record |= dict(attributes=["age", "sex"], results={"chosen": result})
    >>> table = make_table([record], 2, "heart")
    >>> row = table.row("plain")
    >>> row.cell("accuracy").mean, row.cell("tpr", "age x sex").mean, row.flag
    (0.8, None, '0/1')
    """
    if number not in COLUMNS:
        raise ValueError(f"number must be one of {sorted(COLUMNS)}, got {number!r}.")
    chosen = _select(records, dataset, split, seeds)
    attributes = _same(chosen, "attributes")
    by_method: dict[str, dict[int, Record]] = {}
    for record in chosen:
        if methods is not None or belongs_to(record["method"], number):
            by_method.setdefault(record["method"], {})[record["seed"]] = record
    wanted = {record["seed"] for record in chosen} if seeds is None else set(seeds)
    return Table(
        number,
        dataset,
        split,
        rule,
        attributes,
        tuple(sorted(wanted)),
        dict(chosen[0].get("rows", {})),
        tuple(
            _row(method, part, by_method.get(method, {}), number, dataset, rule, attributes)
            for part, method in _order(number, by_method, methods)
        ),
        _left_out(chosen, rule),
    )


def _row(
    method: str,
    part: Part,
    runs: Mapping[int, Record],
    number: int,
    dataset: str,
    rule: str,
    attributes: Sequence[str],
) -> Row:
    ordered = list(runs.values())
    chosen = [result_of(run, rule) for run in ordered]
    return Row(
        method,
        label_of(method),
        part,
        tuple(runs),
        tuple(name for name, _ in chosen),
        tuple(bool(result["constant"]) for _, result in chosen),
        summarise(ordered, attributes, rule) if ordered else {},
        printed(number, dataset, method),
        defects_of_row(number, dataset, method),
    )


def _order(
    number: int, found: Iterable[str], methods: Sequence[str] | None
) -> list[tuple[Part, str]]:
    """Every row that a table has: the paper's always, others where there are records."""
    if methods is None:
        known = [*CONSTANTS, *COLUMNS[number], FRONT]
        others = sorted(set(found) - set(known))
        methods = [method for method in known if method != FRONT or FRONT in set(found)] + others
    parts: dict[Part, tuple[str, ...]] = {
        "constants": CONSTANTS,
        "paper": COLUMNS[number],
        "front": (FRONT,),
    }
    part_of: dict[str, Part] = {method: part for part, some in parts.items() for method in some}
    return [(part_of.get(method, "variants"), method) for method in methods]


def _select(
    records: Iterable[Record], dataset: str, split: str, seeds: Sequence[int] | None
) -> list[Record]:
    """The records of a data set and a split, by method and seed; each run once."""
    everything = list(records)
    chosen: dict[tuple[str, int], Record] = {}
    for record in everything:
        if (record["dataset"], record["split"]) != (dataset, split):
            continue
        if seeds is not None and record["seed"] not in seeds:
            continue
        run = (record["method"], record["seed"])
        if chosen.setdefault(run, record)["results"] != record["results"]:
            raise ValueError(
                f"Two different records of {run[0]!r} on {dataset!r}, split {split!r}, seed "
                f"{run[1]}; keep one of them."
            )
    if not chosen:
        there = sorted({f"{r['dataset']} ({r['split']})" for r in everything})
        raise ValueError(
            f"No records of dataset {dataset!r} with split {split!r}"
            f"{'' if seeds is None else f' and seeds {list(seeds)}'}; there are records of "
            f"{', '.join(there) or 'nothing'}."
        )
    return [chosen[run] for run in sorted(chosen)]


def _same(records: Sequence[Record], key: str) -> tuple[str, ...]:
    found = {tuple(record[key]) for record in records}
    if len(found) > 1:
        raise ValueError(
            f"Records of {records[0]['dataset']!r} differ in their {key}: {sorted(found)}; make a "
            "table of one kind at a time."
        )
    return found.pop()


def _left_out(records: Sequence[Record], rule: str) -> dict[Measure, int]:
    seeds: dict[Measure, set[int]] = {}
    for record in records:
        for by, counts in result_of(record, rule)[1].get("left_out", {}).items():
            for name in counts:
                seeds.setdefault((name, by), set()).add(record["seed"])
    return {measure: len(found) for measure, found in sorted(seeds.items())}
