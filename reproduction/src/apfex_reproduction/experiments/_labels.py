"""The methods of the two tables: their keys, their order, their words, and what each works on."""

from __future__ import annotations

from typing import Literal

Place = Literal["first", "second", "worst", "crossing"]
"""Where a gap is taken: on the first attribute, on the second, on the worse of the two in each run,
or on their crossing."""

CONSTANTS = ("always-0", "always-1")

COLUMNS: dict[int, tuple[str, ...]] = {
    1: (
        "plain",
        "smamo-1-dp",
        "smamo-1-tpr",
        "smamo-2-dp",
        "smamo-2-tpr",
        "mmamo-1",
        "mmamo-2",
        "searchfair-1",
        "searchfair-2",
        "roc",
        "apfex-1",
        "apfex-2",
    ),
    2: (
        "plain",
        "mmamo-multi",
        "mmamo-multi-fair",
        "apfex-multi",
        "apfex-inter-dp",
        "apfex-inter-tpr",
        "apfex-inter",
    ),
}
"""The columns of the paper's tables, in its order."""

FRONT = "front"
"""The front as this library searches it now."""

_LABELS = {
    "always-0": "Always 0",
    "always-1": "Always 1",
    "plain": "Baseline",
    "searchfair-1": "SearchFair (Attr1)",
    "searchfair-2": "SearchFair (Attr2)",
    "searchfair-1-tpr": "SearchFair (Attr1), on TPR",
    "searchfair-2-tpr": "SearchFair (Attr2), on TPR",
    "searchfair-1-rbf": "SearchFair (Attr1), RBF",
    "searchfair-2-rbf": "SearchFair (Attr2), RBF",
    "roc": "ROC (post-processing, NSGA-II), Attr1",
    "roc-2": "ROC (post-processing, NSGA-II), Attr2",
    "roc-crossing": "ROC (post-processing, NSGA-II), crossing",
    "roc-pso": "ROC (post-processing, PSO), Attr1",
    "smamo-1-dp": "S-MAMO (Attr1, L_DP)",
    "smamo-1-tpr": "S-MAMO (Attr1, L_TPR)",
    "smamo-2-dp": "S-MAMO (Attr2, L_DP)",
    "smamo-2-tpr": "S-MAMO (Attr2, L_TPR)",
    "mmamo-1": "M-MAMO (Attr1, L_DP & L_TPR)",
    "mmamo-2": "M-MAMO (Attr2, L_DP & L_TPR)",
    "mmamo-multi": "M-MAMO (Multi, L_DP & L_TPR)",
    "mmamo-multi-fair": "M-MAMO (Multi, L_fairDP & L_fairTPR)",
    "apfex-1": "APFEx (Attr1, L_DP & L_TPR)",
    "apfex-2": "APFEx (Attr2, L_DP & L_TPR)",
    "apfex-multi": "APFEx (Multi, L_DP & L_TPR)",
    "apfex-inter-dp": "APFEx (Inter, L_fairDP)",
    "apfex-inter-tpr": "APFEx (Inter, L_fairTPR)",
    "apfex-inter": "APFEx (Inter, L_fairDP & L_fairTPR)",
    FRONT: "This library's front",
}


_DATA = {"adult": "Adult", "compas": "COMPAS", "german": "German", "heart": "Heart"} | {
    "celeba": "CelebA"
}
_VARIANTS = {
    "published": "as published",
    "pairs": "with all-pairs losses",
    "pcp": "PCP alone",
    "random-switch": "a random switch",
    "scales-range": "losses over their range",
}


def data_name(dataset: str) -> str:
    """A data set as the paper writes it.

    Examples
    --------
    >>> data_name("compas")
    'COMPAS'
    """
    return _DATA.get(dataset, dataset)


def label_of(method: str) -> str:
    """The method in the paper's words; a variant by its method's and its own; else the key."""
    if method in _LABELS:
        return _LABELS[method]
    base = _base_of(method)
    rest = method[len(base) + 1 :]
    return f"{_LABELS[base]}, {_VARIANTS.get(rest, rest)}" if base else method


def belongs_to(method: str, table: int) -> bool:
    """Whether a method with records is shown in that table: a stranger is shown in both."""
    if method in CONSTANTS or method == FRONT:
        return True
    base = _base_of(method) or method
    home = {number for number, columns in COLUMNS.items() if base in columns}
    return table in (home or COLUMNS)


def works_on(method: str) -> tuple[Place, ...]:
    """The places whose gaps a method lowers; none for those that lower none."""
    parts = _parts(method)
    if method in CONSTANTS or parts[0] == "plain":
        return ()
    if "1" in parts:
        return ("first",)
    if "2" in parts:
        return ("second",)
    if parts[0] == "roc" and "crossing" not in parts:
        return ("first",)
    return ("first", "second") if "multi" in parts else ("crossing",)


def criteria_of(method: str) -> tuple[str, ...]:
    """The gaps it lowers there."""
    named = tuple(part for part in _parts(method) if part in ("dp", "tpr"))
    return named or (("dp",) if method.startswith(("searchfair", "roc")) else ("dp", "tpr"))


def judged_on(method: str, table: int | None = None) -> Place:
    """The one place where a row of the paper, which prints a single gap, is compared with ours.

    The paper does not say whose gap the baseline's is; Table 1 is about single attributes. Nor
    does it say which attribute the columns "Multi" show: here the worse one.
    """
    places = works_on(method)
    if not places:
        return "first" if table == 1 else "crossing"
    return places[0] if len(places) == 1 else "worst"


def _parts(method: str) -> list[str]:
    """Of a key, without what an ablation adds to it."""
    return method.split("+")[0].split("-")


def _base_of(method: str) -> str:
    bases = [key for key in _LABELS if method.startswith((f"{key}-", f"{key}+"))]
    return max(bases, key=len, default="")
