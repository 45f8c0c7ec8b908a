"""Trade-offs: dominance, the search for models that none dominates, and deciding by all of them.

The archive knows nothing of fairness: values are [n, m], one row per point; smaller is better.
:func:`search_front` finds points by postprocessing (decision rules on joint models) or by
inprocessing (a model for each point), and :class:`Fitted` is all that a fit has learned.
"""

from apfex.front._archive import FrontPoint, ParetoFront
from apfex.front._criteria import Criteria
from apfex.front._dominance import dominates, hypervolume, non_dominated
from apfex.front._encoders import Encoder, InitColumns, NumericColumns, TableEncoders
from apfex.front._fitted import Features, Fitted, search_front
from apfex.front._points import Front, Point, UnmetBoundWarning
from apfex.front._rows import Rows
from apfex.front._settings import SearchSettings

__all__ = [
    "Criteria",
    "Encoder",
    "Features",
    "Fitted",
    "Front",
    "FrontPoint",
    "InitColumns",
    "NumericColumns",
    "ParetoFront",
    "Point",
    "Rows",
    "SearchSettings",
    "TableEncoders",
    "UnmetBoundWarning",
    "dominates",
    "hypervolume",
    "non_dominated",
    "search_front",
]
