"""Workers are those of the tests of clusters."""

from tests.clusters.conftest import time_limit, two_workers

__all__ = ["time_limit", "two_workers"]
