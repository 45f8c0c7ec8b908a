"""Trade-offs: dominance, the archive of non-dominated points, and how to pick one of them.

Nothing here knows of fairness. Values are [n, m], one row per point; smaller is better.
"""

from apfex.front._archive import FrontPoint, ParetoFront
from apfex.front._dominance import dominates, hypervolume, non_dominated

__all__ = ["FrontPoint", "ParetoFront", "dominates", "hypervolume", "non_dominated"]
