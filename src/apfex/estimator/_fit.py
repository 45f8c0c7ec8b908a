"""One fit: search, then make the front of what was found."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apfex.estimator._front import Front
from apfex.estimator._inputs import Rows
from apfex.estimator._measure import Encoder, make_front
from apfex.estimator._networks import search_networks
from apfex.estimator._rules import search_rules
from apfex.estimator._settings import Settings
from apfex.estimator._trees import search_trees

if TYPE_CHECKING:
    import pandas as pd


def explore(
    rows: Rows, settings: Settings, favorable: int, seed: int
) -> tuple[Front, Encoder, pd.DataFrame | None]:
    """Some rows make gradients, others choose; nothing else touches a choice.

    Returned are the front, what encodes its inputs, and the course of the fit where there is one.
    """
    members = search_trees if settings.has_trees else search_networks
    found = (search_rules if settings.search == "rules" else members)(rows, settings, seed)
    front = make_front(found.candidates, found.held, settings, favorable)
    course = found.course
    timeline = None if course is None else course.to_frame(point.member for point in front)
    return front, found.encoder, timeline
