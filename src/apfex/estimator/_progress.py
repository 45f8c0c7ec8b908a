"""A progress bar for ``fit``, on stderr: stdout is for results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext

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
