"""``apfex explore``."""

from __future__ import annotations

from typing import Annotated

import typer

from apfex.cli import _options as options
from apfex.cli._screen import Screen

EXAMPLES = options.examples(
    "apfex explore adult",
    'apfex explore people.csv --label income --positive ">50K" --sensitive sex,race',
    "apfex explore loans.parquet --label paid --sensitive sex,age --bins age=25,60",
)


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
        typer.Option(help="Rules decide by a guess of the group; members do not."),
    ] = options.Search.auto,
    points: Annotated[int, typer.Option(help="The most that the front keeps.", min=1)] = 16,
    seed: Annotated[int, typer.Option(help="The same seed, the same run.", min=0)] = 0,
    test_fraction: Annotated[
        float, typer.Option(help="Share of rows held back for the report.", metavar="SHARE")
    ] = 0.25,
    tolerance: options.Tolerance = 0.05,
    confidence: options.Confidence = 0.95,
    encoding: options.Encoding = None,
    out: options.Out = None,
    json: options.Json = False,
) -> None:
    """Train the front of accuracy and fairness of a table, and write a report and the model."""
    from apfex.cli import _settings as read
    from apfex.cli._exploring import explore

    screen = Screen(json)
    names = read.read_criteria_option(criteria)
    settings = read.ExploreSettings(
        source=source,
        label=label,
        positive=positive,
        favorable=favorable,
        sensitive=tuple(sensitive or ()),
        bins=read.read_bins(bins or ()),
        drop=tuple(drop or ()),
        weight=weight,
        criteria=names,
        max_gap=read.read_max_gap(max_gap, names),
        model=model.value,
        search=search.value,
        points=points,
        seed=seed,
        test_fraction=test_fraction,
        tolerance=tolerance,
        confidence=confidence,
        encoding=encoding,
    )
    screen.finish(explore(settings, out, screen))
