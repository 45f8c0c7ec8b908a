"""TensorBoard: a training while it runs, and fronts and audits when they are there."""

from __future__ import annotations

import os
import weakref
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self, final

from apfex.extras import need_extra
from apfex.history import History
from apfex.integrations._figures import figures_of, series_of


@final
class TensorBoardLog:
    """A folder of event files that TensorBoard shows.

    Parameters
    ----------
    folder : path, optional
        Where they are written; made where it is not there.
    objectives : sequence of str
        Names of the losses of a training, in their order.
    writer : SummaryWriter of torch, optional
        One that is there already, in place of ``folder``; it is left open.

    Notes
    -----
    :meth:`log` in every step of a loop costs a comparison, until a window of the history is
    complete: then its means are written. Points of a front are the steps of ``front/...``.

    Examples
    --------
    >>> import tempfile
    >>> import torch
    >>> from apfex import APFEx
    >>> from apfex.integrations import TensorBoardLog
    >>> theta = torch.nn.Parameter(torch.zeros(1))
    >>> optimizer = APFEx(torch.optim.SGD([theta], lr=0.1), window=2)
    >>> folder = tempfile.TemporaryDirectory()
    >>> with TensorBoardLog(folder.name, objectives=("left", "right")) as board:
    ...     for _ in range(4):
    ...         optimizer.backward([(theta - 1).square().sum(), (theta + 1).square().sum()])
    ...         optimizer.step()
    ...         board.log(optimizer.history)
    >>> folder.cleanup()
    """

    def __init__(
        self,
        folder: str | os.PathLike[str] | None = None,
        *,
        objectives: Sequence[str] = (),
        writer: Any = None,
    ) -> None:
        need_extra("tensorboard", "tensorboard", "TensorBoardLog")
        if (folder is None) == (writer is None):
            raise ValueError(
                "TensorBoardLog must get either a folder or a writer, got "
                f"{'none of them' if folder is None else 'both'}."
            )
        self._owns = writer is None
        if writer is None:
            from torch.utils.tensorboard import SummaryWriter

            writer = SummaryWriter(os.fspath(folder))  # type: ignore[arg-type]
        self._writer, self._objectives = writer, tuple(objectives)
        self._written: weakref.WeakKeyDictionary[History, int] = weakref.WeakKeyDictionary()

    def log(self, what: Any, *, step: int | None = None) -> None:
        """Write what is new.

        Parameters
        ----------
        what : History, fitted APFExClassifier, Run, AuditRun or Audit
            Of a history those windows (or steps, with ``trace``) that were not written yet.
        step : int, optional
            Of the metrics of an audit or a front that is looked at several times.
        """
        if isinstance(what, History):
            self._log_history(what)
            return
        found = figures_of(what, self._objectives)
        for name, value in found.metrics.items():
            self._writer.add_scalar(name, value, step)
        for place, point in enumerate(found.points):
            for name, value in point.items():
                self._writer.add_scalar(f"front/{name}", value, place)
        self._write_series(found.series)
        for name, text in found.texts.items():
            self._writer.add_text(name, text, step)
        if found.params:
            rows = "\n".join(f"    {name}: {value}" for name, value in found.params.items())
            self._writer.add_text("settings", rows, step)
        self._writer.flush()

    def _log_history(self, history: History) -> None:
        done = self._written.get(history, 0)
        if done == history.n_rows:
            return
        self._write_series(series_of(history.to_frame(start=done), self._objectives))
        self._written[history] = history.n_rows
        self._writer.flush()

    def _write_series(self, series: Sequence[tuple[int, Any]]) -> None:
        for at, values in series:
            for name, value in values.items():
                self._writer.add_scalar(name, value, at)

    def close(self) -> None:
        """Close the files; a writer that was given stays open."""
        if self._owns:
            self._writer.close()

    def __enter__(self) -> Self:
        """For ``with``, which closes the files at its end."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the files."""
        self.close()
