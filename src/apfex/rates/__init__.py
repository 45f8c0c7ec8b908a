"""The one counter: confusion counts of groups, and rates as their quotients.

A group has four counts: the negatives and positives that are selected, and all its negatives and
positives. They are sums over rows, so that batches, files and workers simply add up, and those of
coarser groups follow from those of finer ones. :func:`count_rows` makes them of hard decisions, for
metrics and audits; :func:`soft_counts` of soft ones, differentiably, for training. A rate is a
quotient of two sums of counts, defined once in ``RATES``.
"""

from apfex.rates._confusion import ConfusionCounts, ScoreCounts
from apfex.rates._count_rows import (
    Repeats,
    count_reached,
    count_rows,
    most_thresholds,
    threshold_places,
)
from apfex.rates._group_index import GroupIndex
from apfex.rates._rates import (
    OTHER_LABEL,
    RATES,
    Rate,
    RateName,
    quotient,
    rate_sums,
    rates_of,
)
from apfex.rates._soft_counts import soft_counts

__all__ = ["ConfusionCounts", "count_rows"]
