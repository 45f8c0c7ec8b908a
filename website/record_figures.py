"""Pictures of what is on record: each is drawn from files of ``benchmarks/results``.

They are 4.6 inches wide, so that their words can be read on a phone. A picture keeps the
fingerprint of what it shows, and a test draws it anew and compares.
"""

import json
import sys
from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
RESULTS = BENCHMARKS / "results"
sys.path.append(str(BENCHMARKS))  # its scripts import each other from there
TABLES = {
    "adult": "Adult (4 groups)",
    "adult-10": "Adult (10)",
    "adult-sex-race-age": "Adult, sex x race x age",
    "adult-with-attributes": "Adult, attributes as inputs",
    "celeba": "CelebA (4)",
    "compas": "COMPAS (6)",
    "compas-with-attributes": "COMPAS, attributes as inputs",
    "german": "German (4)",
    "heart": "Heart (4)",
    "made-even": "synthetic, even",
    "made-uneven": "synthetic, uneven",
}
PROBLEMS = {
    "dp": "selection rates (dp)",
    "tpr": "true positive rates",
    "eo": "equalized odds",
    "both": "dp and tpr at once",
}


def read(name: str) -> Any:
    """A record in JSON."""
    return json.loads((RESULTS / name).read_text(encoding="utf-8"))


def canvas(height: float, rows: int = 1, columns: int = 1, **shared: Any) -> tuple[Figure, Any]:
    """A figure of the width of all pictures, with its axes."""
    figure = Figure(figsize=(4.6, height), layout="constrained")
    axes = figure.subplots(rows, columns, **shared)
    for one in np.ravel(axes):
        one.tick_params(labelsize=8)
        one.spines[["top", "right"]].set_visible(False)
    return figure, axes


def over_linearpost() -> Figure:
    """Hypervolume of the default over that of LinearPost on the same model, for every table."""
    from front.intervals import ratio  # pyright: ignore[reportMissingImports]
    from front.records import read_records  # pyright: ignore[reportMissingImports]
    from front.rows import rows_of  # pyright: ignore[reportMissingImports]
    from front.tables import TABLES as KNOWN  # pyright: ignore[reportMissingImports]

    records = read_records(RESULTS / "front")
    figure, axes = canvas(6.4, 2, 2, sharex=True, sharey=True)
    places = range(len(TABLES))
    for axis, (problem, words) in zip(axes.ravel(), PROBLEMS.items(), strict=True):
        for place, name in enumerate(TABLES):
            rows = rows_of(records, name)
            scores = (rows[m].scores(problem) for m in ("APFEx", "LinearPost + our q"))
            middle, low, high = ratio(*scores, KNOWN[name].overlap)
            colour = "C0" if low > 1 else "C1" if high < 1 else "grey"
            axis.plot([low, high], [place, place], color=colour, linewidth=1.5)
            axis.plot(middle, place, "o", color=colour, markersize=5)
        axis.axvline(1, color="black", linewidth=0.8, linestyle="dashed")
        axis.set_title(words, fontsize=9)
    axes[0, 0].set(xscale="log", xlim=(0.7, 1.7), ylim=(len(TABLES) - 0.5, -0.5))
    axes[0, 0].set_yticks(places, list(TABLES.values()), fontsize=8)
    axes[0, 0].set_xticks([0.8, 1, 1.25, 1.6], ["0.8", "1", "1.25", "1.6"])
    axes[0, 0].minorticks_off()
    figure.supxlabel("hypervolume of APFEx / of LinearPost", fontsize=9)
    return figure


