"""What people look at: a front, or an audit, as one page that works from disk.

:func:`describe_front` measures every point of a fitted classifier on rows that it has not seen and
gives plain JSON; :func:`write_front_page` and :func:`write_audit_page` write one HTML file that
needs nothing else. :func:`measure_front` keeps the audits of the points as well.
"""

from apfex.report._caveats import Caveat
from apfex.report._decision import read_decision
from apfex.report._description import check_described
from apfex.report._front import MeasuredFront, describe_front, measure_decisions, measure_front
from apfex.report._page import write_audit_page, write_front_page

__all__ = ["describe_front", "write_audit_page", "write_front_page"]
