"""Run the code of pages: ``python website/run_pages.py audit runs`` writes anew what comes out.

Where a page shows what a block prints, a fence ``{.text .output}`` follows the block; where it
shows what the block draws, a picture ``figures/NAME.png`` does. Tests run the same
blocks and compare.

Blocks of Python run one after the other in one process. One that begins with a comment such as
``# train.py`` is a script: it is written to a file of that name, and the command in the ``console``
block behind it, which is run because an output or a picture follows, runs it. A picture
behind a command is one that the command has saved as ``NAME.png``. Commands are run as
``website/console.py`` says.
"""

import re
import shutil
import sys
from collections.abc import Callable
from contextlib import chdir, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory

from website.console import run_commands

DOCS = Path(__file__).parents[1] / "docs"
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
    """The blocks of Python and of commands on a page, in order."""
    return [_block(one) for one in BLOCK.finditer(page)]


def _block(one: re.Match) -> Block:
    return Block(one["code"], one["shown"], one["place"], one["language"])


def run_blocks(blocks: list[Block], each: Callable[[Block, str], None]) -> dict:
    """Run blocks in one namespace, which is handed out; ``each`` is told what a block printed."""
    names: dict = {}
    for block in (block for block in blocks if block.runs):
        lines = [line.rstrip() for line in _printed(block, names).rstrip().splitlines()]
        each(block, "".join(f"{line}\n" for line in lines))
    return names


def _printed(block: Block, names: dict) -> str:
    """What a block prints in the folder where we are."""
    if block.script:
        Path(block.script).write_text(block.code, encoding="utf-8")
        return ""
    printed = StringIO()
    with redirect_stdout(printed):
        if block.language == "console":
            run_commands(block.code)
        else:
            exec(compile(block.code, "page", "exec"), names)
    return printed.getvalue()


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
