"""Blanks beside the quotes of a cell: DuckDB drops them, and rows in memory keep them."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from apfex.files import Dialect, read_header, stream_csv, to_values

_PART = 1 << 22


def check_blanks(
    files: Sequence[str],
    columns: Sequence[str],
    table: str,
    lengths_of: Callable[[Sequence[str]], Sequence[int | None]],
) -> None:
    """Refuse columns of CSV with cells such as ``"f"`` after a blank, which may be two groups.

    Where bytes look like it, the text of each column is as long as in memory if DuckDB has dropped
    nothing. ``lengths_of`` says how long it is in DuckDB, in bytes.
    """
    if not any(map(_has_blanks, files)):
        return
    wanted = np.zeros(len(columns), np.int64)
    for path in files:
        header = read_header(path)
        dialect = Dialect("utf-8", header.separator, ".", header.columns)
        for cells in stream_csv(Path(path), dialect, list(columns)):
            wanted += [_length(cells[name]) for name in columns]
    for name, own, found in zip(columns, wanted, lengths_of(columns), strict=True):
        if own != (found or 0):
            raise ValueError(
                f"{name} must have no blanks beside the quotes of a cell, as in 'a, \"b\"', got "
                f"some in {table}: some programs take them for text, and others drop them. Write "
                "the cells without these blanks, or without quotes."
            )


def _has_blanks(path: str) -> bool:
    """Whether bytes of a file look like a cell with blanks beside its quotes."""
    mark = read_header(path).separator.encode()
    before, after = (mark, b"\n", b"\r"), (mark, b"\n", b"\r", b" ")
    signs = [one + b' "' for one in before] + [b'" ' + one for one in after]
    opened: Any = gzip.open if path.endswith(".gz") else open
    with opened(path, "rb") as stream:
        end = b""
        while part := stream.read(_PART):
            part = end + part
            near = b'"' in part and (b' "' in part or b'" ' in part)  # few have any, and it is fast
            if near and any(sign in part for sign in signs):
                return True
            end = part[-2:]
    return end.endswith(b'" ')


def _length(cells: Any) -> int:
    import pyarrow as pa
    import pyarrow.compute

    compute: Any = pyarrow.compute  # whose functions are made when it is loaded
    known = to_values(pa.chunked_array([cells]), None)
    return int(compute.sum(compute.binary_length(known)).as_py() or 0)
