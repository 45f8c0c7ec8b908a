"""What happened so far, window by window; read-only to strategies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import torch
from torch import Tensor

from apfex.arguments import require_flags, require_whole
from apfex.markup import html_section, html_table, in_html

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["History"]


@final
@dataclass(frozen=True, eq=False)
class StepRecord:
    """One step: m-sized quantities only, with leading axes for members.

    Attributes
    ----------
    losses, weights : Tensor of shape [..., m]
        Losses over their scales, and the weights given to their gradients.
    choice : integer Tensor of shape [...] or None
        Which strategy decided, where there are several.
    direction_norm : Tensor of shape [...]
        Length of what went into ``.grad``.
    norms : Tensor of shape [..., m] or None
        Lengths of the scaled gradients, where they were computed.
    alignment : Tensor of shape [...] or None
        Mean cosine over pairs of gradients, where they were computed.
    omega, omega_active : Tensor of shape [...] or None
        Length of the shortest combination of all gradients, and of those that are not zero: 0
        means Pareto-stationary.
    harmful : bool Tensor of shape [...] or None
        Whether a step that descends in prediction space raises a loss in parameter space,
        where it was measured.
    slack : Tensor of shape [...] or None
        By how much the constraints had to be given up, where there were active ones.
    """

    losses: Tensor
    weights: Tensor
    choice: Tensor | None
    direction_norm: Tensor
    norms: Tensor | None = None
    alignment: Tensor | None = None
    omega: Tensor | None = None
    omega_active: Tensor | None = None
    harmful: Tensor | None = None
    slack: Tensor | None = None


@final
class History:
    """Means over windows of steps, and what strategies need to remember.

    Parameters
    ----------
    n_objectives : int
        m.
    window : int
        Steps in a window.
    members : sequence of int
        Leading axes: ``()`` for one model, ``(b,)`` for a population.
    trace : bool
        Also keep every single step (for plots; memory grows with the steps).
    choice_names : sequence of str
        Names of the strategies that ``choice`` numbers.
    device : torch.device or str
        Where the records live; they are never copied elsewhere, so a GPU is not waited for.

    Examples
    --------
    >>> history = History(n_objectives=2, window=2)
    >>> for loss in (1.0, 0.5, 0.25, 0.25):
    ...     losses = torch.tensor([loss, 1.0])
    ...     history.record(StepRecord(losses, losses, torch.tensor(0), torch.tensor(1.0)))
    >>> history.losses
    tensor([[0.7500, 1.0000],
            [0.2500, 1.0000]], dtype=torch.float64)
    """

    n_objectives: int
    window: int
    members: tuple[int, ...]
    trace: bool
    device: torch.device
    choice_names: tuple[str, ...]
    step: int

    def __init__(
        self,
        n_objectives: int,
        window: int,
        members: Sequence[int] = (),
        trace: bool = False,
        choice_names: Sequence[str] = (),
        device: torch.device | str = "cpu",
    ) -> None:
        require_whole(n_objectives=n_objectives, window=window)
        if n_objectives < 1:
            raise ValueError(f"n_objectives must be at least 1, got {n_objectives}.")
        if window < 1:
            raise ValueError(f"window must be at least 1, got {window}.")
        self.n_objectives, self.window = n_objectives, window
        self.members, self.trace, self.device = tuple(members), trace, torch.device(device)
        self.choice_names = tuple(choice_names)
        self.step = 0
        self._sums = self._empty_sums()
        self._closed: dict[str, list[Tensor]] = {name: [] for name in _WINDOW_COLUMNS}
        self._steps: list[dict[str, Tensor]] = []
        self._largest_norms = self._full(0.0, n_objectives)
        self._measured = self._harmful = self._full(0.0)

    @property
    def starts_window(self) -> bool:
        """Whether the coming step is the first of a window."""
        return self.step % self.window == 0

    @property
    def n_windows(self) -> int:
        """Number of completed windows w."""
        return len(self._closed["losses"])

    @property
    def losses(self) -> Tensor:
        """Mean losses of the completed windows, shape [w, ..., m]."""
        return self._column("losses")

    @property
    def weights(self) -> Tensor:
        """Mean weights of the completed windows, shape [w, ..., m]."""
        return self._column("weights")

    @property
    def current_choice(self) -> Tensor:
        """Strategy of the window that is under way, shape [...]."""
        return self._sums["choice"]

    @property
    def largest_norms(self) -> Tensor:
        """Longest scaled gradient seen of each objective, shape [..., m]."""
        return self._largest_norms

    @property
    def harmful_share(self) -> Tensor:
        """Share of the measured prediction-space steps that raise a loss, shape [...]."""
        return self._harmful / self._measured.clamp(min=1)

    def last_losses(self, windows: int) -> Tensor:
        """Mean losses of the last few completed windows, at most ``windows`` of them."""
        return torch.stack(self._closed["losses"][-windows:])

    def last_choices(self, windows: int) -> Tensor:
        """Strategies of the last few completed windows."""
        return torch.stack(self._closed["choice"][-windows:])

    def record(self, record: StepRecord) -> None:
        """Add one step, and close the window if it is the last of it."""
        row = self._row(record)
        for name, value in row.items():
            if name in _AVERAGED:
                value = self._sums[name] + value
            elif name == "slack":
                value = torch.fmax(self._sums[name], value)  # the worst of the window
            self._sums[name] = value
        if record.norms is not None:
            self._largest_norms = torch.maximum(self._largest_norms, row["norms"])
        if record.harmful is not None:
            self._measured = self._measured + 1
            self._harmful = self._harmful + record.harmful.to(self.device, torch.float64)
        if self.trace:
            self._steps.append(row)
        self.step += 1
        if self.starts_window:
            self._close_window()

    def rescale(self, factor: Tensor) -> None:
        """Multiply all losses by a factor [..., m]: their scales have changed."""
        if bool((factor == 1).all()):
            return
        for row in [self._sums, *self._steps]:
            row["losses"] = row["losses"] * factor
        self._closed["losses"] = [losses * factor for losses in self._closed["losses"]]

    def forget_norms(self) -> None:
        """Start anew with the longest gradients, as they are measured in another space now."""
        self._largest_norms = torch.zeros_like(self._largest_norms)

    @property
    def n_rows(self) -> int:
        """Steps (with ``trace``) or completed windows that :meth:`to_frame` shows."""
        return len(self._steps) if self.trace else self.n_windows

    def to_frame(self, members: Sequence[int] | None = None, *, start: int = 0) -> pd.DataFrame:
        """One row per step (with ``trace``) or window, and member: what a plot needs.

        Parameters
        ----------
        members : sequence of int, optional
            Those that are shown; all by default.
        start : int
            The first step or window that is shown, of ``n_rows``.

        Returns
        -------
        pandas.DataFrame
            ``step`` (the first of a window), ``member``, ``loss0``, ..., ``weight0``, ..., and the
            other entries of :class:`StepRecord`: NaN where one was not measured. A trace without
            any choice has no column of choices.
        """
        import pandas as pd

        rows = (self._steps if self.trace else self._window_rows())[start:]
        shown = range(torch.Size(self.members).numel()) if members is None else members
        names = [n for n in _WINDOW_COLUMNS if n != "choice" or any(n in row for row in rows)]
        records = [
            self._record_of(member, position if self.trace else position * self.window, row, names)
            for position, row in enumerate(map(self._listed, rows), start)
            for member in shown
        ]
        frame = pd.DataFrame(records)
        if self.choice_names and "choice" in frame:
            known = dict(enumerate(self.choice_names))
            strategies = [known.get(int(choice), str(int(choice))) for choice in frame["choice"]]
            frame.insert(2, "strategy", strategies)
        return frame

    def __repr__(self) -> str:
        """How much of what it holds."""
        members = torch.Size(self.members).numel()
        several = f" of {members} members" if self.members else ""
        return (
            f"<History{several}: {self.n_windows} windows of {self.window} steps, "
            f"{self.n_objectives} objectives>"
        )

    def _repr_html_(self) -> str:
        """The last windows or steps, of the first members."""
        first = max(self.n_rows - _SHOWN, 0)
        count = min(torch.Size(self.members).numel(), _SHOWN)
        frame = self.to_frame(range(count), start=first)
        cells = [[_cell(value) for value in row] for row in frame.itertuples(index=False)]
        caption = in_html(repr(self).strip("<>"))
        return html_section("apfex-history", html_table(caption, list(frame.columns), cells))

    def state_dict(self) -> dict[str, Any]:
        """All of it, for a checkpoint."""
        return {
            "n_objectives": self.n_objectives,
            "window": self.window,
            "members": list(self.members),
            "trace": self.trace,
            "choice_names": list(self.choice_names),
            "step": self.step,
            "sums": dict(self._sums),
            "closed": {name: list(rows) for name, rows in self._closed.items()},
            "steps": [dict(row) for row in self._steps],
            "largest_norms": self._largest_norms,
            "measured": self._measured,
            "harmful": self._harmful,
        }

    @classmethod
    def from_state_dict(
        cls,
        state: dict[str, Any],
        device: torch.device | str = "cpu",
        like: History | None = None,
    ) -> History:
        """Continue where :meth:`state_dict` was taken, wherever that was.

        What does not fit together is refused, and one of another kind than ``like``.
        """
        missing = _missing(state, cls(1, 1).state_dict())
        if missing:
            raise ValueError(
                f"The state of a history must come from History.state_dict, got one without "
                f"{missing}; save it again, whole."
            )
        given = {name: state[name] for name in _SETTINGS}
        if like is not None and any(given[name] != _settings(like)[name] for name in _SETTINGS):
            raise ValueError(
                f"The state of a history must be of one with {_settings(like)}, got {given}."
            )
        _check_settings(given)
        history = cls(**given, device=device)
        _check_rows(state, history)
        history.step = state["step"]
        history._sums = _moved(state["sums"], device)
        history._closed = {
            name: [row.to(device) for row in rows] for name, rows in state["closed"].items()
        }
        history._steps = [_moved(row, device) for row in state["steps"]]
        for name in ("largest_norms", "measured", "harmful"):
            setattr(history, f"_{name}", state[name].to(device))
        return history

    def _empty_sums(self) -> dict[str, Tensor]:
        return {
            "losses": self._full(0.0, self.n_objectives),
            "weights": self._full(0.0, self.n_objectives),
            "direction_norm": self._full(0.0),
            "choice": self._full(0).long(),
            "norms": self._full(torch.nan, self.n_objectives),
            "alignment": self._full(torch.nan),
            "harmful": self._full(torch.nan),
            "omega": self._full(torch.nan),
            "omega_active": self._full(torch.nan),
            "slack": self._full(torch.nan),
        }

    def _full(self, value: float, *tail: int) -> Tensor:
        shape = (*self.members, *tail)
        return torch.full(shape, value, dtype=torch.float64, device=self.device)

    def _row(self, record: StepRecord) -> dict[str, Tensor]:
        """The step in float64, so that means do not depend on the model's precision."""
        row = {}
        for name in _WINDOW_COLUMNS:
            value = getattr(record, name)
            if value is not None:
                kept = self._kept(value, _DTYPES.get(name, torch.float64))
                row[name] = kept.clone() if kept is value else kept  # a strategy may go on with it
        return row

    def _kept(self, value: Tensor, dtype: torch.dtype) -> Tensor:
        if value.dtype == dtype and value.device == self.device and not value.requires_grad:
            return value
        return value.detach().to(self.device, dtype)

    def _close_window(self) -> None:
        for name in _WINDOW_COLUMNS:
            value = self._sums[name]
            self._closed[name].append(value / self.window if name in _AVERAGED else value)
        self._sums = self._empty_sums()

    def _column(self, name: str) -> Tensor:
        rows = self._closed[name]
        if not rows:
            return self._full(0.0, self.n_objectives).unsqueeze(0)[:0]
        return torch.stack(rows)

    def _listed(self, row: dict[str, Tensor]) -> dict[str, list[list[float]]]:
        """The same, as numbers of each member."""
        count = torch.Size(self.members).numel()
        return {name: value.reshape(count, -1).tolist() for name, value in row.items()}

    def _record_of(
        self, member: int, step: int, row: dict[str, list[list[float]]], names: Sequence[str]
    ) -> dict[str, float]:
        """What a table shows of one member at one step; NaN for what was not measured then."""
        record: dict[str, float] = {"step": step, "member": member}
        for name in names:
            n = self.n_objectives if name in _STEMS else 1
            entries = row[name][member] if name in row else [torch.nan] * n
            if name in _STEMS:
                record |= {f"{_STEMS[name]}{k}": entry for k, entry in enumerate(entries)}
            else:
                record[name] = entries[0]
        return record

    def _window_rows(self) -> list[dict[str, Tensor]]:
        return [
            {name: self._closed[name][w] for name in _WINDOW_COLUMNS} for w in range(self.n_windows)
        ]


