"""Whether our front reaches what others have: accuracy at least theirs, gap at most theirs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import final

import numpy as np

from apfex_reproduction.experiments._intervals import Interval, difference_from_print
from apfex_reproduction.experiments._labels import COLUMNS, CONSTANTS, FRONT, judged_on
from apfex_reproduction.experiments._ladder import BOUNDS, choose_within
from apfex_reproduction.experiments._paper import (
    credible,
    defects_of,
    is_repeated_baseline,
    printed,
)
from apfex_reproduction.experiments._printed import HALF_A_DIGIT, Metric, Printed
from apfex_reproduction.experiments._results import Record, result_of, summarise
from apfex_reproduction.experiments._rows import CRITERIA, gap_in, grouping_at

_METRIC: dict[str, Metric] = {"dp": "ddp", "tpr": "deo"}


@final
@dataclass(frozen=True)
class Rung:
    """Our front under one bound: in every run the most accurate point within it on validation rows.

    Parameters
    ----------
    bound : float
    accuracy, gap : float
        Means over the runs, on test rows.
    constant : int
        In how many runs that point is constant on test rows.
    """

    bound: float
    accuracy: float
    gap: float
    constant: int


@final
@dataclass(frozen=True)
class Sure:
    """Our front minus a printed row, with intervals.

    Parameters
    ----------
    accuracy, gap : Interval
    """

    accuracy: Interval
    gap: Interval

    @property
    def verdict(self) -> str:
        """Reached, "no", or that ten runs cannot tell."""
        if self.accuracy.says == "below" or self.gap.says == "above":
            return "no"
        reached = self.accuracy.low >= 0 and self.gap.high <= 0
        return "yes" if reached else "cannot be told"


@final
@dataclass(frozen=True)
class Comparison:
    """A row that others have, and our front beside it.

    Parameters
    ----------
    dataset, method : str
    source : str
        "Table 1", "Table 2" (the paper's print) or "our run".
    criterion : "dp", "tpr" or None
        None where only an accuracy is at hand.
    by : str
        The grouping whose gap is compared.
    accuracy, gap : float
        Of the row; ``gap`` is None with ``criterion``.
    doubts : tuple of str
        Why the row is not credible; empty where it is.
    reached : bool or None
        Whether some rung has at least this accuracy and at most this gap. Which one is seen on
        test rows only, so it is the kinder answer. None: there is no front.
    reached_blind : bool or None
        Whether the rung does whose bound is the row's own gap: nothing is chosen on test rows.
    rung : Rung or None
        The most accurate rung that reaches the row, otherwise the one that comes nearest.
    blind : Rung or None
        The rung whose bound is the row's own gap.
    sure : Sure or None
        For rows of the paper: by how much that rung differs, with intervals.
    """

    dataset: str
    source: str
    method: str
    criterion: str | None
    by: str
    accuracy: float
    gap: float | None
    doubts: tuple[str, ...]
    reached: bool | None
    reached_blind: bool | None
    rung: Rung | None
    blind: Rung | None
    sure: Sure | None = None


def compare_front(
    records: Iterable[Record], split: str = "70/15/15", rule: str = "nearest"
) -> list[Comparison]:
    """Compare our front with all rows of the paper that are at hand, and with our own runs.

    Parameters
    ----------
    records : iterable of mappings
        Those of method "front" hold ``points``, each with its figures on ``validation`` and on
        ``test`` rows; which of them count is decided by the former.
    split, rule : str
        Which of our own runs, and how their model is chosen.

    Returns
    -------
    list of Comparison
        By data set; one for every gap of a row. Rows that are not credible say why; a rung with a
        constant point never counts.

    Examples
    --------
    >>> from apfex_reproduction.experiments import compare_front
    >>> def result(accuracy, gap):
    ...     figures = dict.fromkeys(("balanced_accuracy", "positive_rate"), 0.5)
    ...     figures |= dict(accuracy=accuracy, worst_group_accuracy=0.5, constant=False)
    ...     return figures | dict(gaps={"sex": {"dp": gap, "tpr": gap}})
    >>> run = dict(dataset="mine", split="70/15/15", seed=0, attributes=["sex"], results={})
    >>> other = run | dict(method="mmamo-1", results={"nearest": result(0.80, 0.05)})
    >>> point = dict(validation=result(0.82, 0.03), test=result(0.81, 0.04))
    >>> ours = run | dict(method="front", points=[point])
    >>> [(c.method, c.criterion, c.reached) for c in compare_front([other, ours])]
    [('mmamo-1', 'dp', True), ('mmamo-1', 'tpr', True)]
    """
    by_dataset: dict[str, dict[str, list[Record]]] = {}
    for record in records:
        if record["split"] == split:
            runs = by_dataset.setdefault(record["dataset"], {})
            runs.setdefault(record["method"], []).append(record)
    found: list[Comparison] = []
    for dataset, runs in sorted(by_dataset.items()):
        front = _Front(runs.pop(FRONT, []))
        attributes = next(iter(runs.values()), front.records)[0]["attributes"]
        found += _with_paper(dataset, attributes, front)
        for method in sorted(set(runs) - set(CONSTANTS)):
            found += _with_run(dataset, method, runs[method], attributes, front, rule)
    return found


class _Front:
    """The front's runs on one data set; rungs are made when asked for, and kept."""

    def __init__(self, records: Sequence[Record]) -> None:
        self.records = records
        self.rung = cache(self._rung)

    def _rung(self, name: str, by: str, bound: float) -> Rung | None:
        chosen = [
            choose_within(record["points"], name, by, bound)["test"] for record in self.records
        ]
        gaps = [gap_in(result, name, by) for result in chosen]
        known = [gap for gap in gaps if gap is not None]
        if not known:
            return None
        accuracy = float(np.mean([result["accuracy"] for result in chosen]))
        constant = sum(bool(result["constant"]) for result in chosen)
        return Rung(bound, accuracy, float(np.mean(known)), constant)

    def sure(self, name: str, by: str, row: Sequence[Printed]) -> Sure | None:
        """Differences from a printed accuracy and gap, with the gap as the bound."""
        if not self.records:
            return None
        accuracy, gap = row
        chosen = [choose_within(r["points"], name, by, gap.mean)["test"] for r in self.records]
        gaps = [known for one in chosen if (known := gap_in(one, name, by)) is not None]
        if not gaps:
            return None
        rows = self.records[0].get("rows", {"test": 15, "training": 70})
        share = rows["test"] / rows["training"]
        return Sure(
            difference_from_print(
                [one["accuracy"] for one in chosen], accuracy.mean, accuracy.spread or 0.0, share
            ),
            difference_from_print(gaps, gap.mean, gap.spread or 0.0, share),
        )


def _with_paper(dataset: str, attributes: Sequence[str], front: _Front) -> Iterable[Comparison]:
    """Every row of the paper; the baseline of Table 2 repeats that of Table 1, and is left out."""
    for table, columns in COLUMNS.items():
        for method in columns:
            cells = printed(table, dataset, method)
            if not cells or is_repeated_baseline(cells["accuracy"]):
                continue
            by = grouping_at(judged_on(method, table), attributes)
            for name, metric in _METRIC.items():
                used = [cells["accuracy"], cells[metric]]
                doubts = {d.mark for cell in used if not credible(cell) for d in defects_of(cell)}
                found = _compare(
                    (dataset, f"Table {table}", method, name, by),
                    used[0].mean,
                    used[1].mean,
                    tuple(sorted(doubts)),
                    front,
                    slack=HALF_A_DIGIT,
                )
                yield replace(found, sure=front.sure(name, by, used))


def _with_run(
    dataset: str,
    method: str,
    runs: Sequence[Record],
    attributes: Sequence[str],
    front: _Front,
    rule: str,
) -> Iterable[Comparison]:
    cells = summarise(runs, attributes, rule)
    constant = sum(bool(result_of(run, rule)[1]["constant"]) for run in runs)
    doubts = (f"CONST {constant}/{len(runs)}",) if constant else ()
    by = grouping_at(judged_on(method), attributes)
    for name in CRITERIA:
        accuracy, gap = cells["accuracy", ""].mean, cells[name, by].mean
        if accuracy is not None and gap is not None:
            place = (dataset, "our run", method, name, by)
            yield _compare(place, accuracy, gap, doubts, front, slack=1e-9)


def _compare(
    place: tuple[str, str, str, str | None, str],
    accuracy: float,
    gap: float | None,
    doubts: tuple[str, ...],
    front: _Front,
    slack: float,
) -> Comparison:
    """Without a gap, the bound is that of no bound at all."""
    name, by = place[3] or "dp", place[4]
    allowed = 1.0 if gap is None else gap

    def reaches(rung: Rung) -> bool:
        enough = not rung.constant and rung.accuracy >= accuracy - slack
        return enough and rung.gap <= allowed + slack

    own, *ladder = (
        (front.rung(name, by, b) for b in (allowed, *BOUNDS)) if front.records else [None]
    )
    rungs = [rung for rung in (own, *ladder) if rung is not None]
    if own is None:
        return Comparison(*place, accuracy, gap, doubts, None, None, None, None)
    reaching = [rung for rung in rungs if reaches(rung)]
    if reaching:
        shown = max(reaching, key=lambda rung: rung.accuracy)
    else:
        shown = min(rungs, key=lambda rung: max(accuracy - rung.accuracy, rung.gap - allowed))
    return Comparison(*place, accuracy, gap, doubts, bool(reaching), reaches(own), shown, own)
