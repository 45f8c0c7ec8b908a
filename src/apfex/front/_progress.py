"""Progress of a training: a bar on a terminal or in a notebook, a line now and then elsewhere."""

from __future__ import annotations

import html
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

_SECONDS = 10.0
"""Between lines where there is no terminal to draw a bar on."""

_NOTEBOOK_SECONDS = 0.2
"""Between changes of a bar in a notebook, whose file keeps the last one alone."""

Show = Callable[[int, Sequence[float]], None]
"""Called with the steps done and the figures of the best so far: what ranks, then the gaps."""


@contextmanager
def progress(verbose: int, steps: int, names: Sequence[str]) -> Iterator[Show]:
    """Show step, lowest error with its gaps, and the time; nothing unless ``verbose``.

    ``names`` are those of the figures: of the error that ranks, and of the gaps.
    """
    if not verbose:
        yield lambda *_: None
        return
    if _in_notebook():
        yield _notebook(steps, names)
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    if not console.is_terminal:
        yield _lines(steps, names)
        return
    shown = TextColumn("step {task.completed}/{task.total}"), TextColumn("{task.fields[best]}")
    columns = (shown[0], BarColumn(), TimeRemainingColumn(), shown[1])
    with Progress(*columns, console=console) as bar:
        task = bar.add_task("fit", total=steps, best="")

        def show(step: int, best: Sequence[float]) -> None:
            bar.update(task, completed=step, best=_figures(best, names))

        yield show


def _in_notebook() -> bool:
    """Whether a kernel of Jupyter runs, whose pages can be changed; it is not imported for that."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return shell is not None and "IPKernelApp" in shell.config


def _notebook(steps: int, names: Sequence[str]) -> Show:
    """One bar that changes where it stands, by what every notebook has, so without widgets."""
    from IPython.display import HTML, display

    started = last = time.monotonic()

    def page(step: int, best: Sequence[float]) -> Any:
        said = f"step {step} of {steps}, {time.monotonic() - started:.0f} s"
        figures = html.escape(_figures(best, names))
        bar = f'<progress value="{step}" max="{steps}"></progress>'
        return HTML(f"{bar} {said}{f'; {figures}' if figures else ''}")

    handle: Any = display(page(0, ()), display_id=True)

    def show(step: int, best: Sequence[float]) -> None:
        nonlocal last
        now = time.monotonic()
        if step >= steps or now - last >= _NOTEBOOK_SECONDS:
            last = now
            handle.update(page(step, best))

    return show


def _lines(steps: int, names: Sequence[str]) -> Show:
    """Print a line when some time has passed since the last one, and at the end."""
    started = last = time.monotonic()

    def show(step: int, best: Sequence[float]) -> None:
        nonlocal last
        now = time.monotonic()
        is_end = step >= steps and len(best) > 0
        if now - last < _SECONDS and not is_end:
            return
        last, figures = now, _figures(best, names)
        said = f"Training: step {step} of {steps}, {now - started:.0f} s"
        print(f"{said}; {figures}" if figures else said, file=sys.stderr, flush=True)

    return show


def _figures(best: Sequence[float], names: Sequence[str]) -> str:
    """Figures of the best so far, by their names."""
    if not len(best):
        return ""
    told = [f"{name} {value:.3f}" for name, value in zip(names, best, strict=True)]
    return f"best so far: {', '.join(told)}"
