"""Modes of torch that hold for a block of the caller's code, and that ours must not run in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def own_modes(device: str = "cpu") -> Iterator[None]:
    """Gradients and full precision for a while, as outside of ``no_grad`` and ``autocast``.

    Parameters
    ----------
    device : str
        Type of the device, beside the CPU, on which something is computed.

    Examples
    --------
    >>> with torch.no_grad(), own_modes():
    ...     torch.is_grad_enabled()
    True
    """
    with torch.inference_mode(False), torch.enable_grad(), torch.autocast("cpu", enabled=False):
        if device == "cpu":
            yield
            return
        with torch.autocast(device, enabled=False):
            yield
