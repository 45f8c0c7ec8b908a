"""Work on many processes and machines, through the backends of joblib."""

from apfex.clusters._backend import use_backend

__all__ = ["use_backend"]
