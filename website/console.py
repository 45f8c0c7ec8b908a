"""Commands of pages: blocks of ``console`` are read, and run as a shell would run them.

A line is a command, and one that ends with a backslash goes on in the next. Commands of apfex run
in this process, all others in a shell that finds ``apfex``. ``echo $?`` tells the last exit code.
"""

import os
import re
import shlex
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from textwrap import fill

HOME = "/home/you"
"""What a page shows in the place of the folder that its commands were run in."""
_WIDE = 88
AT_THE_END = "terminate called without an active exception"
"""A worker of torch 2.13 may abort so as it ends, with all done: seven of fourteen trainings of a
bare DistributedDataParallel with gloo did. What is printed and written is compared all the same."""
_MINUTES = 60.0
_BEFORE_SHELL = re.compile(r"""(?:"[^"]*"|'[^']*'|[^"'|<>;&])*""")


def read_commands(code: str) -> list[str]:
    """The commands of a block, each on one line, without the comments behind them."""
    lines = re.sub(r"\s*\\\n\s*", " ", code).splitlines()
    return [line.strip() for line in lines if line.strip() and not line.startswith("#")]


def words_for_apfex(command: str) -> list[str] | None:
    """What is typed behind ``apfex``, also where torchrun starts it; None of other commands."""
    words = shlex.split(_first_of_pipe(command), comments=True)
    if "apfex" not in words:
        return None
    place = words.index("apfex")
    starts = place == 0 or (words[0] == "torchrun" and words[place - 1] == "-m")
    return words[place + 1 :] if starts else None


def _first_of_pipe(command: str) -> str:
    """What stands before the first sign that only a shell understands."""
    found = _BEFORE_SHELL.match(command)
    return found[0] if found else ""


def run_commands(code: str) -> list[int]:
    """Run the commands of a block, print what they print, and hand out their exit codes.

    A script that fails is an error here; of a command of apfex the page may show how it fails.
    """
    codes: list[int] = []
    for command in read_commands(code):
        if command == "echo $?":
            print(codes[-1])
            continue
        exit_code, out, told = _run(command)
        if exit_code and words_for_apfex(command) is None:
            raise RuntimeError(f"{command!r} ended with {exit_code}: {told[-3_000:]}")
        codes.append(exit_code)
        asides = [one for one in told.splitlines() if one.startswith(("Error:", "Warning:"))]
        for line in [*out.splitlines(), *asides]:
            shown = line.replace(str(Path.cwd()), HOME)
            print(fill(shown, _WIDE) if len(shown) > _WIDE and "  " not in shown else shown)
    return codes


def _run(command: str) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of a command."""
    words = words_for_apfex(command)
    if words is None or command.startswith("torchrun") or _first_of_pipe(command) != command:
        return _run_in_shell(command)
    from apfex.cli import main

    out, told = StringIO(), StringIO()
    with redirect_stdout(out), redirect_stderr(told):
        exit_code = main(words)
    return exit_code, out.getvalue(), told.getvalue()


def _run_in_shell(command: str) -> tuple[int, str, str]:
    """The same in a process of its own, which finds what this Python has installed."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    with subprocess.Popen(
        ["bash", "-c", f"exec {command}" if _first_of_pipe(command) == command else command],
        env={**os.environ, "PATH": path, "MPLBACKEND": "agg"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            out, told = process.communicate(timeout=6 * _MINUTES)
        finally:
            process.terminate()  # not killed: torchrun then ends its workers
    is_done = command.startswith("torchrun") and AT_THE_END in told
    return 0 if is_done else process.returncode, out, told
