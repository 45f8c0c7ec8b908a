"""Trade-offs: dominance, the search for models that none dominates, and deciding by all of them.

The archive knows nothing of fairness: values are [n, m], one row per point; smaller is better.
:func:`search_front` finds points by postprocessing (decision rules on joint models) or by
inprocessing (a model for each point), and :class:`Fitted` is all that a fit has learned.
"""

from apfex.front._criteria import Criteria
from apfex.front._cross_fit import Inputs, TextAsCategories
from apfex.front._dask_search import PartitionedRows
from apfex.front._dealing import Dealer
from apfex.front._display import FrontDisplay
from apfex.front._encoded_rows import InputRows
from apfex.front._front import (
    Front,
    NearConstantWarning,
    UnmetBoundWarning,
    decide_by_scores,
)
from apfex.front._html import front_as_html
from apfex.front._init_model import InitColumns, NumericColumns
from apfex.front._label_models import (
    EstimatorModel,
    FunctionModel,
    LabelModel,
    LogitsModel,
    is_xgboost,
)
from apfex.front._model_encoder import ModelEncoder
from apfex.front._pareto_front import (
    FrontPoint,
    ParetoFront,
    hypervolume,
    non_dominated,
)
from apfex.front._point import Point
from apfex.front._rows import Encoder, Rows, TableEncoders
from apfex.front._scoring import Scoring, scorer_of
from apfex.front._search import (
    Features,
    Fitted,
    search_front,
    search_partitioned_front,
    search_streamed_front,
)
from apfex.front._settings import SearchSettings
from apfex.front._spooled_rows import RowFacts, StreamedRows, check_same_rows, other_rows

__all__ = [
    "Front",
    "FrontDisplay",
    "NearConstantWarning",
    "ParetoFront",
    "Point",
    "UnmetBoundWarning",
    "hypervolume",
    "non_dominated",
]