_WINDOW_COLUMNS = (
    "losses",
    "weights",
    "direction_norm",
    "choice",
    "norms",
    "alignment",
    "harmful",
    "omega",
    "omega_active",
    "slack",
)
_SETTINGS = ("n_objectives", "window", "members", "trace", "choice_names")
_SHOWN = 5
_AVERAGED = ("losses", "weights", "direction_norm")
"""Over a window the mean of these is kept, of the others the last value."""
_DTYPES = {"choice": torch.int64}
_STEMS = {"losses": "loss", "weights": "weight", "norms": "norm"}
"""Columns with an entry per objective, in a frame ``loss0``, ``loss1``, ..."""


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return "-" if value != value else f"{value:.4g}"
    return str(in_html(value))


def _settings(history: History) -> dict[str, Any]:
    state = {name: getattr(history, name) for name in _SETTINGS}
    return {name: list(one) if isinstance(one, tuple) else one for name, one in state.items()}


def _check_settings(given: Mapping[str, Any]) -> None:
    """Refuse settings of other kinds than those of a history, and more of them than anybody has."""
    require_flags(trace=given["trace"])
    members, names = given["members"], given["choice_names"]
    if not isinstance(members, list) or not isinstance(names, list):
        raise ValueError("members and choice_names of a history must be lists, got others.")
    require_whole(**{f"members[{place}]": one for place, one in enumerate(members)})
    if min(members, default=0) < 0 or not all(isinstance(name, str) for name in names):
        raise ValueError(f"members must be counts and choice_names text, got {members}, {names}.")


