"""What S-MAMO and M-MAMO share: losses of a family, and the min-norm weights."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, get_args

from apfex.rates import RateName
from apfex.solvers import min_norm
from apfex_reproduction.baselines._frank_wolfe import one_step_min_norm
from apfex_reproduction.baselines._inputs import Rows, require_groups
from apfex_reproduction.baselines._losses import Form, Term
from apfex_reproduction.baselines._weigh import Plan

Family = Literal["two_groups", "pairs"]
SolverName = Literal["converged", "published"]


def plan_of(axes: Sequence[tuple[RateName, int]], losses: Family, solver: SolverName) -> Plan:
    """The cross-entropy and a fairness loss for each (rate, attribute), weighed by min-norm."""
    published = solver == "published"
    form: Form = "pairs" if losses == "pairs" else "masked" if published else "plain"
    terms = tuple(Term(rate, attribute, form) for rate, attribute in axes)
    return Plan(terms, one_step_min_norm if published else min_norm, own_passes=published)


def check_choices(losses: str, solver: str) -> None:
    """Refuse words that name nothing."""
    for name, value, allowed in (
        ("losses", losses, get_args(Family)),
        ("solver", solver, get_args(SolverName)),
    ):
        if value not in allowed:
            raise ValueError(f"{name} must be one of {list(allowed)}, got {value!r}.")


def places_of(wanted: Sequence[str] | None, rows: Rows, method: str) -> list[int]:
    """Places of the wanted attributes among those given; all of them by default."""
    attributes = require_groups(rows, method).attributes
    unknown = [name for name in wanted or () if name not in attributes]
    if unknown or (wanted is not None and not wanted):
        raise ValueError(
            f"The attributes of {method} must be among those of sensitive_features, "
            f"{list(attributes)}, got {unknown or list(wanted or ())}."
        )
    return [attributes.index(name) for name in (attributes if wanted is None else wanted)]


def check_values(places: Iterable[int], rows: Rows, losses: Family, method: str) -> None:
    """Refuse attributes of one value, and of more than two where losses compare two groups."""
    for groups in (rows.groupings[place] for place in places):
        if len(groups) < 2 or (len(groups) > 2 and losses == "two_groups"):
            raise ValueError(
                f"sensitive_features must be two-valued for the two-group losses of {method}, got "
                f"{len(groups)} values of {' x '.join(groups.attributes)!r}; merge levels, or use "
                "losses='pairs' for more than two."
            )
