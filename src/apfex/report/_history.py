"""The paper's three panels: combined gradient, losses and weights, step by step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from apfex.plain import jsonable

_MOST_STEPS = 300


def describe_history(
    history: pd.DataFrame | None, objectives: Sequence[str] | None
) -> dict[str, Any] | None:
    """Columns of every member, at most 300 steps of each, evenly spread."""
    if history is None:
        return None
    m = sum(f"loss{k}" in history for k in range(history.shape[1]))
    wanted = ["step", "direction_norm", *(f"{s}{k}" for k in range(m) for s in ("loss", "weight"))]
    missing = [name for name in wanted if name not in history]
    if missing or not m:
        raise ValueError(
            "history must have the columns step, direction_norm, loss0, weight0, ... of "
            f"History.to_frame(), got {list(history.columns)}."
        )
    if objectives is not None and len(objectives) != m:
        raise ValueError(f"objectives must name the {m} losses of history, got {list(objectives)}.")
    names = [f"loss {k}" for k in range(m)] if objectives is None else list(objectives)
    members = history["member"] if "member" in history else pd.Series(0, index=history.index)
    return jsonable(
        {
            "objectives": names,
            "members": [
                {"member": member, **_columns(_spread(part), m)}
                for member, part in history.groupby(members.to_numpy(), sort=True)
            ],
        }
    )


def _columns(rows: pd.DataFrame, m: int) -> dict[str, Any]:
    strategy = next((rows[name] for name in ("strategy", "choice") if name in rows), None)
    return {
        "step": rows["step"].to_numpy(),
        "strategy": None if strategy is None else [str(name) for name in strategy],
        "direction_norm": rows["direction_norm"].to_numpy(float),
        "losses": [rows[f"loss{k}"].to_numpy(float) for k in range(m)],
        "weights": [rows[f"weight{k}"].to_numpy(float) for k in range(m)],
    }


def _spread(rows: pd.DataFrame) -> pd.DataFrame:
    if len(rows) <= _MOST_STEPS:
        return rows
    return rows.iloc[np.linspace(0, len(rows) - 1, _MOST_STEPS).round().astype(int)]
