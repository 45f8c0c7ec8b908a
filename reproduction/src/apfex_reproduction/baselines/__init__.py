"""The methods that the paper compares with, each a scikit-learn estimator.

Gradient methods (:class:`PlainNetwork`, :class:`SMAMO`, :class:`MMAMO`, and the paper's own,
:class:`PaperAPFEx`) share the paper's network and budget, and can be fitted together to one table
or to several in step (:func:`fit_tables`). :class:`SearchFair` is a convex
method for one two-valued attribute. :class:`RejectOption` is post-processing: it needs the
sensitive features at prediction.
"""

from apfex_reproduction.baselines._apfex import PaperAPFEx
from apfex_reproduction.baselines._base import BUDGETS, Table, fit_tables
from apfex_reproduction.baselines._mmamo import MMAMO
from apfex_reproduction.baselines._plain import PlainNetwork
from apfex_reproduction.baselines._reject_option import RejectOption
from apfex_reproduction.baselines._searchfair import SearchFair
from apfex_reproduction.baselines._smamo import SMAMO

__all__ = [
    "BUDGETS",
    "MMAMO",
    "SMAMO",
    "PaperAPFEx",
    "PlainNetwork",
    "RejectOption",
    "SearchFair",
    "Table",
    "fit_tables",
]
