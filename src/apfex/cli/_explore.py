"""``apfex explore``: options, and a run in a terminal."""

from __future__ import annotations

import shlex
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from apfex.cli import _options as options
from apfex.cli._screen import Screen
from apfex.plain import printable

if TYPE_CHECKING:
    from pathlib import Path

    from apfex.runs import GroupCounts, Run, RunData

EXAMPLES = options.examples(
    "apfex explore adult",
    'apfex explore people.csv --label income --positive ">50K" --sensitive sex,race',
    "apfex explore loans.parquet --label paid --sensitive sex,age --bins age=25,60",
    "apfex explore 'claims/*.parquet' --label fraud --sensitive sex,region",
    "apfex explore claims.xlsx --label fraud --sensitive sex --scoring balanced_accuracy",
)


_TYPES = {"number": "numbers", "text": "text", "boolean": "yes/no", "date": "dates"}
_MOST_FEATURES = 8


def explore(
    source: Annotated[
        str,
        typer.Argument(
            help="Data set, CSV, Excel, Parquet or Arrow file, or pattern of such files."
        ),
    ],
    label: options.Label = None,
    positive: options.Positive = None,
    sensitive: options.Sensitive = None,
    favorable: Annotated[
        str | None,
        typer.Option(
            help="The outcome that a person would want, if it is not the positive one.",
            metavar="VALUE",
        ),
    ] = None,
    bins: options.Bins = None,
    drop: Annotated[
        list[str] | None,
        typer.Option(help="Columns that the model must not decide by.", metavar="COLUMNS"),
    ] = None,
    weight: options.Weight = None,
    criteria: options.Criteria = options.CRITERIA,
    max_gap: Annotated[
        str | None,
        typer.Option(
            help="Limit: the largest gap that the chosen model may have. A number for all "
            "criteria, or dp=0.05,tpr=0.1; 0.05 for the first one by default.",
            metavar="GAP",
        ),
    ] = None,
    max_error_increase: Annotated[
        float | None,
        typer.Option(
            help="Limit: how much larger than the lowest its error may be, such as 0.02.",
            metavar="SHARE",
        ),
    ] = None,
    scoring: Annotated[
        str,
        typer.Option(
            help="What models are ranked by: accuracy, balanced_accuracy (for rare outcomes), or a "
            "scorer of scikit-learn such as f1.",
            metavar="NAME",
        ),
    ] = "accuracy",
    cost: Annotated[
        str | None,
        typer.Option(
            help="What errors cost; models are then ranked by it.",
            metavar="false_positive=1,false_negative=5",
        ),
    ] = None,
    class_weight: Annotated[
        str | None,
        typer.Option(
            help="How much errors on an outcome count when models are made: balanced, or such as "
            "positive=5. Models are still ranked by --scoring.",
            metavar="balanced|positive=5",
        ),
    ] = None,
    selection_rate: Annotated[
        float | None,
        typer.Option(
            help="Share of people who get the favorable outcome, such as 0.2.", metavar="SHARE"
        ),
    ] = None,
    include_sensitive: Annotated[
        bool,
        typer.Option("--include-sensitive", help="Let the model decide by the sensitive columns."),
    ] = False,
    group_thresholds: Annotated[
        bool,
        typer.Option(
            "--group-thresholds",
            help="Decide by another threshold for each group; this may be unlawful where you are.",
        ),
    ] = False,
    model: Annotated[
        options.Model,
        typer.Option(help="Kind of model that is trained; auto: what predicts new rows best."),
    ] = options.Model.auto,
    search: Annotated[
        options.Search,
        typer.Option(
            help="postprocess: decision rules that guess the group; inprocess: models that do not."
        ),
    ] = options.Search.auto,
    strategy: Annotated[
        list[str] | None,
        typer.Option(
            help="What decides where to search: switch, which adapts, or one of pcp, aw, pss, "
            "fixed, tchebycheff, mgda, cagrad, pcgrad, upgrad; or several of them.",
            metavar="NAMES",
            show_default="switch",
        ),
    ] = None,
    points: Annotated[int, typer.Option(help="Maximum number of models to keep.", min=1)] = 16,
    seed: Annotated[int, typer.Option(help="The same seed gives the same run.", min=0)] = 0,
    threads: Annotated[
        int | None,
        typer.Option(help="Processors to use; one for small tables by default.", min=1),
    ] = None,
    test_fraction: Annotated[
        float,
        typer.Option(help="Share of rows to measure on, for the report.", metavar="SHARE"),
    ] = 0.25,
    tolerance: options.ToleranceOrLimit = None,
    confidence: options.Confidence = 0.95,
    encoding: options.Encoding = None,
    sheet: options.Sheet = None,
    stream: Annotated[
        bool | None,
        typer.Option(
            "--stream/--no-stream",
            help="Read Parquet, Arrow or CSV files in chunks, so that they need not fit into "
            "memory; patterns, folders and large files are by default.",
            show_default=False,
        ),
    ] = None,
    out: options.Out = None,
    fresh: Annotated[
        bool,
        typer.Option(
            "--fresh", help="Start anew, not where an earlier run into the same folder stopped."
        ),
    ] = False,
    json: options.Json = False,
) -> None:
    """Train models from the most accurate to the fairest, and write a report and the models."""
    given = options.arguments(locals())
    from apfex.distributed import chosen_workers
    from apfex.runs import explore, free_folder

    screen = Screen(json)
    team = chosen_workers()
    folder = free_folder(out, source) if team is None or team.rank == 0 else None
    screen.aside(f"Reading {printable(source)} ...")
    run = explore(**given, out=folder, **telling(screen, folder))
    if folder is not None:
        show_run(run, screen)
        screen.finish(to_document(run))
    if not run.conclusion.is_usable:
        raise typer.Exit(1)