def _check_rows(state: Mapping[str, Any], history: History) -> None:
    """Refuse records of other shapes and numbers than the settings of a history say."""
    step, whole = state["step"], history._sums
    require_whole(step=step)
    n_windows = step // history.window
    closed, steps = state["closed"], state["steps"]
    n_steps = step if history.trace else 0
    if step < 0 or closed.keys() != whole.keys() or len(steps) != n_steps:
        raise ValueError(f"A history of {step} steps must have as many, got {len(steps)}.")
    if any(not isinstance(rows, list) or len(rows) != n_windows for rows in closed.values()):
        raise ValueError(f"A history of {step} steps must have {n_windows} windows.")
    rows = [state["sums"], *({n: closed[n][w] for n in closed} for w in range(n_windows)), *steps]
    for row in rows:
        for name, value in row.items():
            _check_row(name, value, whole)
    for name in ("largest_norms", "measured", "harmful"):
        _check_row("norms" if name == "largest_norms" else "harmful", state[name], whole)


def _check_row(name: str, value: Any, whole: Mapping[str, Tensor]) -> None:
    own = whole.get(name)
    if own is None or not isinstance(value, Tensor) or value.dtype != own.dtype:
        raise ValueError(f"The {name} of a history must be like {own}, got {str(value)[:60]}.")
    if value.shape != own.shape:
        raise ValueError(
            f"The {name} of a history must have shape {list(own.shape)}, got {list(value.shape)}."
        )


def _missing(state: Any, whole: Mapping[str, Any], within: str = "") -> list[str]:
    """Names that a state lacks, also within its parts."""
    given = state if isinstance(state, Mapping) else {}
    names = [f"{within}{name}" for name in whole if name not in given]
    for name, part in whole.items():
        if name in given and isinstance(part, Mapping):
            names += _missing(given[name], part, f"{within}{name}.")
    return names


def _moved(row: dict[str, Tensor], device: torch.device | str) -> dict[str, Tensor]:
    return {name: value.to(device) for name, value in row.items()}