def step_cost() -> Figure:
    """What a step costs against the number of objectives, for each kind of method."""
    ways = {
        "TorchJD MGDA": ("TorchJD, MGDA", "C1", "-"),
        "TorchJD UPGrad": ("TorchJD, UPGrad", "C1", "--"),
        "loop of autograd.grad": ("loop of autograd.grad", "C7", "-"),
        "APFEx PCP, parameter": ("APFEx, PCP, parameter space", "C0", ":"),
        "APFEx AW, loop of README": ("APFEx, AW, losses one by one", "C0", "-."),
        "APFEx switch, prediction": ("APFEx, the switch, at the outputs", "C0", "--"),
        "APFEx AW": ("APFEx, AW", "C0", "-"),
    }
    record = read("step/one_thread.json")["step"]
    figure, axis = canvas(4.2)
    numbers = [int(m) for m in record]
    for name, (words, colour, style) in ways.items():
        costs = [record[str(m)][name] for m in numbers]
        axis.plot(numbers, costs, style, marker="o", markersize=4, color=colour, label=words)
    axis.axhline(1, color="black", linewidth=0.8)
    axis.annotate("a plain cross-entropy step", (3.1, 0.72), fontsize=8)
    axis.set(xlabel="objectives", ylabel="processor time / plain step", ylim=(0.5, 6.4))
    axis.set_xticks(numbers)
    axis.legend(fontsize=8, loc="upper left", frameon=False)
    return figure


def at_a_bound() -> Figure:
    """Gap and error on test rows for each bound that is asked for, on Adult."""
    from front.records import read_records  # pyright: ignore[reportMissingImports]
    from front.rows import rows_of  # pyright: ignore[reportMissingImports]

    ways = {
        "APFEx": ("APFEx", "C0", "-"),
        "LinearPost + our q": ("LinearPost on the same model", "C1", "-"),
        "EG + XGBoost": ("EG + XGBoost", "C2", "-"),
        "ThresholdOptimizer + HGB": ("ThresholdOptimizer *", "C3", "--"),
        "OxonFair + HGB": ("OxonFair *", "C4", "--"),
    }
    rows = rows_of(read_records(RESULTS / "front"), "adult")
    bounds = (0.02, 0.05, 0.1)
    figure, (gaps, errors) = canvas(5.2, 2, 1, sharex=True)
    for name, (words, colour, style) in ways.items():
        found = np.array([np.mean(rows[name].within("dp", bound), axis=0) for bound in bounds])
        for axis, column in ((errors, 0), (gaps, 1)):
            axis.plot(bounds, found[:, column], style, marker="o", color=colour, label=words)
    gaps.plot([0, 0.12], [0, 0.12], color="black", linewidth=0.8)
    gaps.annotate("as asked", (0.077, 0.068), fontsize=8)
    gaps.set(ylabel="gap on test rows", xlim=(0.01, 0.11), ylim=(0, 0.125))
    errors.set(xlabel="gap that was asked for", ylabel="error on test rows")
    errors.set_xticks(bounds)
    gaps.legend(fontsize=8, frameon=False)
    return figure


def fronts_on_adult() -> Figure:
    """Points that methods hand out on the first split of Adult, error against gap."""
    from front.records import Run, read_records  # pyright: ignore[reportMissingImports]

    ways = {
        "APFEx": ("APFEx", "C0o-"),
        "LinearPost + our q": ("LinearPost on the same model", "C1s-"),
        "EG + XGBoost": ("EG + XGBoost", "C2^-"),
        "fairret + network": ("fairret, network", "C4D-"),
        "TorchJD UPGrad": ("TorchJD UPGrad, network", "C5v-"),
        "plain HGB": ("plain boosting", "kX"),
    }
    records = read_records(RESULTS / "front")
    figure, axis = canvas(4.2)
    for name, (words, style) in ways.items():
        points = sorted(records[Run("adult", 0, name)]["problems"]["dp"]["points"])
        best: list[list[float]] = []
        for error, gap in points:  # by rising error: those with a smaller gap than all before
            if not best or gap < best[-1][1]:
                best.append([error, gap])
        errors, gaps = zip(*best, strict=True)
        axis.plot(gaps, errors, style, markersize=4, linewidth=1, label=words)
    axis.set(xlabel="gap in selection rates on test rows", ylabel="error on test rows")
    axis.set(xlim=(0, 0.25), ylim=(0.12, 0.18))
    axis.legend(fontsize=8, frameon=False)
    return figure


