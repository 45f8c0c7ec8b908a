"""Questions to the records: values of runs, constant decisions, and paired differences."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, final

from apfex.front import hypervolume
from apfex_reproduction.experiments._intervals import Interval, mean_interval
from apfex_reproduction.experiments._results import result_of
from apfex_reproduction.experiments._rows import gap_in

Record = dict[str, Any]
EVEN = "70/15/15"


def volume(run: Record, constants: bool = True) -> float:
    """What the points of a run dominate together with deciding alike for everybody.

    Without ``constants`` those are not added, and taken out where the run has them itself.
    """
    share, points = run["always_0"], run.get("front", ())
    both = [[1 - share, 0.0, 0.0], [share, 0.0, 0.0]]
    kept = [*points, *both] if constants else [p for p in points if not _is_one_of(p, both)]
    return hypervolume(kept, [1.0, 1.0, 1.0]) if kept else 0.0


def _is_one_of(point: Sequence[float], others: Sequence[Sequence[float]]) -> bool:
    return any(max(abs(a - b) for a, b in zip(point, one, strict=True)) < 1e-5 for one in others)


def own_volume(run: Record) -> float:
    """What the points of a run dominate, without any constant decision."""
    return volume(run, constants=False)


@final
class Study:
    """The records, found by data set, method and split.

    Parameters
    ----------
    records : iterable of records
        Each with ``always_0``, the accuracy of always-0 on its test rows.
    """

    def __init__(self, records: Iterable[Record]) -> None:
        self._runs: dict[tuple[str, str, str], dict[int, Record]] = {}
        for run in records:
            key = (run["dataset"], run["method"], run["split"])
            self._runs.setdefault(key, {})[run["seed"]] = run

    def __iter__(self) -> Iterator[Record]:
        """All records."""
        return (run for runs in self._runs.values() for run in runs.values())

    def runs(self, dataset: str, method: str, split: str = EVEN) -> list[Record]:
        """By seed."""
        return [run for _, run in sorted(self._runs.get((dataset, method, split), {}).items())]

    def values(
        self, dataset: str, method: str, what: str, by: str = "", split: str = EVEN
    ) -> list[float]:
        """Accuracy, or a gap ("dp", "tpr"), of the models chosen by MAMO's rule."""
        results = [result_of(run, "nearest")[1] for run in self.runs(dataset, method, split)]
        found = [_figure(result, what, by) for result in results]
        return [value for value in found if value is not None]

    def constants(self, dataset: str, method: str, split: str = EVEN, rule: str = "nearest") -> int:
        """How many runs decide alike for everybody, or no better than if they did."""
        return sum(result_of(run, rule)[1]["constant"] for run in self.runs(dataset, method, split))

    def mostly_constant(self, dataset: str, method: str, split: str = EVEN) -> bool:
        """Whether at least half of the runs do."""
        return 2 * self.constants(dataset, method, split) >= len(self.runs(dataset, method, split))

    def difference(
        self, dataset: str, first: str, second: str, what: str, by: str = "", split: str = EVEN
    ) -> Interval | None:
        """First minus second in accuracy or a gap, over the seeds that both have."""
        return self.paired(
            dataset,
            first,
            second,
            lambda run: _figure(result_of(run, "nearest")[1], what, by),
            split,
        )

    def paired(
        self,
        dataset: str,
        first: str,
        second: str,
        value: Callable[[Record], float | None],
        split: str = EVEN,
    ) -> Interval | None:
        """First minus second in any value of a run."""
        one, other = (self._runs.get((dataset, m, split), {}) for m in (first, second))
        pairs = [(value(one[seed]), value(other[seed])) for seed in sorted({*one} & {*other})]
        known = [a - b for a, b in pairs if a is not None and b is not None]
        if not known:
            return None
        rows = next(iter(one.values()))["rows"]
        return mean_interval(known, rows["test"] / rows["training"])

    def counts(
        self,
        datasets: Sequence[str],
        pairs: Iterable[tuple[str, str]],
        value: Callable[[Record], float | None],
    ) -> dict[str, int]:
        """How often the first of a pair lies above, level with or below the second."""
        found = {"above": 0, "level": 0, "below": 0}
        for first, second in pairs:
            for dataset in datasets:
                interval = self.paired(dataset, first, second, value)
                if interval is not None:
                    found[interval.says] += 1
        return found


def _figure(result: Mapping[str, Any], what: str, by: str) -> float | None:
    return result[what] if what not in ("dp", "tpr") else gap_in(result, what, by)
