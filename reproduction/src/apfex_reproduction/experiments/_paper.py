"""The paper's numbers as they stand in print, as far as they are at hand, and what is wrong there.

The paper's tables could not be transcribed in full. What is here are the cells that a study of
them quotes; a cell that is not here is not at hand, and is never guessed. Three values quoted in
one breath for the Inter columns are taken in the order of these columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from apfex_reproduction.experiments import _defects as defect
from apfex_reproduction.experiments._defects import Defect
from apfex_reproduction.experiments._printed import METRICS, Metric, Printed, impossible_spread

PAPER = "APFEx"
NOT_AT_HAND = (
    "A dot stands for a value of the paper that is not at hand: its tables could not be "
    "transcribed in full, see arXiv 2509.13908."
)


def _constant(
    table: int | None, dataset: str, method: str, accuracy: float, spread: float | None = None
) -> tuple[Printed, ...]:
    """An accuracy with gaps that are zero in every run."""
    found = (defect.CONSTANT,)
    return (
        Printed(PAPER, table, dataset, method, "accuracy", accuracy, spread, found),
        Printed(PAPER, table, dataset, method, "ddp", 0.0, 0.0, found),
        Printed(PAPER, table, dataset, method, "deo", 0.0, 0.0, found),
    )


def _baseline(dataset: str, accuracy: float, *gaps: float) -> Iterable[Printed]:
    """One baseline for a whole data set, in both tables: accuracy, DDP, DEO."""
    for table in (1, 2):
        for metric, mean in zip(METRICS, (accuracy, *gaps), strict=False):
            found = () if metric == "accuracy" else (defect.NO_ATTRIBUTE,)
            if (dataset, metric) == ("adult", "deo"):
                found += (defect.NOBODYS_DEO,)
            yield Printed(PAPER, table, dataset, "plain", metric, mean, None, found)


def _cell(
    table: int | None,
    dataset: str,
    method: str,
    metric: Metric,
    mean: float,
    spread: float | None,
    *found: Defect,
) -> Printed:
    return Printed(PAPER, table, dataset, method, metric, mean, spread, found)


CELLS: tuple[Printed, ...] = (
    *_baseline("adult", 0.8330, 0.1819, 0.4688),
    *_baseline("compas", 0.6512, 0.1860, 0.2886),
    *_baseline("german", 0.7724, 0.0949, 0.0707),
    *_baseline("heart", 0.8219, 0.2589, 0.2292),
    *_baseline("celeba", 0.8593),
    *_constant(1, "adult", "apfex-1", 0.7610),
    *_constant(2, "adult", "mmamo-multi-fair", 0.7606),
    *_constant(2, "adult", "apfex-inter-dp", 0.7603),
    *_constant(2, "adult", "apfex-inter-tpr", 0.7603),
    *_constant(2, "adult", "apfex-inter", 0.7611),
    *_constant(2, "compas", "apfex-inter-dp", 0.4578, 0.0130),
    *_constant(2, "compas", "apfex-inter-tpr", 0.4578, 0.0130),
    *_constant(2, "compas", "apfex-inter", 0.5422, 0.0130),
    *_constant(2, "heart", "apfex-inter-dp", 0.4243, 0.0555),
    *_constant(2, "heart", "apfex-inter-tpr", 0.4243, 0.0555),
    *_constant(2, "heart", "apfex-inter", 0.5757, 0.0555),
    *_constant(None, "german", "", 0.6850, 0.0),
    _cell(None, "german", "", "accuracy", 0.6855, None),
    _cell(None, "german", "", "accuracy", 0.7050, None),
    _cell(None, "german", "", "accuracy", 0.1138, None, defect.BELOW_CONSTANTS),
    _cell(1, "german", "searchfair", "accuracy", 0.9150, None, defect.FAR_ABOVE),
    _cell(1, "german", "mmamo-1", "ddp", 0.0061, 0.0463),
    _cell(2, "german", "mmamo-multi", "ddp", 0.0061, 0.0463),
    _cell(1, "german", "apfex-1", "deo", 0.0023, 0.0088),
    _cell(1, "heart", "apfex-1", "deo", 0.0241, 0.1667),
    _cell(1, "heart", "searchfair-1", "deo", 0.0125, 0.0484),
    _cell(1, "celeba", "apfex-1", "accuracy", 0.5856, 0.1354, defect.EIGHT_AND_TWO),
    _cell(1, "celeba", "mmamo-2", "accuracy", 0.5301, 0.1098, defect.NINE_AND_ONE),
    _cell(1, "adult", "smamo-2-dp", "accuracy", 0.7637, 0.1756, defect.ONE_ALWAYS_1),
    _cell(1, "adult", "searchfair", "accuracy", 0.8404, None, defect.OTHER_FEATURES),
    _cell(1, "adult", "searchfair-2", "ddp", 0.3386, None, defect.LESS_FAIR_THAN_PLAIN),
    _cell(1, "adult", "roc", "ddp", 0.3386, None),
)
"""The paper's cells that are at hand. ROC on Adult: by its equality with SearchFair (Attr2)."""

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
"""Cells known to repeat others, also where their values are not at hand. Which one is the
original cannot be told."""

REMARKS: Mapping[str, Defect] = {
    "adult": defect.MAMO_TEST_ROWS,
    "compas": defect.MAMO_TEST_ROWS_COMPAS,
    "german": defect.GERMAN_TEST_ROWS,
    "heart": defect.HEART_TEST_ROWS,
}
"""What holds for all that the paper prints of a data set."""


def printed(table: int, dataset: str, method: str) -> dict[Metric, Printed]:
    """The paper's numbers for one method, as far as they are at hand.

    Examples
    --------
    >>> from apfex_reproduction.experiments._paper import printed
    >>> {metric: cell.mean for metric, cell in printed(1, "heart", "plain").items()}
    {'accuracy': 0.8219, 'ddp': 0.2589, 'deo': 0.2292}
    >>> printed(1, "heart", "mmamo-2")
    {}
    """
    at_hand = {
        cell.metric: cell
        for cell in CELLS
        if (cell.table, cell.dataset, cell.method) == (table, dataset, method)
    }
    return {metric: at_hand[metric] for metric in METRICS if metric in at_hand}


def loose(dataset: str, table: int | None = None) -> tuple[Printed, ...]:
    """Numbers whose column is not known; with a table, those that may stand in it."""
    return tuple(
        cell
        for cell in CELLS
        if cell.dataset == dataset
        and cell.method in ("", "searchfair")
        and (table is None or cell.table in (None, table))
    )


def defects_of(cell: Printed) -> tuple[Defect, ...]:
    """All that is wrong with a number: read, repeated elsewhere, or impossible."""
    place = (cell.table, cell.dataset, cell.method)
    copies = [copy[4] for copy in COPIES if copy[:3] == place and cell.metric in copy[3]]
    odd = [defect.IMPOSSIBLE_SPREAD] if impossible_spread(cell.mean, cell.spread) else []
    return (*cell.defects, *copies, *odd)


def defects_of_row(table: int, dataset: str, method: str) -> tuple[Defect, ...]:
    """All that is wrong with a column of the paper, also where its values are not at hand."""
    found = [d for cell in printed(table, dataset, method).values() for d in defects_of(cell)]
    found += [copy[4] for copy in COPIES if copy[:3] == (table, dataset, method)]
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
