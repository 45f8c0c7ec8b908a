"""Commands on a run that is stored: ``apfex predict``, ``apfex report`` and ``apfex rerun``."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from apfex.cli import _options as options
from apfex.cli._audit import show_audit
from apfex.cli._explore import show_front, show_run, telling, to_document
from apfex.cli._screen import Screen
from apfex.plain import printable

PREDICT_EXAMPLES = options.examples(
    "apfex predict apfex-adult new.csv",
    "apfex predict apfex-people new.parquet --point 3 --out decided.parquet",
    "apfex predict apfex-people new.csv --out - | head",
    "apfex predict apfex-people 'new/*.parquet' --out decided.parquet",
)
REPORT_EXAMPLES = options.examples(
    "apfex report apfex-adult", "apfex report apfex-adult --decision decision.json"
)
CARD_EXAMPLES = options.examples(
    "apfex card apfex-people --out README.md", "apfex card apfex-people --license mit"
)
RERUN_EXAMPLES = options.examples(
    "apfex rerun apfex-adult/run.json",
    "apfex rerun apfex-people/run.json --data moved/people.csv --out again",
)
_MOST_DIFFERENCES = 4
_SECONDS = 10.0


def predict(
    run: options.Run,
    file: Annotated[
        list[Path],
        typer.Argument(
            help="CSV, Excel, Parquet or Arrow file; or several, a folder, or a pattern such as "
            "'new/*.parquet', as one table."
        ),
    ],
    point: Annotated[
        int | None, typer.Option(help="Which model of the run; the chosen one by default.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="File to write (CSV, Parquet or Arrow), or - for stdout; FILE-predictions beside "
            "FILE, or beside the folder of several, by default.",
            metavar="FILE",
        ),
    ] = None,
    prefix: Annotated[
        str, typer.Option(help="Before the names of the new columns.", metavar="WORD")
    ] = "",
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
    encoding: options.Encoding = None,
    sheet: options.Sheet = None,
    json: options.Json = False,
) -> None:
    """Decide for new rows: a copy of the file with decisions, probabilities and margins.

    Rows are read and written some at a time, so that a table may be larger than memory.
    """
    from apfex.runs import load_run

    if json and str(out) == "-":
        raise ValueError("--json and --out - both want stdout; leave one out.")
    screen = Screen(json)
    found = load_run(run)
    target = sys.stdout if str(out) == "-" else out
    done = found.predict_file(
        file,
        target,
        point=point,
        prefix=prefix,
        force=force,
        encoding=encoding,
        sheet=sheet,
        progress=_now_and_then(screen),
    )
    say = screen.say if done.out is not None else screen.aside
    positive = printable(found.record["words"][1], 40)
    decided, probability, margin = done.columns
    of_files = f" of {done.files:,} files" if done.files > 1 else ""
    say(
        f"{done.rows:,} rows{of_files} decided by point {done.point}: "
        f"{100 * done.selection_rate:.1f}% {positive}"
    )
    say(
        f"Columns added: {decided}; {probability} of “{positive}”, calibrated; {margin}, above 0 "
        f"where “{positive}” is decided"
    )
    say(f"Written: {done.out or 'stdout'}")
    if done.cells_made_safe:
        screen.warn(
            f"{done.cells_made_safe:,} cells of text have =, +, -, @ or a control character where "
            "a spreadsheet would run it: at the start, or after ; , | a tab or a line end. It was "
            "written with an apostrophe before it."
        )
    screen.finish({"run": str(found.folder), **asdict(done)})


def _now_and_then(screen: Screen) -> Callable[[int, int | None], None]:
    """Tell how far it is, when some time has passed since the last line."""
    last = time.monotonic()

    def tell(done: int, total: int | None) -> None:
        nonlocal last
        if time.monotonic() - last < _SECONDS:
            return
        last = time.monotonic()
        screen.aside(f"{done:,}{'' if total is None else f' of {total:,}'} rows decided ...")

    return tell


def report(
    run: options.Run,
    decision: Annotated[
        Path | None,
        typer.Option(help="decision.json that the page has saved; kept and shown.", metavar="FILE"),
    ] = None,
    json: options.Json = False,
) -> None:
    """Write the page of a run again, from what the run has stored."""
    from apfex.runs import Run, rewrite_report

    screen = Screen(json)
    found = rewrite_report(run, decision=decision)
    assert found.folder is not None
    page = (found.folder / "report.html").absolute()
    signed = _signed(found.folder)
    if isinstance(found, Run):
        show_front(found.described, screen)
    else:
        show_audit(found.audit, screen)
    screen.say()
    told = {} if signed is None else {"Decision": _in_words(signed)}
    screen.facts({**told, "Report": str(page)})
    screen.finish({"run": str(found.folder), "report": str(page), "decision": signed})


def card(
    run: options.Run,
    out: Annotated[
        Path | None, typer.Option(help="File to write; stdout by default.", metavar="FILE")
    ] = None,
    license: Annotated[
        str | None,
        typer.Option(help="Licence that the model is given away under, as mit.", metavar="ID"),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
    json: options.Json = False,
) -> None:
    """Write the model card of a run: its use, data, groups, gaps with verdicts, and limits.

    It is Markdown with the front matter of Hugging Face, for a README.md beside the model.
    """
    from apfex.persistence import write_text_atomically
    from apfex.runs import load_run

    screen = Screen(json)
    text = load_run(run).model_card(license=license)
    if out is not None:
        if out.exists() and not force:
            raise FileExistsError(f"{out} exists already; --force replaces it.")
        write_text_atomically(out, text)
        screen.say(f"Written: {out.absolute()}")
    elif not json:
        sys.stdout.write(text)
    screen.finish({"run": str(run), "card": text, "out": out})


def _signed(folder: Path) -> dict[str, Any] | None:
    """The decision in a folder, which the writing of its page has checked."""
    from apfex.persistence import read_json

    file = folder / "decision.json"
    return read_json(file) if file.exists() else None


def _in_words(signed: Mapping[str, Any]) -> str:
    what = "signed" if signed["point"] is None else f"point {signed['point']}, signed"
    return f"{what} by {printable(signed['name'], 80)} on {signed['date']}"


def rerun(
    run: Annotated[Path, typer.Argument(help="run.json of a run, or its folder.")],
    data: Annotated[
        Path | None, typer.Option(help="Where the file is now.", metavar="FILE")
    ] = None,
    out: options.Out = None,
    json: options.Json = False,
) -> None:
    """Repeat a run on the same data into a new folder, and say whether it comes out the same."""
    from apfex.runs import free_folder, load_run, rerun

    screen = Screen(json)
    known = load_run(run).record["data"]
    beside = str(data or known["path"] or known["name"])
    folder = free_folder(out, beside)
    done = rerun(run, data=data, out=folder, **telling(screen, folder))
    show_run(done.run, screen)
    screen.say()
    repeats = done.repeats.absolute()
    if done.same:
        screen.say(f"The same as {repeats}: all errors and gaps of all models, to the last digit.")
    else:
        n_more = len(done.differences) - _MOST_DIFFERENCES
        more = f" and {n_more} more" if n_more > 0 else ""
        told = ", ".join(done.differences[:_MOST_DIFFERENCES])
        screen.say(f"Not the same as {repeats}: {told}{more}.")
    if done.versions_changed and not done.same:
        said = (f"{name} {old} -> {new}" for name, (old, new) in done.versions_changed.items())
        screen.say(f"Versions differ: {', '.join(said)}.")
    screen.finish(
        to_document(done.run)
        | {
            "repeats": done.repeats,
            "same": done.same,
            "differences": done.differences,
            "versions_changed": done.versions_changed,
        }
    )
    if not done.same:
        raise typer.Exit(1)
