"""Pictures that no code on a page draws: ``python -m website.figures NAME ...``, or all."""

import shutil
import sys
from collections.abc import Callable
from contextlib import chdir
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from website.record_figures import RECORD_FIGURES, saving
from website.run_pages import DOCS, read_blocks, run_blocks

FOLDER = DOCS / "figures"


@cache
def report() -> str:
    """The report that the blocks of ``docs/report.md`` write."""
    blocks = read_blocks((DOCS / "report.md").read_text(encoding="utf-8"))
    with TemporaryDirectory() as folder, chdir(folder):
        run_blocks(blocks, lambda *_: None)
        return Path("report.html").read_text(encoding="utf-8")


def part_of_report(part: str, width: int = 540) -> Callable[[Path], None]:
    """What takes a picture of a part of the report, in Chromium."""

    def take(place: Path) -> None:
        from playwright.sync_api import sync_playwright

        path = shutil.which("chromium") or shutil.which("google-chrome")
        with sync_playwright() as started:
            browser = started.chromium.launch(executable_path=path, args=["--no-sandbox"])
            view = browser.new_page(
                viewport={"width": width, "height": 900},
                device_scale_factor=1.5,
                color_scheme="light",
            )
            view.set_content(report())
            view.wait_for_selector(f"{part}:visible")
            view.locator(part).screenshot(path=place)
            browser.close()

    return take


FIGURES: dict[str, Callable[[Path], None]] = {
    "report-first-screen": part_of_report("#now"),
    "report-front": part_of_report("#front", 640),
    "report-changes": part_of_report("#changes"),
    **{name: saving(draw) for name, draw in RECORD_FIGURES.items()},
}
"""For each name what writes ``docs/figures/NAME.png``."""


if __name__ == "__main__":
    for name in sys.argv[1:] or FIGURES:
        FIGURES[name](FOLDER / f"{name}.png")
        print(name)
