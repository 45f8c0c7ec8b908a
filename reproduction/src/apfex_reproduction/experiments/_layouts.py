"""Tables laid out: whole for a page, compact for a terminal, run by run."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from apfex_reproduction.experiments._compare import Comparison
from apfex_reproduction.experiments._grid import (
    DASH,
    NAMES,
    Column,
    Grid,
    Line,
    number,
    paper_cells,
    stacked,
    with_spread,
)
from apfex_reproduction.experiments._labels import criteria_of, label_of, works_on
from apfex_reproduction.experiments._ladder import BOUNDS
from apfex_reproduction.experiments._notes import notes_of
from apfex_reproduction.experiments._rows import CRITERIA, Measure, Row, Table, grouping_at

_SECTIONS = {
    "constants": "Constant predictors",
    "paper": "The paper's columns",
    "front": "APFEx's front, as this library searches it now",
    "variants": "Variants",
}


def whole_grid(table: Table, stack: bool = False) -> Grid:
    """Every figure with its spread, stacked if so, and the paper's numbers beside."""
    columns = [Column("Method"), *_columns(table, table.groupings)]
    columns += [Column("Seeds"), Column("Flag"), Column("Paper: Acc / DDP / DEO")]

    def line(row: Row) -> Line:
        show = stacked if stack else with_spread
        figures = [show(row.cell(*measure)) for measure in _measures(table)]
        paper = f"{paper_cells(dict(row.printed), spread=True)}{_marks(row)}"
        cells = (*figures, _seeds(row, table, " of "), row.flag)
        return Line(
            (row.label, *cells, paper if row.part == "paper" else ""),
            _worked_on(row, table),
            _kind(row),
        )

    notes = (
        "In italics: the gaps that a method works on.",
        *notes_of(table),
    )
    return Grid(_title(table), tuple(columns), _sections(table, line), notes)


def compact_grid(table: Table) -> Grid:
    """Means over spreads, and the paper's numbers under the method's name."""
    places = [f"Attr{at}" for at in range(1, len(table.attributes) + 1)]
    groups = [*places, "crossing"][: len(table.groupings)]
    columns = [Column("Method"), *_columns(table, groups), Column("Seeds"), Column("CONST")]

    def line(row: Row) -> Line:
        figures = [stacked(row.cell(*measure)) for measure in _measures(table)]
        name = row.label
        if row.part == "paper":
            paper = paper_cells(dict(row.printed), spread=False)
            name += f"\n  paper {paper}{_marks(row)}"
        flag = row.flag.replace(" ", "\n")
        return Line((name, *figures, _seeds(row, table, "/"), flag), kind=_kind(row))

    return Grid(_title(table), tuple(columns), _sections(table, line), notes_of(table))


def runs_grid(table: Table, name: str = "accuracy", by: str = "") -> Grid:
    """One figure of every run, since a mean can hide two kinds of runs.

    Parameters
    ----------
    table : Table
    name : str
        "accuracy", "balanced_accuracy", "positive_rate", "worst_group_accuracy", "dp" or "tpr".
    by : str, optional
        For gaps: an attribute, or the crossing; the crossing by default.

    Examples
    --------
    >>> from apfex_reproduction.experiments import make_table, runs_grid, to_markdown
    >>> result = dict(accuracy=0.539, balanced_accuracy=0.5, positive_rate=0.0)
    >>> result |= dict(worst_group_accuracy=0.4, constant=True)
    >>> result |= dict(gaps={"age": {"dp": 0.0, "tpr": 0.0}})
    >>> record = dict(dataset="heart", split="70/15/15", seed=0, method="always-0")
    >>> record |= dict(attributes=["age"], results={"chosen": result})
    >>> page = to_markdown(runs_grid(make_table([record], 1, "heart")))
    >>> print(next(line for line in page.splitlines() if "Always 0" in line))
    | Always 0 | .539C | .539 | 1/1 |
    """
    if name not in NAMES:
        raise ValueError(f"name must be one of {', '.join(NAMES)}, got {name!r}.")
    by = (by or table.groupings[-1]) if name in CRITERIA else ""
    if by and by not in table.groupings:
        raise ValueError(f"by must be one of {', '.join(table.groupings)}, got {by!r}.")
    columns = [Column("Method"), *(Column(f"{seed}", "Seed") for seed in table.seeds)]
    columns += [Column("Mean"), Column("CONST")]

    def line(row: Row) -> Line:
        values = row.cell(name, by).values
        runs = {
            seed: f"{number(value)}{'C' if constant else ''}"
            for seed, value, constant in zip(row.seeds, values, row.constant, strict=True)
        }
        cells = [runs.get(seed, "") for seed in table.seeds]
        mean, flag = number(row.cell(name, by).mean), row.flag.removeprefix("CONST ")
        return Line((row.label, *cells, mean, flag), kind=_kind(row))

    title = f"{_title(table)} {NAMES[name]}{f' on {by}' if by else ''}, run by run."
    notes = (f"C: the run's model is constant. Empty: no such run. {DASH}: not estimable.",)
    return Grid(title, tuple(columns), _sections(table, line), notes)


