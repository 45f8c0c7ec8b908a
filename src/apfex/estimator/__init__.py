"""``APFExClassifier``: one ``fit``, and the whole front of trade-offs."""

from apfex.estimator._audit import AuditRows, read_audit_rows
from apfex.estimator._classifier import APFExClassifier
from apfex.estimator._load import load

__all__ = ["APFExClassifier", "load"]
