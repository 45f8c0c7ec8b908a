"""One fit: search, then make the front of what was found."""

from __future__ import annotations

from apfex.estimator._front import Front
from apfex.estimator._inputs import Rows
from apfex.estimator._measure import Encoder, make_front
from apfex.estimator._networks import search_networks
from apfex.estimator._rules import search_rules
from apfex.estimator._settings import Settings
from apfex.estimator._trees import search_trees


def explore(rows: Rows, settings: Settings, favorable: int, seed: int) -> tuple[Front, Encoder]:
    """Some rows make gradients, others choose; nothing else touches a choice."""
    members = search_trees if settings.has_trees else search_networks
    found = (search_rules if settings.search == "rules" else members)(rows, settings, seed)
    return make_front(found.candidates, found.held, settings, favorable), found.encoder
