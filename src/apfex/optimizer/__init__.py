"""The drop-in for a hand-written PyTorch training loop."""

from apfex.optimizer._apfex import APFEx

__all__ = ["APFEx"]
