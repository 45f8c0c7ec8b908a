"""The drawing names what the code has, and nothing runs into anything else."""

import importlib
from itertools import combinations, pairwise

import numpy as np
import pytest
import torch
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch
from matplotlib.transforms import Bbox

from apfex.strategies import AdaptiveSwitch, Choice, Decision
from apfex_reproduction.experiments._workflow import (
    _arrows,
    _stages,
    address,
    draw_workflow,
    member,
)


@pytest.fixture(scope="module")
def drawing():
    return draw_workflow()


@pytest.fixture(scope="module")
def ax(drawing):
    return drawing.axes[0]


def texts_of(ax, family=None):
    return [t for t in ax.texts if family is None or t.get_family() == [family]]


def extent(ax, artist) -> Bbox:
    renderer = ax.figure.canvas.get_renderer()
    return artist.get_window_extent(renderer).transformed(ax.transData.inverted())


def holds(outer: Bbox, inner: Bbox) -> bool:
    return bool(np.all([outer.min < inner.min, inner.max < outer.max]))


def boxes_of(ax) -> dict[str, Bbox]:
    return {
        str(patch.get_gid()): Bbox.from_bounds(
            patch.get_x(), patch.get_y(), patch.get_width(), patch.get_height()
        )
        for patch in ax.patches
        if isinstance(patch, FancyBboxPatch)
    }


ARROWS = _arrows(_stages())


def test_every_name_leads_to_something_public(ax):
    names = [text.get_text() for text in texts_of(ax, "monospace")]
    assert len(names) > 15
    for name in names:
        if name.startswith("torch."):
            thing, rest = torch, name.split(".")[1:]
        else:
            room, *rest = name.split(".") if "." in name else ("strategies", name)
            thing = importlib.import_module(f"apfex.{room}")
            assert not any(part.startswith("_") for part in rest), name
        for part in rest:
            thing = getattr(thing, part)


def test_the_stages_of_the_algorithm_are_there(ax):
    names = {text.get_text() for text in texts_of(ax, "monospace")}
    assert names >= {
        "datasets.Dataset",
        "torch.nn.Module",
        "objectives.FairnessLoss",
        "gradients.jacobian",
        "strategies.AdaptiveSwitch",
        "constraints.constraint_step",
        "optimizer.APFEx.step",
        "front.ParetoFront",
        "history.History",
    }


def test_the_switch_is_drawn_as_it_is(ax):
    rule, texts = AdaptiveSwitch(), [text.get_text() for text in texts_of(ax)]
    held = {Choice.PCP: rule.cone, Choice.AW: rule.weighting, Choice.PSS: rule.sampling}
    for choice, strategy in held.items():
        assert texts[texts.index(choice.name) + 1] == type(strategy).__name__
    text = "\n".join(texts)
    assert f"{rule.tolerance:g} for {rule.patience} windows" in text
    assert f"{rule.imbalance:g}-fold" in text


def test_strategies_stand_in_the_order_of_the_rule(ax):
    boxes = boxes_of(ax)
    heights = [boxes[f"box: {name}"].y0 for name in ("PSS", "AW", "PCP")]
    assert AdaptiveSwitch().order == "weighting_first"
    assert heights == sorted(heights, reverse=True)


def test_text_lies_within_its_box(ax):
    boxes, page = list(boxes_of(ax).values()), ax.viewLim
    for text in texts_of(ax):
        box = extent(ax, text)
        inside = [
            b
            for b in boxes
            if b.x0 < text.get_position()[0] < b.x1 and b.y0 < text.get_position()[1] < b.y1
        ]
        if text.get_gid() == "label":
            assert not any(b.overlaps(box) for b in boxes), text.get_text()
        assert all(holds(b, box) for b in [page, *inside]), text.get_text()


def test_texts_do_not_overlap(ax):
    for a, b in combinations(texts_of(ax), 2):
        assert not extent(ax, a).overlaps(extent(ax, b)), (a.get_text(), b.get_text())


def test_arrows_cross_no_text_and_no_box(ax):
    texts = [extent(ax, text) for text in texts_of(ax)]
    boxes = [b.padded(-0.02) for b in boxes_of(ax).values()]
    for arrow in ARROWS:
        for start, end in pairwise(np.array(arrow.points)):
            assert (start == end).any(), f"{arrow.label} is not level or upright"
            way = Bbox([np.minimum(start, end) - 0.01, np.maximum(start, end) + 0.01])
            assert not any(way.overlaps(box) for box in texts + boxes), arrow.label


def test_arrows_begin_and_end_at_boxes(ax):
    boxes = list(boxes_of(ax).values())

    def on_an_edge(point):
        x, y = point
        return any(
            (np.isclose([b.x0, b.x1], x).any() and b.y0 <= y <= b.y1)
            or (np.isclose([b.y0, b.y1], y).any() and b.x0 <= x <= b.x1)
            for b in boxes
        )

    for arrow in ARROWS:
        assert on_an_edge(arrow.points[0]), arrow.label
        assert on_an_edge(arrow.points[-1]), arrow.label
    assert sum(isinstance(patch, FancyArrowPatch) for patch in ax.patches) == len(ARROWS)


def test_there_is_a_way_round(ax):
    """From the model through losses, gradients, switch and constraint back to the model."""
    boxes = {name.removeprefix("box: "): box for name, box in boxes_of(ax).items()}

    def at(point):
        return next(n for n, b in boxes.items() if b.padded(0.01).contains(*point))

    nexts = {(at(arrow.points[0]), at(arrow.points[-1])) for arrow in ARROWS}
    loop = ["Model", "Losses", "Gradients", "Strategy switch", "Constraint step"]
    loop += ["Parameter update", "Model"]
    assert set(pairwise(loop)) <= nexts
    assert ("Parameter update", "Front") in nexts


def test_addresses_come_from_the_code():
    assert address(AdaptiveSwitch.decide) == "strategies.AdaptiveSwitch.decide"
    assert member(Decision, "weights") == "weights"
    with pytest.raises(AttributeError, match="Decision has no 'wheights'"):
        member(Decision, "wheights")
