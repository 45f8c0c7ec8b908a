"""Packages that an extra brings: imported where they are used, and named where they are missing."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

__all__: list[str] = []


def need_extra(extra: str, module: str, what: str, package: str | None = None) -> ModuleType:
    """A module that an extra brings; where it is missing, an error of one line names the extra.

    Parameters
    ----------
    extra : str
        As in ``pip install "apfex[extra]"``.
    module : str
        What is imported, such as "onnx" or "plotly.graph_objects".
    what : str
        What needs it, as the message begins.
    package : str, optional
        What the package is called; the first part of ``module`` by default.

    Examples
    --------
    >>> need_extra("onnx", "no_such_module", "ONNX export")
    Traceback (most recent call last):
    ImportError: ONNX export needs the package no_such_module: pip install "apfex[onnx]".
    """
    try:
        return import_module(module)
    except ImportError as error:
        name = package or module.partition(".")[0]
        raise ImportError(
            f'{what} needs the package {name}: pip install "apfex[{extra}]".'
        ) from error
