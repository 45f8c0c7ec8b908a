"""Commands are typed as in the tests of the product."""

from tests.cli.conftest import apfex

__all__ = ["apfex"]
