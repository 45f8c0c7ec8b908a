"""Every method of the tables by its key: how it is made, and which of the three kinds it is.

Keys name the sensitive attribute by its place: ``smamo-1-dp`` is S-MAMO for demographic parity of
the first one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, final

from apfex_reproduction.baselines import (
    MMAMO,
    SMAMO,
    PaperAPFEx,
    PlainNetwork,
    RejectOption,
    SearchFair,
)
from apfex_reproduction.experiments._ablations import ABLATIONS
from apfex_reproduction.experiments._labels import COLUMNS, CONSTANTS

Made = Callable[[Sequence[str], Mapping[str, Any]], Any]
"""Attributes and settings shared by the methods of a trial in, an estimator out."""


@final
@dataclass(frozen=True)
class Network:
    """A gradient method, trained as a member of one population with the others."""

    make: Made


@final
@dataclass(frozen=True)
class Convex:
    """SearchFair: one attribute, by its place."""

    make: Callable[[int], SearchFair]
    place: int


@final
@dataclass(frozen=True)
class PostProcessing:
    """The reject option on the plain network; groups by places of attributes."""

    make: Callable[[Any, int], RejectOption]
    places: tuple[int, ...]


@final
@dataclass(frozen=True)
class Constant:
    """The same decision for everybody."""

    decision: int


@final
@dataclass(frozen=True)
class FrontSearch:
    """The search for the front that this library has now."""


Method = Network | Convex | PostProcessing | Constant | FrontSearch

_BETAS = (1e-4, 1e-3, 1e-2)


def _smamo(place: int, notion: Any, **more: Any) -> Network:
    return Network(lambda names, common: SMAMO(notion, attribute=names[place], **more, **common))


def _mmamo(place: int | None, **more: Any) -> Network:
    def make(names: Sequence[str], common: Mapping[str, Any]) -> MMAMO:
        return MMAMO(attributes=None if place is None else [names[place]], **more, **common)

    return Network(make)


def _apfex(place: int | None, **more: Any) -> Network:
    def make(names: Sequence[str], common: Mapping[str, Any]) -> PaperAPFEx:
        if place is not None:
            return PaperAPFEx("single", attribute=names[place], **more, **common)
        return PaperAPFEx(**more, **common)

    return Network(make)


def _searchfair(place: int, notion: Any, kernel: Any) -> Convex:
    return Convex(
        lambda seed: SearchFair(notion, kernel=kernel, beta=_BETAS, random_state=seed), place
    )


def _roc(*places: int, search: Any = "nsga2") -> PostProcessing:
    return PostProcessing(
        lambda plain, seed: RejectOption(
            "dp", plain, search=search, prefit=True, random_state=seed
        ),
        places,
    )


_PUBLISHED = {"solver": "published"}
METHODS: dict[str, Method] = {
    "always-0": Constant(0),
    "always-1": Constant(1),
    "plain": Network(lambda _, common: PlainNetwork(**common)),
    "searchfair-1": _searchfair(0, "dp", "linear"),
    "searchfair-2": _searchfair(1, "dp", "linear"),
    "searchfair-1-tpr": _searchfair(0, "tpr", "linear"),
    "searchfair-2-tpr": _searchfair(1, "tpr", "linear"),
    "searchfair-1-rbf": _searchfair(0, "dp", "rbf"),
    "searchfair-2-rbf": _searchfair(1, "dp", "rbf"),
    "roc": _roc(0),
    "roc-2": _roc(1),
    "roc-crossing": _roc(0, 1),
    "roc-pso": _roc(0, search="pso"),
    "smamo-1-dp": _smamo(0, "dp"),
    "smamo-1-tpr": _smamo(0, "tpr"),
    "smamo-2-dp": _smamo(1, "dp"),
    "smamo-2-tpr": _smamo(1, "tpr"),
    "mmamo-1": _mmamo(0),
    "mmamo-2": _mmamo(1),
    "smamo-1-dp-published": _smamo(0, "dp", **_PUBLISHED),
    "smamo-1-tpr-published": _smamo(0, "tpr", **_PUBLISHED),
    "mmamo-1-published": _mmamo(0, **_PUBLISHED),
    "mmamo-multi": _mmamo(None),
    "mmamo-multi-fair": _mmamo(None, losses="pairs"),
    "mmamo-multi-published": _mmamo(None, **_PUBLISHED),
    "apfex-1": _apfex(0),
    "apfex-2": _apfex(1),
    "apfex-multi": _apfex(None, variant="multi"),
    "apfex-inter-dp": _apfex(None, criteria=("dp",)),
    "apfex-inter-tpr": _apfex(None, criteria=("tpr",)),
    "apfex-inter": _apfex(None),
    "front": FrontSearch(),
}
METHODS |= {f"apfex-inter+{name}": _apfex(None, **more) for name, more in ABLATIONS.items()}
_PAIRS: Mapping[str, Any] = {"losses": "pairs"}
METHODS |= {
    "apfex-1+pairs": _apfex(0, **_PAIRS),
    "apfex-2+pairs": _apfex(1, **_PAIRS),
    "apfex-multi+pairs": _apfex(None, variant="multi", **_PAIRS),
}
METHODS |= {
    f"apfex-multi+{name}": _apfex(None, variant="multi", **ABLATIONS[name])
    for name in ("pcp", "aw", "equal", "scales-range", "cone-first")
}

EXPERIMENTS: Mapping[str, tuple[str, ...]] = {
    "table1": (*CONSTANTS, *COLUMNS[1], "roc-2", "roc-crossing", "front"),
    "table2": (*CONSTANTS, *COLUMNS[2], "front"),
    "figure": ("apfex-inter",),
    "ablations": (
        *(*CONSTANTS, "plain", "apfex-inter"),
        *(f"apfex-inter+{name}" for name in ABLATIONS),
    ),
    "losses": (
        *(*CONSTANTS, "plain", "apfex-1", "apfex-2", "apfex-multi"),
        *(key for key in METHODS if "+" in key and not key.startswith("apfex-inter+")),
    ),
}
"""What each experiment runs; "losses": the columns of two-group losses beside their ablations."""
VARIANTS: Mapping[str, tuple[str, ...]] = {
    "table1": (
        *("searchfair-1-tpr", "searchfair-2-tpr", "searchfair-1-rbf", "searchfair-2-rbf"),
        *("roc-pso", "smamo-1-dp-published", "smamo-1-tpr-published", "mmamo-1-published"),
    ),
    "table2": ("mmamo-multi-published",),
}
"""Other forms of the methods, shown beneath if asked for."""


def revision_of(method: str) -> int:
    """How often the meaning of a method's records has changed; older ones are run again.

    Since the second, APFEx has the losses of two groups where they are printed, omega and gradient
    norms are kept, and the front is searched by rules. Since the third, the seeds of a data set are
    trained in step and SearchFair's problems are solved by another algorithm: the same methods,
    but rounding differs, which long training amplifies.

    Examples
    --------
    >>> revision_of("apfex-multi"), revision_of("front"), revision_of("always-0")
    (3, 2, 1)
    """
    kinds: dict[type, int] = {Constant: 1, FrontSearch: 2}
    return kinds.get(type(METHODS.get(method)), 3)


def results_hold(record: Mapping[str, Any]) -> bool:
    """Whether the results of a record still mean what its method means.

    Examples
    --------
    >>> results_hold({"method": "always-0"}), results_hold({"method": "apfex-multi"})
    (True, False)
    """
    return record.get("revision", 1) >= revision_of(record["method"])


def read_methods(names: Sequence[str], among: Sequence[str]) -> tuple[str, ...]:
    """Check keys of methods, in the order of the table; all of them where none are named.

    Examples
    --------
    >>> read_methods(["plane"], ["plain", "roc"])
    Traceback (most recent call last):
    ValueError: methods must be among plain, roc, got 'plane'; did you mean 'plain'?
    """
    for name in names:
        if name not in among:
            near = get_close_matches(name, among, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else "."
            raise ValueError(f"methods must be among {', '.join(among)}, got {name!r}{hint}")
    return tuple(name for name in among if name in names) if names else tuple(among)
