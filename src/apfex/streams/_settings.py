"""How a table that does not fit into memory is fitted."""

from __future__ import annotations

import os
from dataclasses import dataclass
from numbers import Integral
from typing import final

from apfex.arguments import check_path


@final
@dataclass(frozen=True)
class StreamSettings:
    """How much of a stream is in memory at a time, and where the rest is.

    Attributes
    ----------
    rule_rows : int
        Most training rows by which rules are fitted, learners mixed and probabilities calibrated,
        out of fold. Where there are more, groups and labels with few rows are kept whole, the
        others are sampled, and rows count for those that they stand for. Each takes some kilobytes
        of memory in the search for rules.
    buffer_rows : int
        Rows that are read and mixed at a time when networks are trained.
    chunk_rows : int
        Most rows of the source that are read at a time.
    folder : str, path or None
        Where encoded rows are kept during ``fit``, in a folder of their own that is removed at its
        end, also after an error; the system's folder for temporary files by default. On a disk:
        a folder in memory (tmpfs) would save nothing, and there is a warning of it on Linux.

    Examples
    --------
    >>> StreamSettings(rule_rows=2**16).buffer_rows
    65536
    """

    rule_rows: int = 2**18
    buffer_rows: int = 2**16
    chunk_rows: int = 2**15
    folder: str | os.PathLike[str] | None = None

    def __post_init__(self) -> None:
        """Refuse settings out of range."""
        if self.folder is not None:
            check_path("folder of streaming", self.folder)
        for name, least in (("rule_rows", 1_000), ("buffer_rows", 1_000), ("chunk_rows", 100)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
                raise ValueError(f"{name} must be an integer of at least {least}, got {value!r}.")