def many_cells() -> Figure:
    """Processor seconds of a fit against the number of cells."""
    records = [
        record
        for record in read("cells/cells.json")["records"]
        if record["method"] == "APFEx" and record["rows"] == 20_000
    ]
    figure, axis = canvas(2.8)
    cells = [record["cells"] for record in records]
    axis.plot(cells, [record["seconds"] for record in records], "o-")
    axis.axvline(64, color="grey", linestyle="dashed")
    axis.annotate("each cell has\nmodels of its own", (55, 2), fontsize=8, ha="right")
    axis.annotate("a few dozen groups\nstand for all cells", (75, 2), fontsize=8)
    axis.set(xscale="log", ylim=(0, 32), xlabel="cells of the crossing")
    axis.set(ylabel="processor seconds of a fit")
    axis.set_xticks([4, 64, 1_024, 10_000], ["4", "64", "1,024", "10,000"])
    axis.minorticks_off()
    return figure


def scaling() -> Figure:
    """Time of a step against one quantity at a time."""
    words = {
        "rows": "rows of a batch",
        "groups": "groups",
        "objectives": "objectives",
        "parameters": "parameters of the network",
    }
    steps = read("scaling/two-cores.json")["steps"]
    figure, axes = canvas(4.8, 2, 2, sharey=True)
    for axis, (quantity, points) in zip(axes.ravel(), steps.items(), strict=True):
        place = [point[quantity] for point in points]
        axis.loglog(place, [point["apfex"] for point in points], "o-", markersize=4, label="APFEx")
        plain = [point["plain"] for point in points]
        axis.loglog(place, plain, "s--", markersize=4, color="grey", label="cross-entropy alone")
        axis.set_xlabel(words[quantity], fontsize=9)
        shown = [place[0], place[-1]]
        axis.set_xticks(shown, [short(value) for value in shown], fontsize=8)
        axis.minorticks_off()
    axes[0, 0].legend(fontsize=8, frameon=False)
    figure.supylabel("milliseconds of a step", fontsize=9)
    return figure


def short(value: int) -> str:
    """1,024 as it is, 4,413,441 as 4.4 million."""
    return f"{value / 1e6:.1f} million" if value >= 1e6 else f"{value:,}"


def rare_groups() -> Figure:
    """How likely a batch holds nobody of a group, by the formula of the page."""
    figure, axis = canvas(2.8)
    batch = np.geomspace(64, 300_000, 60)
    for share, colour in ((1e-2, "C0"), (1e-3, "C1"), (1e-4, "C2")):
        name = f"1 row in {1 / share:,.0f}"
        axis.plot(batch, 100 * (1 - share) ** batch, color=colour, label=name)
    axis.set(xscale="log", xlabel="rows of a batch", ylabel="batches without the group (%)")
    axis.set_xticks([100, 1_000, 10_000, 100_000], ["100", "1,000", "10,000", "100,000"])
    axis.legend(title="the group has", fontsize=8, title_fontsize=8, frameon=False)
    return figure


def coverage() -> Figure:
    """Share of intervals that hold the truth, a dot for every design."""
    designs = pd.read_csv(RESULTS / "verdicts" / "designs.csv")
    kinds = {
        "equal": ("of one size", "#3b6fb6"),
        "unequal": ("of several sizes", "#c75c1d"),
        "weighted": ("with weights", "#5a8f3c"),
        "crossing": ("of a crossing", "#8458a6"),
    }
    figure, axis = canvas(3.8)
    for kind, (words, colour) in kinds.items():
        part = designs[designs["kind"] == kind]
        apart = np.exp(np.random.default_rng(0).uniform(-0.12, 0.12, len(part)))
        covered = 100 * (1 - part["too_high"] - part["too_low"])
        axis.scatter(part["smallest"] * apart, covered, s=5, alpha=0.4, color=colour, label=words)
    axis.axhline(95, color="black", linewidth=1, linestyle="dashed")
    axis.set(xscale="log", ylim=(91.8, 100.2), ylabel="intervals that hold the true gap (%)")
    axis.set(xlabel="rows of the smallest group")
    axis.set_xticks([1, 10, 100, 1_000], ["1", "10", "100", "1,000"])
    axis.legend(title="groups", fontsize=8, title_fontsize=8, loc="lower center", ncols=2)
    return figure


