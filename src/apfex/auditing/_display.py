"""The plot of an audit: its gaps as one record, drawn by matplotlib or plotly."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self, final

import numpy as np
import pandas as pd

from apfex.auditing._verdicts import worst_first
from apfex.extras import need_extra
from apfex.plain import printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from plotly import graph_objects

    from apfex.auditing._result import Audit

_COLOURS = {
    "violation": ("C3", "#c0392b"),
    "within tolerance": ("C2", "#2e8b57"),
    "inconclusive": ("C7", "#8a8a8a"),
}


@final
@dataclass(eq=False)
class GapDisplay:
    """Gaps with intervals, noise floors and verdicts, the worst on top.

    Made by :meth:`from_estimator`, :meth:`from_predictions` or :meth:`from_audit`, as displays of
    scikit-learn are; the same record is drawn by :meth:`plot` (matplotlib) and :meth:`to_plotly`.

    Attributes
    ----------
    gaps : pandas.DataFrame
        Rows of ``Audit.gaps`` that are estimable, the worst first.
    tolerance, confidence : float
    ax_, figure_ : matplotlib Axes and Figure
        What :meth:`plot` has drawn on.

    Examples
    --------
    >>> from apfex import audit
    >>> from apfex.auditing import GapDisplay
    >>> sex, decided = ["F"] * 200 + ["M"] * 200, [0, 0, 0, 1] * 50 + [0, 1] * 100
    >>> result = audit(None, decided, sensitive_features={"sex": sex}, criteria="dp")
    >>> GapDisplay.from_audit(result).gaps["verdict"].tolist()
    ['violation']
    """

    gaps: pd.DataFrame
    tolerance: float
    confidence: float
    ax_: Axes = field(init=False, repr=False)
    figure_: Figure = field(init=False, repr=False)

    @classmethod
    def from_audit(cls, audit: Audit, *, max_rows: int = 30) -> Self:
        """What an audit has found.

        Parameters
        ----------
        audit : Audit
        max_rows : int
            The worst so many.
        """
        gaps = worst_first(audit.gaps.dropna(subset=["gap"])).head(max_rows)
        settings = audit.settings
        return cls(gaps.reset_index(drop=True), settings.tolerance, settings.confidence)

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_pred: Any,
        *,
        sensitive_features: Any,
        ax: Axes | None = None,
        max_rows: int = 30,
        **settings: Any,
    ) -> Self:
        """Audit decisions, and draw it.

        Parameters
        ----------
        y_true, y_pred, sensitive_features
            As for :func:`apfex.audit`.
        ax : matplotlib Axes, optional
            A new figure by default.
        max_rows : int
            The worst so many.
        **settings
            What else :func:`apfex.audit` takes, such as ``tolerance``.
        """
        from apfex.auditing._audit import audit

        found = audit(y_true, y_pred, sensitive_features=sensitive_features, **settings)
        return cls.from_audit(found, max_rows=max_rows).plot(ax)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        sensitive_features: Any = None,
        ax: Axes | None = None,
        max_rows: int = 30,
        **settings: Any,
    ) -> Self:
        """Audit what a fitted classifier decides for rows that it has not seen, and draw it.

        Parameters
        ----------
        estimator : classifier
            An ``APFExClassifier`` audits itself (its criteria, its favorable label); of any other
            the labels that ``predict`` gives are audited.
        X, y, sensitive_features
            As for ``estimator.audit``.
        ax, max_rows
            As for :meth:`from_predictions`.
        **settings
            What else the audit takes, such as ``tolerance``.
        """
        if hasattr(estimator, "audit"):
            found = estimator.audit(X, y, sensitive_features=sensitive_features, **settings)
            return cls.from_audit(found, max_rows=max_rows).plot(ax)
        return cls.from_predictions(
            y,
            estimator.predict(X),
            sensitive_features=sensitive_features,
            ax=ax,
            max_rows=max_rows,
            **settings,
        )

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw by matplotlib, on axes that are there or new ones; returns the display.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        """
        pyplot = need_extra("plot", "matplotlib.pyplot", "plot")
        if ax is None:
            ax = pyplot.subplots(figsize=(7, 1.5 + 0.35 * len(self.gaps)), layout="constrained")[1]
        assert ax is not None
        places = np.arange(len(self.gaps))[::-1]
        for verdict, (colour, _) in _COLOURS.items():
            rows = (self.gaps["verdict"] == verdict).to_numpy()
            if rows.any():
                middle, low, high = self.gaps[["gap", "lower", "upper"]].to_numpy()[rows].T
                ax.errorbar(
                    middle,
                    places[rows],
                    xerr=np.maximum([middle - low, high - middle], 0),
                    fmt="o",
                    color=colour,
                    capsize=3,
                    label=verdict,
                )
        floor = self.gaps["noise_floor"].to_numpy()
        ax.plot(floor, places, "|", color="black", markersize=12, label="noise floor")
        ax.axvline(self.tolerance, linestyle="--", color="grey", label="tolerance")
        ax.set_yticks(places, [name.replace("$", r"\$") for name in self._names])
        ax.set(xlabel=_BETTER, ylabel="criterion and grouping", title=self._title)
        ax.set_ylim(-0.75, len(places) - 0.25)
        ax.legend()
        figure: Any = ax.get_figure(root=True)
        self.ax_, self.figure_ = ax, figure
        return self

    def to_plotly(self) -> graph_objects.Figure:
        """The same by plotly: a figure whose marks tell gap, interval, groups and verdict."""
        plotly = need_extra("plotly", "plotly.graph_objects", "to_plotly")
        figure, names = plotly.Figure(), np.array([_as_text(name) for name in self._names], object)
        for verdict, (_, colour) in _COLOURS.items():
            places = (self.gaps["verdict"] == verdict).to_numpy()
            rows: Any = self.gaps[places]
            if len(rows):
                figure.add_scatter(
                    x=rows["gap"],
                    y=names[places],
                    error_x={
                        "type": "data",
                        "symmetric": False,
                        "array": (rows["upper"] - rows["gap"]).clip(lower=0),
                        "arrayminus": (rows["gap"] - rows["lower"]).clip(lower=0),
                    },
                    mode="markers",
                    marker={"color": colour, "size": 9},
                    name=verdict,
                    text=[_said(row) for row in rows.to_dict("records")],
                    hoverinfo="text",
                )
        floor = {"color": "#111", "symbol": "line-ns-open", "size": 12}
        figure.add_scatter(
            x=self.gaps["noise_floor"], y=names, mode="markers", marker=floor, name="noise floor"
        )
        figure.add_vline(self.tolerance, line_dash="dash", annotation_text="tolerance")
        figure.update_layout(title=self._title, xaxis_title=_BETTER, template="plotly_white")
        figure.update_yaxes(categoryorder="array", categoryarray=names[::-1])
        return figure

    @property
    def _names(self) -> list[str]:
        rows = self.gaps.to_dict("records")
        return [f"{row['criterion']} by {printable(row['by'], 40)}" for row in rows]

    @property
    def _title(self) -> str:
        return f"Gaps with {100 * self.confidence:g}% intervals"


_BETTER = "gap between groups (better to the left)"


def _said(row: Any) -> str:
    ends = f"{_as_text(row['lowest'])} {row['lowest_rate']:.3f}"
    ends += f"<br>{_as_text(row['highest'])} {row['highest_rate']:.3f}"
    interval = f"{row['lower']:.3f} to {row['upper']:.3f}"
    return f"{row['gap']:.3f} ({interval}), {row['verdict']}<br>{ends}"


def _as_text(name: object) -> str:
    """Plotly reads some markup in texts; names from data have none."""
    return printable(name).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
