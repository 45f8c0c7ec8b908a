"""What the authors of the compared methods print themselves."""

from __future__ import annotations

from collections.abc import Iterable

from apfex_reproduction.experiments import _defects as defect
from apfex_reproduction.experiments._defects import Defect
from apfex_reproduction.experiments._printed import METRICS, Metric, Printed


def _rival(
    source: str,
    dataset: str,
    method: str,
    *values: tuple[Metric, float, float | None],
    found: tuple[Defect, ...] = (),
    digits: int = 4,
) -> Iterable[Printed]:
    for metric, mean, spread in values:
        yield Printed(source, None, dataset, method, metric, mean, spread, found, digits)


def _searchfair(how: str, accuracy: float, ddp: float, deo: float) -> Iterable[Printed]:
    values = zip(METRICS, (accuracy, ddp, deo), (None,) * 3, strict=True)
    return _rival("SearchFair", "celeba", f"SearchFair, {how}", *values, digits=3)


RIVALS: tuple[Printed, ...] = (
    *_rival(
        "MAMO",
        "adult",
        "smamo-1-dp",
        ("accuracy", 1 - 0.1821, 0.0053),
        ("ddp", 0.0885, 0.0198),
    ),
    *_rival(
        "MAMO",
        "compas",
        "smamo-1-tpr",
        ("accuracy", 1 - 0.3272, 0.0114),
        ("deo", 0.0798, 0.0344),
    ),
    *_searchfair("linear, on DP", 0.801, -0.057, -0.132),
    *_searchfair("RBF, on TPR", 0.829, 0.034, -0.023),
    *_searchfair("RBF tuned, on DP", 0.825, -0.009, -0.048),
    *_rival(
        "SearchFair",
        "adult",
        "SearchFair, RBF tuned, on DP",
        ("accuracy", 0.7607, None),
        ("ddp", 0.0, None),
        ("deo", 0.0, None),
        found=(defect.CONSTANT,),
    ),
    *_rival(
        "ROC",
        "german",
        "ROC (NSGA-II)",
        ("accuracy", 0.9429, None),
        found=(defect.ACCEPTED_ROWS,),
    ),
)
"""From their public notebooks, the reject option's from its paper. MAMO prints errors. The gaps of
SearchFair have signs, and were measured with 1,200 training rows."""
