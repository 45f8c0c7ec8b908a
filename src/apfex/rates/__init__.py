"""Rates of groups, defined once for training and for audit.

Everything starts from the four *masses* of a group: the negatives and positives that are selected,
and all its negatives and positives. Masses are sums over rows, so batches and workers simply add
up, and those of parent groups follow from those of their cells. A rate is a quotient of two sums
of masses. With soft decisions in [0, 1] it is differentiable; with hard ones it is the usual
metric.
"""

from apfex.rates._index import GroupIndex
from apfex.rates._masses import OTHER_LABEL, RATES, Rate, RateName, group_masses
from apfex.rates._sums import RateSums, gap, rate_sums

__all__ = [
    "OTHER_LABEL",
    "RATES",
    "GroupIndex",
    "Rate",
    "RateName",
    "RateSums",
    "gap",
    "group_masses",
    "rate_sums",
]
