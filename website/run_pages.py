"""Run the code of pages: ``python website/run_pages.py audit runs`` writes anew what comes out.

Where a page shows what a block prints, a fence ``{.text .output}`` follows the block; where it
shows what the block draws, a picture ``figures/NAME.png`` does. Tests run the same
blocks and compare.

Blocks of Python run one after the other in one process. One that begins with a comment such as
``# train.py`` is a script: it is written to a file of that name, and the command in the ``console``
block behind it, which is run because an output or a picture follows, runs it. A picture
behind a command is one that the command has saved as ``NAME.png``.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import chdir, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory

DOCS = Path(__file__).parents[1] / "docs"
MINUTES = 60.0
BLOCK = re.compile(
    r"(?P<start>```(?P<language>python|console)\n)(?P<code>.*?)(?P<end>```)"
    r"(?:(?P<fence>\n\n```\{\.text \.output\}\n)(?P<shown>.*?)(?P<close>```))?"
    r"(?P<picture>\n\n!\[[^\]]*\]\((?P<place>figures/[\w-]+\.png)\))?",
    flags=re.S,
)


@dataclass(frozen=True)
class Block:
    """A block of a page: its code, what the page says it prints, and where its picture is."""

    code: str
    shown: str | None
    picture: str | None
    language: str = "python"

    @property
    def script(self) -> str | None:
        """The name of the file that this is, if it is one."""
        name = re.match(r"# (\w+\.py)\n", self.code)
        return name and name[1]

    @property
    def runs(self) -> bool:
        """Whether it does: a command that shows nothing is for the reader alone."""
        return self.language == "python" or self.shown is not None or bool(self.picture)


def read_blocks(page: str) -> list[Block]:
    """The blocks on a page that run, in order."""
    return [block for block in map(_block, BLOCK.finditer(page)) if block.runs]


def _block(one: re.Match) -> Block:
    return Block(one["code"], one["shown"], one["place"], one["language"])


def run_blocks(blocks: list[Block], each: Callable[[Block, str], None]) -> dict:
    """Run blocks in one namespace, which is handed out; ``each`` is told what a block printed."""
    names: dict = {}
    for block in blocks:
        lines = [line.rstrip() for line in _printed(block, names).rstrip().splitlines()]
        each(block, "".join(f"{line}\n" for line in lines))
    return names


def _printed(block: Block, names: dict) -> str:
    """What a block prints in the folder where we are."""
    if block.language == "console":
        return run_command(block.code)
    if block.script:
        Path(block.script).write_text(block.code, encoding="utf-8")
        return ""
    printed = StringIO()
    with redirect_stdout(printed):
        exec(compile(block.code, "page", "exec"), names)
    return printed.getvalue()


def run_command(command: str) -> str:
    """What a command prints; ``python``, ``torchrun`` and ``apfex`` are those of this Python."""
    places = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    with subprocess.Popen(
        shlex.split(command.replace("\\\n", " ")),
        env={**os.environ, "PATH": places, "MPLBACKEND": "agg"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            printed, errors = process.communicate(timeout=6 * MINUTES)
        finally:
            process.terminate()  # not killed: torchrun then ends its workers
    if process.returncode:
        raise RuntimeError(f"{command}ended with {process.returncode}: {errors[-3_000:]}")
    return printed


def rewrite(page: str) -> str:
    """The page with what its blocks print; pictures are drawn on the way."""
    import matplotlib as mpl

    mpl.use("agg")
    import matplotlib.pyplot as plt

    printed: list[str] = []

    def keep(block: Block, text: str) -> None:
        printed.append(text)
        if block.picture and block.language == "console":
            shutil.copy(Path(block.picture).name, DOCS / block.picture)
        elif block.picture:
            plt.savefig(DOCS / block.picture, dpi=160)
        plt.close("all")

    with TemporaryDirectory() as folder, chdir(folder):
        run_blocks(read_blocks(page), keep)
    outputs = iter(printed)

    def filled(one: re.Match) -> str:
        if not _block(one).runs:
            return one[0]
        text = next(outputs)
        shown = f"{one['fence']}{text}{one['close']}" if one["fence"] else ""
        return f"{one['start']}{one['code']}{one['end']}{shown}{one['picture'] or ''}"

    return BLOCK.sub(filled, page)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        place = DOCS / f"{name}.md"
        place.write_text(rewrite(place.read_text(encoding="utf-8")), encoding="utf-8")
