"""Commands are typed, and workers started, as in the tests of the product."""

from tests.cli.conftest import apfex
from tests.clusters.conftest import time_limit, two_workers

__all__ = ["apfex", "time_limit", "two_workers"]
