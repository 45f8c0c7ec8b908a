"""The paper's Figure 1: how a step is made, in the names of this package's own code."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn

from apfex.constraints import Constraint, constraint_step
from apfex.datasets import Dataset
from apfex.front import ParetoFront
from apfex.gradients import Jacobian, jacobian
from apfex.groups import Groups
from apfex.history import History, StepRecord
from apfex.objectives import CrossEntropy, FairnessLoss
from apfex.optimizer import APFEx
from apfex.strategies import AdaptiveSwitch, Choice, Decision, StepView
from apfex_reproduction.experiments._boxes import (
    Arrow,
    Box,
    across,
    draw_arrow,
    draw_box,
    upright,
    write,
)
from apfex_reproduction.experiments._drawing import BANDS, check_path, new_figure, own_style, save

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_NOTE = (
    "Blue: names of the code, its room first.",
    "Dashed: what one call does. m: number of objectives.",
)
_WIDTH, _HEIGHT = 12.15, 6.75


def draw_workflow(path: str | os.PathLike[str] | None = None) -> Figure:
    """Draw how data become a step, and steps a front.

    Parameters
    ----------
    path : path ending with .png, .svg or .pdf, optional
        Where to write it; always the same bytes.

    Returns
    -------
    matplotlib.figure.Figure
        Unknown to pyplot, so nothing needs to be closed.

    Notes
    -----
    Algorithm 1 and Figure 1 of the paper. Classes, functions, fields and thresholds are read from
    the code when the drawing is made, so it cannot name what is not there.

    Examples
    --------
    >>> from apfex_reproduction.experiments import draw_workflow
    >>> figure = draw_workflow()
    >>> "strategies.AdaptiveSwitch" in [text.get_text() for text in figure.axes[0].texts]
    True
    """
    file = check_path(path)
    with own_style():
        figure = new_figure(_WIDTH, _HEIGHT)
        ax = figure.add_axes((0, 0, 1, 1))
        ax.set(xlim=(0, _WIDTH), ylim=(0, _HEIGHT))
        ax.set_axis_off()
        boxes = _stages()
        _draw_frame(ax, boxes)
        for name, box in boxes.items():
            draw_box(ax, box, from_top=name == "switch")
        for box in _strategies(boxes["switch"]):
            draw_box(ax, box)
        write(ax, boxes["switch"].x, boxes["switch"].bottom + 0.16, "else as before", "remark")
        for place, line in enumerate(_NOTE):
            write(ax, 2.85, 0.85 - 0.2 * place, line, "remark")
        for arrow in _arrows(boxes):
            draw_arrow(ax, arrow)
        if file is not None:
            save(figure, file)
    return figure


def _stages() -> dict[str, Box]:
    """The first row from left to right, the second back again, and the history below."""
    data, model, middle, last = 1.25, 4.45, 7.4, 10.5  # columns
    first, second, third = 5.6, 3.1, 0.75  # rows
    size = (2.1, 1.15)
    optimizer = inside(torch.optim, torch.optim.Optimizer)
    return {
        "data": Box(
            (data, first), size, "Data", (address(Dataset), address(Groups)), "rows, their groups"
        ),
        "model": Box((model, first), size, "Model", (inside(nn, nn.Module),), "any network"),
        "losses": Box(
            (middle, first),
            size,
            "Losses",
            (address(CrossEntropy), address(FairnessLoss)),
            "one per objective",
        ),
        "gradients": Box(
            (last, first),
            size,
            "Gradients",
            (address(jacobian), address(StepView)),
            "over their scales",
        ),
        "switch": Box((last, second), (2.8, 3.0), "Strategy switch", (address(AdaptiveSwitch),)),
        "constraint": Box(
            (middle, second),
            size,
            "Constraint step",
            (address(Constraint), address(constraint_step)),
            "keeps to bounds",
        ),
        "update": Box(
            (model, second), size, "Parameter update", (address(APFEx.step), optimizer), "one step"
        ),
        "front": Box(
            (data, second), size, "Front", (address(ParetoFront),), "what nothing dominates"
        ),
        "history": Box(
            ((middle + last) / 2 + 0.175, third),
            (last - middle + 2.45, 0.75),
            "History",
            (address(History),),
            "window by window",
        ),
    }


def _strategies(switch: Box) -> list[Box]:
    """The three, in the order in which the switch looks at their conditions."""
    rule = AdaptiveSwitch()
    still = f"losses move < {rule.tolerance:g} for {rule.patience} windows"
    uneven = f"improvements differ {rule.imbalance:g}-fold"
    agree = f"most cosines are > {rule.aligned:g}"
    middle = [(Choice.AW, rule.weighting, uneven), (Choice.PCP, rule.cone, agree)]
    if rule.order == "cone_first":
        middle.reverse()
    rows = [(Choice.PSS, rule.sampling, still), *middle]
    return [
        Box(
            (switch.x, switch.top - 0.93 - 0.72 * place),
            (switch.width - 0.2, 0.65),
            choice.name,
            (type(strategy).__name__,),
            f"{'else ' if place else ''}if {condition}",
            BANDS[choice.name]["facecolor"],
        )
        for place, (choice, strategy, condition) in enumerate(rows)
    ]


def _arrows(boxes: Mapping[str, Box]) -> list[Arrow]:
    """What travels from box to box."""
    data, model, losses, gradients = (boxes[k] for k in ("data", "model", "losses", "gradients"))
    switch, constraint, update = (boxes[k] for k in ("switch", "constraint", "update"))
    front, history = boxes["front"], boxes["history"]
    over = data.top + 0.3
    around = ((data.x, data.top), (data.x, over), (losses.x, over), (losses.x, losses.top))
    known = f"{member(Dataset, 'y')}, {member(Groups, 'codes')}"
    gramian = f"{member(Jacobian, 'gramian')} [m, m]"
    decided = f"{member(Decision, 'weights')},\n{member(Decision, 'blend')}"
    past = f"{member(History, 'last_losses')},\n{member(History, 'last_choices')}"
    return [
        across(data, model, member(Dataset, "X")),
        Arrow(around, known, (model.x, over)),
        across(model, losses, "scores"),
        across(losses, gradients, member(StepView, "losses"), 0.27),
        upright(gradients, switch, gramian, gradients.x),
        across(switch, constraint, decided),
        across(constraint, update, "direction", 0.58),
        upright(update, model, "new parameters,\nnext batch", update.x),
        across(update, front, "errors and gaps\non validation rows"),
        upright(constraint, history, StepRecord.__name__, constraint.x),
        upright(history, switch, past, switch.x),
    ]


def _draw_frame(ax: Axes, boxes: Mapping[str, Box]) -> None:
    """A dashed line around what one call does, named by that call."""
    from matplotlib.patches import Polygon

    gradients, switch, constraint = (boxes[k] for k in ("gradients", "switch", "constraint"))
    top, notch = gradients.top + 0.42, switch.top + 0.15
    bottom, right = boxes["history"].bottom - 0.15, switch.right + 0.15
    left, corner = constraint.left - 0.15, switch.left - 0.15
    edge = [(left, bottom), (right, bottom), (right, top), (corner, top), (corner, notch)]
    ax.add_patch(
        Polygon(
            np.array([*edge, (left, notch)]),
            closed=True,
            facecolor="#f3f8fc",
            edgecolor="#5b87ad",
            linewidth=0.9,
            linestyle=(0, (4, 3)),
            zorder=0,
        )
    )
    write(ax, gradients.x, gradients.top + 0.21, address(APFEx.backward), "name")


def address(thing: Callable[..., Any]) -> str:
    """Room and name, as a reader would import it: ``strategies.AdaptiveSwitch``."""
    return f"{thing.__module__.split('.')[1]}.{thing.__qualname__}"


def inside(module: Any, thing: type) -> str:
    """A name of another library at its public address: ``torch.nn.Module``."""
    return f"{module.__name__}.{getattr(module, thing.__name__).__name__}"


def member(owner: type, name: str) -> str:
    """The name of a field, property or method, if the class still has it."""
    if name not in getattr(owner, "__dataclass_fields__", {}) and not hasattr(owner, name):
        raise AttributeError(f"{owner.__name__} has no {name!r}; the drawing needs its new name.")
    return name
