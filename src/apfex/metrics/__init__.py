"""How good and how fair decisions are: performance, gaps between groups, and their statistics."""

from apfex.metrics._caveats import class_recalls, is_trivial, levelled_down
from apfex.metrics._criteria import CRITERIA, read_criteria
from apfex.metrics._gaps import (
    accuracy_gap,
    dp_gap,
    equalized_odds_gap,
    fnr_gap,
    fpr_gap,
    npv_gap,
    ppv_gap,
    tnr_gap,
    tpr_gap,
)
from apfex.metrics._group_rates import (
    GroupRates,
    NotEstimableWarning,
    NotMeasurableError,
    effective_counts,
    group_rates,
    largest_gap,
    widest,
)
from apfex.metrics._inference import gap_inference
from apfex.metrics._inputs import Inputs, Labels, read_inputs, written_twice
from apfex.metrics._measures import MEASURES, Measure, of_scores, read_measures
from apfex.metrics._interval import GapInterval, gap_interval, interval_of_rates
from apfex.metrics._pairs import lower_of_pairs, upper_of_pairs
from apfex.metrics._performance import accuracy, balanced_accuracy, worst_group_accuracy

__all__ = [
    "CRITERIA",
    "GapInterval",
    "GroupRates",
    "Inputs",
    "Labels",
    "NotEstimableWarning",
    "NotMeasurableError",
    "accuracy",
    "accuracy_gap",
    "balanced_accuracy",
    "class_recalls",
    "dp_gap",
    "effective_counts",
    "equalized_odds_gap",
    "fnr_gap",
    "fpr_gap",
    "gap_inference",
    "gap_interval",
    "group_rates",
    "interval_of_rates",
    "is_trivial",
    "largest_gap",
    "levelled_down",
    "lower_of_pairs",
    "npv_gap",
    "ppv_gap",
    "read_criteria",
    "read_inputs",
    "tnr_gap",
    "tpr_gap",
    "upper_of_pairs",
    "widest",
    "worst_group_accuracy",
    "written_twice",
]
