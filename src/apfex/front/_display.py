"""The plot of a front: what it shows as one record, drawn by matplotlib or plotly."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self, final

import numpy as np
import pandas as pd
from sklearn.pipeline import Pipeline

from apfex.extras import need_extra
from apfex.groups import grouping_name
from apfex.metrics import best_constant, error_of_counts

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from plotly import graph_objects

    from apfex.front._front import Front

_KINDS = (("a point", "C0", "#4269d0", "circle"), ("trivial", "C7", "#8a8a8a", "circle-open"))


@final
@dataclass(eq=False)
class FrontDisplay:
    """Error against the gap of a criterion, a mark for every point of a front.

    Made by :meth:`from_estimator` or :meth:`from_front`, as displays of scikit-learn are; the same
    record is drawn by :meth:`plot` (matplotlib) and :meth:`to_plotly`.

    Attributes
    ----------
    points : pandas.DataFrame
        A row per point, by its place: ``loss``, ``gap``, ``lower``, ``upper`` (of the gap),
        ``trivial``.
    criterion : str
    noise_floor : float
        The gap that groups of these sizes show at parity, by chance alone; the largest of all
        points.
    constant : float
        The loss of the best decision that looks at nobody.
    loss_name, constant_name, measured_on : str
        What the axis, the cross and the title say.
    chosen : int or None
        The point that the classifier uses; it gets a ring.
    ax_, figure_ : matplotlib Axes and Figure
        What :meth:`plot` has drawn on.

    Examples
    --------
    >>> from apfex import APFExClassifier, make_biased
    >>> from apfex.front import FrontDisplay
    >>> data = make_biased(n=400, random_state=0)
    >>> clf = APFExClassifier(model="linear", epochs=2, max_gap=1.0, random_state=0)
    >>> clf = clf.fit(data.X, data.y, sensitive_features=data.sensitive)
    >>> display = FrontDisplay.from_front(clf.front_)
    >>> display.criterion, len(display.points) == len(clf.front_)
    ('dp', True)
    """

    points: pd.DataFrame
    criterion: str
    noise_floor: float
    constant: float
    loss_name: str
    constant_name: str
    measured_on: str
    chosen: int | None = None
    ax_: Axes = field(init=False, repr=False)
    figure_: Figure = field(init=False, repr=False)

    @classmethod
    def from_front(
        cls, front: Front, criterion: str | None = None, *, chosen: int | None = None
    ) -> Self:
        """What a front shows of its validation rows.

        Parameters
        ----------
        front : Front
        criterion : str, optional
            The first one by default.
        chosen : int, optional
            Place of the point that gets a ring.
        """
        name = _criterion(front, criterion)
        rows = [
            (point.loss, interval.gap, interval.lower, interval.upper, point.trivial)
            for point in front
            for interval in [point.gaps[name]]
        ]
        return cls(
            _table(rows),
            name,
            max(point.gaps[name].noise_floor for point in front),
            front.constant_error,
            front.by.replace("_", " "),
            front.reference,
            "the validation rows",
            chosen,
        )

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        y: Any = None,
        *,
        sensitive_features: Any = None,
        sample_weight: Any = None,
        criterion: str | None = None,
        ax: Axes | None = None,
    ) -> Self:
        """Draw the front of a fitted classifier.

        Parameters
        ----------
        estimator : APFExClassifier
            Fitted. The point that it uses gets a ring.
        X, y, sensitive_features, sample_weight : optional
            Rows that ``fit`` has not seen, to measure every point on; without them the figures
            are those of the validation rows, which choose points and flatter them. On rows of
            your own the axis is the error, whatever the front is ranked by.
        criterion : str, optional
            The first one by default.
        ax : matplotlib Axes, optional
            A new figure by default.
        """
        if isinstance(estimator, Pipeline):
            X = X if X is None else estimator[:-1].transform(X)
            estimator = estimator[-1]
        if not hasattr(type(estimator), "front_"):
            raise TypeError(
                "estimator must be a fitted APFExClassifier, or a pipeline that ends in one, got "
                f"{type(estimator).__name__}."
            )
        front = estimator.front_
        if (X is None) != (y is None):
            raise ValueError("X and y must both be given, or neither, got one of them.")
        if X is None:
            made = cls.from_front(front, criterion, chosen=estimator.point_)
        else:
            given = {"sensitive_features": sensitive_features, "sample_weight": sample_weight}
            made = cls._measured(estimator, X, y, given, _criterion(front, criterion))
        made.plot(ax)
        return made

    @classmethod
    def _measured(cls, estimator: Any, X: Any, y: Any, given: dict[str, Any], name: str) -> Self:
        """Every point, audited on rows of the user's."""
        front, rows, floors = estimator.front_, [], []
        constant, n_rows = np.nan, 0
        for place, point in enumerate(front):
            audit = estimator.at(place).audit(X, y, **given)
            gaps = audit.gaps[audit.gaps["criterion"] == name]
            mine = gaps[gaps["by"].isin([grouping_name(names) for names in point.groupings])]
            widest = mine.sort_values("gap", ascending=False, na_position="last").iloc[0]
            same, n_rows = best_constant(audit.counts), audit.n_rows
            constant = np.nan if same is None else same.error
            trivial = point.trivial or audit.counts.is_constant
            ends = (widest["gap"], widest["lower"], widest["upper"])
            rows.append((error_of_counts(audit.counts), *ends, trivial))
            floors.append(widest["noise_floor"])
        return cls(
            _table(rows),
            name,
            float(np.nanmax(floors)) if np.isfinite(floors).any() else np.nan,
            constant,
            "error",
            "one decision for everybody",
            f"{n_rows:,} rows given",
            estimator.point_,
        )

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw by matplotlib, on axes that are there or new ones; returns the display.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        """
        pyplot = need_extra("plot", "matplotlib.pyplot", "plot")
        if ax is None:
            ax = pyplot.subplots()[1]
        assert ax is not None
        for (label, colour, _, _), rows in self._kinds():
            middle = rows["gap"].to_numpy()
            below, above = middle - rows["lower"], rows["upper"] - middle
            ax.errorbar(
                middle,
                rows["loss"],
                xerr=np.nan_to_num(np.maximum([below, above], 0)),
                fmt="o",
                alpha=0.7,
                color=colour,
                label=f"{label}, 95% interval",
            )
        if self.chosen is not None:
            row = self.points.loc[self.chosen]
            ring = {"mfc": "none", "mec": "black", "ms": 12, "ls": "none"}
            ax.plot(row["gap"], row["loss"], "o", label=f"point {self.chosen}, in use", **ring)
        ax.axvline(self.noise_floor, linestyle=":", color="grey", label="expected gap at parity")
        ax.plot([0], [self.constant], "x", color="C3", label=self._constant_label)
        ax.set(xlabel=f"{self.criterion} gap", ylabel=self.loss_name, title=self._title)
        ax.annotate("better", (0, 0), (18, 14), color="grey", fontsize=9, **_ARROW)
        ax.legend()
        figure: Any = ax.get_figure(root=True)
        self.ax_, self.figure_ = ax, figure
        return self

    def to_plotly(self) -> graph_objects.Figure:
        """The same by plotly: a figure whose marks tell their point, gap, interval and error."""
        plotly = need_extra("plotly", "plotly.graph_objects", "to_plotly")
        figure = plotly.Figure()
        for (label, _, colour, symbol), rows in self._kinds():
            figure.add_scatter(
                x=rows["gap"],
                y=rows["loss"],
                error_x={
                    "type": "data",
                    "symmetric": False,
                    "array": (rows["upper"] - rows["gap"]).clip(lower=0),
                    "arrayminus": (rows["gap"] - rows["lower"]).clip(lower=0),
                },
                mode="markers",
                marker={"color": colour, "symbol": symbol, "size": 9},
                name=f"{label}, 95% interval",
                text=[self._said(place, row) for place, row in rows.iterrows()],
                hoverinfo="text",
            )
        cross = {"color": "#c0392b", "symbol": "x", "size": 9}
        figure.add_scatter(
            x=[0], y=[self.constant], mode="markers", marker=cross, name=self._constant_label
        )
        if self.chosen is not None:
            row = self.points.loc[self.chosen]
            ring = {"color": "#111", "symbol": "circle-open", "size": 16}
            name = f"point {self.chosen}, in use"
            figure.add_scatter(
                x=[row["gap"]], y=[row["loss"]], mode="markers", marker=ring, name=name
            )
        figure.add_vline(self.noise_floor, line_dash="dot", annotation_text="expected at parity")
        figure.update_layout(
            title=self._title,
            xaxis_title=f"{self.criterion} gap (better to the left)",
            yaxis_title=f"{self.loss_name} (better below)",
            template="plotly_white",
        )
        return figure

    @property
    def _title(self) -> str:
        return f"Front, measured on {self.measured_on}"

    @property
    def _constant_label(self) -> str:
        return f"{self.constant_name} ({self.constant:.3f})"

    def _kinds(self) -> list[tuple[tuple[str, str, str, str], pd.DataFrame]]:
        """Points that are models, and trivial ones, where there are any."""
        split: list[Any] = [self.points[self.points["trivial"] == kind] for kind in (False, True)]
        return [(kind, rows) for kind, rows in zip(_KINDS, split, strict=True) if len(rows)]

    def _said(self, place: Any, row: Any) -> str:
        return (
            f"point {place}: {self.criterion} gap {row['gap']:.3f} ({row['lower']:.3f} to "
            f"{row['upper']:.3f}), {self.loss_name} {row['loss']:.3f}"
        )


_ARROW: dict[str, Any] = {
    "xycoords": "axes fraction",
    "textcoords": "offset points",
    "arrowprops": {"arrowstyle": "->", "color": "grey"},
}


def _table(rows: list[tuple[Any, ...]]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["loss", "gap", "lower", "upper", "trivial"])


def _criterion(front: Front, criterion: str | None) -> str:
    names = list(front[0].gaps)
    name = criterion or next(iter(names), "none")
    if name not in names:
        raise ValueError(f"criterion must be one of {names}, got {name!r}.")
    return name
