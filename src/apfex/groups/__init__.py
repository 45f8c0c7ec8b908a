"""Sensitive columns to groups: the cells of their crossing, and soft memberships in them."""

from apfex.groups._columns import MISSING, check_levels, check_truths, grouping_name
from apfex.groups._groups import (
    Groups,
    UnseenGroupWarning,
    groups_of,
    make_groups,
    soft_memberships,
)

__all__ = ["Groups", "UnseenGroupWarning", "make_groups", "soft_memberships"]
