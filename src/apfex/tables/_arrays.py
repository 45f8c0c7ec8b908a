"""What is given as a column or a table: in memory, and of a kind that numpy has."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np


def in_memory(name: str, values: Any) -> Any:
    """A tensor as an array, an Arrow table as a pandas one, anything else as it is.

    Refused is what has no values to look at.

    Parameters
    ----------
    name : str
        What the caller calls it, for messages.
    values : object

    Examples
    --------
    >>> import torch
    >>> in_memory("y", torch.tensor([0, 1], requires_grad=False))
    array([0, 1])
    >>> in_memory("y", torch.zeros(2, dtype=torch.bfloat16))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    TypeError: y must be of a type that numpy has, got a tensor of torch.bfloat16; ...
    """
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(values, torch.Tensor):
        return _of_tensor(name, values)
    kind = type(values)
    if kind.__module__ == "pyarrow.lib" and kind.__name__ in ("Table", "RecordBatch"):
        return values.to_pandas(integer_object_nulls=True)  # its own columns have no names
    if kind.__module__.startswith("dask.dataframe."):
        raise TypeError(
            f"{name} must be in memory here, got a Dask {kind.__name__}; its compute() brings it "
            "there."
        )
    if kind.__name__ == "LazyFrame" and kind.__module__.startswith("polars"):
        larger = ", or write it to Parquet, frame.sink_parquet(path), and give the path to fit"
        raise TypeError(
            f"{name} must be in memory, got a LazyFrame of polars, which is a query; collect it: "
            f"frame.collect(){larger if name == 'X' else ''}."
        )
    if getattr(getattr(values, "dtype", None), "kind", "") == "V":
        raise TypeError(
            f"{name} must hold single values, got an array of records ({values.dtype}); pass its "
            "fields as columns: pd.DataFrame(array)."
        )
    return values


def _of_tensor(name: str, values: Any) -> np.ndarray:
    import torch

    if values.layout is not torch.strided:
        raise TypeError(
            f"{name} must be dense, got a tensor of layout {values.layout}; convert it: "
            "tensor.to_dense()."
        )
    if values.is_meta:
        raise TypeError(
            f"{name} must have values, got a tensor on the device 'meta', which has none; pass the "
            "data itself."
        )
    try:
        return values.detach().cpu().numpy()
    except TypeError as error:
        raise TypeError(
            f"{name} must be of a type that numpy has, got a tensor of {values.dtype}; convert it "
            "first: tensor.float()."
        ) from error