def telling(screen: Screen, folder: Path | None) -> dict[str, Any]:
    """What a run is to tell while it goes on."""
    import rich

    from apfex.front import NearConstantWarning, UnmetBoundWarning

    def tell(stage: str, data: RunData) -> None:
        if stage == "read":
            _show_data(data, screen)
        elif stage == "resuming":
            screen.aside(f"Going on from {printable(folder)}.checkpoint (--fresh starts anew)")
        elif stage == "training":
            screen.aside(
                f"Training on {data.fit_rows:,} rows ... (Ctrl-C stops; what is finished is kept)"
            )
        else:
            screen.aside(
                f"Measuring every model on {data.test_rows:,} test rows ... (Ctrl-C keeps the "
                "models)"
            )

    rich.reconfigure(stderr=True)  # the bar of the classifier is drawn on rich's own console
    for known in (UnmetBoundWarning, NearConstantWarning):
        warnings.simplefilter("ignore", known)  # the first line after training says so
    return {"progress": tell, "verbose": True}


def _show_data(data: RunData, screen: Screen) -> None:
    """What was taken for what; nothing is guessed silently."""
    dropped = "".join(f"; {n:,} more {why} are left out" for why, n in data.dropped.items())
    label = "1:" if data.label is None else f"{printable(data.label)}, positive:"
    counts = {kind: list(data.features.values()).count(kind) for kind in _TYPES}
    types = ", ".join(f"{n} {_TYPES[kind]}" for kind, n in counts.items() if n)
    names = [printable(name, 40) for name in data.features]
    more = f" and {len(names) - _MOST_FEATURES:,} more" if len(names) > _MOST_FEATURES else ""
    dates = [name for name, kind in data.features.items() if kind == "date"]
    told = ", ".join(printable(name, 40) for name in dates)
    screen.facts(
        {
            "Data": f"{data.description}, {data.rows:,} rows{dropped}",
            "Label": f"{label} {printable(data.positive, 40)} ({100 * data.base_rate:.1f}% of the "
            f"rows); favorable: {printable(data.favorable, 40)}",
            "Groups": describe_groups(data.groups),
            "Features": f"{len(names)} ({types}): {', '.join(names[:_MOST_FEATURES])}{more}",
            **({"Dates": f"{told}: as days since 1 January 1970"} if dates else {}),
            "Rows": f"{data.fit_rows:,} to train and choose by, {data.test_rows:,} to test",
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
    """What the run came to, its models, and what to know before one is used."""
    show_front(run.described, screen)
    said = ["leak", "identifier", "proxy", "date", "groups_left_out"]  # said before
    said += [] if run.conclusion.is_usable else ["trivial_front", "trivial", "constant"]
    for caveat in run.caveats:
        if caveat.level == "warning" and caveat.code not in said:
            screen.warn(f"Point {run.described['chosen']}: {caveat}")
    assert run.folder is not None
    screen.say()
    files = {"Report": str(run.folder / "report.html"), "Folder": str(run.folder)}
    if run.conclusion.is_usable:
        files["Predict"] = f"apfex predict {shlex.quote(str(run.folder))} FILE"
    screen.facts(files)


def show_front(described: Mapping[str, Any], screen: Screen) -> None:
    """What the run came to, and a row per point, on the test rows, with intervals.

    Gaps are those of the full crossing. The first row is that of the same answer for everyone.
    """
    screen.say()
    screen.say(described["conclusion"]["text"])
    screen.say()
    crossing = described["groupings"][-1]["by"]
    criteria = [criterion["key"] for criterion in described["criteria"]]
    confidence, n = described["settings"]["confidence"], len(described["points"])
    by = described["ranked_by"]
    shown = {"error": ["error"], "balanced_error": ["error", "balanced_error"]}
    errors = shown.get(by, ["error", "loss"])
    kind = errors[-1].replace("_", " ")
    gain = f"gain: how much smaller the {kind} is than with the answer of the first row"
    if by not in shown:
        gain = f"{by} and gain: on the validation rows, against the answer of the first row"
    screen.say(
        f"{n} {'model' if n == 1 else 'models'} by {printable(crossing, 60)}, on "
        f"{described['rows']:,} test rows, {100 * confidence:g}% intervals; {gain}"
    )
    named = [(by if name == "loss" else name).replace("_", " ") for name in errors]
    columns = ["point", *named, "gain", "favored", *(f"{name} gap" for name in criteria), "note"]
    rows = [
        _cells(str(point["point"]), point, errors, _gaps(point, crossing, criteria), note)
        for point in described["points"]
        for note in [_notes(point, described)]
    ]
    constant, none = described["constant"], ["0.000"] * len(criteria)
    rows.insert(0, _cells("-", {**constant, "gain": 0.0}, errors, none, constant["text"]))
    screen.table(columns, rows, left=("note", *(f"{name} gap" for name in criteria)))


def _cells(
    name: str, figures: Mapping[str, Any], errors: Sequence[str], gaps: Sequence[str], note: str
) -> list[str]:
    """A row of the table."""
    found = [f"{figures[one]:.3f}" for one in errors]
    return [
        name,
        *found,
        f"{figures['gain']:+.3f}",
        f"{100 * figures['share_favored']:.1f}%",
        *gaps,
        note,
    ]


def _gaps(point: Mapping[str, Any], crossing: str, criteria: Sequence[str]) -> list[str]:
    gaps = {gap["criterion"]: gap for gap in point["gaps"] if gap["by"] == crossing}
    return [_gap(gaps[name]) for name in criteria]


def _notes(point: Mapping[str, Any], described: Mapping[str, Any]) -> str:
    code = described["conclusion"]["code"]
    chosen = {"chosen": "chosen", "limit_not_met": "closest to the limit"}
    notes = {
        chosen.get(code, ""): point["point"] == described["chosen"],
        "constant": point["trivial"],
        "nearly constant": point["near_constant"] and not point["trivial"],
        "no group gains": point["levelled_down"],
    }
    return ", ".join(name for name, holds in notes.items() if holds and name)


def _gap(gap: Mapping[str, Any]) -> str:
    if gap["gap"] is None:
        return "too few rows"
    return f"{gap['gap']:.3f} ({gap['lower']:.2f} to {gap['upper']:.2f})"


def to_document(run: Run) -> dict[str, Any]:
    """For machines: the record, and the figures of every point without those of every group."""
    names = ("point", "error", "error_lower", "error_upper", "balanced_error", "share_favored")
    names += ("loss", "gain", "near_constant", "trivial", "levelled_down", "gaps")
    front = [{name: point[name] for name in names} for point in run.described["points"]]
    constant = run.described["constant"]
    return {**run.record, "folder": run.folder, "constant": constant, "front": front}
