"""``apfex audit``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from apfex.cli import _options as options
from apfex.cli._screen import Screen

EXAMPLES = options.examples(
    "apfex audit decisions.csv --prediction approved --label repaid --sensitive sex,race",
    "apfex audit scores.parquet --prediction score --threshold 0.5 --sensitive sex,race",
    'apfex audit d.csv --prediction yhat --sensitive sex,race --fail-on "dp_gap.lower > 0.05"',
)


def audit(
    file: Annotated[Path, typer.Argument(help="CSV, Parquet or Arrow file.")],
    prediction: Annotated[str, typer.Option(help="Column with the decisions.", metavar="COLUMN")],
    sensitive: options.Sensitive = None,
    label: options.Label = None,
    positive: options.Positive = None,
    threshold: Annotated[
        float | None, typer.Option(help="Decide for scores from here on.", metavar="SCORE")
    ] = None,
    bins: options.Bins = None,
    weight: options.Weight = None,
    criteria: options.Criteria = options.CRITERIA,
    tolerance: options.Tolerance = 0.05,
    confidence: options.Confidence = 0.95,
    min_count: Annotated[
        float, typer.Option(help="Fewest rows that a rate must rest on.", metavar="ROWS")
    ] = 10,
    fail_on: Annotated[
        list[str] | None,
        typer.Option(
            help="Exit with 1 where 'dp_gap > 0.1', 'tpr_gap.lower > 0.05' or a violation is "
            "found; may be given several times.",
            metavar="RULE",
        ),
    ] = None,
    allow_not_estimable: Annotated[
        bool,
        typer.Option(
            "--allow-not-estimable", help="Let gaps pass that too few rows speak of; else they hit."
        ),
    ] = False,
    drop_missing: Annotated[
        bool, typer.Option("--drop-missing", help="Leave out rows without decision or label.")
    ] = False,
    encoding: options.Encoding = None,
    out: options.Out = None,
    json: options.Json = False,
) -> None:
    """Audit any model's decisions: gaps between groups with intervals and verdicts; a gate."""
    from apfex.cli._auditing import AuditOptions, audit_file, check_rules, document
    from apfex.cli._gate import read_rule
    from apfex.cli._settings import read_bins, read_criteria_option

    screen = Screen(json)
    rules = [read_rule(text) for text in fail_on or ()]
    asked = AuditOptions(
        source=str(file),
        prediction=prediction,
        sensitive=tuple(sensitive or ()),
        label=label,
        positive=positive,
        threshold=threshold,
        bins=read_bins(bins or ()),
        weight=weight,
        criteria=read_criteria_option(criteria),
        tolerance=tolerance,
        confidence=confidence,
        min_count=min_count,
        drop_missing=drop_missing,
        encoding=encoding,
    )
    result = audit_file(asked, rules, out, screen)
    checked = check_rules(result, rules, screen, allow_not_estimable=allow_not_estimable)
    screen.finish(document(result, checked, out))
    if any(one.hit for one in checked):
        raise typer.Exit(1)
