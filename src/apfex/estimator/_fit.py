"""One fit: search, then make the front of what was found."""

from __future__ import annotations

from apfex.estimator._front import Front
from apfex.estimator._inputs import Rows
from apfex.estimator._measure import Encoder, make_front
from apfex.estimator._networks import search_networks
from apfex.estimator._rules import search_rules
from apfex.estimator._settings import Settings


def explore(rows: Rows, settings: Settings, favorable: int, seed: int) -> tuple[Front, Encoder]:
    """Some rows make gradients, others choose; nothing else touches a choice."""
    search = search_rules if settings.search == "rules" else search_networks
    found = search(rows, settings, seed)
    return make_front(found.candidates, found.held, settings, favorable), found.encoder
