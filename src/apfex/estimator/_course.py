"""The course of a fit: errors, gaps and weights of every rule, step by step."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, final

import torch
from torch import Tensor

if TYPE_CHECKING:
    import pandas as pd


@final
class Course:
    """Collects what :func:`apfex.models.fit_rules` shows of each step.

    Parameters
    ----------
    objectives : sequence of m str
        The error, then the gaps.
    weights : Tensor of shape [b, m - 1]
        Of the gaps beside the error, whose weight is 1; they do not change on the way.
    """

    def __init__(self, objectives: Sequence[str], weights: Tensor) -> None:
        self._objectives = list(objectives)
        self._weights = torch.cat([torch.ones_like(weights[:, :1]), weights], 1).cpu()
        self._losses: list[Tensor] = []
        self._norms: list[Tensor] = []

    def watch(self, step: int, losses: Tensor, norms: Tensor) -> None:  # noqa: ARG002 - the seam's
        """Keep a step."""
        self._losses.append(losses.cpu())
        self._norms.append(norms.cpu())

    def to_frame(self, members: Iterable[int]) -> pd.DataFrame:
        """A row per step of some rules, in the columns of ``History.to_frame``."""
        import pandas as pd

        rows = []
        for member in sorted(set(members)):
            weights = {f"weight{k}": w for k, w in enumerate(self._weights[member].tolist())}
            for step, (losses, norms) in enumerate(zip(self._losses, self._norms, strict=True)):
                values = losses[member].nan_to_num(torch.nan, torch.nan).tolist()
                row = {f"loss{k}": value for k, value in enumerate(values)}
                norm = {"direction_norm": float(norms[member])}
                rows.append({"step": step + 1, "member": member, **row, **weights, **norm})
        frame = pd.DataFrame(rows)
        frame.attrs["objectives"] = self._objectives
        return frame


def timeline_to_arrays(timeline: pd.DataFrame) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """A timeline as JSON values and arrays, to be stored."""
    columns = [str(name) for name in timeline.columns]
    arrays = {f"timeline.{name}": torch.tensor(timeline[name].to_numpy()) for name in columns}
    return {"columns": columns, "objectives": list(timeline.attrs["objectives"])}, arrays


def timeline_from_arrays(stored: Mapping[str, Any], arrays: Mapping[str, Tensor]) -> pd.DataFrame:
    """The timeline that :func:`timeline_to_arrays` has taken apart."""
    import pandas as pd

    columns = {name: arrays[f"timeline.{name}"].numpy() for name in stored["columns"]}
    frame = pd.DataFrame(columns)
    frame.attrs["objectives"] = [str(name) for name in stored["objectives"]]
    return frame
