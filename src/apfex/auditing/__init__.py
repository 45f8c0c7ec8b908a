"""Audits: rates of decisions to verdicts, on every grouping of the sensitive attributes.

The function is :func:`audit`, also ``apfex.audit``. It counts rows once
(:func:`apfex.rates.count_rows`); all else follows from the counts (:func:`audit_counts`), so an
audit can be made wherever rows can be counted, stored as JSON and read again.
"""

from apfex.auditing._audit import Audit
from apfex.auditing._diff import AuditChange
from apfex.auditing._groupings import groupings_of
from apfex.auditing._run import audit, audit_counts
from apfex.auditing._settings import AuditSettings
from apfex.auditing._tables import worst_first
from apfex.auditing._verdicts import VERDICTS, Verdict, holm

__all__ = [
    "VERDICTS",
    "Audit",
    "AuditChange",
    "AuditSettings",
    "Verdict",
    "audit",
    "audit_counts",
    "groupings_of",
    "holm",
    "worst_first",
]
