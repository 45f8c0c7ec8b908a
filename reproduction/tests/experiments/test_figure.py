"""The figure shows what the traces hold, and can be read."""

import copy
from itertools import combinations, pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.colors import to_hex, to_rgb

from apfex.datasets import make_biased
from apfex.groups import make_groups
from apfex.objectives import CrossEntropy, FairnessLoss
from apfex.optimizer import APFEx
from apfex.strategies import Choice
from apfex_reproduction.experiments._drawing import BANDS
from apfex_reproduction.experiments._figure import _COLOURS, _needs_log, _runs, _shares, draw_figure

NAMES = [choice.name for choice in Choice]


def made_up(windows=3, objectives=2, low=0.5, window=10):
    lines = {f"objective {k}": np.linspace(1, low, windows).tolist() for k in range(objectives)}
    return {
        "step": [window * (w + 1) for w in range(windows)],
        "strategy": [NAMES[w % 3] for w in range(windows)],
        "losses": lines,
        "weights": {name: [1 / objectives] * windows for name in lines},
        "norm": np.linspace(2, 1, windows).tolist(),
    }


@pytest.fixture(scope="module")
def real():
    """What a short training leaves behind."""
    torch.manual_seed(0)
    data = make_biased(200, random_state=0)
    x = torch.tensor(data.X[["merit_1", "merit_2"]].to_numpy(), dtype=torch.float32)
    y, groups = torch.tensor(data.y), torch.tensor(make_groups(data.sensitive).codes)
    model = torch.nn.Linear(2, 1)
    optimizer = APFEx(torch.optim.Adam(model.parameters(), lr=0.05), window=2)
    losses = {"cross-entropy": CrossEntropy(), "dp sex x origin": FairnessLoss("dp")}
    for _ in range(12):
        scores = model(x)[:, 0]
        optimizer.backward([loss(scores, y, groups) for loss in losses.values()])
        optimizer.step()
    assert optimizer.history is not None
    frame = optimizer.history.to_frame()
    return {
        "step": (frame["step"] + 2).tolist(),
        "strategy": frame["strategy"].tolist(),
        "losses": {name: frame[f"loss{k}"].tolist() for k, name in enumerate(losses)},
        "weights": {name: frame[f"weight{k}"].tolist() for k, name in enumerate(losses)},
        "norm": frame["direction_norm"].tolist(),
    }


@pytest.fixture(scope="module")
def pair():
    """Two columns: four windows of five objectives, and two windows of two."""
    traces = {"a": made_up(windows=4, objectives=5), "b": made_up(windows=2)}
    return traces, draw_figure(traces)


def panels_of(figure, columns=1):
    return np.array(figure.axes[: 3 * columns], dtype=object).reshape(3, columns)


def test_lines_are_the_traces(real):
    before = copy.deepcopy(real)
    norms, losses, weights = panels_of(draw_figure({"biased": real}))[:, 0]
    (norm,) = norms.get_lines()
    np.testing.assert_array_equal(norm.get_ydata(), real["norm"])
    np.testing.assert_array_equal(norm.get_xdata(), np.arange(1, 12, 2))
    for panel, kind in ((losses, "losses"), (weights, "weights")):
        drawn = {line.get_label(): list(line.get_ydata()) for line in panel.get_lines()}
        assert drawn == real[kind]
    assert real == before


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(NAMES), st.integers(1, 50)), min_size=1, max_size=30))
def test_bands_cover_every_step_with_its_strategy(windows):
    names, lengths = zip(*windows, strict=True)
    edges = np.concatenate([[0], np.cumsum(lengths)]).astype(float)
    runs = list(_runs(names, edges))
    assert runs[0][1] == 0
    assert runs[-1][2] == edges[-1]
    assert all(a[2] == b[1] and a[0] != b[0] for a, b in pairwise(runs))
    for name, middle in zip(names, (edges[:-1] + edges[1:]) / 2, strict=True):
        assert [run[0] for run in runs if run[1] < middle < run[2]] == [name]


def test_every_panel_has_the_bands(pair):
    _, figure = pair
    for column, windows in zip(panels_of(figure, 2).T, (4, 2), strict=True):
        for panel in column:
            faces = [to_hex(patch.get_facecolor()) for patch in panel.patches]
            assert faces == [BANDS[NAMES[w % 3]]["facecolor"] for w in range(windows)]
            spans = [
                patch.get_extents().transformed(panel.transData.inverted()).intervalx
                for patch in panel.patches
            ]
            np.testing.assert_allclose(spans, [[10 * w, 10 * w + 10] for w in range(windows)])


@pytest.mark.parametrize(
    ("windows", "expected"),
    [
        ({"AW": 1}, "PCP 0 %, AW 100 %, PSS 0 %"),
        ({"PCP": 1, "AW": 2, "PSS": 1}, "PCP 25 %, AW 50 %, PSS 25 %"),
        ({"PCP": 1, "AW": 999}, "PCP < 1 %, AW > 99 %, PSS 0 %"),
    ],
)
def test_shares_count_steps(windows, expected):
    assert _shares(list(windows), np.array(list(windows.values()), dtype=float)) == expected


def test_shares_and_name_head_the_column(pair):
    panel = pair[1].axes[1]
    assert panel.get_title() == "PCP 50 %, AW 50 %, PSS 0 %"
    assert [text.get_text() for text in panel.texts] == ["b"]


