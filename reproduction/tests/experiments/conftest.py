"""Workers are those of the tests of the product."""

from tests.clusters.conftest import time_limit, two_workers

__all__ = ["time_limit", "two_workers"]
