"""Run the blocks of pages: ``python website/run_pages.py audit runs`` writes anew what comes out.

Where a page shows what a block prints, a fence ``{.text .output}`` follows the block; where it
shows what the block draws, a picture ``figures/NAME.png`` does. Blocks of Python are all run, those
of ``console`` where their output is shown. Tests run the same blocks and compare.
"""

import re
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

    language: str
    code: str
    shown: str | None
    picture: str | None


def read_blocks(page: str) -> list[Block]:
    """The blocks of Python and of commands on a page, in order."""
    found = BLOCK.finditer(page)
    return [Block(one["language"], one["code"], one["shown"], one["place"]) for one in found]


def run_blocks(blocks: list[Block], each: Callable[[Block, str], None]) -> dict:
    """Run blocks in one namespace, which is handed out; ``each`` is told what a block printed."""
    names: dict = {}
    for block in blocks:
        printed = StringIO()
        with redirect_stdout(printed):
            if block.language == "python":
                exec(compile(block.code, "page", "exec"), names)
            elif block.shown is not None:
                run_commands(block.code)
        lines = [line.rstrip() for line in printed.getvalue().rstrip().splitlines()]
        each(block, "".join(f"{line}\n" for line in lines))
    return names


def rewrite(page: str) -> str:
    """The page with what its blocks print; pictures are drawn on the way."""
    import matplotlib as mpl

    mpl.use("agg")
    import matplotlib.pyplot as plt

    printed: list[str] = []

    def keep(block: Block, text: str) -> None:
        printed.append(text)
        if block.picture:
            plt.savefig(DOCS / block.picture, dpi=160)
        plt.close("all")

    with TemporaryDirectory() as folder, chdir(folder):
        run_blocks(read_blocks(page), keep)
    outputs = iter(printed)

    def filled(one: re.Match) -> str:
        text = next(outputs)
        shown = f"{one['fence']}{text}{one['close']}" if one["fence"] else ""
        return f"{one['start']}{one['code']}{one['end']}{shown}{one['picture'] or ''}"

    return BLOCK.sub(filled, page)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        place = DOCS / f"{name}.md"
        place.write_text(rewrite(place.read_text(encoding="utf-8")), encoding="utf-8")