def rows_needed() -> Figure:
    """Rows a group at which a verdict comes in 80% of audits; bands over the rates."""
    needed: Any = pd.read_csv(RESULTS / "verdicts" / "rows.csv")
    needed = needed[needed["groups"] == 4]
    gap, limit = needed["gap"], needed["limit"]
    kinds = (
        (needed[gap == 0], "limit", "no gap: shown to be within a limit of ...", "C2"),
        (needed[(gap > 0) & (limit == 0.05)], "gap", "a gap of ...: shown to exceed 0.05", "C1"),
        (needed[(gap > 0) & (limit == 0)], "gap", "a gap of ...: shown to exist", "C0"),
    )
    figure, axis = canvas(3.8)
    for part, across, words, colour in kinds:
        ends = part.groupby(across)["smallest"].agg(["min", "max"])
        axis.fill_between(ends.index, ends["min"], ends["max"], color=colour, alpha=0.25)
        middle = part[part["low"] == 0.2]
        axis.plot(middle[across], middle["smallest"], "o-", color=colour, label=words)
    axis.set(yscale="log", ylim=(40, 30_000), xlabel="gap, or limit", ylabel="rows of each group")
    axis.set_xticks([0.05, 0.1, 0.2], ["0.05", "0.1", "0.2"])
    axis.set_yticks([100, 1_000, 10_000], ["100", "1,000", "10,000"])
    axis.legend(fontsize=8, frameon=False)
    return figure


RECORD_FIGURES: dict[str, Callable[[], Figure]] = {
    "benchmarks-linearpost": over_linearpost,
    "benchmarks-step": step_cost,
    "benchmarks-fronts": fronts_on_adult,
    "benchmarks-bound": at_a_bound,
    "benchmarks-cells": many_cells,
    "scaling-step": scaling,
    "scaling-rare": rare_groups,
    "verdicts-coverage": coverage,
    "verdicts-rows": rows_needed,
}
"""For each name what draws it."""


def fingerprint(figure: Figure) -> str:
    """Of all lines, dots, bands, bars and words of a picture; colours and fonts do not count."""
    told: list[Any] = []
    for axis in figure.axes:
        told += [_words(axis), *(_numbers(line.get_xydata()) for line in axis.lines)]
        bars: Any = axis.patches
        for dots in axis.collections:
            told += [_numbers(dots.get_offsets())]
            told += [_numbers(path.vertices) for path in dots.get_paths()[:9]]
        told += [_numbers(bar.get_bbox().extents) for bar in bars]
    return sha256(json.dumps(told).encode()).hexdigest()


def _words(axis: Axes) -> list[str]:
    legend = axis.get_legend()
    texts = [*axis.texts, *(legend.get_texts() if legend else [])]
    return [axis.get_title(), axis.get_xlabel(), axis.get_ylabel(), *(t.get_text() for t in texts)]


def _numbers(values: Any) -> Sequence[str]:
    return [f"{value:.4g}" for value in np.ravel(np.ma.filled(values, np.nan))]


def saving(draw: Callable[[], Figure]) -> Callable[[Path], None]:
    """What writes a picture, with its fingerprint."""

    def save(place: Path) -> None:
        figure = draw()
        figure.savefig(place, dpi=160, metadata={"Comment": fingerprint(figure)})

    return save
