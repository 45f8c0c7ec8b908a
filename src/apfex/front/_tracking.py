"""What a search tells while it runs: a progress bar, and how the rules came about."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, final

import torch
from torch import Tensor

if TYPE_CHECKING:
    import pandas as pd

Show = Callable[[int, Sequence[float]], None]
"""Called with the steps done and the figures of the best member so far: error, then gaps."""


def progress(verbose: int, epochs: int) -> AbstractContextManager[Show]:
    """Show step, best error with its gaps, and the time left; nothing unless ``verbose``."""
    return _Bar(epochs) if verbose else nullcontext(lambda *_: None)


class _Bar:
    def __init__(self, epochs: int) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        self._bar = Progress(
            TextColumn("step {task.completed}/{task.total}"),
            BarColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[best]}"),
            console=Console(stderr=True),
        )
        self._task = self._bar.add_task("fit", total=epochs, best="")

    def __enter__(self) -> Show:
        self._bar.start()
        return self._show

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def _show(self, epoch: int, best: Sequence[float]) -> None:
        text = "".join(f", gap {gap:.3f}" for gap in best[1:])
        text = f"best error {best[0]:.4f}{text}" if len(best) else ""
        self._bar.update(self._task, completed=epoch, best=text)


@final
class RuleHistory:
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
