"""``apfex explore``: options, and a run in a terminal."""

from __future__ import annotations

import shlex
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from apfex.cli import _options as options
from apfex.cli._screen import Screen
from apfex.plain import printable

if TYPE_CHECKING:
    from apfex.runs import GroupCounts, Run, RunData

EXAMPLES = options.examples(
    "apfex explore adult",
    'apfex explore people.csv --label income --positive ">50K" --sensitive sex,race',
    "apfex explore loans.parquet --label paid --sensitive sex,age --bins age=25,60",
)


_TYPES = {"number": "numbers", "text": "text", "boolean": "yes/no"}
_MOST_FEATURES = 8


def explore(
    source: Annotated[str, typer.Argument(help="Data set, or CSV, Parquet or Arrow file.")],
    label: options.Label = None,
    positive: options.Positive = None,
    sensitive: options.Sensitive = None,
    favorable: Annotated[
        str | None,
        typer.Option(help="The outcome that a person would want.", metavar="VALUE"),
    ] = None,
    bins: options.Bins = None,
    drop: Annotated[
        list[str] | None, typer.Option(help="Columns that are no features.", metavar="COLUMNS")
    ] = None,
    weight: options.Weight = None,
    criteria: options.Criteria = options.CRITERIA,
    max_gap: Annotated[
        str | None,
        typer.Option(
            help="Bound of the point to choose: for all criteria, or dp=0.05,tpr=0.1; 0.05 for the "
            "first one by default.",
            metavar="GAP",
        ),
    ] = None,
    model: Annotated[options.Model, typer.Option(help="What is trained.")] = options.Model.mlp,
    search: Annotated[
        options.Search,
        typer.Option(
            help="postprocess: rules that guess the group; inprocess: models that do not."
        ),
    ] = options.Search.auto,
    points: Annotated[int, typer.Option(help="The most that the front keeps.", min=1)] = 16,
    seed: Annotated[int, typer.Option(help="The same seed, the same run.", min=0)] = 0,
    test_fraction: Annotated[
        float, typer.Option(help="Share of rows to test on, for the report.", metavar="SHARE")
    ] = 0.25,
    tolerance: options.Tolerance = 0.05,
    confidence: options.Confidence = 0.95,
    encoding: options.Encoding = None,
    out: options.Out = None,
    json: options.Json = False,
) -> None:
    """Train the front of accuracy and fairness of a table, and write a report and the model."""
    given = options.arguments(locals())
    from apfex.runs import explore, free_folder

    screen = Screen(json)
    folder = free_folder(out, source)
    screen.aside(f"Reading {printable(source)} ...")
    run = explore(**given, out=folder, **telling(screen))
    show_run(run, screen)
    screen.finish(to_document(run))


def telling(screen: Screen) -> dict[str, Any]:
    """What a run is to tell while it goes on."""
    import rich

    from apfex.front import UnmetBoundWarning

    def tell(stage: str, data: RunData) -> None:
        if stage == "read":
            _show_data(data, screen)
        elif stage == "training":
            screen.aside(f"Training on {data.fit_rows:,} rows ... (Ctrl-C stops; nothing is kept)")
        else:
            screen.aside(
                f"Measuring every point on {data.test_rows:,} test rows ... (Ctrl-C keeps the "
                "model)"
            )

    rich.reconfigure(stderr=True)  # the bar of the classifier is drawn on rich's own console
    warnings.simplefilter("ignore", UnmetBoundWarning)  # the line "Chosen" at the end says so
    return {"progress": tell, "verbose": screen.asides.is_terminal}


def _show_data(data: RunData, screen: Screen) -> None:
    """What was taken for what; nothing is guessed silently."""
    dropped = "".join(f"; {n:,} dropped {why}" for why, n in data.dropped.items())
    label = "1:" if data.label is None else f"{printable(data.label)}, positive:"
    counts = {kind: list(data.features.values()).count(kind) for kind in _TYPES}
    types = ", ".join(f"{n} {_TYPES[kind]}" for kind, n in counts.items() if n)
    names = [printable(name, 40) for name in data.features]
    more = f" and {len(names) - _MOST_FEATURES:,} more" if len(names) > _MOST_FEATURES else ""
    screen.facts(
        {
            "Data": f"{data.description}, {data.rows:,} rows{dropped}",
            "Label": f"{label} {printable(data.positive, 40)} ({100 * data.base_rate:.1f}%); "
            f"favorable: {printable(data.favorable, 40)}",
            "Groups": describe_groups(data.groups),
            "Features": f"{len(names)} ({types}): {', '.join(names[:_MOST_FEATURES])}{more}",
            "Rows": f"{data.fit_rows:,} to fit and choose, {data.test_rows:,} to test",
        }
    )


