"""``apfex reproduce``: :data:`app` is what the entry point of ``apfex.commands`` leads to."""

from apfex_reproduction.cli._command import app

__all__ = ["app"]