def comparison_grid(comparisons: Sequence[Comparison]) -> Grid:
    """What :func:`compare_front` found, credible rows first.

    Examples
    --------
    >>> from apfex_reproduction.experiments import compare_front, comparison_grid, to_text
    >>> print(to_text(comparison_grid(compare_front([]))).splitlines()[0])
    Rows of others, and our front beside them.
    """
    columns = [Column("Row"), Column("Source"), Column("Gap")]
    columns += [Column("Acc", "Row"), Column("gap", "Row")]
    columns += [Column("Acc", "Our front, at that gap"), Column("gap", "Our front, at that gap")]
    columns += [Column("Reached"), Column("by a bound"), Column("bound"), Column("Doubts")]
    words = {True: "yes", False: "NO", None: DASH}

    def line(one: Comparison) -> Line:
        front = (one.blind.accuracy, one.blind.gap) if one.blind else (None,) * 2
        gap = f"{NAMES[one.criterion]} {one.by}" if one.criterion else ""
        return Line(
            (
                f"{one.dataset}: {label_of(one.method)}",
                one.source,
                gap,
                *map(number, (one.accuracy, one.gap, *front)),
                words[one.reached_blind],
                words[one.reached],
                number(one.rung.bound if one.rung else None),
                ", ".join(one.doubts),
            )
        )

    sections = {
        "Credible rows": [line(one) for one in comparisons if not one.doubts],
        "Rows that are not credible": [line(one) for one in comparisons if one.doubts],
    }
    return Grid(
        "Rows of others, and our front beside them.",
        tuple(columns),
        tuple((title, tuple(lines)) for title, lines in sections.items() if lines),
        (
            "Our front, at that gap: with the row's gap as the bound, in every run the most "
            "accurate point within it on validation rows; means over the seeds, on test rows. "
            "Reached: it has at least the row's accuracy and at most its gap, and is constant in "
            "no run. Nothing is chosen on test rows.",
            f"By a bound: that one or some other of {len(BOUNDS)} fixed beforehand reaches the "
            "row. Which one is seen on test rows only, so this is the kinder answer; the bound is "
            "that of the most accurate that does, otherwise of the nearest.",
        ),
    )


def _title(table: Table) -> str:
    sizes = " / ".join(f"{count:,} {part}" for part, count in table.sizes.items())
    named = ", ".join(f"Attr{at} is {name}" for at, name in enumerate(table.attributes, start=1))
    return (
        f"Table {table.number} on {table.dataset}: split {table.split}"
        f"{f' ({sizes} rows)' if sizes else ''}, model chosen by {table.rule!r}; {named}."
    )


def _measures(table: Table) -> list[Measure]:
    gaps = [(name, by) for by in table.groupings for name in CRITERIA]
    rest = ("balanced_accuracy", "positive_rate", "worst_group_accuracy")
    return [("accuracy", ""), *gaps, *((name, "") for name in rest)]


def _columns(table: Table, groups: Sequence[str]) -> list[Column]:
    shown = dict(zip(table.groupings, groups, strict=True)) | {"": ""}
    return [Column(NAMES[name], shown[by]) for name, by in _measures(table)]


def _sections(
    table: Table, line: Callable[[Row], Line]
) -> tuple[tuple[str, tuple[Line, ...]], ...]:
    parts = {part: [row for row in table.rows if row.part == part] for part in _SECTIONS}
    return tuple((_SECTIONS[part], tuple(map(line, rows))) for part, rows in parts.items() if rows)


def _seeds(row: Row, table: Table, between: str) -> str:
    there, wanted = len(row.seeds), len(table.seeds)
    return str(there) if there == wanted else f"{there}{between}{wanted}"


def _marks(row: Row) -> str:
    return f" ({', '.join(d.mark for d in row.defects)})" if row.defects else ""


def _worked_on(row: Row, table: Table) -> frozenset[int]:
    """Places of the cells that hold a gap which the method lowers."""
    groupings = {grouping_at(place, table.attributes) for place in works_on(row.method)}
    return frozenset(
        at
        for at, (name, by) in enumerate(_measures(table), start=1)
        if by in groupings and name in criteria_of(row.method) and row.seeds
    )


def _kind(row: Row) -> str:
    return "missing" if not row.seeds else "constant" if all(row.constant) else row.part
