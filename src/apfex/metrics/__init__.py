"""How good and how fair decisions are: performance, gaps between groups, and their statistics."""

from apfex.metrics._constant import (
    NEAR_CONSTANT,
    best_constant,
    error_of_counts,
    gain_share,
)
from apfex.metrics._counted import counted_metric
from apfex.metrics._criteria import CRITERIA, TITLES, read_criteria
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
from apfex.metrics._group_rates import GroupRates, largest_gap
from apfex.metrics._inference import gap_inference, interval_of_rates
from apfex.metrics._inputs import (
    MOST_CODES,
    Inputs,
    are_numbers,
    check_scale,
    check_spelling,
    check_values,
    encode,
    favorable_codes,
    one_dimensional,
    read_column,
    read_inputs,
    read_weight,
    written_twice,
)
from apfex.metrics._interval import GapInterval, gap_interval
from apfex.metrics._measures import METRIC_NAMES, Measure, of_scores, read_measures
from apfex.metrics._not_estimable import NotEstimableWarning, NotMeasurableError
from apfex.metrics._pairs import (
    gap_of_limits,
    lower_of_pairs,
    surest_pair,
    upper_limit,
    upper_of_pairs,
)
from apfex.metrics._performance import accuracy, balanced_accuracy, worst_group_accuracy
from apfex.metrics._rate_table import group_rates
from apfex.metrics._triviality import class_recalls, is_trivial, is_trivial_table, levelled_down

__all__ = [
    "GapInterval",
    "NotEstimableWarning",
    "NotMeasurableError",
    "accuracy",
    "accuracy_gap",
    "balanced_accuracy",
    "dp_gap",
    "equalized_odds_gap",
    "fnr_gap",
    "fpr_gap",
    "gap_inference",
    "gap_interval",
    "group_rates",
    "npv_gap",
    "of_scores",
    "ppv_gap",
    "tnr_gap",
    "tpr_gap",
    "worst_group_accuracy",
]
