"""``APFExClassifier``: one ``fit``, and the whole front of trade-offs."""

from apfex.estimator._classifier import APFExClassifier
from apfex.estimator._front import Front, Point, UnmetBoundWarning
from apfex.estimator._load import load

__all__ = ["APFExClassifier", "Front", "Point", "UnmetBoundWarning", "load"]
