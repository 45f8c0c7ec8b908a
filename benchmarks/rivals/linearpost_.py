"""LinearPost (Xian and Zhao 2024, arXiv 2405.04025), written from the paper.

The least expected error under a bound on the gap, by a linear program on out-of-fold probabilities
of group and label; its multipliers give a rule that is linear in these probabilities. With the
group known, the probabilities are those given the group. On histogram boosting, and on the very
probabilities that our own rules are fitted to.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rivals.base_models import cross_fitted_joint
from rivals.common import BOUNDS, RATES, Decisions, Handed, Method, Part, by_bounds, mark
from rivals.linear_program import fair_rule

MOST_ROWS = 50_000
"""Of the linear program; more are drawn at random."""

Joint = Callable[[Part, Part, int], tuple[NDArray[np.float64], NDArray[np.float64], NDArray[Any]]]
"""From rows to learn from, test rows and a seed to q out of fold, q of test rows, and groups."""


def on_histogram(rows: Part, test: Part, seed: int) -> Any:
    return *cross_fitted_joint(rows, test, seed), rows.group


def on_our_q(**given: Any) -> Joint:
    """The out-of-fold predictions of our own fit, and its model's of the test rows."""

    def joint(rows: Part, test: Part, seed: int) -> Any:
        from rivals.apfex_ import own_joint

        return own_joint(rows, test, seed, **given)

    return joint


def linear_post(joint: Joint, *, group_known: bool = False) -> Method:
    @mark(needs_attribute=group_known, slow=group_known)
    def method(rows: Part, test: Part, seed: int):  # noqa: ANN202
        seen, new, groups = joint(rows, test, seed)
        if group_known:
            seen, new = given_group(seen, groups), given_group(new, test.group)
        if len(seen) > MOST_ROWS:
            seen = np.random.default_rng([seed, 23]).choice(seen, MOST_ROWS, replace=False)

        def decide(problem: str, bound: float) -> Decisions:
            return fair_rule(seen, dict.fromkeys(RATES[problem], bound)).decide(new)

        for problem, handed in by_bounds(decide):
            if problem == "both":
                handed = Handed(handed.points, {bound: decide("both", bound) for bound in BOUNDS})
            yield problem, handed

    return method


def given_group(q: NDArray[np.float64], group: NDArray[Any]) -> NDArray[np.float64]:
    """Probabilities [n, k, 2] given the group of each row."""
    own = q[np.arange(len(q)), group]
    known = np.zeros_like(q)
    known[np.arange(len(q)), group] = own / np.maximum(own.sum(1, keepdims=True), 1e-30)
    return known


METHODS: dict[str, Method] = {
    "LinearPost + our q": linear_post(on_our_q()),
    "LinearPost + HGB": linear_post(on_histogram),
    "LinearPost + our q, group known": linear_post(on_our_q(), group_known=True),
    "LinearPost + HGB, group known": linear_post(on_histogram, group_known=True),
}