@pytest.mark.parametrize(
    ("lines", "helps"),
    [
        ([[1.0, 0.5], [0.2]], False),
        ([[1.0, 0.5], [0.05]], True),
        ([[1.0, 0.0], [0.05, float("nan")]], True),
        ([[1.0, -0.5], [0.05]], False),
        ([[0.0, 0.0]], False),
        ([[float("nan")]], False),
    ],
)
def test_a_logarithmic_axis_helps_from_a_factor_of_ten(lines, helps):
    assert _needs_log(lines) is helps


def test_a_norm_that_is_not_known_leaves_a_hole():
    trace = made_up() | {"norm": [1.0, float("nan"), 0.01]}
    panel, losses, weights = panels_of(draw_figure({"a": trace}))[:, 0]
    assert panel.get_yscale() == "log"
    assert losses.get_yscale() == weights.get_yscale() == "linear"
    assert np.isnan(panel.get_lines()[0].get_ydata()[1])


@pytest.mark.parametrize(("columns", "windows"), [(1, 1), (3, 6)])
def test_all_text_is_inside_the_figure_and_apart(columns, windows):
    traces = {f"data set {c}": made_up(windows, objectives=5) for c in range(columns)}
    figure = draw_figure(traces)
    drawn = figure.get_tightbbox()  # in inches
    assert min(drawn.x0, drawn.y0) >= 0
    assert (drawn.x1 <= figure.get_figwidth()) & (drawn.y1 <= figure.get_figheight())
    heads = [panel.title.get_window_extent() for panel in figure.axes[:columns]]
    heads += [panel.texts[0].get_window_extent() for panel in figure.axes[:columns]]
    assert not any(a.overlaps(b) for a, b in combinations(heads, 2))


def test_axes_are_named_and_shared(pair):
    panels = panels_of(pair[1], 2)
    assert all(panel.get_ylabel() for panel in panels[:, 0])
    assert all(panel.get_xlabel() for panel in panels[-1])
    for column, last in zip(panels.T, (40, 20), strict=True):
        assert all(panel.get_xlim() == (0, last) for panel in column)
    for row in panels:
        assert row[0].get_ylim() == row[1].get_ylim()
    low, high = panels[2, 0].get_ylim()
    assert low < 0 < 1 < high


def test_legends_name_objectives_and_strategies(pair):
    traces, figure = pair
    for panel, trace in zip(panels_of(figure, 2)[2], traces.values(), strict=True):
        shown = [text.get_text() for text in panel.get_legend().get_texts()]
        assert shown == list(trace["losses"])
    bands = [text.get_text() for text in figure.legends[0].get_texts()]
    assert bands == ["PCP (ConeProjection)", "AW (AdaptiveWeighting)", "PSS (SetSampling)"]


def test_a_dollar_is_a_dollar():
    trace = made_up() | {kind: {"a $ b $": [1.0] * 3} for kind in ("losses", "weights")}
    figure = draw_figure({"$5 or $6": trace})
    assert figure.axes[0].texts[0].get_text() == r"\$5 or \$6"


def test_many_objectives_stay_apart():
    lines = panels_of(draw_figure({"a": made_up(objectives=12)}))[1, 0].get_lines()
    assert len({(line.get_color(), line.get_marker()) for line in lines}) == 12


def luminance(colour):
    parts = [v / 12.92 if v <= 0.04 else ((v + 0.055) / 1.055) ** 2.4 for v in to_rgb(colour)]
    return float(np.dot(parts, [0.2126, 0.7152, 0.0722]))


def contrast(a, b):
    light, dark = sorted([luminance(a), luminance(b)], reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("band", BANDS.values(), ids=list(BANDS))
def test_lines_stand_out_from_the_bands(band):
    """3 is what the accessibility guidelines (WCAG 2.1, 1.4.11) ask of graphics."""
    assert min(contrast(line, band["facecolor"]) for line in _COLOURS) >= 3


def test_bands_can_be_told_apart_without_colour():
    looks = [(band["facecolor"], band.get("hatch")) for band in BANDS.values()]
    for i, (face, hatch) in enumerate(looks):
        for other, texture in looks[:i]:
            assert hatch != texture or contrast(face, other) > 1.25


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"step": [10, 10, 30]}, r"traces\['a'\]\['step'\] must be rising and positive"),
        ({"step": [0, 1, 2]}, "steps taken when each window ended"),
        ({"step": []}, "must be rising"),
        ({"strategy": ["AW", "MGDA", "AW"]}, r"one of \['PCP', 'AW', 'PSS'\], got 'MGDA'"),
        ({"strategy": ["AW"]}, "strategy must have an entry for each of the 3 windows, got 1"),
        ({"norm": [1.0]}, "norm must have an entry for each of the 3 windows, got 1"),
        ({"weights": {"other": [1.0] * 3}}, "of the same objectives"),
        ({"losses": {}, "weights": {}}, "of the same objectives"),
        ({"losses": {"objective 0": [1.0] * 3, "objective 1": [1.0]}}, r"losses\['objective 1'\]"),
    ],
)
def test_bad_traces_are_named(change, message):
    with pytest.raises(ValueError, match=message):
        draw_figure({"a": made_up() | change})


def test_what_is_missing_is_named():
    trace = {key: value for key, value in made_up().items() if key != "norm"}
    with pytest.raises(ValueError, match=r"got none of \['norm'\]"):
        draw_figure({"a": trace})
    with pytest.raises(ValueError, match="at least one data set"):
        draw_figure({})
