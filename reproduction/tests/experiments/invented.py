"""Records of runs that nobody ran."""

from typing import Any

from apfex_reproduction.experiments._rows import groupings_of

SPLIT = "70/15/15"


def result(
    accuracy: Any = 0.8,
    dp: Any = 0.1,
    tpr: Any = 0.2,
    constant: Any = False,
    attributes: Any = ("age", "sex"),
    **more: Any,
) -> dict[str, Any]:
    """The same gaps on every grouping unless ``gaps`` says otherwise."""
    gaps = {by: {"dp": dp, "tpr": tpr} for by in groupings_of(attributes)}
    return {
        "accuracy": accuracy,
        "balanced_accuracy": accuracy,
        "positive_rate": 0.4,
        "worst_group_accuracy": accuracy,
        "constant": constant,
        "gaps": gaps,
    } | more


def record(method, seed=0, results=None, dataset="heart", attributes=("age", "sex"), **more):
    """One run; its results by rule."""
    return {
        "format": 1,
        "apfex": "0.0",
        "dataset": dataset,
        "split": SPLIT,
        "seed": seed,
        "method": method,
        "rows": {"training": 207, "validation": 45, "test": 45},
        "attributes": list(attributes),
        "results": {"chosen": result(attributes=attributes)} if results is None else results,
    } | more
