"""Whether the command line would take what a page tells people to type; nothing is run."""

import re
from collections.abc import Sequence
from typing import Any

from typer.main import get_command

from apfex.cli import _options
from apfex.cli._app import app


def all_commands() -> dict[str, Any]:
    """Every command by its whole name, those of commands of commands too."""

    def within(command: Any, path: tuple[str, ...]) -> Any:
        yield " ".join(path), command
        for name, inner in getattr(command, "commands", {}).items():
            yield from within(inner, (*path, name))

    top: Any = get_command(app)
    top.list_commands(None)  # takes in what other distributions add
    return dict(within(top, ("apfex",)))


COMMANDS = all_commands()


def options_of(command: Any) -> set[str]:
    """The long options that people may type."""
    return {
        option
        for parameter in command.params
        for option in (*parameter.opts, *parameter.secondary_opts)
        if option.startswith("--")
    }


def understand(words: Sequence[str]) -> None:
    """Raise what the parser, or a setting that checks itself, says against words behind apfex."""
    names = [" ".join(["apfex", *words[:n]]) for n in (2, 1, 0)]
    name = next(name for name in names if name in COMMANDS)
    rest = list(words[len(name.split()) - 1 :])
    if hasattr(COMMANDS[name], "commands") and rest:
        assert rest[0].startswith("-"), f"{name} has no command {rest[0]}"
    context = COMMANDS[name].make_context(name, rest)
    if name in ("apfex explore", "apfex audit"):
        _check_settings(name, dict(context.params))


def _check_settings(name: str, typed: dict[str, Any]) -> None:
    """Read what only the command reads: ranges, limits, costs, rules."""
    from apfex.runs import read_rule
    from apfex.runs._settings import AuditFileSettings, ExploreSettings

    for rule in typed.pop("fail_on", None) or ():
        read_rule(rule)
    given = _options.arguments(typed) | {"source": typed.get("source") or typed.get("file")}
    given = {key: _apart(value) for key, value in given.items()}
    (ExploreSettings if name == "apfex explore" else AuditFileSettings).of(given)


def _apart(value: Any) -> Any:
    """Names with commas between, as the settings get them once a table is open."""
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return [name for one in value for name in re.split(",", one)]
    return value
