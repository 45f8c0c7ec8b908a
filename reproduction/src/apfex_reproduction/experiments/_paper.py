"""The paper's numbers as they stand in print, all 285, and what is wrong with them."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files

from apfex_reproduction.experiments import _defects as defect
from apfex_reproduction.experiments._defects import Defect
from apfex_reproduction.experiments._printed import METRICS, Metric, Printed, impossible_spread
from apfex_reproduction.experiments._two_kinds import two_kinds

PAPER = "APFEx"
Place = tuple[int, str, str]
"""Table, data set and method: a column of the paper on one data set."""


def _read() -> Iterator[Printed]:
    text = files("apfex_reproduction.experiments").joinpath("paper_tables.csv").read_text()
    for row in csv.DictReader(text.splitlines()):
        metric: Metric = next(name for name in METRICS if name == row["metric"])
        numbers = float(row["mean"]), float(row["spread"])
        yield Printed(PAPER, int(row["table"]), row["dataset"], row["method"], metric, *numbers)


CELLS: tuple[Printed, ...] = tuple(_read())
"""Means and spreads over ten runs, as printed in arXiv 2509.13908."""

_GAPS: tuple[Metric, ...] = ("ddp", "deo")
_COPIED_FROM_SEARCHFAIR = ("adult", "compas", "german", "heart")
COPIES: tuple[tuple[int, str, str, tuple[Metric, ...], Defect], ...] = (
    *((1, name, "roc", METRICS, defect.ROC_IS_SEARCHFAIR) for name in _COPIED_FROM_SEARCHFAIR),
    *(
        (1, name, "searchfair-2", METRICS, defect.ROC_IS_SEARCHFAIR)
        for name in _COPIED_FROM_SEARCHFAIR
    ),
    (1, "compas", "apfex-1", METRICS, defect.BOTH_ATTRIBUTES),
    (1, "compas", "apfex-2", METRICS, defect.BOTH_ATTRIBUTES),
    (1, "adult", "mmamo-1", METRICS, defect.MULTI_IS_ATTR1),
    (2, "adult", "mmamo-multi", METRICS, defect.MULTI_IS_ATTR1),
    (1, "german", "mmamo-1", _GAPS, defect.MULTI_GAPS_ARE_ATTR1),
    (2, "german", "mmamo-multi", _GAPS, defect.MULTI_GAPS_ARE_ATTR1),
    (1, "german", "mmamo-1", METRICS, defect.SPREADS_TWICE),
    (1, "compas", "mmamo-1", METRICS, defect.SPREADS_TWICE),
    (2, "celeba", "mmamo-multi-fair", _GAPS, defect.GAPS_TWICE),
    (2, "compas", "apfex-multi", _GAPS, defect.GAPS_TWICE),
    (1, "celeba", "plain", _GAPS, defect.SWAPPED),
    (2, "celeba", "plain", _GAPS, defect.SWAPPED),
)
"""Cells that repeat others. Which one is the original cannot be told."""

_READ: Mapping[tuple[int, str, str, Metric], tuple[Defect, ...]] = {
    (1, "german", "mmamo-1", "accuracy"): (defect.BELOW_CONSTANTS,),
    (1, "german", "searchfair-1", "accuracy"): (defect.FAR_ABOVE,),
    (1, "adult", "searchfair-1", "accuracy"): (defect.OTHER_FEATURES,),
    (1, "adult", "searchfair-2", "ddp"): (defect.LESS_FAIR_THAN_PLAIN,),
    **{(2, "german", "mmamo-multi", metric): (defect.STILL_ACCURACY,) for metric in METRICS},
    **{(table, "adult", "plain", "deo"): (defect.NOBODYS_DEO,) for table in (1, 2)},
}
"""What was found by reading."""

_BY_EYE: tuple[Place, ...] = ((1, "celeba", "mmamo-2"),)
"""Mixtures of more than two accuracies: about nine runs at either constant, one that is not."""

REMARKS: Mapping[str, Defect] = {
    "adult": defect.MAMO_TEST_ROWS,
    "compas": defect.MAMO_TEST_ROWS_COMPAS,
    "german": defect.GERMAN_TEST_ROWS,
    "heart": defect.HEART_TEST_ROWS,
}
"""What holds for all that the paper prints of a data set."""


def printed(table: int, dataset: str, method: str) -> dict[Metric, Printed]:
    """The paper's numbers for one method.

    Examples
    --------
    >>> from apfex_reproduction.experiments._paper import printed
    >>> {metric: cell.mean for metric, cell in printed(1, "heart", "plain").items()}
    {'accuracy': 0.8219, 'ddp': 0.2589, 'deo': 0.2292}
    >>> printed(2, "heart", "mmamo-2")
    {}
    """
    return dict(_by_column().get((table, dataset, method), {}))


def defects_of(cell: Printed) -> tuple[Defect, ...]:
    """All that is wrong with a number: constant, a mixture, repeated, impossible, or read so."""
    if cell.source != PAPER or cell.table is None:
        return cell.defects
    place = (cell.table, cell.dataset, cell.method)
    row = _by_column()[place]
    found = list(_READ.get((*place, cell.metric), ()))
    if cell.method == "plain" and cell.metric != "accuracy":
        found.append(defect.NO_ATTRIBUTE)
    if all((row[gap].mean, row[gap].spread) == (0, 0) for gap in _GAPS):
        found.append(defect.CONSTANT)
    elif place in _BY_EYE or two_kinds(row["accuracy"]):
        found.append(defect.TWO_KINDS)
    found += [copy[4] for copy in COPIES if copy[:3] == place and cell.metric in copy[3]]
    if impossible_spread(cell.mean, cell.spread):
        found.append(defect.IMPOSSIBLE_SPREAD)
    return tuple(found)


def defects_of_row(table: int, dataset: str, method: str) -> tuple[Defect, ...]:
    """All that is wrong with a column of the paper."""
    found = [d for cell in printed(table, dataset, method).values() for d in defects_of(cell)]
    return tuple(sorted(set(found), key=lambda d: d.mark))


def credible(cell: Printed) -> bool:
    """Whether a printed number may be compared with: nothing disqualifies it.

    Examples
    --------
    >>> from apfex_reproduction.experiments._paper import credible, printed
    >>> credible(printed(1, "heart", "apfex-1")["deo"])  # .0241 with a spread of .1667
    False
    """
    return not any(d.disqualifies for d in defects_of(cell))


def is_repeated_baseline(cell: Printed) -> bool:
    """Whether it is the baseline of Table 2, which repeats that of Table 1."""
    return cell.table == 2 and cell.method == "plain"


@cache
def _by_column() -> dict[Place, dict[Metric, Printed]]:
    found: dict[Place, dict[Metric, Printed]] = {}
    for cell in CELLS:
        assert cell.table is not None
        found.setdefault((cell.table, cell.dataset, cell.method), {})[cell.metric] = cell
    return {place: {name: row[name] for name in METRICS} for place, row in found.items()}
