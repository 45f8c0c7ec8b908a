"""Audits: rates of decisions to verdicts, on every grouping of the sensitive attributes.

The function is :func:`audit`, also ``apfex.audit``. It counts rows once
(:func:`apfex.rates.count_rows`); all else follows from the counts (:func:`audit_counts`), so an
audit can be made wherever rows can be counted, stored as JSON and read again.
"""

from apfex.auditing._audit import audit, audit_rows
from apfex.auditing._diff import AuditChange
from apfex.auditing._display import GapDisplay
from apfex.auditing._estimates import column_of
from apfex.auditing._from_counts import audit_counts
from apfex.auditing._result import Audit
from apfex.auditing._settings import AuditSettings, groupings_of
from apfex.auditing._strata import MOST_STRATA
from apfex.auditing._summary import AuditSummary, about_strata
from apfex.auditing._table import audit_table, audit_tallied, check_sums, moments_of
from apfex.auditing._table_scores import TableScores
from apfex.auditing._tally import Roles, TableQuery, Tally
from apfex.auditing._thresholds import precise_threshold
from apfex.auditing._verdicts import VERDICTS, Verdict, holm, verdict_of, worst_first

__all__ = [
    "VERDICTS",
    "Audit",
    "AuditChange",
    "AuditSettings",
    "AuditSummary",
    "GapDisplay",
    "Verdict",
    "audit",
    "audit_counts",
    "audit_table",
]
