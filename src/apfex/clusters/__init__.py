"""Work on many processes and machines: joblib's backends, and Dask workers that are waited for."""

from apfex.clusters._backend import use_backend
from apfex.clusters._dask_work import client_in_use, gather, is_dask_frame, with_all_workers
from apfex.clusters._with_parent import end_with

__all__ = ["use_backend"]