def describe_groups(groups: GroupCounts) -> str:
    """Attributes with their levels, and the smallest group."""
    sizes = [f"{printable(name, 30)} ({n:,})" for name, n in groups.levels.items()]
    rows = groups.smallest_rows
    return (
        f"{' x '.join(sizes)}: {groups.groups:,} groups, the smallest has {rows:,} "
        f"{'row' if rows == 1 else 'rows'} ({printable(groups.smallest, 60)})"
    )


def show_run(run: Run, screen: Screen) -> None:
    """The front, the point that was chosen, and what to know before it is used."""
    show_front(run.described, screen)
    assert run.folder is not None
    screen.say()
    screen.facts(
        {
            "Chosen": describe_choice(run.described),
            "Report": str(run.folder / "report.html"),
            "Predict": f"apfex predict {shlex.quote(str(run.folder))} FILE",
        }
    )
    for caveat in run.caveats:
        if caveat.level == "warning":
            screen.warn(f"Point {run.described['chosen']}: {caveat}")


def describe_choice(described: Mapping[str, Any]) -> str:
    """Which point, and by which figures; these are not those of the table."""
    place = described["chosen"]
    chosen = described["points"][place]["validation"]["gaps"]
    gaps = {name: gap["gap"] for name, gap in chosen.items()}
    bounds = described["settings"]["max_gap"]
    said = ", ".join(f"{name} {limit:g}" for name, limit in bounds.items())
    if all(gaps[name] <= limit for name, limit in bounds.items()):
        why = f"the most accurate of those within --max-gap ({said})"
        return f"point {place}: {why} on the validation rows"
    found = ", ".join(f"{name} {gaps[name]:.3f}" for name in bounds)
    return (
        f"point {place}: none is within --max-gap ({said}) on the validation rows; there this "
        f"one is nearest ({found})"
    )


def show_front(described: Mapping[str, Any], screen: Screen) -> None:
    """A row per point, on the test rows; gaps are those of the crossing, with intervals."""
    crossing = described["groupings"][-1]["by"]
    criteria = [criterion["key"] for criterion in described["criteria"]]
    confidence = described["settings"]["confidence"]
    screen.say()
    screen.say(
        f"Front of {len(described['points'])} points by {printable(crossing, 60)}, on "
        f"{described['rows']:,} test rows, {100 * confidence:g}% intervals"
    )
    rows = []
    for point in described["points"]:
        gaps = {gap["criterion"]: gap for gap in point["gaps"] if gap["by"] == crossing}
        notes = {
            "chosen": point["point"] == described["chosen"],
            "trivial": point["trivial"],
            "levelled down": point["levelled_down"],
        }
        note = ", ".join(name for name, holds in notes.items() if holds)
        own = [_gap(gaps[name]) for name in criteria]
        rows.append([str(point["point"]), f"{point['error']:.3f}", *own, note])
    columns = ["point", "error", *(f"{name} gap" for name in criteria), "note"]
    screen.table(columns, rows, left=("note", *columns[2:]))


def _gap(gap: Mapping[str, Any]) -> str:
    if gap["gap"] is None:
        return "not estimable"
    return f"{gap['gap']:.3f} ({gap['lower']:.2f} to {gap['upper']:.2f})"


def to_document(run: Run) -> dict[str, Any]:
    """For machines: the record, and the figures of every point without those of every group."""
    names = ("point", "error", "error_lower", "error_upper", "trivial", "levelled_down", "gaps")
    front = [{name: point[name] for name in names} for point in run.described["points"]]
    return {**run.record, "folder": run.folder, "front": front}
