"""``apfex datasets``: what there is, and getting it."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Annotated

import typer

from apfex.cli import _options as options
from apfex.cli._screen import Screen

datasets = typer.Typer(
    help="List the data sets: whether they are here, where they come from, their licence.",
    epilog=options.examples("apfex datasets", "apfex datasets fetch german heart"),
    rich_markup_mode="rich",
)


def _names() -> list[str]:
    """For the completion of the shell."""
    from apfex.datasets import list_datasets

    return [info.name for info in list_datasets()]


@datasets.callback(invoke_without_command=True)
def list_command(context: typer.Context, json: options.Json = False) -> None:
    """List the data sets: whether they are here, where they come from, their licence."""
    from apfex.datasets import list_datasets

    if context.invoked_subcommand is not None:
        return
    screen = Screen(json)
    rows = [
        {
            "name": info.name,
            "here": _is_here(info.name),
            "bytes": sum(file.size for file in info.files),
            "licence": info.licence,
            "homepage": info.homepage,
            "description": info.description,
        }
        for info in list_datasets()
    ]
    screen.table(
        ["name", "here", "size", "licence, home"],
        [
            [
                row["name"],
                "yes" if row["here"] else "no",
                f"{max(row['bytes'] / 1e6, 0.1):.1f} MB",
                f"{row['licence']}\n{row['homepage']}",
            ]
            for row in rows
        ],
        left=("name", "here", "licence, home"),
    )
    screen.say()
    screen.say("Get one with `apfex datasets fetch NAME`; `apfex explore NAME` also gets it.")
    screen.finish({"datasets": rows})


@datasets.command("fetch", epilog=options.examples("apfex datasets fetch german heart"))
def fetch_command(
    names: Annotated[list[str], typer.Argument(help="Data sets.", autocompletion=_names)],
    json: options.Json = False,
) -> None:
    """Get data sets that are not on this machine yet; every file is checked by its sha256."""
    from apfex.datasets import list_datasets, load_dataset

    screen = Screen(json)
    licences = {info.name: info.licence for info in list_datasets()}
    for name in names:
        if name not in licences:
            near = get_close_matches(name, licences, n=1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(licences)}."
            raise ValueError(f"There is no data set {name!r}; {hint}")
    found = []
    for name in names:
        screen.aside(f"Looking for {name} ... (licence: {licences[name]})")
        data = load_dataset(name)
        screen.say(f"{name}: {len(data.y):,} rows, {data.X.shape[1]} columns, ready")
        found.append({"name": name, "rows": len(data.y), "licence": licences[name]})
    screen.finish({"datasets": found})


def _is_here(name: str) -> bool:
    from apfex.datasets import load_dataset

    try:
        load_dataset(name, download=False)
    except FileNotFoundError:
        return False
    return True
